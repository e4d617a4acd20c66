//! What an adapter is lent: a value, checked in one place. A grant takes two keys. The manifest
//! asked, and the person gave; an adapter that is built in was given what it asks by being built in.

use std::collections::BTreeSet;

use crate::digest::Digest;
use crate::manifest::{Access, Asks, CommandLine, Endpoint, Root};
use crate::template::Origin;

/// What a person gave to one adapter, in one version of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The grants, by name: `state`, `roots.config`, `environment.CODEX_HOME`, `notices`.
    pub grants: BTreeSet<String>,
    /// Whether it may stand in for the built-in adapter of the same name.
    pub replaces_built_in: bool,
}

/// Where consents are kept. The binary implements it over the person's settings.
pub trait Consents: Send + Sync + 'static {
    /// What the person gave to the adapter with this very digest, which covers component and
    /// manifest: whatever asks for more is another adapter.
    fn given(&self, adapter: &str, digest: &Digest) -> Consent;
}

/// Nobody gave anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoConsents;

impl Consents for NoConsents {
    fn given(&self, _adapter: &str, _digest: &Digest) -> Consent {
        Consent::default()
    }
}

/// By what key an adapter holds its grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// It is built in: everything that it asks for.
    BuiltIn,
    /// The person gave these.
    ByPerson(BTreeSet<String>),
}

/// One grant that an adapter asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name, as `relay-mesh plugin grant` takes it.
    pub name: String,
    /// What it allows, for people.
    pub allows: String,
    /// Whether it is given.
    pub given: bool,
}

/// Why something is not lent. Its text names the grant and the command that gives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The manifest asks for it, and the person has not given it.
    #[error("the adapter `{adapter}` has no grant `{grant}`; give it by `relay-mesh plugin grant {adapter} {grant}`")]
    NotGiven {
        /// Who asked.
        adapter: String,
        /// For what.
        grant: String,
    },
    /// The manifest does not ask for it.
    #[error(
        "the adapter `{adapter}` has no grant `{grant}`, and its manifest does not ask for it: its author must \
         add it before `relay-mesh plugin grant {adapter} {grant}` can give it"
    )]
    NotAsked {
        /// Who asked.
        adapter: String,
        /// For what.
        grant: String,
    },
}

/// What one adapter is lent.
#[derive(Clone, Debug)]
pub struct Grants {
    adapter: String,
    asks: Asks,
    given: Given,
}

impl Grants {
    /// Both keys together.
    pub fn new(adapter: &str, asks: Asks, given: Given) -> Grants {
        Grants { adapter: adapter.to_owned(), asks, given }
    }

    /// A folder to read.
    pub fn root(&self, name: &str) -> Result<&Root, Denied> {
        self.check(format!("roots.{name}"), self.asks.roots.get(name))
    }

    /// A folder in which a plan may change files.
    pub fn editable_root(&self, name: &str) -> Result<&Root, Denied> {
        let root = self.root(name)?;
        match root.access {
            Access::Edit => Ok(root),
            Access::Read => {
                Err(Denied::NotAsked { adapter: self.adapter.clone(), grant: format!("roots.{name}.edit") })
            }
        }
    }

    /// An HTTP origin.
    pub fn origin(&self, name: &str) -> Result<&Origin, Denied> {
        self.check(format!("origins.{name}"), self.asks.origins.get(name))
    }

    /// A socket.
    pub fn endpoint(&self, name: &str) -> Result<&Endpoint, Denied> {
        self.check(format!("endpoints.{name}"), self.asks.endpoints.get(name))
    }

    /// A command line.
    pub fn program(&self, name: &str) -> Result<&CommandLine, Denied> {
        self.check(format!("programs.{name}"), self.asks.programs.get(name))
    }

    /// Notifications on the desktop.
    pub fn notices(&self) -> Result<(), Denied> {
        self.check("notices".to_owned(), self.asks.notices.then_some(()))
    }

    /// Small bytes kept between calls. Every adapter asks for this, by being an adapter.
    pub fn state(&self) -> Result<(), Denied> {
        self.check("state".to_owned(), Some(()))
    }

    /// Those of the variables that it may see.
    pub fn narrow(&self, environment: &[(String, String)]) -> Vec<(String, String)> {
        let may_see =
            |name: &String| self.asks.environment.contains(name) && self.is_given(&format!("environment.{name}"));
        environment.iter().filter(|(name, _)| may_see(name)).cloned().collect()
    }

    /// Everything that it asks for, and whether that is given.
    pub fn list(&self) -> Vec<Grant> {
        let asks = &self.asks;
        let mut all = vec![("state".to_owned(), "keep small notes of its own between calls".to_owned())];
        all.extend(
            asks.environment.iter().map(|name| {
                (format!("environment.{name}"), format!("see the variable {name} of the harness's process"))
            }),
        );
        all.extend(asks.roots.iter().map(|(name, root)| {
            let verb = match root.access {
                Access::Read => "read files",
                Access::Edit => "read files, and propose changes to files,",
            };
            (format!("roots.{name}"), format!("{verb} under {}", root.path))
        }));
        all.extend(
            asks.origins
                .keys()
                .map(|name| (format!("origins.{name}"), "make requests to a server on this machine".to_owned())),
        );
        all.extend(
            asks.endpoints
                .keys()
                .map(|name| (format!("endpoints.{name}"), "talk over a socket on this machine".to_owned())),
        );
        all.extend(asks.programs.iter().map(|(name, line)| {
            (format!("programs.{name}"), format!("run `{}` with {} arguments", line.program, line.arguments.len()))
        }));
        if asks.notices {
            all.push(("notices".to_owned(), "show notifications on the desktop".to_owned()));
        }
        all.into_iter().map(|(name, allows)| Grant { given: self.is_given(&name), name, allows }).collect()
    }

    fn is_given(&self, grant: &str) -> bool {
        match &self.given {
            Given::BuiltIn => true,
            Given::ByPerson(grants) => grants.contains(grant),
        }
    }

    fn check<T>(&self, grant: String, asked: Option<T>) -> Result<T, Denied> {
        let adapter = self.adapter.clone();
        match asked {
            None => Err(Denied::NotAsked { adapter, grant }),
            Some(_) if !self.is_given(&grant) => Err(Denied::NotGiven { adapter, grant }),
            Some(asked) => Ok(asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    const MANIFEST: &str = r#"
        name = "x"
        title = "X"
        version = "1"
        wit = "0.1"
        [grants]
        environment = ["SEEN"]
        notices = true
        [grants.roots.config]
        path = "~/.x"
        [grants.origins]
        api = "http://127.0.0.1:{port}"
        [grants.endpoints]
        rpc = { tcp = "127.0.0.1:{port}", framing = "lines" }
        [grants.programs]
        version = ["x", "--version"]
    "#;

    fn check(given: &[&str], ask: &str, expected: &str) {
        let manifest = Manifest::parse(MANIFEST).expect("a manifest");
        let given = Given::ByPerson(given.iter().map(|name| (*name).to_owned()).collect());
        let grants = Grants::new("x", manifest.asks, given);
        let outcome = match ask.split_once('.') {
            Some(("roots", name)) => grants.root(name).map(drop),
            Some(("edit", name)) => grants.editable_root(name).map(drop),
            Some(("origins", name)) => grants.origin(name).map(drop),
            Some(("endpoints", name)) => grants.endpoint(name).map(drop),
            Some(("programs", name)) => grants.program(name).map(drop),
            Some(("environment", name)) => {
                let seen = grants.narrow(&[(name.to_owned(), "1".to_owned())]);
                assert_eq!(if seen.is_empty() { "hidden" } else { "seen" }, expected, "{ask}");
                return;
            }
            Some(_) | None if ask == "notices" => grants.notices(),
            Some(_) | None => grants.state(),
        };
        let told = outcome.map_or_else(|denied| denied.to_string(), |()| "lent".to_owned());
        assert!(told.contains(expected), "{ask} given {given:?}: {told}", given = grants.list());
    }

    #[test]
    fn every_grant_takes_both_keys() {
        for grant in ["roots.config", "origins.api", "endpoints.rpc", "programs.version", "notices", "state"] {
            check(&[grant], grant, "lent");
            check(&[], grant, &format!("give it by `relay-mesh plugin grant x {grant}`"));
        }
        for grant in ["roots.other", "origins.other", "endpoints.other", "programs.other"] {
            check(&[grant], grant, "its manifest does not ask for it");
        }
        check(&["environment.SEEN"], "environment.SEEN", "seen");
        check(&[], "environment.SEEN", "hidden");
        check(&["environment.OTHER"], "environment.OTHER", "hidden");
        check(&["roots.config"], "edit.config", "no grant `roots.config.edit`");
    }
}
