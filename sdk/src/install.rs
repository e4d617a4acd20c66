//! Sets a harness up for the mesh and removes the setup. Adapters plan the edits, the host makes them.

pub use crate::bindings::exports::relay::adapter::install::{
    Action, Edit, Finding, Plan, Scope, Server, Setup, Severity,
};
use crate::plan::Draft;
use crate::{Error, Identity};

/// Plans and checks an install. By default there is nothing to edit, for a harness that the user sets up
/// by hand.
pub trait Install: Identity {
    /// The harness's version; none if it is not installed on this machine.
    fn present() -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Plans the edits that set the harness up, from what the files hold now. A second install must plan no
    /// edit.
    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let _ = (draft, setup);
        Ok(())
    }

    /// Plans the edits that remove the setup.
    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let _ = (draft, setup);
        Ok(())
    }

    /// The edits and the next steps. By default what [`Install::install`] or [`Install::remove`] plans, after
    /// [`Setup::check_name`].
    fn propose(setup: &Setup) -> Result<Plan, Error> {
        setup.check_name(&Self::describe().title)?;
        let mut draft = Draft::default();
        match setup.action {
            Action::Install => Self::install(&mut draft, setup)?,
            Action::Remove => Self::remove(&mut draft, setup)?,
        }
        Ok(draft.finish())
    }

    /// Checks that the harness is set up correctly.
    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        let _ = setup;
        Ok(Vec::new())
    }
}

impl Setup {
    /// Refuses a server name with special characters, because it becomes part of tool names and matchers.
    pub fn check_name(&self, title: &str) -> Result<(), Error> {
        let name = &self.server_name;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        match !name.is_empty() && name.chars().all(plain) {
            true => Ok(()),
            false => Err(Error::Failed(format!(
                "`{name}` cannot name a server of {title}: use only letters, digits, - and _"
            ))),
        }
    }

    /// The command line that runs one of our hooks, as words.
    pub fn hook_words(&self, harness: &str, event: &str) -> Vec<String> {
        let program: &[String] = if self.program.is_empty() { &["relay-mesh".to_owned()] } else { &self.program };
        program.iter().cloned().chain(["hook", harness, event].map(str::to_owned)).collect()
    }

    /// The command line as one line for a POSIX shell. The setup's variables stand before it, because a
    /// harness that takes a line has no other place for them.
    ///
    /// ```
    /// use relay_mesh_sdk::{install::{Action, Scope}, testing};
    /// let mut setup = testing::setup(Action::Install, Scope::User);
    /// setup.program = vec!["/opt/my tools/relay-mesh".into()];
    /// assert_eq!(
    ///     setup.hook_line("cursor", "stop"),
    ///     "RELAY_DIR=/srv/relay '/opt/my tools/relay-mesh' hook cursor stop",
    /// );
    /// ```
    pub fn hook_line(&self, harness: &str, event: &str) -> String {
        self.line("", harness, event)
    }

    fn line(&self, before_program: &str, harness: &str, event: &str) -> String {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={}", shell_word(value)));
        let words = self.hook_words(harness, event);
        let program = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        variables.map(|variable| variable + " ").chain([before_program.to_owned(), program]).collect()
    }

    /// The line, committed or not, for a hook that the harness runs early and whose `systemMessage` it shows:
    /// if the program is missing, it tells the user what to do, instead of failing.
    ///
    /// ```
    /// use relay_mesh_sdk::{install::{Action, Scope}, testing};
    /// let setup = testing::setup(Action::Install, Scope::Project);
    /// let line = setup.telling_hook_line("toad", "start", "Toad");
    /// assert!(line.starts_with("/bin/sh -c 'command -v \"$0\""));
    /// assert!(line.ends_with(r#" "${RELAY_MESH_BIN:-relay-mesh}" hook toad start"#));
    /// ```
    pub fn telling_hook_line(&self, harness: &str, event: &str, title: &str) -> String {
        let before = format!("/bin/sh -c {} ", shell_word(&run_or_tell(title)));
        match self.scope {
            Scope::Project => before + &self.committed_hook_line(harness, event),
            Scope::User => self.line(&before, harness, event),
        }
    }

    /// The line for a file that a team commits: it holds nothing that belongs to this machine.
    ///
    /// ```
    /// use relay_mesh_sdk::{install::{Action, Scope}, testing};
    /// let setup = testing::setup(Action::Install, Scope::Project);
    /// assert_eq!(
    ///     setup.committed_hook_line("cursor", "stop"),
    ///     r#""${RELAY_MESH_BIN:-relay-mesh}" hook cursor stop"#,
    /// );
    /// ```
    pub fn committed_hook_line(&self, harness: &str, event: &str) -> String {
        format!("{COMMITTED_PROGRAM} hook {harness} {event}")
    }
}

/// The program in a shell line that a team commits: each machine has it on its PATH, or sets
/// RELAY_MESH_BIN.
pub const COMMITTED_PROGRAM: &str = "\"${RELAY_MESH_BIN:-relay-mesh}\"";

/// A script for `sh -c` with a program and its arguments behind it, which it becomes. If there is no such program, it
/// prints a `systemMessage` that says so.
pub fn run_or_tell(title: &str) -> String {
    let cure = format!(
        "relay-mesh is missing: its hooks run $0, and there is no such program. Install it again, or remove its \
         hooks from {title}."
    );
    let told = format!(r#"{{ printf "{{\"systemMessage\":\"%s\"}}" "{cure}"; exit; }}"#);
    format!(r#"command -v "$0" >/dev/null || {told}; exec "$0" "$@""#)
}

/// Whether a shell line runs one of our hooks, of this install or an older one. The program's path does not
/// matter.
pub fn is_hook_line(line: &str, harness: &str) -> bool {
    line.contains("relay-mesh") && line.contains(&format!(" hook {harness} "))
}

/// Quotes a word for a POSIX shell if needed.
fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl Finding {
    /// It is fine.
    pub fn ok(what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Ok, what: what.into(), fix: None }
    }

    /// It works, but may surprise.
    pub fn warning(what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, what: what.into(), fix: Some(fix.into()) }
    }

    /// It does not work.
    pub fn broken(what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { severity: Severity::Broken, what: what.into(), fix: Some(fix.into()) }
    }
}
