//! Builds an install plan from what the files hold now.
//!
//! It contains an edit only if a file's bytes would change, so a second install has none.
//!
//! ```
//! use relay_mesh_sdk::{files::Root, plan::Draft, testing::Fakes};
//! use serde_json::json;
//!
//! let host = Fakes::default().root("project").start();
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
//! host.apply(&plan).expect("the files are as planned");
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

/// The edits and next steps so far.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    edits: Vec<Edit>,
    next_steps: Vec<String>,
}

/// Who owns a file that should be wholly ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// We do. It holds, or will hold, what we want.
    Ours,
    /// The user or another program wrote it or changed it. It stays as it is.
    Theirs,
}

impl Draft {
    /// Changes a JSON file, comments allowed. If the file does not parse, or holds another value where ours
    /// should go, the error names the file, the line and the column, and nothing is planned.
    ///
    /// `change` may refuse too, with an error of one clause.
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

    /// Removes our part from a JSON file. Unlike [`Draft::jsonc`] the change cannot refuse.
    pub fn prune(&mut self, root: &Root, path: &str, take: impl FnOnce(&mut Document)) -> Result<(), Error> {
        self.jsonc(root, path, |document| {
            take(document);
            Ok::<(), std::convert::Infallible>(())
        })
    }

    /// Changes a TOML file. Errors are as in [`Draft::jsonc`].
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

    /// Puts a block of ours into a text file that the user writes, or removes it if `body` is none.
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

    /// Writes a text file that is wholly ours, with a [`stamp`] by which we match it. An existing file
    /// without a valid stamp stays as it is.
    pub fn own(&mut self, root: &Root, path: &str, text: &str) -> Result<Owned, Error> {
        self.replace(root, path, Some(stamp(path, text)), is_stamped)
    }

    /// Deletes a text file that [`Draft::own`] wrote, if it is unchanged.
    pub fn disown(&mut self, root: &Root, path: &str) -> Result<Owned, Error> {
        self.replace(root, path, None, is_stamped)
    }

    /// Like [`Draft::own`], with a next step for the user if the file is not ours.
    pub fn own_or_tell(&mut self, root: &Root, path: &str, text: &str) -> Result<(), Error> {
        if self.own(root, path, text)? == Owned::Theirs {
            self.next_step(format!("{path} is not as relay-mesh wrote it and stays as it is; delete it to get ours."));
        }
        Ok(())
    }

    /// Like [`Draft::disown`], with a next step for the user if the file stays.
    pub fn disown_or_tell(&mut self, root: &Root, path: &str) -> Result<(), Error> {
        if self.disown(root, path)? == Owned::Theirs {
            self.next_step(format!(
                "{path} was changed since relay-mesh wrote it and stays; delete it by hand if you no longer need it."
            ));
        }
        Ok(())
    }

    /// Adds the next steps that give the harness the HTTP server's token. Adds none for a stdio server.
    pub fn tell_token(&mut self, setup: &Setup, title: &str) {
        if matches!(setup.server, Server::Http(_)) {
            let token = token_command(setup);
            self.next_step(format!("Keep `relay-mesh serve` running: {title} connects to it when a session starts."));
            self.next_step(format!(
                "Give {title} the server's token before you start it: export RELAY_MESH_TOKEN=\"$({token})\""
            ));
        }
    }

    /// Writes a whole file, or deletes it if `after` is none, unless the existing file is not ours.
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

    /// Adds a step that only the user can take.
    pub fn next_step(&mut self, step: impl Into<String>) {
        self.next_steps.push(step.into());
    }

    /// Adds next steps for what the files that a team commits cannot say: the program's path if it is not on
    /// the PATH, and the variables that it needs. The manifest must request a program `relay-mesh`, which is
    /// looked up and not run. `servers` is the file that starts our MCP server.
    pub fn tell_machine(&mut self, setup: &Setup, harness: &str, title: &str, servers: &str) -> Result<(), Error> {
        let found = match programs::find("relay-mesh") {
            Ok(found) => found,
            Err(Error::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        if let (None, Some(program)) = (found, setup.program.first()) {
            let server = match setup.server {
                Server::Stdio(_) => format!(" The server in {servers} needs it on the PATH."),
                Server::Http(_) => String::new(),
            };
            self.next_step(format!(
                "`relay-mesh` is not on your PATH. Put it there, or tell the hooks where it is before you start \
                 {title}: export RELAY_MESH_BIN=\"{program}\".{server}"
            ));
        }
        for (name, value) in &setup.environment {
            self.next_step(format!(
                "Before you start {title}, run: export {name}=\"{value}\" (a file that a team commits cannot set it). \
                 Or set it up for yourself only: `relay-mesh install {harness} --user`."
            ));
        }
        Ok(())
    }

    /// Whether the plan has no edit so far.
    pub fn changes_nothing(&self) -> bool {
        self.edits.is_empty()
    }

    /// Returns the plan.
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

/// The command that prints the HTTP server's token, for the data folder that the setup names.
pub fn token_command(setup: &Setup) -> String {
    let folder = setup.environment.iter().find(|(name, _)| name == "RELAY_DIR");
    folder
        .map_or_else(|| "relay-mesh token".to_owned(), |(_, folder)| format!("RELAY_DIR=\"{folder}\" relay-mesh token"))
}

/// The text of the line by which we match a file as ours.
const STAMP: &str = "relay-mesh wrote this file and takes it out again while this line holds: ";

/// Adds a last line with a digest of the text, so that we match our file if no user changed it. The line
/// is a comment; the file's extension decides its syntax.
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

/// Whether a text ends with a stamp that fits it. Ignores line ends, because a version control system may
/// have changed them.
pub fn is_stamped(text: &str) -> bool {
    let text = text.replace("\r\n", "\n");
    let Some((body, line)) = text.trim_end().rsplit_once('\n') else { return false };
    let stamped = line.split_once(STAMP).map(|(_, rest)| rest.trim_end_matches(" -->"));
    stamped == Some(format!("{:016x}", digest(body.trim_end())).as_str())
}

/// 64-bit FNV-1a, to notice edits. Not for security.
pub fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn broken_file(root: &Root, path: &str, what: &str) -> Error {
    Error::Failed(match root.name() {
        "project" => format!("{path}, {what}"),
        name => format!("{path} (in the folder that the manifest calls `{name}`), {what}"),
    })
}
