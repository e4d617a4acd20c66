//! Builds an install plan from what the files hold now.
//!
//! An edit is proposed only where a file's bytes would differ, so a second install proposes none.
//!
//! ```
//! use relay_mesh_sdk::{files::Root, plan::Draft, testing::Fakes};
//! use serde_json::json;
//!
//! let lent = Fakes::default().root("project").lend();
//! let install = || {
//!     let mut draft = Draft::default();
//!     draft.jsonc(&Root::open("project")?, ".mcp.json", |servers| {
//!         servers.set(&["mcpServers", "relay-mesh", "command"], &json!("relay-mesh"))
//!     })?;
//!     Ok::<_, relay_mesh_sdk::Error>(draft.finish())
//! };
//!
//! let plan = install()?;
//! assert_eq!(plan.edits.len(), 1);
//! lent.apply(&plan).expect("nothing stands in the way");
//! assert!(install()?.edits.is_empty());
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

use std::fmt;

use crate::Error;
use crate::edit::jsonc::Document;
use crate::edit::{marked, toml};
use crate::files::Root;
use crate::install::{Edit, Plan, Server, Setup};
use crate::programs;

/// A plan in the making.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    edits: Vec<Edit>,
    next_steps: Vec<String>,
}

/// What became of a file that is wholly ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// It is, or will be, as we want it.
    Ours,
    /// Somebody else wrote it, or has changed ours. It is left alone.
    Theirs,
}

impl Draft {
    /// Changes a file of JSON with or without comments. One that is broken, or where something
    /// stands in the way, is an error that names the file, the line and the column; nothing is
    /// planned then.
    ///
    /// `change` may refuse too, with an error that is one clause.
    pub fn jsonc<R: fmt::Display>(
        &mut self,
        root: &Root,
        path: &str,
        change: impl FnOnce(&mut Document) -> Result<(), R>,
    ) -> Result<(), Error> {
        let before = root.read_text(path)?;
        let mut document =
            Document::parse(before.as_deref()).map_err(|broken| broken_file(root, path, &broken.to_string()))?;
        change(&mut document).map_err(|refused| broken_file(root, path, &refused.to_string()))?;
        self.push(root, path, before, document.finish());
        Ok(())
    }

    /// Takes our part out of such a file. What only takes out refuses nothing.
    pub fn prune(&mut self, root: &Root, path: &str, take: impl FnOnce(&mut Document)) -> Result<(), Error> {
        self.jsonc(root, path, |document| {
            take(document);
            Ok::<(), std::convert::Infallible>(())
        })
    }

    /// Changes a TOML file, on the same terms.
    pub fn toml<R: fmt::Display>(
        &mut self,
        root: &Root,
        path: &str,
        change: impl FnOnce(&mut toml::Document) -> Result<(), R>,
    ) -> Result<(), Error> {
        let before = root.read_text(path)?;
        let mut document =
            toml::Document::parse(before.as_deref()).map_err(|broken| broken_file(root, path, &broken.to_string()))?;
        change(&mut document).map_err(|refused| broken_file(root, path, &refused.to_string()))?;
        self.push(root, path, before, document.finish());
        Ok(())
    }

    /// Puts a block of ours into a text that a person writes, or takes it out where `body` is none.
    pub fn marked(&mut self, root: &Root, path: &str, name: &str, body: Option<&str>) -> Result<(), Error> {
        let before = root.read_text(path)?;
        let after = match (body, &before) {
            (Some(body), before) => marked::put(before.as_deref(), name, body).map(Some),
            (None, Some(before)) => marked::take(before, name),
            (None, None) => Ok(None),
        };
        let after = after.map_err(|broken| broken_file(root, path, &broken.to_string()))?;
        self.push(root, path, before, after);
        Ok(())
    }

    /// Writes a text file that is wholly ours, under a [`stamp`] by which it is known again. A file
    /// that is there and bears no valid stamp is left alone.
    pub fn own(&mut self, root: &Root, path: &str, text: &str) -> Result<Owned, Error> {
        self.replace(root, path, Some(stamp(path, text)), is_stamped)
    }

    /// Deletes a text file that [`Draft::own`] wrote and that nobody has changed since.
    pub fn disown(&mut self, root: &Root, path: &str) -> Result<Owned, Error> {
        self.replace(root, path, None, is_stamped)
    }

    /// As [`Draft::own`], and the person is told where the file is not ours.
    pub fn own_or_tell(&mut self, root: &Root, path: &str, text: &str) -> Result<(), Error> {
        if self.own(root, path, text)? == Owned::Theirs {
            self.next_step(format!(
                "{path} is not as relay-mesh wrote it and is left as it is; delete it to get ours."
            ));
        }
        Ok(())
    }

    /// As [`Draft::disown`], and the person is told where the file is left.
    pub fn disown_or_tell(&mut self, root: &Root, path: &str) -> Result<(), Error> {
        if self.disown(root, path)? == Owned::Theirs {
            self.next_step(format!(
                "{path} was changed since relay-mesh wrote it and is left; delete it by hand if you want."
            ));
        }
        Ok(())
    }

    /// Says what the person has to do so that a server over HTTP lets the harness in, and nothing where
    /// the server is started by the harness.
    pub fn tell_token(&mut self, setup: &Setup, title: &str) {
        if matches!(setup.server, Server::Http(_)) {
            let folder = setup.environment.iter().find(|(name, _)| name == "RELAY_DIR");
            let folder = folder.map_or("$HOME/.relay-mesh", |(_, folder)| folder.as_str());
            self.next_step(format!("Keep `relay-mesh serve` running: {title} connects to it when a session starts."));
            self.next_step(format!(
                "Give {title} the host's token before you start it: export RELAY_MESH_TOKEN=\"$(cat \"{folder}/http.token\")\""
            ));
        }
    }

    /// Writes a whole file, or deletes it where `after` is none, unless what is there is not ours.
    pub fn replace(
        &mut self,
        root: &Root,
        path: &str,
        after: Option<String>,
        is_ours: impl FnOnce(&str) -> bool,
    ) -> Result<Owned, Error> {
        let before = root.read_text(path)?;
        if before.as_deref().is_some_and(|before| !is_ours(before)) {
            return Ok(Owned::Theirs);
        }
        self.push(root, path, before, after);
        Ok(Owned::Ours)
    }

    /// Adds what only the person can do.
    pub fn next_step(&mut self, step: impl Into<String>) {
        self.next_steps.push(step.into());
    }

    /// Says what a person has to see to because the files that a team commits name nothing of this machine:
    /// where the program is, where it is not in the PATH, and which variables it needs. The manifest has to
    /// ask for a program `relay-mesh`, which is only looked for. `servers` is the file that starts ours.
    pub fn tell_machine(&mut self, setup: &Setup, harness: &str, title: &str, servers: &str) -> Result<(), Error> {
        let found = match programs::find("relay-mesh") {
            Ok(found) => found,
            Err(Error::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        if let (None, Some(program)) = (found, setup.program.first()) {
            let server = match setup.server {
                Server::Stdio(_) => format!(" The server in {servers} needs it in the PATH."),
                Server::Http(_) => String::new(),
            };
            self.next_step(format!(
                "`relay-mesh` is not in your PATH. Put it there, or tell the hooks where it is before you start \
                 {title}: export RELAY_MESH_BIN=\"{program}\".{server}"
            ));
        }
        for (name, value) in &setup.environment {
            self.next_step(format!(
                "Say so before you start {title}, for a team's files cannot: export {name}=\"{value}\". \
                 Or set it up for yourself alone: `relay-mesh install {harness} --user`."
            ));
        }
        Ok(())
    }

    /// Whether no file would change so far.
    pub fn changes_nothing(&self) -> bool {
        self.edits.is_empty()
    }

    /// The plan.
    pub fn finish(self) -> Plan {
        Plan { edits: self.edits, next_steps: self.next_steps }
    }

    fn push(&mut self, root: &Root, path: &str, before: Option<String>, after: Option<String>) {
        if before != after {
            let (root, path) = (root.name().to_owned(), path.to_owned());
            self.edits.push(Edit { root, path, before, after, executable: false });
        }
    }
}

/// What the line says by which a text file is known to be ours.
const STAMP: &str = "relay-mesh wrote this file and takes it out again while this line holds: ";

/// The text with a last line that holds a digest of it, so that our file is told from one that
/// somebody else wrote or changed. The line is a comment of the file's kind, known by its extension.
///
/// ```
/// use relay_mesh_sdk::plan::{is_stamped, stamp};
/// let ours = stamp("agents/openai.yaml", "interface: {}\n");
/// assert!(ours.lines().last().is_some_and(|line| line.starts_with("# relay-mesh wrote this file")));
/// assert!(is_stamped(&ours));
/// assert!(!is_stamped(&ours.replace("interface", "policy")));
/// ```
pub fn stamp(path: &str, text: &str) -> String {
    let text = text.trim_end();
    let (open, close) = match path.rsplit('.').next() {
        Some("yaml" | "yml" | "toml" | "sh") => ("# ", ""),
        Some("js" | "mjs" | "ts") => ("// ", ""),
        Some(_) | None => ("<!-- ", " -->"),
    };
    format!("{text}\n\n{open}{STAMP}{:016x}{close}\n", digest(text))
}

/// Whether a text bears a stamp that holds. Line ends are not looked at: a version control system
/// may have changed them.
pub fn is_stamped(text: &str) -> bool {
    let text = text.replace("\r\n", "\n");
    let Some((body, line)) = text.trim_end().rsplit_once('\n') else { return false };
    let stamped = line.split_once(STAMP).map(|(_, rest)| rest.trim_end_matches(" -->"));
    stamped == Some(format!("{:016x}", digest(body.trim_end())).as_str())
}

/// FNV-1a of 64 bits: tells an edit from none, which is all that is asked of it. No secret is safe and
/// no stranger is kept out by it.
pub fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn broken_file(root: &Root, path: &str, what: &str) -> Error {
    Error::Failed(match root.name() {
        "project" => format!("{path}, {what}"),
        name => format!("{path} (in the folder that the manifest calls `{name}`), {what}"),
    })
}
