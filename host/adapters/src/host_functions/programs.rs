//! Runs command lines that the manifest names: no shell, an almost empty environment, text on standard input, and a
//! timeout. When the time is up, everything that the program started is killed too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use processes::Group;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::rates::Use;
use super::{HostResult, about, failed, within};
use crate::bindings::relay::adapter::programs::{Host, Outcome};
use crate::bindings::relay::adapter::types::Error;
use crate::guest::Guest;
use crate::template::{Argument, Surroundings};
use crate::unix;

/// Limits of programs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most output per stream, in bytes. A program that writes more is killed.
    pub largest: usize,
    /// The longest that a program may run.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { largest: 1024 * 1024, timeout: Duration::from_secs(10) }
    }
}

/// Variables that programs commonly need. All others, above all keys and tokens, are not passed on, except those that
/// the manifest was granted, and those that a granted run passes on to the same program.
const PASSED_ON: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];

impl Host for Guest {
    async fn run(
        &mut self,
        name: String,
        values: Vec<String>,
        input: Vec<u8>,
    ) -> wasmtime::Result<HostResult<Outcome>> {
        if let Err(error) = self.spend(Use::Program) {
            return Ok(Err(error));
        }
        let host_side = &self.host_side;
        let prepared = host_side.grants.program(&name).map_err(Error::from).and_then(|line| {
            let arguments = Argument::fill_all(&line.arguments, &values)?;
            let program = search(&line.program, &host_side.surroundings)
                .ok_or_else(|| Error::NotFound(format!("the program `{}` is not in PATH", line.program)))?;
            Ok((program, arguments, host_side.grants.environment_of(&line.program)))
        });
        let (program, arguments, further) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(about(&format!("programs.{name}"), error))),
        };
        let surroundings = &host_side.surroundings;
        let all: Vec<_> = surroundings.environment.clone().into_iter().collect();
        let mut environment: BTreeMap<String, String> = host_side.grants.narrow(&all).into_iter().collect();
        let passed_on = |name: &str| PASSED_ON.contains(&name) || further.contains(&name);
        environment.extend(all.into_iter().filter(|(name, _)| passed_on(name)));
        let settings = host_side.settings.programs;
        let home = surroundings.home.clone().unwrap_or_else(|| PathBuf::from("/"));
        let run = run(&program, &arguments, environment, &home, input, settings.largest);
        Ok(within(settings.timeout, &format!("the program `{name}`"), run).await)
    }

    async fn find(&mut self, name: String) -> wasmtime::Result<HostResult<Option<String>>> {
        let host_side = &self.host_side;
        Ok(host_side
            .grants
            .program(&name)
            .map_err(Error::from)
            .map(|line| search(&line.program, &host_side.surroundings).map(|path| path.to_string_lossy().into_owned())))
    }
}

/// Finds a program: an executable file of its name in a folder of `PATH`.
pub(crate) fn search(program: &str, surroundings: &Surroundings) -> Option<PathBuf> {
    let executable = |path: &Path| path.is_absolute() && path.is_file() && unix::is_executable(path);
    if program.contains('/') {
        let path = crate::template::fill_path(program, surroundings).ok()?;
        return executable(&path).then_some(path);
    }
    let folders = surroundings.environment.get("PATH")?;
    std::env::split_paths(folders).map(|folder| folder.join(program)).find(|path| executable(path))
}

/// Runs a program in an environment of its own. If the result is dropped, all that it started is killed.
pub(super) async fn run(
    program: &Path,
    arguments: &[String],
    environment: BTreeMap<String, String>,
    folder: &Path,
    input: Vec<u8>,
    largest: usize,
) -> HostResult<Outcome> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Dropping the group kills everything: on a timeout, too much output, or a cancelled call.
    let (mut child, _group) = Group::spawn(&mut command)
        .map_err(|error| failed(format!("could not start `{}`: {error}", program.display())))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program may ignore its input; its exit code tells whether it failed.
            let _ = stdin.write_all(&input).await;
        }
        Ok(())
    };
    // All at once, because a full pipe would block the program. If it leaves a child with open streams, this runs until
    // the timeout.
    let outputs = async { tokio::try_join!(feed, collect(stdout, largest), collect(stderr, largest)) };
    let ((), stdout, stderr) = outputs.await?;
    let status = child.wait().await.map_err(failed)?;
    let exit_code = status.code().unwrap_or_else(|| 128 + unix::signal_of(status).unwrap_or(0));
    Ok(Outcome { exit_code, stdout, stderr })
}

async fn collect(stream: Option<impl AsyncRead + Unpin>, largest: usize) -> HostResult<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(largest as u64 + 1).read_to_end(&mut bytes).await.map_err(failed)?;
    }
    if bytes.len() > largest { Err(failed(format!("the program wrote more than {largest} bytes"))) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::*;

    async fn check(script: &str, input: &str, expected: &str) {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let run = run(Path::new("/bin/sh"), &arguments, environment, Path::new("/"), input.into(), 1000);
        let outcome = match within(Duration::from_secs(1), "the program `test`", run).await {
            Ok(outcome) => format!("{} {}", outcome.exit_code, String::from_utf8_lossy(&outcome.stdout)),
            Err(error) => format!("{error:?}"),
        };
        assert!(outcome.contains(expected), "{script}: {outcome}");
    }

    #[tokio::test]
    async fn a_program_runs_bounded_and_almost_without_environment() {
        check("cat; exit 3", "hello", "3 hello").await;
        check("env | grep -v -e PATH -e PWD -e SHLVL -e '^_=' -e '^RELAY_PROGRAM='; true", "", "0 ").await;
        check("yes", "", "wrote more than 1000 bytes").await;
        check("sleep 60", "", "took longer than 1000 ms").await;
        check("kill -9 $$", "", "137").await;
    }

    #[tokio::test]
    async fn what_a_program_started_ends_with_it() {
        ends("sleep 60 & echo $! > {}/pid; wait").await;
    }

    #[tokio::test]
    async fn also_what_it_started_in_a_session_of_its_own() {
        ends("setsid sh -c 'echo $$ > {}/pid; sleep 60' & sleep 60").await;
    }

    #[tokio::test]
    async fn also_what_has_lost_its_parent() {
        ends("(setsid sh -c 'echo $$ > {}/pid; sleep 60' >/dev/null 2>&1 &); sleep 60").await;
    }

    async fn ends(script: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let script = script.replace("{}", &folder.path().display().to_string());
        check(&script, "", "took longer than 1000 ms").await;
        let pid = std::fs::read_to_string(folder.path().join("pid")).expect("a pid");
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a pid");
        // The killed child is reaped by the process that adopts it; until then it is a zombie.
        let gone = || match std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())) {
            Ok(stat) => stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')),
            Err(_) => true,
        };
        let waited = tokio::time::timeout(Duration::from_secs(5), async {
            while !gone() {
                tokio::task::yield_now().await;
            }
        });
        waited.await.expect("the child has ended");
    }
}
