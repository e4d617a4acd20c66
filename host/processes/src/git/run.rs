//! One call of git.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::{Git, GitError};
use crate::group::Group;

/// What a repository's own settings could make git run or wait for.
const SETTINGS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];
/// The longest that one call may take. A first look at a huge working copy takes minutes.
const PATIENCE: Duration = Duration::from_secs(300);
/// Bytes of output that are taken.
const OUTPUT: u64 = 256 * 1024 * 1024;

impl Git {
    /// The output of a call as text, without the final line break.
    pub(super) async fn text(&self, folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
        let bytes = self.bytes(folder, arguments, &[], &[]).await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// The output of a call with further variables and this input.
    pub(super) async fn bytes(
        &self,
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &Path)],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        let called = self.call(folder, arguments, variables, input).await?;
        if called.code == Some(0) { Ok(called.stdout) } else { Err(called.failure()) }
    }

    /// The same, whatever its exit code says.
    pub(super) async fn call(
        &self,
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &Path)],
        input: &[u8],
    ) -> Result<Called, GitError> {
        let command = arguments.iter().find(|word| !word.starts_with('-'));
        let what = command.copied().unwrap_or_default().to_owned();
        let mut command = Command::new("git");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        // What it says is read, so it says it in English.
        command.envs(variables.iter().copied()).env("LC_ALL", "C").current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, _group) = Group::spawn(&mut command).map_err(GitError::Absent)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let talk = async {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // Git may end without reading all of it; its exit code says whether that is an error.
                    let _unread = stdin.write_all(input).await;
                }
                Ok(())
            };
            let ((), stdout, stderr) = tokio::try_join!(feed, collect(stdout), collect(stderr))?;
            Ok::<_, io::Error>((child.wait().await?, stdout, stderr))
        };
        let (status, stdout, stderr) = match timeout(PATIENCE, talk).await {
            Err(_) => return Err(GitError::Slow(what)),
            Ok(outcome) => outcome.map_err(GitError::Absent)?,
        };
        Ok(Called { what, code: status.code(), stdout, stderr })
    }
}

/// What one call came to.
pub(super) struct Called {
    /// Its command.
    what: String,
    /// None if a signal ended it.
    pub(super) code: Option<i32>,
    stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Called {
    /// The error that it stands for.
    pub(super) fn failure(self) -> GitError {
        let said = String::from_utf8_lossy(&self.stderr);
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned();
        GitError::Failed { what: self.what, said }
    }
}

async fn collect(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(OUTPUT).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
