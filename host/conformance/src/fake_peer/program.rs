//! A scripted program: a shell script in place of the manifest's own. It logs its calls.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{FakePeer, Fault, FaultPlan, Received};
use crate::fixtures::ProgramAnswer;
use crate::scratch::Stage;
use crate::unix;
use adapters::manifest::CommandLine;

/// Separates the records of two calls.
const SEPARATOR: char = '\u{1e}';

/// Writes the script where the adapter's program is looked for.
pub(super) fn place(
    stage: &Stage<'_>,
    line: &CommandLine,
    answers: &[ProgramAnswer],
    faults: FaultPlan,
) -> Result<FakePeer, String> {
    let program = path_of(stage, line)?;
    let log = stage.programs.join("calls.log");
    if faults != FaultPlan::From(0, Fault::Deserted) {
        let told = |error: std::io::Error| format!("{}: {error}", program.display());
        if let Some(folder) = program.parent() {
            std::fs::create_dir_all(folder).map_err(told)?;
        }
        std::fs::write(&program, script(&log, answers, faults)).map_err(told)?;
        unix::make_executable(&program).map_err(told)?;
    }
    Ok(FakePeer { port: None, heard: Received::File(log), task: None })
}

/// The logged calls, one text each: the arguments and the standard input.
pub(super) fn heard(log: &Path) -> Vec<String> {
    // No file means no call.
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    text.split(SEPARATOR).map(str::to_owned).filter(|record| !record.is_empty()).collect()
}

fn path_of(stage: &Stage<'_>, line: &CommandLine) -> Result<PathBuf, String> {
    if line.program.contains('/') {
        return adapters::template::fill_path(&line.program, stage.surroundings()).map_err(|error| error.to_string());
    }
    Ok(stage.programs.join(&line.program))
}

fn script(log: &Path, answers: &[ProgramAnswer], faults: FaultPlan) -> String {
    let log = quoted(&log.display().to_string());
    let mut text = format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin\nbefore=$(tr -cd '\\036' 2>/dev/null < {log} | wc -c)\n\
         {{ printf '%s\\n' \"$@\"; cat; printf '\\036'; }} >> {log}\n"
    );
    if let FaultPlan::From(first, fault) = faults {
        let does = match fault {
            Fault::Deserted => "exit 127",
            Fault::HangsUp => "kill -9 $$",
            Fault::Nonsense => "printf '\\000\\377{\"unfinished\": ['; exit 0",
            Fault::Refuses => "echo 'the kit refuses' >&2; exit 1",
            Fault::Silent => "exec sleep 60",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "if [ \"$before\" -ge {first} ]; then {does}; fi");
    }
    text.push_str("case \"$*\" in\n");
    for answer in answers {
        let ProgramAnswer { asked, exit_code, stdout, stderr } = answer;
        let (asked, stdout, stderr) = (quoted(asked), quoted(stdout), quoted(stderr));
        let _ = writeln!(text, "{asked}*) printf '%s' {stdout}; printf '%s' {stderr} >&2; exit {exit_code};;");
    }
    text.push_str("esac\n");
    text
}

/// Quotes a word for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &Path, arguments: &[&str]) -> (Option<i32>, String) {
        #[expect(clippy::disallowed_methods, reason = "the script itself is under test")]
        let output = std::process::Command::new(script)
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .output()
            .expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[test]
    fn a_script_tells_calls_apart_and_writes_them_down() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, path) = (folder.path().join("it's a log"), folder.path().join("script"));
        let answer = |asked: &str, exit_code, stdout: &str| ProgramAnswer {
            asked: asked.to_owned(),
            exit_code,
            stdout: stdout.to_owned(),
            stderr: String::new(),
        };
        let answers = [answer("queue --thread", 0, "it's queued"), answer("", 3, "")];
        for (faults, expected) in [(FaultPlan::None, Some(0)), (FaultPlan::From(2, Fault::Refuses), Some(1))] {
            std::fs::write(&path, script(&log, &answers, faults)).expect("written");
            unix::make_executable(&path).expect("set");
            if faults == FaultPlan::None {
                assert_eq!(run(&path, &["--version"]).0, Some(3));
            }
            assert_eq!(run(&path, &["queue", "--thread", "a b", "$(id)"]).0, expected, "{faults:?}");
        }
        assert_eq!(heard(&log), ["--version\n", "queue\n--thread\na b\n$(id)\n", "queue\n--thread\na b\n$(id)\n"]);
    }
}
