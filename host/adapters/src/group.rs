//! A program and whatever it has started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// A process group with its leader. All of it is ended when this is dropped, however that comes about: nothing that a
/// program leaves behind outlives whoever waits for the program.
pub struct Group {
    /// The program; none where it has ended by itself, or what it left is meant to run.
    leader: Option<Pid>,
}

impl Group {
    /// Starts a program with a group of its own.
    pub fn spawn(command: &mut Command) -> std::io::Result<(Child, Group)> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok((child, Group { leader }))
    }

    /// What the program has left running goes on.
    pub fn goes_on(mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // An error means that the group has ended by itself.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
