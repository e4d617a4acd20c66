//! A program and the processes that it started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// A process group with its leader. Dropping it kills the whole group, so that nothing the program started outlives the
/// code that waits for the program.
pub struct Group {
    /// The program; none if it has ended by itself, or its remaining processes may keep running.
    leader: Option<Pid>,
}

impl Group {
    /// Starts a program in its own process group.
    pub fn spawn(command: &mut Command) -> std::io::Result<(Child, Group)> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok((child, Group { leader }))
    }

    /// Lets the remaining processes keep running.
    pub fn goes_on(mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // An error means that the group has already ended.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
