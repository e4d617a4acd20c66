//! Setting a harness up for the mesh and taking it out again. Adapters plan, the host acts.

pub use crate::bindings::exports::relay::adapter::install::{
    Action, Edit, Finding, Plan, Scope, Server, Setup, Severity,
};
use crate::plan::Draft;
use crate::{Error, Identity};

/// Plans an install and checks one. By default there is nothing to edit, which is right for a
/// harness that a person sets up by hand.
pub trait Install: Identity {
    /// The harness's version, where it is on this machine.
    fn present() -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Plans what sets it up, from what the files hold now. What is there already is planned no more, so
    /// that a second install changes nothing.
    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let _ = (draft, setup);
        Ok(())
    }

    /// Plans what takes it out again.
    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let _ = (draft, setup);
        Ok(())
    }

    /// The edits and the next steps. By default those that [`Install::install`] or [`Install::remove`] plans,
    /// for a server that can have its name.
    fn propose(setup: &Setup) -> Result<Plan, Error> {
        setup.check_name(&Self::describe().title)?;
        let mut draft = Draft::default();
        match setup.action {
            Action::Install => Self::install(&mut draft, setup)?,
            Action::Remove => Self::remove(&mut draft, setup)?,
        }
        Ok(draft.finish())
    }

    /// Whether it is set up, and rightly.
    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        let _ = setup;
        Ok(Vec::new())
    }
}

impl Setup {
    /// The server's name becomes part of tool names and of matchers, so it has to be plain.
    pub fn check_name(&self, title: &str) -> Result<(), Error> {
        let name = &self.server_name;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        match !name.is_empty() && name.chars().all(plain) {
            true => Ok(()),
            false => Err(Error::Failed(format!(
                "`{name}` cannot name a server of {title}: letters, digits, - and _ may stand in it"
            ))),
        }
    }

    /// The words by which a harness runs one of our hooks.
    pub fn hook_words(&self, harness: &str, event: &str) -> Vec<String> {
        let program: &[String] = if self.program.is_empty() { &["relay-mesh".to_owned()] } else { &self.program };
        program.iter().cloned().chain(["hook", harness, event].map(str::to_owned)).collect()
    }

    /// The same as one line for a POSIX shell, with the setup's variables before it: a harness that
    /// takes a line has no other place for them.
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
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={}", shell_word(value)));
        let words = self.hook_words(harness, event);
        variables.chain(words.iter().map(|word| shell_word(word))).collect::<Vec<_>>().join(" ")
    }

    /// The same for a file that a team commits: it names nothing of this machine.
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

/// How a file that a team commits names the program to a shell: each machine has it in its PATH, or says
/// where it is.
pub const COMMITTED_PROGRAM: &str = "\"${RELAY_MESH_BIN:-relay-mesh}\"";

/// Whether a shell's line runs one of our hooks, of this install or an older one: by what it runs, not
/// by where the program lies.
pub fn is_hook_line(line: &str, harness: &str) -> bool {
    line.contains("relay-mesh") && line.contains(&format!(" hook {harness} "))
}

/// A word as a POSIX shell takes it.
fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl Finding {
    /// Something is as it should be.
    pub fn ok(what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Ok, what: what.into(), fix: None }
    }

    /// Something works, and may surprise.
    pub fn warning(what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, what: what.into(), fix: Some(fix.into()) }
    }

    /// Something does not work.
    pub fn broken(what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { severity: Severity::Broken, what: what.into(), fix: Some(fix.into()) }
    }
}
