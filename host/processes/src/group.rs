//! A program that is asked for one answer, and the processes that it started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::kill;
use crate::table::{self, Entry, Table};

/// How often to look for children that were started while the others were being stopped.
const LOOKS: usize = 8;

/// A program in a process group of its own. If it is dropped while the program runs, the program, its group and every
/// process below it are killed, also those in sessions of their own. If the program has ended, its group is killed.
pub struct Group {
    /// The program; none if its remaining processes may keep running.
    leader: Option<Pid>,
}

impl Group {
    /// Starts a program in its own process group.
    pub fn spawn(command: &mut Command) -> std::io::Result<(Child, Group)> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child.id().and_then(kill::number);
        Ok((child, Group { leader }))
    }

    /// Lets the remaining processes keep running.
    pub fn goes_on(mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(leader) = self.leader else { return };
        let below = stop_all(leader);
        // An error means that the group has already ended.
        let _ = kill_process_group(leader, Signal::KILL);
        for entry in below {
            kill::signal(entry, Signal::KILL);
        }
    }
}

/// Stops the program and everything below it, so that nothing new is started while it is killed. Nothing is stopped if
/// the program has ended: then its children are no longer below it.
fn stop_all(leader: Pid) -> Vec<Entry> {
    let Ok(pid) = u32::try_from(leader.as_raw_pid()) else { return Vec::new() };
    // A number that was given to another process is not our child.
    if table::entry(pid).is_none_or(|entry| entry.is_zombie || entry.parent != std::process::id()) {
        return Vec::new();
    }
    let _ = kill_process_group(leader, Signal::STOP);
    let mut found: Vec<Entry> = Vec::new();
    for _ in 0..LOOKS {
        let new: Vec<Entry> = Table::read().below(pid).into_iter().filter(|entry| !found.contains(entry)).collect();
        if new.is_empty() {
            break;
        }
        new.iter().for_each(|entry| kill::signal(*entry, Signal::STOP));
        found.extend(new);
    }
    found
}
