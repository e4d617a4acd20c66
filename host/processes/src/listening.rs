//! The program that listens at an address of this machine, and what it was started with.

use std::net::{IpAddr, SocketAddr};

use listeners::{Protocol, SocketState};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

/// These variables of the program that listens at an address, as it was started. None of one that it has not, or that
/// the system does not show: another user's program, or one in another container.
///
/// Looks at every socket of this user's programs, so it takes some milliseconds.
pub fn variables_of_listener<const N: usize>(at: SocketAddr, names: [&str; N]) -> [Option<String>; N] {
    let environment = listener(at).map(environment).unwrap_or_default();
    names.map(|name| environment.iter().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned())))
}

/// The process that gets what is sent to an address: the one that listens at it, else the one that listens at all.
fn listener(at: SocketAddr) -> Option<u32> {
    let all = listeners::get_all().unwrap_or_default();
    let serves = |host: IpAddr| {
        let socket = SocketAddr::new(host, at.port());
        let found = all.iter().filter(|found| found.protocol == Protocol::TCP && found.state == SocketState::Listen);
        found.filter(|found| found.socket == socket).map(|found| found.process.pid).next()
    };
    let any_of_both = IpAddr::from([0; 16]);
    let any = if at.is_ipv4() { IpAddr::from([0; 4]) } else { any_of_both };
    [at.ip(), any, any_of_both].into_iter().find_map(serves)
}

fn environment(pid: u32) -> Vec<String> {
    let Ok(mut system) = System::new() else { return Vec::new() };
    let pid = Pid::from_u32(pid);
    let what = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
    let lines = system.process(pid).map(sysinfo::Process::environ).unwrap_or_default();
    lines.iter().filter_map(|line| line.to_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    const LISTENS: &str = "import socket, sys, time
one = socket.socket(); one.bind((sys.argv[1], 0)); one.listen()
print(one.getsockname()[1], flush=True); time.sleep(60)";

    fn check(host: &str, expected: &[Option<&str>; 3]) {
        let mut program = Command::new("python3");
        program.args(["-c", LISTENS, host]).env("RELAY_TEST_USER", "").env("RELAY_TEST_PASSWORD", "a=b");
        let mut program = program.stdout(Stdio::piped()).spawn().expect("Python runs");
        let mut port = String::new();
        BufReader::new(program.stdout.take().expect("an output")).read_line(&mut port).expect("it listens");
        let at = SocketAddr::new([127, 0, 0, 1].into(), port.trim().parse().expect("a port"));
        let found = variables_of_listener(at, ["RELAY_TEST_PASSWORD", "RELAY_TEST_USER", "RELAY_TEST"]);
        program.kill().and_then(|()| program.wait()).expect("it ends");
        assert_eq!(found.each_ref().map(Option::as_deref), *expected, "{host}");
        assert_eq!(variables_of_listener(at, ["PATH"]), [None], "nothing listens there any more");
    }

    #[test]
    fn what_a_program_was_started_with_is_told_by_its_port() {
        check("127.0.0.1", &[Some("a=b"), Some(""), None]);
        check("0.0.0.0", &[Some("a=b"), Some(""), None]);
        // Nothing that is sent to 127.0.0.1 gets there.
        check("127.0.0.2", &[None, None, None]);
    }
}
