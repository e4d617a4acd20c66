//! Which programs of this user run.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::space::lists_own_processes;
use crate::system;
use crate::table::{self, ProcessId, Table};

/// The shells by which harnesses run a hook's command line.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "fish"];
/// More nested shells than anybody starts.
const MOST_SHELLS: usize = 8;

/// A program at a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtTerminal {
    pub process: ProcessId,
    /// The folder that it works in.
    pub folder: PathBuf,
    /// What it was started with, without its own name.
    pub arguments: Vec<String>,
}

/// The process that called this one, without shells in between. None if that process has ended or the system does not
/// tell.
pub fn caller() -> Option<ProcessId> {
    above_shells(|_| false)
}

/// The same for a server: its client. None if a user has started it by hand, so below the shell of a terminal: what is above
/// that, such as tmux, is above all that they do.
pub fn client() -> Option<ProcessId> {
    above_shells(|shell| shell.leads_session)
}

fn above_shells(ends_at: fn(&system::Listed) -> bool) -> Option<ProcessId> {
    if !lists_own_processes() {
        return None;
    }
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..MOST_SHELLS {
        let listed = system::listed(pid)?;
        if !is_shell(pid, &listed.name) {
            return table::named(pid, &listed);
        }
        if ends_at(&listed) {
            return None;
        }
        pid = listed.parent;
    }
    None
}

/// A script has its own name, and runs the file of its shell.
fn is_shell(pid: u32, name: &str) -> bool {
    let runs = || system::program(pid).and_then(|file| Some(file.file_name()?.to_str()?.to_owned()));
    SHELLS.contains(&name) || runs().is_some_and(|file| SHELLS.contains(&file.as_str()))
}

/// The names of the files that a process has open. Empty where the system does not tell.
pub fn open_files(pid: u32) -> Vec<String> {
    system::open_files(pid).filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect()
}

/// The folder in which a process runs. None where the system does not tell.
pub fn folder_of(pid: u32) -> Option<PathBuf> {
    system::folder(pid)
}

/// The processes of a program that have a terminal as their standard input. Another user's cannot be looked at.
pub fn at_terminals(program: &str) -> Vec<AtTerminal> {
    system::pids().filter_map(|pid| at_terminal(pid, program)).collect()
}

fn at_terminal(pid: u32, program: &str) -> Option<AtTerminal> {
    let line = system::command_line(pid);
    let mut words = words(&line);
    if !is_named(pid, &words.next()?, program) || !system::is_at_a_terminal(pid) {
        return None;
    }
    let arguments = words.filter(|word| !word.is_empty()).map(Cow::into_owned).collect();
    Some(AtTerminal { process: table::find(pid)?, folder: system::folder(pid)?, arguments })
}

/// A process of this user that runs a program by this name with this first argument, the oldest if there are several.
/// None where the system does not list processes.
pub fn running(program: &str, word: &str) -> Option<ProcessId> {
    let found = system::pids().filter(|pid| system::is_ours(*pid) && runs(*pid, program, word));
    found.filter_map(table::find).min_by_key(|process| process.start)
}

/// Whether a process below this one runs a program by this name with this first argument. None where the system does not
/// list processes, or the process has ended.
pub fn runs_below(pid: u32, program: &str, word: &str) -> Option<bool> {
    if !lists_own_processes() {
        return None;
    }
    table::find(pid)?;
    Some(Table::read().below(pid).iter().any(|entry| runs(entry.process.pid, program, word)))
}

fn runs(pid: u32, program: &str, word: &str) -> bool {
    let line = system::command_line(pid);
    let mut words = words(&line);
    let (Some(started_as), Some(first)) = (words.next(), words.next()) else { return false };
    first == word && is_named(pid, &started_as, program)
}

fn words(line: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    line.split(|byte| *byte == 0).map(String::from_utf8_lossy)
}

/// By the file that it runs, or by the name by which it was started: a link or a script may have that.
fn is_named(pid: u32, started_as: &str, program: &str) -> bool {
    let is_named = |path: &Path| path.file_name().is_some_and(|name| name == program);
    is_named(Path::new(started_as)) || system::program(pid).is_some_and(|file| is_named(&file))
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

    #[test]
    fn the_caller_is_found_behind_shells() {
        let caller = caller().expect("a test is run by something");
        assert_eq!(table::find(caller.pid), Some(caller));
    }

    #[test]
    fn a_script_of_a_shell_is_a_shell() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("relay-test-script");
        std::fs::write(&script, "#!/bin/sh\nread line\n").expect("written");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
        let mut child = Command::new(&script).stdin(Stdio::piped()).spawn().expect("it runs");
        while !system::command_line(child.id()).starts_with(b"/bin/sh") {
            std::thread::yield_now();
        }
        let listed = system::listed(child.id()).expect("it runs");
        let found = is_shell(child.id(), &listed.name);
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!((listed.name.as_str(), found), ("relay-test-scri", true));
        assert!(!is_shell(std::process::id(), "a test"));
    }

    #[test]
    fn what_a_process_has_open_is_seen() {
        let file = tempfile::Builder::new().prefix("record-").tempfile().expect("a file");
        let name = file.path().file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(open_files(std::process::id()).contains(&name));
        assert_eq!(open_files(u32::MAX), Vec::<String>::new());
        assert_eq!(at_terminals("a program that nobody has"), Vec::new());
    }
}
