//! Setting a harness up for the mesh and taking it out again. Adapters plan, the host acts.

use crate::Error;
pub use crate::bindings::exports::relay::adapter::install::{
    Action, Edit, Finding, Plan, Scope, Server, Setup, Severity,
};

/// Plans an install and checks one. By default there is nothing to edit, which is right for a
/// harness that a person sets up by hand.
pub trait Install {
    /// The harness's version, where it is on this machine.
    fn present() -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// The edits that set it up or take it out, from what the files hold now. [`crate::plan`] makes
    /// them so that a second install proposes none.
    fn propose(setup: &Setup) -> Result<Plan, Error> {
        let _ = setup;
        Ok(Plan { edits: Vec::new(), next_steps: Vec::new() })
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
}

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
