//! Programs that the manifest names.

use crate::Error;
#[cfg(target_arch = "wasm32")]
use crate::bindings::relay::adapter::programs as host;
pub use crate::bindings::relay::adapter::programs::Outcome as ProgramOutput;

/// Runs a program. Each value fills one blank of one argument. Pass texts as `input`, because other users
/// can see arguments. [`Error::NotFound`] if the program is not installed.
pub fn run(name: &str, values: &[String], input: &[u8]) -> Result<ProgramOutput, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::run(name, values, input);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::run_program(name, values, input);
}

/// A program's path; none if it is not installed. Does not run it.
pub fn find(name: &str) -> Result<Option<String>, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::find(name);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::find_program(name);
}

/// The version in a program's output: the first word that begins with a digit. None if the program is not
/// installed or prints no such word.
pub fn version(name: &str) -> Result<Option<String>, Error> {
    match run(name, &[], &[]) {
        Ok(output) => Ok(output.text().and_then(|text| {
            let mut words = text.split_whitespace().map(|word| word.trim_start_matches('v'));
            words.find(|word| word.starts_with(|letter: char| letter.is_ascii_digit())).map(str::to_owned)
        })),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl ProgramOutput {
    /// Trimmed standard output; none if the program failed.
    ///
    /// ```
    /// use relay_mesh_sdk::programs::ProgramOutput;
    /// let output = ProgramOutput { exit_code: 0, stdout: b"2.1.329 (Claude Code)\n".to_vec(), stderr: Vec::new() };
    /// assert_eq!(output.text().as_deref(), Some("2.1.329 (Claude Code)"));
    /// ```
    pub fn text(&self) -> Option<String> {
        (self.exit_code == 0).then(|| String::from_utf8_lossy(&self.stdout).trim().to_owned())
    }
}
