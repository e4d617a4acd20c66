//! The program that listens at an address of this machine, and what it was started with.
//!
//! Linux says it in `/proc`. Elsewhere nothing is told. Processes come and go while it is looked at, and those of others
//! cannot be seen: each is passed over by itself, and says nothing of the others.

use std::net::SocketAddr;

#[cfg(target_os = "linux")]
use crate::system;

/// These variables of the program that listens at an address, as it was started. All are none unless it has the first,
/// and not empty; nor of a program that the system does not show: another user's, or one in another container.
///
/// Reads the environment of every process of this user, and the open files of those that have the first variable: some
/// milliseconds.
#[cfg(target_os = "linux")]
pub fn variables_of_listener<const N: usize>(at: SocketAddr, names: [&str; N]) -> [Option<String>; N] {
    let sockets: Vec<String> = linux::listening(at).into_iter().map(|inode| format!("socket:[{inode}]")).collect();
    let found = system::pids().filter(|_| !sockets.is_empty()).find_map(|pid| {
        let values = variables(pid, names);
        let has_first = values.first().is_some_and(|value| value.as_deref().is_some_and(|value| !value.is_empty()));
        let mut open = system::open_files(pid).filter(|_| has_first);
        open.any(|file| sockets.iter().any(|one| file.as_os_str() == one.as_str())).then_some(values)
    });
    found.unwrap_or_else(|| names.map(|_| None))
}

/// None: on this system we do not look at other programs.
#[cfg(not(target_os = "linux"))]
pub fn variables_of_listener<const N: usize>(_at: SocketAddr, names: [&str; N]) -> [Option<String>; N] {
    names.map(|_| None)
}

/// Variables of the environment that a process was started with.
#[cfg(target_os = "linux")]
fn variables<const N: usize>(pid: u32, names: [&str; N]) -> [Option<String>; N] {
    let environment = system::environment(pid);
    let value = |line: &[u8], name: &str| {
        let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    };
    names.map(|name| environment.split(|byte| *byte == 0).find_map(|line| value(line, name)))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    /// The state of a listening socket in the system's list.
    const LISTENS: &str = "0A";

    /// The sockets that get what is sent to an address: those that listen at it, else those that listen at every one.
    /// Several programs may share one (`SO_REUSEPORT`).
    pub(super) fn listening(at: SocketAddr) -> Vec<u64> {
        let lists =
            ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
        sockets(&lists.concat(), at)
    }

    pub(super) fn sockets(list: &str, at: SocketAddr) -> Vec<u64> {
        let all: Vec<(SocketAddr, u64)> = list.lines().filter_map(socket).collect();
        let any = if at.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv6Addr::UNSPECIFIED) };
        let serving = |host: IpAddr| {
            let found = all.iter().filter(move |(address, _)| *address == SocketAddr::new(host, at.port()));
            found.map(|(_, inode)| *inode).collect::<Vec<u64>>()
        };
        // What listens at every address of IPv6 gets what is sent to those of IPv4 as well.
        let hosts = [at.ip(), any, Ipv6Addr::UNSPECIFIED.into()];
        hosts.into_iter().map(serving).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The address and the inode of a line that is a listening socket's.
    fn socket(line: &str) -> Option<(SocketAddr, u64)> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, _, state, _, _, _, _, _, inode, ..] = fields.as_slice() else { return None };
        if *state != LISTENS {
            return None;
        }
        let (host, port) = local.split_once(':')?;
        Some((SocketAddr::new(host_of(host)?, u16::from_str_radix(port, 16).ok()?), inode.parse().ok()?))
    }

    /// An address as the system lists it: words of 32 bits, each as this machine's memory holds it.
    fn host_of(words: &str) -> Option<IpAddr> {
        let word = |at: usize| u32::from_str_radix(words.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
        match words.len() {
            8 => Some(Ipv4Addr::from(word(0)?).into()),
            32 => {
                let bytes: [u8; 16] = [word(0)?, word(8)?, word(16)?, word(24)?].concat().try_into().ok()?;
                Some(Ipv6Addr::from(bytes).to_canonical())
            }
            _ => None,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "a test looks at processes of its own")]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const LISTENS: &str = "import socket, sys, time
one = socket.socket(); one.bind((sys.argv[1], 0)); one.listen()
print(one.getsockname()[1], flush=True); time.sleep(60)";
    const NAMES: [&str; 3] = ["RELAY_TEST_PASSWORD", "RELAY_TEST_USER", "RELAY_TEST"];

    fn listener(host: &str, password: &str) -> (Child, SocketAddr) {
        let mut program = Command::new("python3");
        program.args(["-c", LISTENS, host]).env("RELAY_TEST_USER", "").env("RELAY_TEST_PASSWORD", password);
        let mut program = program.stdout(Stdio::piped()).spawn().expect("Python runs");
        let mut port = String::new();
        BufReader::new(program.stdout.take().expect("an output")).read_line(&mut port).expect("it listens");
        (program, SocketAddr::new([127, 0, 0, 1].into(), port.trim().parse().expect("a port")))
    }

    fn check(host: &str, password: &str, expected: &[Option<&str>; 3]) {
        let (mut program, at) = listener(host, password);
        let found = variables_of_listener(at, NAMES);
        program.kill().and_then(|()| program.wait()).expect("it ends");
        assert_eq!(found.each_ref().map(Option::as_deref), *expected, "{host}");
        assert_eq!(variables_of_listener(at, ["PATH"]), [None], "nothing listens there any more");
    }

    #[test]
    fn what_a_program_was_started_with_is_told_by_its_port() {
        check("127.0.0.1", "a=b", &[Some("a=b"), Some(""), None]);
        check("0.0.0.0", "a=b", &[Some("a=b"), Some(""), None]);
        check("127.0.0.1", "", &[None, None, None]);
        // Nothing that is sent to 127.0.0.1 gets there.
        check("127.0.0.2", "a=b", &[None, None, None]);
    }

    #[test]
    fn programs_that_come_and_go_meanwhile_hide_nobody() {
        let (mut program, at) = listener("127.0.0.1", "a=b");
        let stop = AtomicBool::new(false);
        let found = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        Command::new("sh").args(["-c", "true"]).status().expect("a shell runs");
                    }
                });
            }
            let found: Vec<_> = (0..100).map(|_| variables_of_listener(at, [NAMES[0]])).collect();
            stop.store(true, Ordering::Relaxed);
            found
        });
        program.kill().and_then(|()| program.wait()).expect("it ends");
        assert!(found.iter().all(|[password]| password.as_deref() == Some("a=b")), "{found:?}");
    }

    #[test]
    fn the_socket_that_gets_what_is_sent_is_told_from_others() {
        let line = |local: &str, state: &str, inode: u64| {
            format!("   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000 0 {inode} 1 0\n")
        };
        let (lo, any) = ("0100007F:15B3", "00000000:15B3");
        let (any6, mapped) = (&format!("{}:15B3", "0".repeat(32)), "0000000000000000FFFF00000100007F:15B3");
        let at: SocketAddr = "127.0.0.1:5555".parse().expect("an address");
        for (list, expected) in [
            (line(lo, "0A", 1), vec![1]),
            (line(lo, "01", 1), vec![]),
            (line(any, "0A", 2) + &line(lo, "0A", 1), vec![1]),
            (line(any6, "0A", 3) + &line(any, "0A", 2), vec![2]),
            (line(any6, "0A", 3), vec![3]),
            (line(mapped, "0A", 4), vec![4]),
            (line(lo, "0A", 1) + &line(lo, "0A", 5), vec![1, 5]),
            (line("0100007F:15B4", "0A", 6) + "  sl  local_address\n", vec![]),
        ] {
            if cfg!(target_endian = "little") {
                assert_eq!(linux::sockets(&list, at), expected, "{list}");
            }
        }
    }
}
