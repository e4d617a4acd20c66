//! Where a process's number counts: in one PID namespace of one boot of one system. The same number elsewhere is
//! another process.

use serde::{Deserialize, Serialize};

/// The processes among which a number names one. Numbers only, which tell nothing of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Space {
    /// The installed system, which outlives a boot; zero if it has no id, as in most containers.
    pub system: u64,
    pub boot: u64,
    /// The PID namespace. A later one may get the same number, but not while a process of this one lives.
    pub namespace: u64,
}

/// Where this process is; none if the system does not tell.
#[cfg(target_os = "linux")]
pub fn own_space() -> Option<Space> {
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::OnceLock;

    static OWN: OnceLock<Option<Space>> = OnceLock::new();
    *OWN.get_or_init(|| {
        let text = |path: &str| std::fs::read_to_string(path).ok();
        let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
        let boot = number_of(text("/proc/sys/kernel/random/boot_id")?.trim());
        let system = text("/etc/machine-id").map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        Some(Space { system: system.map_or(0, |id| number_of(&id)), boot, namespace })
    })
}

/// None: this system has one set of numbers.
#[cfg(not(target_os = "linux"))]
pub fn own_space() -> Option<Space> {
    None
}

/// Whether the processes that the system lists go by the numbers of this process's own namespace. In a sandbox that
/// has a namespace of its own and the outer `/proc`, a number means one process to a signal and another one in `/proc`.
#[cfg(target_os = "linux")]
pub fn lists_own_processes() -> bool {
    static LISTS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *LISTS.get_or_init(|| std::fs::read_to_string("/proc/self/status").is_ok_and(|status| is_own(&status)))
}

/// The system lists no processes here.
#[cfg(not(target_os = "linux"))]
pub fn lists_own_processes() -> bool {
    false
}

/// Whether `/proc/self/status` shows one number: it has one for each namespace from that of `/proc` to that of the
/// process. Without that line, the number that it shows counts.
#[cfg(target_os = "linux")]
fn is_own(status: &str) -> bool {
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    match line("NSpid:") {
        Some(numbers) => numbers.split_ascii_whitespace().count() == 1,
        None => line("Pid:").is_some_and(|number| number.trim() == std::process::id().to_string()),
    }
}

/// FNV-1a, in 53 bits so that every reader of JSON keeps it whole: it only has to differ, on this machine.
#[cfg(target_os = "linux")]
fn number_of(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash >> 11
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

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
}
