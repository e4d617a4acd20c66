//! Command lines that the manifest names.

use crate::Error;
#[cfg(target_arch = "wasm32")]
use crate::bindings::relay::adapter::programs as host;
pub use crate::bindings::relay::adapter::programs::Outcome;

/// Runs one. Each value fills one blank of one argument; text goes to `input`, because arguments are
/// visible to other users. [`Error::NotFound`] where the program is not installed.
pub fn run(name: &str, values: &[String], input: &[u8]) -> Result<Outcome, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::run(name, values, input);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::run_program(name, values, input);
}

/// Where a program is, without running it.
pub fn find(name: &str) -> Result<Option<String>, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::find(name);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::find_program(name);
}

/// The version that a program says of itself: the first word that begins with a digit. None where it is
/// not installed, or says nothing of the kind.
pub fn version(name: &str) -> Result<Option<String>, Error> {
    match run(name, &[], &[]) {
        Ok(outcome) => Ok(outcome.text().and_then(|text| {
            let mut words = text.split_whitespace().map(|word| word.trim_start_matches('v'));
            words.find(|word| word.starts_with(|letter: char| letter.is_ascii_digit())).map(str::to_owned)
        })),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Outcome {
    /// Standard output as text, without the white space around it; none where the program failed.
    ///
    /// ```
    /// use relay_mesh_sdk::programs::Outcome;
    /// let outcome = Outcome { exit_code: 0, stdout: b"2.1.329 (Claude Code)\n".to_vec(), stderr: Vec::new() };
    /// assert_eq!(outcome.text().as_deref(), Some("2.1.329 (Claude Code)"));
    /// ```
    pub fn text(&self) -> Option<String> {
        (self.exit_code == 0).then(|| String::from_utf8_lossy(&self.stdout).trim().to_owned())
    }
}
