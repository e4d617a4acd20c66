//! Simulated machines: each has its own network namespace and a cable to the test's room, which can be unplugged. A
//! process started within a machine sees that machine's loopback and, through the cable, whatever listens in the room:
//! a server that all of them share.
//!
//! Use it inside [`crate::isolated`], whose room may create networks as root and as any other user.

use std::fs::File;

use crate::programs::{Program, Running};
use crate::stage::Stage;

/// A machine: its own stage in its own network. It ends with the test.
pub struct Machine {
    /// The home, project and data folder of its user.
    pub stage: Stage,
    /// The room's end of its cable.
    cable: String,
    /// The room's address, as seen from this machine.
    room: String,
    network: File,
    /// Keeps the network namespace alive.
    _keeper: Running,
}

impl Machine {
    /// The machine with this number, from 1 on, for this binary. Pass `env!("CARGO_BIN_EXE_relay-mesh")`.
    ///
    /// # Panics
    /// If no network can be created: a test that needs one fails, it is never skipped.
    pub fn new(number: u8, binary: &str) -> Machine {
        let stage = Stage::new(binary);
        let mut keeper = Program::new("unshare")
            .args(["--net", "sh", "-c", "echo there; exec sleep infinity"])
            .start(&stage.folder.join("network.log"));
        // Before its first line, it is still in our network.
        let said = crate::lines::Lines::of(keeper.child.stdout.take().expect("its output is a pipe")).next();
        assert_eq!(
            said.as_deref(),
            Some("there"),
            "no network can be made: run the tests as root, or where user namespaces are allowed"
        );
        let namespace = format!("/proc/{}/ns/net", keeper.child.id());
        let network = File::open(&namespace).expect("a network that is there can be opened");
        let (cable, room, own) =
            (format!("cable-{number}"), format!("10.77.{number}.1"), format!("10.77.{number}.2/24"));
        let ip = |words: &str| Program::new("ip").args(words.split(' ')).succeed();
        ip(&format!("link add name {cable} type veth peer name out netns {}", keeper.child.id()));
        ip(&format!("address add {room}/24 dev {cable}"));
        ip(&format!("link set dev {cable} up"));
        let machine = Machine { stage, cable, room, network, _keeper: keeper };
        machine.within(|| {
            for words in ["link set dev lo up", &format!("address add {own} dev out"), "link set dev out up"] {
                ip(words);
            }
        });
        machine
    }

    /// The address of a port in the room, for this machine.
    pub fn at(&self, port: u16) -> String {
        format!("{}:{port}", self.room)
    }

    /// Runs `body` within the machine's network, for the processes and sockets that it creates.
    pub fn within<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        // A new thread, because a thread that entered a network stays in it.
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&self.network);
                body()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Unplugs the cable: packets in flight are lost without a notice.
    pub fn unplug(&self) {
        self.set_cable("down");
    }

    /// Plugs it in again.
    pub fn plug_in(&self) {
        self.set_cable("up");
    }

    fn set_cable(&self, state: &str) {
        Program::new("ip").args(["link", "set", "dev", &self.cable, state]).succeed();
    }
}

/// Moves this thread and its later children into a network.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the one way into a network; it changes this thread alone, which ends with its body")]
fn enter(network: &File) {
    // SAFETY: the call takes two numbers, and the descriptor is open for as long as it runs.
    let outcome = unsafe { libc::setns(std::os::fd::AsRawFd::as_raw_fd(network), libc::CLONE_NEWNET) };
    assert_eq!(outcome, 0, "the network can be entered: {}", std::io::Error::last_os_error());
}

#[cfg(not(target_os = "linux"))]
fn enter(_network: &File) {
    panic!("machines are simulated by Linux's network namespaces, which this system does not have");
}
