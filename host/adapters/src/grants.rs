//! Grants: what an adapter may use, a value that is checked in one place. A grant needs both: the manifest requests it,
//! and the user gives it. A built-in adapter has everything that it requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::answers::{AnswerKind, AnswerRule, AnswerRules, OWN_WORDS};
use crate::digest::Digest;
use crate::foreign_settings::{SettingsFolder, none_installed};
use crate::manifest::{Access, CommandLine, Drive, Endpoint, Links, Login, Requests, Root, Run, Serve};
use crate::places::Asker;
use crate::template::Origin;

/// The grant that every adapter requests implicitly.
pub const STATE: &str = "state";
/// The grant to see the arguments of calls of our own tools.
pub const ARGUMENTS: &str = "arguments";
/// The grant of a server that is kept running.
pub const SERVES: &str = "serves";
/// The grant by which an adapter may replace a built-in one.
pub const REPLACES_BUILT_IN: &str = "replaces-built-in";

/// What the user granted to one version of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The grants, by name: `state`, `roots.config`, `environment.CODEX_HOME`, `notices`.
    pub grants: BTreeSet<String>,
    /// Whether it may replace the built-in adapter of the same name.
    pub replaces_built_in: bool,
}

/// Where consents are kept. The binary implements it over the user's settings.
pub trait Consents: Send + Sync + 'static {
    /// What the user granted to the adapter with this digest, which covers component and manifest: a version that
    /// requests more has another digest.
    fn given(&self, adapter: &str, digest: &Digest) -> Consent;
}

/// No consent for any adapter.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoConsents;

impl Consents for NoConsents {
    fn given(&self, _adapter: &str, _digest: &Digest) -> Consent {
        Consent::default()
    }
}

/// Why an adapter has its grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// It is built in, and has everything that it requests.
    BuiltIn,
    /// The user gave these.
    ByUser(BTreeSet<String>),
}

/// One grant that an adapter requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its name, as `relay-mesh plugin grant` takes it.
    pub name: String,
    /// What it allows, for display.
    pub allows: String,
    /// Whether the user gave it.
    pub given: bool,
}

/// Why an adapter may not use something. The text names the grant and the command that gives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The manifest requests it, and the user has not given it.
    #[error("the adapter `{adapter}` has no grant `{grant}`; give it by `relay-mesh plugin grant {adapter} {grant}`")]
    NotGiven {
        adapter: String,
        /// The grant's name.
        grant: String,
    },
    /// The manifest does not request it.
    #[error(
        "the adapter `{adapter}` has no grant `{grant}`, and its manifest does not ask for it: its author must \
         add it before `relay-mesh plugin grant {adapter} {grant}` can give it"
    )]
    NotAsked {
        adapter: String,
        /// The grant's name.
        grant: String,
    },
}

/// The grants of one adapter.
#[derive(Clone, Debug)]
pub struct Grants {
    adapter: String,
    requests: Requests,
    given: Granted,
    /// The settings of adapters that were installed before this one.
    earlier: Arc<[SettingsFolder]>,
}

impl Grants {
    /// The grants that the manifest requests, with those that are given.
    pub fn new(adapter: &str, requests: Requests, given: Granted) -> Grants {
        Grants { adapter: adapter.to_owned(), requests, given, earlier: none_installed() }
    }

    /// The same beside the settings of adapters that were installed earlier.
    pub(crate) fn beside(self, earlier: Arc<[SettingsFolder]>) -> Grants {
        Grants { earlier, ..self }
    }

    /// The folder of a read grant.
    pub fn root(&self, name: &str) -> Result<&Root, Denied> {
        self.check(format!("roots.{name}"), self.requests.roots.get(name))
    }

    /// The folder of a grant that lets plans change files in it.
    pub fn editable_root(&self, name: &str) -> Result<&Root, Denied> {
        let root = self.root(name)?;
        match root.access {
            Access::Edit => Ok(root),
            Access::Read => {
                Err(Denied::NotAsked { adapter: self.adapter.clone(), grant: format!("roots.{name}.edit") })
            }
        }
    }

    /// The HTTP origin of a grant.
    pub fn origin(&self, name: &str) -> Result<&Origin, Denied> {
        self.check(format!("origins.{name}"), self.requests.origins.get(name))
    }

    /// How the host logs in to a granted origin. None if the manifest does not say.
    pub fn login(&self, origin: &str) -> Option<&Login> {
        self.requests.logins.get(origin).filter(|_| self.is_given(&format!("origins.{origin}")))
    }

    /// The socket of a grant.
    pub fn endpoint(&self, name: &str) -> Result<&Endpoint, Denied> {
        self.check(format!("endpoints.{name}"), self.requests.endpoints.get(name))
    }

    /// The command line of a grant.
    pub fn program(&self, name: &str) -> Result<&CommandLine, Denied> {
        self.check(format!("programs.{name}"), self.requests.programs.get(name))
    }

    /// How it may have the harness started for a task.
    pub fn run(&self, name: &str) -> Result<&Run, Denied> {
        self.check(format!("runs.{name}"), self.requests.runs.get(name))
    }

    /// The server that `relay-mesh up --with` may start for it.
    pub fn serves(&self) -> Result<&Serve, Denied> {
        self.check(SERVES.to_owned(), self.requests.serves.as_ref())
    }
    /// How it may have an agent started that it drives.
    pub fn drive(&self, name: &str) -> Result<&Drive, Denied> {
        self.check(format!("drives.{name}"), self.requests.drives.get(name))
    }

    /// The user's variables that a program gets because a granted run starts the same one: what the harness is asked
    /// about its login must be true of the run too.
    pub fn environment_of(&self, program: &str) -> Vec<&str> {
        let granted = self.requests.runs.iter().filter(|(name, _)| self.is_given(&format!("runs.{name}")));
        let same = granted.filter(|(_, run)| run.program == program);
        same.flat_map(|(_, run)| run.environment.iter().map(String::as_str)).collect()
    }

    /// Whether it may show notifications on the desktop.
    pub fn notices(&self) -> Result<(), Denied> {
        self.check("notices".to_owned(), self.requests.notices.then_some(()))
    }

    /// Whether it may see the arguments of calls of our own tools.
    pub fn arguments(&self) -> Result<(), Denied> {
        self.check(ARGUMENTS.to_owned(), self.requests.arguments.then_some(()))
    }

    /// Whether it may keep small values between calls. Every adapter requests this implicitly.
    pub fn state(&self) -> Result<(), Denied> {
        self.check(STATE.to_owned(), Some(()))
    }

    /// The variables that it may see.
    pub fn narrow(&self, environment: &[(String, String)]) -> Vec<(String, String)> {
        let may_see =
            |name: &String| self.requests.environment.contains(name) && self.is_given(&format!("environment.{name}"));
        environment.iter().filter(|(name, _)| may_see(name)).cloned().collect()
    }

    /// Every grant that it requests, and whether it is given.
    pub fn list(&self) -> Vec<Grant> {
        let words = self.requests.words();
        words.into_iter().map(|(name, allows)| Grant { given: self.is_given(&name), name, allows }).collect()
    }

    /// Whose adapter this is.
    pub(crate) fn asker(&self) -> Asker {
        match self.given {
            Granted::BuiltIn => Asker::BuiltIn,
            Granted::ByUser(_) => Asker::Stranger { name: self.adapter.clone(), earlier: Arc::clone(&self.earlier) },
        }
    }

    /// Whether it may put text of its own before the model.
    pub(crate) fn has_own_words(&self) -> bool {
        self.requests.answers.own_words && self.is_given(OWN_WORDS)
    }

    /// What its answers to hooks may hold. None if it is part of the program: then they are what was reviewed.
    pub(crate) fn answers(&self) -> Option<&AnswerRules> {
        match self.given {
            Granted::BuiltIn => None,
            Granted::ByUser(_) => Some(&self.requests.answers),
        }
    }

    /// The answers in which the harness shows its user a notice beside mail, if it does.
    pub(crate) fn notice(&self) -> Option<&AnswerRule> {
        let context = AnswerKind::Context;
        let answer = self.requests.answers.kinds.get(&context).filter(|_| self.is_given(&context.grant()))?;
        answer.notice.is_some().then_some(answer)
    }

    pub(crate) fn is_given(&self, grant: &str) -> bool {
        match &self.given {
            Granted::BuiltIn => true,
            Granted::ByUser(grants) => grants.contains(grant),
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

impl Requests {
    /// Every requested grant by name, with what it allows, for display.
    pub fn words(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        all.extend(self.roots.iter().map(|(name, root)| (format!("roots.{name}"), of_root(root))));
        all.extend(
            self.environment.iter().map(|name| {
                (format!("environment.{name}"), format!("see the variable {name} of the harness's process"))
            }),
        );
        all.extend(self.origins.iter().map(|(name, origin)| {
            let any = if origin.takes_any_port() { ", on any port" } else { "" };
            let login = self.logins.get(name).map(of_login).unwrap_or_default();
            (format!("origins.{name}"), format!("make requests to {origin} on this machine{any}{login}"))
        }));
        all.extend(self.endpoints.iter().map(|(name, endpoint)| {
            (format!("endpoints.{name}"), format!("talk over the socket {} on this machine", endpoint.address))
        }));
        all.extend(
            self.programs.iter().map(|(name, line)| (format!("programs.{name}"), format!("run the program `{line}`"))),
        );
        let task = "word the command line by which a task is run";
        all.extend(self.runs.iter().map(|(name, run)| (format!("runs.{name}"), run.allows(task))));
        all.extend(self.drives.iter().map(|(name, drive)| (format!("drives.{name}"), drive.allows())));
        all.extend(self.serves.iter().map(|serve| (SERVES.to_owned(), serve.allows())));
        all.extend(self.answers.words());
        all.extend(self.foreign.words());
        if self.arguments {
            let told = "see what callers pass to the mesh's tools, the texts of their messages included";
            all.push((ARGUMENTS.to_owned(), told.to_owned()));
        }
        if self.notices {
            all.push(("notices".to_owned(), "show notifications on the desktop".to_owned()));
        }
        all.push((STATE.to_owned(), "keep small notes of its own between calls".to_owned()));
        all
    }

    /// The given grants that mean the same, or less, in a later version of the adapter. A grant that is wider there, by
    /// its path, access, address or command line, must be given again.
    pub fn kept(&self, given: &BTreeSet<String>, later: &Requests) -> BTreeSet<String> {
        let is_kept = |grant: &&String| match grant.split_once('.') {
            Some(("roots", name)) => both(&self.roots, &later.roots, name)
                .is_some_and(|(old, new)| old.path == new.path && new.access <= old.access && new.links <= old.links),
            Some(("environment", name)) => {
                [self, later].iter().all(|requests| requests.environment.iter().any(|asked| asked == name))
            }
            Some(("origins", name)) => both(&self.origins, &later.origins, name).is_some_and(|(old, new)| {
                let login = later.logins.get(name);
                old == new && (login.is_none() || login == self.logins.get(name))
            }),
            Some(("endpoints", name)) => {
                both(&self.endpoints, &later.endpoints, name).is_some_and(|(old, new)| old == new)
            }
            Some(("programs", name)) => {
                both(&self.programs, &later.programs, name).is_some_and(|(old, new)| old == new)
            }
            Some(("runs", name)) => both(&self.runs, &later.runs, name).is_some_and(|(old, new)| old == new),
            Some(("drives", name)) => both(&self.drives, &later.drives, name).is_some_and(|(old, new)| old == new),
            Some(("answers", "own-words")) => self.answers.own_words && later.answers.own_words,
            Some(("answers", name)) => AnswerKind::named(name).is_some_and(|kind| {
                let [old, new] = [self, later].map(|requests| requests.answers.kinds.get(&kind));
                old.is_some() && old == new
            }),
            Some(("clients", name)) => both(&self.foreign.clients, &later.foreign.clients, name).is_some(),
            Some(("variables", name)) => both(&self.foreign.variables, &later.foreign.variables, name).is_some(),
            Some(_) => false,
            None if grant.as_str() == SERVES => self.serves.is_some() && self.serves == later.serves,
            None if grant.as_str() == ARGUMENTS => self.arguments && later.arguments,
            None => grant.as_str() == STATE || (grant.as_str() == "notices" && self.notices && later.notices),
        };
        given.iter().filter(is_kept).cloned().collect()
    }
}

fn both<'a, T>(old: &'a BTreeMap<String, T>, new: &'a BTreeMap<String, T>, name: &str) -> Option<(&'a T, &'a T)> {
    Some((old.get(name)?, new.get(name)?))
}

fn of_login(login: &Login) -> String {
    let Login { user, password, .. } = login;
    format!("; relay-mesh logs in there as the server's own {user} and {password} say, and the adapter sees neither")
}

fn of_root(root: &Root) -> String {
    let path = &root.path;
    let verb = match root.access {
        Access::Read => format!("read files under {path}"),
        Access::Edit => format!("read files under {path}, and propose changes to them, which you are shown first"),
    };
    match root.links {
        Links::Inside => verb,
        Links::Home => format!("{verb}; links there may lead anywhere in your home"),
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
        arguments = true
        [grants.roots.config]
        path = "~/.x"
        [grants.origins]
        api = "http://127.0.0.1:{port}"
        [grants.logins.api]
        password = "X_PASSWORD"
        user = "X_USER"
        default-user = "x"
        [grants.endpoints]
        rpc = { tcp = "127.0.0.1:{port}", framing = "lines" }
        [grants.programs]
        version = ["x", "--version"]
        shell = ["sh", "-c", "echo it's; rm $0", "{word}"]
        [runs.task]
        program = "x"
        words = ["run", "--json"]
        environment = ["X_KEY"]
        [runs.task.options]
        model = ["--model={name}"]
        schema = ["--schema", "{file:schema.json}"]
        [runs.task.sets]
        X_RETRIES = "{number}"
        [drives.pipe]
        run = "task"
        words = ["--pipe"]
        framing = "lines"
        [drives.pipe.options]
        quiet = ["-q"]
        [serves]
        run = "task"
        words = ["serve", "--port={port}"]
        port = 4096
    "#;

    fn check(given: &[&str], ask: &str, expected: &str) {
        let manifest = Manifest::parse(MANIFEST).expect("a manifest");
        let given = Granted::ByUser(given.iter().map(|name| (*name).to_owned()).collect());
        let grants = Grants::new("x", manifest.requests, given);
        let outcome = match ask.split_once('.') {
            Some(("roots", name)) => grants.root(name).map(drop),
            Some(("edit", name)) => grants.editable_root(name).map(drop),
            Some(("origins", name)) => grants.origin(name).map(drop),
            Some(("endpoints", name)) => grants.endpoint(name).map(drop),
            Some(("programs", name)) => grants.program(name).map(drop),
            Some(("runs", name)) => grants.run(name).map(drop),
            Some(("drives", name)) => grants.drive(name).map(drop),
            Some(("environment", name)) => {
                let seen = grants.narrow(&[(name.to_owned(), "1".to_owned())]);
                assert_eq!(if seen.is_empty() { "hidden" } else { "seen" }, expected, "{ask}");
                return;
            }
            Some(_) | None if ask == "notices" => grants.notices(),
            Some(_) | None if ask == "arguments" => grants.arguments(),
            Some(_) | None if ask == "serves" => grants.serves().map(drop),
            Some(_) | None => grants.state(),
        };
        let told = outcome.map_or_else(|denied| denied.to_string(), |()| "is open".to_owned());
        assert!(told.contains(expected), "{ask} given {given:?}: {told}", given = grants.list());
    }

    #[test]
    fn every_grant_takes_both_keys() {
        for grant in [
            "roots.config",
            "origins.api",
            "endpoints.rpc",
            "programs.version",
            "runs.task",
            "drives.pipe",
            "notices",
            "arguments",
            "serves",
            "state",
        ] {
            check(&[grant], grant, "is open");
            check(&[], grant, &format!("give it by `relay-mesh plugin grant x {grant}`"));
        }
        for grant in ["roots.other", "origins.other", "endpoints.other", "programs.other", "runs.other", "drives.other"]
        {
            check(&[grant], grant, "its manifest does not ask for it");
        }
        check(&["environment.SEEN"], "environment.SEEN", "seen");
        check(&[], "environment.SEEN", "hidden");
        check(&["environment.OTHER"], "environment.OTHER", "hidden");
        check(&["roots.config"], "edit.config", "no grant `roots.config.edit`");
    }

    #[test]
    fn what_is_asked_for_is_said_in_plain_words() {
        let manifest = Manifest::parse(MANIFEST).expect("a manifest");
        let words: Vec<String> = manifest.requests.words().into_iter().map(|(_, allows)| allows).collect();
        assert_eq!(
            words,
            [
                "read files under ~/.x",
                "see the variable SEEN of the harness's process",
                "make requests to http://127.0.0.1:{port} on this machine, on any port; relay-mesh logs in there as the \
                 server's own X_USER and X_PASSWORD say, and the adapter sees neither",
                "talk over the socket 127.0.0.1:{port} on this machine",
                "run the program `sh -c 'echo it'\\''s; rm $0' {word}`",
                "run the program `x --version`",
                "word the command line by which a task is run: `x run --json`, with any of `--model={name}`, `--schema \
                 {file:schema.json}`; that program gets your variables X_KEY; the adapter may set X_RETRIES={number}",
                "give an agent of its harness turns and answer what that asks: `x --pipe`, with any of `--model={name}`, `-q`, \
                 `--schema {file:schema.json}`; that program gets your variables X_KEY; the adapter may set \
                 X_RETRIES={number}",
                "name what `relay-mesh up --with` keeps running for its sessions: `x serve --port={port}`; that program \
                 gets your variables X_KEY",
                "see what callers pass to the mesh's tools, the texts of their messages included",
                "show notifications on the desktop",
                "keep small notes of its own between calls",
            ]
        );
    }

    fn check_kept(change: impl Fn(&str) -> String, expected: &[&str]) {
        let old = Manifest::parse(MANIFEST).expect("a manifest").requests;
        let new = Manifest::parse(&change(MANIFEST)).expect("a manifest").requests;
        let all: BTreeSet<String> = old.words().into_iter().map(|(name, _)| name).collect();
        let kept = old.kept(&all, &new);
        let lost: Vec<&str> = all.difference(&kept).map(String::as_str).collect();
        assert_eq!(lost, expected, "{:?}", new);
        assert!(old.kept(&BTreeSet::new(), &new).is_empty(), "what was never given is not kept");
    }

    #[test]
    fn whatever_grows_is_asked_for_anew() {
        let replaced = |from: &'static str, to: &'static str| move |text: &str| text.replace(from, to);
        check_kept(|text| text.to_owned(), &[]);
        check_kept(replaced("version = \"1\"", "version = \"2\""), &[]);
        check_kept(replaced("~/.x", "~"), &["roots.config"]);
        check_kept(replaced("path = \"~/.x\"", "path = \"~/.x\"\naccess = \"edit\""), &["roots.config"]);
        check_kept(replaced("path = \"~/.x\"", "path = \"~/.x\"\nlinks = \"home\""), &["roots.config"]);
        check_kept(replaced("SEEN", "OTHER"), &["environment.SEEN"]);
        check_kept(replaced("[\"SEEN\"]", "[\"SEEN\", \"OTHER\"]"), &[]);
        check_kept(replaced("http://127.0.0.1:{port}", "http://127.0.0.1:{port}/{any}"), &["origins.api"]);
        check_kept(replaced("X_PASSWORD", "AWS_SECRET_ACCESS_KEY"), &["origins.api"]);
        check_kept(replaced("tcp = \"127.0.0.1:{port}\"", "unix = \"~/.x/s\""), &["endpoints.rpc"]);
        check_kept(replaced("\"--version\"", "\"{anything}\""), &["programs.version"]);
        check_kept(replaced("X_KEY", "OTHER_KEY"), &["drives.pipe", "runs.task", "serves"]);
        check_kept(replaced("\"serve\"", "\"eval\""), &["serves"]);
        check_kept(replaced("--model={name}", "{name}"), &["drives.pipe", "runs.task"]);
        check_kept(replaced("--pipe", "--yolo"), &["drives.pipe"]);
        check_kept(replaced("\"-q\"", "\"{any}\""), &["drives.pipe"]);
        check_kept(replaced("notices = true", ""), &["notices"]);
        check_kept(replaced("arguments = true", ""), &["arguments"]);
    }

    #[test]
    fn a_program_gets_what_a_granted_run_of_it_gets() {
        let manifest = Manifest::parse(MANIFEST).expect("a manifest");
        let given = |grants: &[&str]| Granted::ByUser(grants.iter().map(|name| (*name).to_owned()).collect());
        let granted = Grants::new("x", manifest.requests.clone(), given(&["runs.task"]));
        assert_eq!(granted.environment_of("x"), ["X_KEY"]);
        assert!(granted.environment_of("sh").is_empty());
        assert!(Grants::new("x", manifest.requests, given(&["programs.version"])).environment_of("x").is_empty());
    }

    #[test]
    fn what_shrinks_is_kept() {
        let wide = MANIFEST.replace("path = \"~/.x\"", "path = \"~/.x\"\naccess = \"edit\"\nlinks = \"home\"");
        let wide = Manifest::parse(&wide).expect("a manifest").requests;
        let narrow = Manifest::parse(MANIFEST).expect("a manifest").requests;
        let given: BTreeSet<String> = ["roots.config".to_owned()].into();
        assert_eq!(wide.kept(&given, &narrow), given);
    }
}
