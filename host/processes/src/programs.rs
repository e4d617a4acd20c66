//! Which programs of this user run.

use crate::table::ProcessId;

/// A process of this user that runs a program by this name with this first argument, the oldest if there are several.
/// None where the system does not list processes.
#[cfg(target_os = "linux")]
pub fn running(program: &str, word: &str) -> Option<ProcessId> {
    let found = crate::table::pids().filter(|pid| is_ours(*pid) && runs(*pid, program, word));
    found.filter_map(crate::table::find).min_by_key(|process| process.start)
}

/// Whether a process below this one runs a program by this name with this first argument. None where the system does not
/// list processes, or the process has ended.
#[cfg(target_os = "linux")]
pub fn runs_below(pid: u32, program: &str, word: &str) -> Option<bool> {
    let table = crate::table::Table::read();
    crate::table::find(pid)?;
    Some(table.below(pid).iter().any(|entry| runs(entry.process.pid, program, word)))
}

/// None: on this system we do not look at other programs.
#[cfg(not(target_os = "linux"))]
pub fn runs_below(_pid: u32, _program: &str, _word: &str) -> Option<bool> {
    None
}

/// None: on this system we do not look at other programs.
#[cfg(not(target_os = "linux"))]
pub fn running(_program: &str, _word: &str) -> Option<ProcessId> {
    None
}

#[cfg(target_os = "linux")]
fn is_ours(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == rustix::process::geteuid().as_raw())
}

/// By the file that it runs, or by the name by which it was started: a link or a script may have that.
#[cfg(target_os = "linux")]
fn runs(pid: u32, program: &str, word: &str) -> bool {
    use std::path::Path;

    let Ok(arguments) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let mut arguments = arguments.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument));
    let Some(started_as) = arguments.next() else { return false };
    if arguments.next().as_deref() != Some(word) {
        return false;
    }
    let is_named = |path: &Path| path.file_name().is_some_and(|name| name == program);
    let file = std::fs::read_link(format!("/proc/{pid}/exe"));
    is_named(Path::new(&*started_as)) || file.is_ok_and(|file| is_named(&file))
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "a test looks at processes of its own")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_program_is_known_by_its_name_and_its_first_word() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("relay-test-program");
        std::fs::copy("/bin/sleep", &program).expect("copied");
        let mut child = Command::new(&program).arg("61").stdout(Stdio::null()).spawn().expect("it runs");
        let pid = child.id();
        // The system says that it runs a little before it has its arguments.
        while std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty()) {
            std::thread::yield_now();
        }
        let found = [("relay-test-program", "61"), ("relay-test-program", "6"), ("relay-test", "61")]
            .map(|(program, word)| running(program, word).map(|process| process.pid));
        let below = ["61", "62"].map(|word| runs_below(std::process::id(), "relay-test-program", word));
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!(below, [Some(true), Some(false)]);
        assert_eq!(runs_below(pid, "relay-test-program", "61"), None, "it has ended");
        assert_eq!(found, [Some(pid), None, None]);
        assert_eq!(running("relay-test-program", "61"), None, "it has ended");
    }
}
