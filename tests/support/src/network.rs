//! Machines of a test's own: each has a network of its own and a cable to the room of the test, which
//! can be unplugged. What a test starts within a machine sees that machine's loopback and, at the other
//! end of its cable, whatever listens in the room: a server that all of them share.
//!
//! Use it inside of [`crate::isolated`], whose room may make networks, as root and as anybody else.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::programs::{Program, Running};
use crate::stage::Stage;

/// A machine: a stage of its own in a network of its own. It ends with the test.
pub struct Machine {
    /// The home, the project and the data folder of whoever works there.
    pub stage: Stage,
    /// The room's end of its cable.
    cable: String,
    /// The room's address, as it is seen from here.
    room: String,
    network: File,
    /// Keeps the network while nothing else runs in it.
    _keeper: Running,
}

impl Machine {
    /// The machine with this number, from 1 on, for this binary. Give it `env!("CARGO_BIN_EXE_relay-mesh")`.
    ///
    /// # Panics
    /// Where no network can be made: a test that needs one fails, it is never skipped.
    pub fn new(number: u8, binary: &str) -> Machine {
        let stage = Stage::new(binary);
        let mut keeper = Program::new("unshare")
            .args(["--net", "sh", "-c", "echo there; exec sleep infinity"])
            .start(&stage.folder.join("network.log"));
        // Only once it has spoken is the network another one than ours.
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

    /// Where this machine reaches what listens in the room on a port.
    pub fn at(&self, port: u16) -> String {
        format!("{}:{port}", self.room)
    }

    /// Does something within the machine: what is started and what is listened on there is in its network.
    pub fn within<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        // A thread that has moved into a network is not let go to do anything else.
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&self.network);
                body()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Unplugs the cable: whatever is on its way is lost, and nobody is told.
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

/// Moves this thread, and what it starts from now on, into a network.
#[expect(unsafe_code, reason = "the one way into a network; it changes this thread alone, which ends with its body")]
fn enter(network: &File) {
    // SAFETY: the call takes two numbers, and the descriptor is open for as long as it runs.
    let outcome = unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(outcome, 0, "the network can be entered: {}", std::io::Error::last_os_error());
}
