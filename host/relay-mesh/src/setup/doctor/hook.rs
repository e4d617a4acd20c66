//! Runs the hook's program as a harness would, and judges the result.

use std::fs::Permissions;
use std::io;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use adapters::{InstalledAdapters, manifest};
use mesh::ports::harness::{Finding, Severity};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::{broken, fine, shown};
use crate::compose::PLUGINS;
use crate::unix::PermissionsExt;

/// A slower hook is noticeable: the harness waits for it before running the tool.
const SLOW: Duration = Duration::from_millis(500);
/// Timeout: the harness would seem stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// A hook's call as a harness would make it.
pub(crate) struct Rehearsal<'a> {
    pub(crate) program: &'a Path,
    pub(crate) harness: &'a str,
    pub(crate) event: &'a str,
    /// The standard input from the harness.
    pub(crate) payload: &'a str,
    /// Variables added to those of this process. They must name a separate data folder, so that a rehearsal leaves no
    /// session behind.
    pub(crate) environment: &'a [(String, String)],
}

pub(crate) enum Came {
    Ended {
        output: Output,
        took: Duration,
    },
    NotStarted(io::Error),
    /// Killed after the timeout.
    Stuck,
}

/// Runs a hook once in a temporary data folder, so that the rehearsal leaves no session behind. The folder has the
/// adapter if the user installed it, with what they granted.
pub(crate) async fn rehearse_aside(
    program: &Path,
    harness: &str,
    call: &manifest::Rehearsal,
    installed: Option<&InstalledAdapters>,
) -> io::Result<Came> {
    let own = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("relay-mesh-doctor-").permissions(own).tempdir()?;
    if let Some(installed) = installed {
        installed.copy(harness, &folder.path().join(PLUGINS))?;
    }
    let environment = [("RELAY_DIR".to_owned(), folder.path().display().to_string())];
    let (event, payload) = (call.hook.as_str(), call.payload.as_str());
    Ok(rehearse(&Rehearsal { program, harness, event, payload, environment: &environment }).await)
}

/// Variables of this process that the hook is not given: a store would contradict the rehearsal's data folder, and a
/// log would look like a complaint.
const NOT_PASSED_ON: [&str; 3] = ["RELAY_STORE", "RELAY_LOG", "RUST_LOG"];

fn command(rehearsal: &Rehearsal<'_>) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(rehearsal.program);
    command.args(["hook", rehearsal.harness, rehearsal.event]);
    for name in NOT_PASSED_ON {
        command.env_remove(name);
    }
    command.envs(rehearsal.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

pub(crate) async fn rehearse(rehearsal: &Rehearsal<'_>) -> Came {
    let mut command = command(rehearsal);
    let began = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Came::NotStarted(error),
    };
    if let Some(mut input) = child.stdin.take() {
        // A hook may end without reading its input; its exit decides.
        let _unread = input.write_all(rehearsal.payload.as_bytes()).await;
    }
    match timeout(PATIENCE, child.wait_with_output()).await {
        Ok(Ok(output)) => Came::Ended { output, took: began.elapsed() },
        Ok(Err(error)) => Came::NotStarted(error),
        Err(_) => Came::Stuck,
    }
}

pub(crate) fn judge(event: &str, came: &Came) -> Finding {
    match came {
        Came::NotStarted(error) => broken(
            format!("the hook's program cannot be started: {error}"),
            "install relay-mesh again and run `relay-mesh install` once more",
        ),
        Came::Stuck => broken(
            format!("the {event} hook did not answer within {}", shown(PATIENCE)),
            "run it by hand with RELAY_LOG=debug to see where it stays",
        ),
        Came::Ended { output, took } => judge_end(event, output, *took),
    }
}

fn judge_end(event: &str, output: &Output, took: Duration) -> Finding {
    let said = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint(&said);
    if !output.status.success() {
        let why = complaint.unwrap_or("it said nothing");
        broken(
            format!("the {event} hook ended with {}: {why}", output.status),
            "report this: a hook must always end with 0",
        )
    } else if let Some(line) = complaint {
        // A failing hook exits with 0, so that the harness continues, and reports on standard error.
        broken(
            format!("the {event} hook answered nothing and complained: {line}"),
            "see `relay-mesh plugin list` for the adapter's state",
        )
    } else if took > SLOW {
        let what = format!("the {event} hook answered in {}, which is slow", shown(took));
        Finding { severity: Severity::Warning, what, fix: Some("look for what else keeps the machine busy".to_owned()) }
    } else {
        fine(format!("the {event} hook was run and answered in {}", shown(took)))
    }
}

/// The first line on standard error that belongs to no warning. A hook that warns, such as of a key that it does not
/// know in a settings file, has worked. The lines below a warning that belong to it are indented.
fn complaint(said: &str) -> Option<&str> {
    let mut is_warning = false;
    said.lines().filter(|line| !line.trim().is_empty()).find(|line| {
        is_warning = line.starts_with("warning:") || (is_warning && line.starts_with(char::is_whitespace));
        !is_warning
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn check(code: i32, stderr: &str, milliseconds: u64, severity: Severity, expected: &str) {
        let output = Output { status: ExitStatus::from_raw(code << 8), stdout: b"{}".to_vec(), stderr: stderr.into() };
        let finding = judge("Stop", &Came::Ended { output, took: Duration::from_millis(milliseconds) });
        assert_eq!(finding.severity, severity, "{}", finding.what);
        assert!(finding.what.contains(expected), "{}", finding.what);
    }

    #[test]
    fn a_hook_is_judged_by_how_it_ended_and_by_what_it_complained_of() {
        check(0, "", 3, Severity::Ok, "answered in 3.0 ms");
        check(0, "relay-mesh: no adapter\n", 3, Severity::Broken, "complained: relay-mesh: no adapter");
        check(0, "", 700, Severity::Warning, "slow");
        check(101, "thread panicked\n", 3, Severity::Broken, "exit status: 101: thread panicked");
    }

    #[test]
    fn a_warning_of_a_hook_that_works_is_no_complaint() {
        let warning = "warning: `config.toml` sets `colour`, which is unknown\n  take it out\n";
        check(0, warning, 3, Severity::Ok, "answered in 3.0 ms");
        let both = format!("{warning}\nrelay-mesh: no adapter\n  beside it\n");
        check(0, &both, 3, Severity::Broken, "complained: relay-mesh: no adapter");
        check(0, "  indented\n", 3, Severity::Broken, "complained:   indented");
        check(101, &format!("{warning}thread panicked\n"), 3, Severity::Broken, "101: thread panicked");
    }

    #[test]
    fn a_hook_is_given_no_store_and_no_log_of_this_process() {
        let environment = [("RELAY_DIR".to_owned(), "/aside".to_owned())];
        let rehearsal = Rehearsal {
            program: Path::new("hook"),
            harness: "x",
            event: "Stop",
            payload: "",
            environment: &environment,
        };
        let command = command(&rehearsal);
        let said = |name: &str| command.as_std().get_envs().find(|(key, _)| *key == name).map(|(_, value)| value);
        for name in ["RELAY_STORE", "RELAY_LOG", "RUST_LOG"] {
            assert_eq!(said(name), Some(None), "{name}");
        }
        assert_eq!(said("RELAY_DIR"), Some(Some("/aside".as_ref())));
    }

    #[tokio::test]
    async fn a_hook_really_runs_and_is_given_its_payload() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("hook");
        std::fs::write(&program, "#!/bin/sh\ncat >\"$OUT\"; echo \"$1 $2 $3\" >>\"$OUT\"\n").expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let out = folder.path().join("out");
        let came = rehearse(&Rehearsal {
            program: &program,
            harness: "claude-code",
            event: "Stop",
            payload: "{\"a\":1}\n",
            environment: &[("OUT".to_owned(), out.display().to_string())],
        })
        .await;
        assert_eq!(judge("Stop", &came).severity, Severity::Ok, "{}", judge("Stop", &came).what);
        assert_eq!(std::fs::read_to_string(out).expect("written"), "{\"a\":1}\nhook claude-code Stop\n");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_told() {
        let program = Path::new("/nowhere/relay-mesh");
        let rehearsal = Rehearsal { program, harness: "x", event: "Stop", payload: "", environment: &[] };
        let finding = judge("Stop", &rehearse(&rehearsal).await);
        assert_eq!(finding.severity, Severity::Broken);
        assert!(finding.what.contains("cannot be started"), "{}", finding.what);
    }
}
