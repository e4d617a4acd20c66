//! Linux tells of processes in `/proc`.

use std::fs;
use std::path::PathBuf;

use super::Listed;
use crate::space::Space;

/// Where this process is.
pub(crate) fn own_space() -> Option<Space> {
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::OnceLock;

    static OWN: OnceLock<Option<Space>> = OnceLock::new();
    *OWN.get_or_init(|| {
        let text = |path: &str| fs::read_to_string(path).ok();
        let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
        let boot = number_of(text("/proc/sys/kernel/random/boot_id")?.trim());
        let system = text("/etc/machine-id").map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        Some(Space { system: system.map_or(0, |id| number_of(&id)), boot, namespace })
    })
}

/// Whether the numbers in `/proc` are those of this process's own namespace. In a sandbox that has a namespace of its own
/// and the outer `/proc`, a number means one process to a signal and another one in `/proc`.
pub(crate) fn lists_own_processes() -> bool {
    static LISTS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *LISTS.get_or_init(|| fs::read_to_string("/proc/self/status").is_ok_and(|status| is_own(&status)))
}

/// Whether `/proc/self/status` shows one number: it has one for each namespace from that of `/proc` to that of the
/// process. Without that line, the number that it shows counts.
fn is_own(status: &str) -> bool {
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    match line("NSpid:") {
        Some(numbers) => numbers.split_ascii_whitespace().count() == 1,
        None => line("Pid:").is_some_and(|number| number.trim() == std::process::id().to_string()),
    }
}

/// FNV-1a, in 53 bits so that every reader of JSON keeps it whole: it only has to differ, on this machine.
fn number_of(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash >> 11
}

/// This process, also if `/proc` is that of another namespace.
pub(crate) fn this_process() -> Option<Listed> {
    parse(std::process::id(), &fs::read_to_string("/proc/self/stat").ok()?)
}

/// The number of every process that is listed.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let listed = lists_own_processes().then(|| fs::read_dir("/proc").ok()).flatten();
    let entries = listed.into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(crate) fn listed(pid: u32) -> Option<Listed> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name is in parentheses and may hold any character: fields are counted after the last one.
fn parse(pid: u32, stat: &str) -> Option<Listed> {
    let (head, fields) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    let mut fields = fields.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    let leads_session = fields.nth(1)?.parse() == Ok(pid);
    let start = fields.nth(15)?.parse().ok()?;
    Some(Listed { name: name.to_owned(), parent, start, is_zombie, leads_session })
}

/// The environment that a process was started with, a zero byte after each line. That of another user cannot be read.
pub(crate) fn environment(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// The words that a process was started with, the program's first, a zero byte after each; empty if they cannot be read.
pub(crate) fn command_line(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// The file of the program that a process runs.
pub(crate) fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

pub(crate) fn folder(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Whether its standard input is a terminal.
pub(crate) fn is_at_a_terminal(pid: u32) -> bool {
    let input = fs::read_link(format!("/proc/{pid}/fd/0"));
    input.is_ok_and(|input| input.starts_with("/dev/pts") || input.starts_with("/dev/tty"))
}

/// The files and sockets that a process has open. Those of another user's process cannot be read.
pub(crate) fn open_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    let listed = lists_own_processes().then(|| fs::read_dir(format!("/proc/{pid}/fd")).ok()).flatten();
    listed.into_iter().flatten().flatten().filter_map(|entry| fs::read_link(entry.path()).ok())
}

/// Whether a process is this user's.
pub(crate) fn is_ours(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_behind_any_program_name() {
        let line = |name: &str, state: &str| {
            format!("17 ({name}) {state} 4 17 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23")
        };
        let process = |name: &str| Listed {
            name: name.to_owned(),
            parent: 4,
            start: 4711,
            is_zombie: false,
            leads_session: false,
        };
        assert_eq!(parse(17, &line("sh", "S")), Some(process("sh")));
        assert_eq!(parse(17, &line("a) R (b", "S")), Some(process("a) R (b")));
        assert_eq!(parse(17, &line("sh", "Z")).map(|found| found.is_zombie), Some(true));
        assert_eq!(parse(17, &line("sh", "S").replace(" 6 ", " 17 ")).map(|found| found.leads_session), Some(true));
        assert_eq!(parse(17, "17 (sh) S 4"), None);
        assert_eq!(parse(17, "17 (sh"), None);
    }

    #[test]
    fn a_proc_of_another_namespace_is_told_by_its_numbers() {
        assert!(is_own("Name:\ta\nPid:\t17\nNSpid:\t17\n"));
        assert!(!is_own("Name:\ta\nPid:\t16207\nNSpid:\t16207\t2\n"));
        assert!(is_own(&format!("Name:\ta\nPid:\t{}\n", std::process::id())));
        assert!(!is_own("Name:\ta\nPid:\t4294967295\n"));
    }

    #[test]
    fn this_process_is_somewhere() {
        let own = own_space().expect("a place");
        assert_eq!(own_space(), Some(own));
        assert_ne!(number_of("a"), number_of("b"));
        assert!(number_of("a") < 1 << 53);
    }

    #[test]
    fn what_a_process_was_started_with_is_told() {
        let own = std::process::id();
        let words: String = std::env::args().map(|word| word + "\0").collect();
        assert_eq!(command_line(own), words.as_bytes());
        assert!(environment(own).split(|byte| *byte == 0).any(|line| line.starts_with(b"PATH=")));
        assert_eq!(program(own), std::env::current_exe().ok());
        assert_eq!(folder(own), std::env::current_dir().ok());
        assert!(is_ours(own) && !is_at_a_terminal(u32::MAX) && command_line(u32::MAX).is_empty());
    }
}
