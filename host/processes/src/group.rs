//! A program that is asked for one answer, and the processes that it started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::kill::{self, end_marked};
use crate::space::own_space;
use crate::table::{self, ProcessEntry, ProcessId, Table};

/// How often to look for children that were started while the others were being stopped.
const LOOKS: usize = 8;
/// The variable that marks a program of a group and everything that it starts. Its value is of one program alone.
const MARK: &str = "RELAY_PROGRAM";

/// The groups that run, each with its mark. A process that must end at once ends them: see [`end_groups`].
// A std mutex: nothing is awaited while it is held, and the section is a map's.
static RUNNING: Mutex<BTreeMap<u64, (Pid, String)>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(0);
/// The folder with a file for each group that runs, by its mark: the process that it belongs to.
static NOTES: OnceLock<PathBuf> = OnceLock::new();

/// From now on the groups of this process are noted in this folder, so that another process can end them if this one is
/// killed. Ends the programs of processes that were.
pub fn note_groups_in(folder: PathBuf) {
    end_orphans(&folder);
    // One process has one data folder.
    let _known = NOTES.set(folder);
}

/// Ends the programs whose process is gone and has not ended them itself. What another PID namespace or another system
/// has noted is left to it.
fn end_orphans(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let owner = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<ProcessId>(&bytes).ok());
        let (Some(owner), Some(mark)) = (owner, name.to_str()) else { continue };
        if owner.space == own_space() && !kill::is_alive(owner) {
            end_marked(MARK, mark);
            let _gone = std::fs::remove_file(path);
        }
    }
}

/// Notes a group before its program starts. Without a note the program is ended all the same, unless this process is
/// killed.
fn note(owner: &ProcessId, mark: &str) {
    let Some(folder) = NOTES.get() else { return };
    let Ok(text) = serde_json::to_vec(owner) else { return };
    let path = folder.join(mark);
    if std::fs::write(&path, &text).is_err() {
        let _there = std::fs::create_dir(folder);
        let _noted = std::fs::write(path, text);
    }
}

fn strike_note(mark: &str) {
    if let Some(folder) = NOTES.get() {
        let _gone = std::fs::remove_file(folder.join(mark));
    }
}

/// A program in a process group of its own. If it is dropped while the program runs, the program, its group and every
/// process below it are killed, also those in sessions of their own and those that have lost their parent. If the
/// program has ended, its group is killed.
pub struct Group {
    /// The program; none if its remaining processes may keep running.
    leader: Option<Pid>,
    number: u64,
}

impl Group {
    /// Starts a program in its own process group.
    pub fn spawn(command: &mut Command) -> std::io::Result<(Child, Group)> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let this = table::this_process();
        let mark = format!("{}.{}.{number}", this.pid, this.start);
        note(&this, &mark);
        let spawned = command.env(MARK, &mark).process_group(0).kill_on_drop(true).spawn();
        let child = spawned.inspect_err(|_| strike_note(&mark))?;
        let leader = child.id().and_then(kill::number);
        if let Some(leader) = leader {
            running().insert(number, (leader, mark));
        }
        Ok((child, Group { leader, number }))
    }

    /// Lets the remaining processes keep running.
    pub fn goes_on(mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let known = running().remove(&self.number);
        let Some((_, mark)) = known else { return };
        if let Some(leader) = self.leader {
            end(leader, &mark);
        }
        strike_note(&mark);
    }
}

/// Ends every program that runs in a group, with all that it started: for a process that ends without coming back to
/// what it was doing, such as one whose time is up.
pub fn end_groups() {
    for (leader, mark) in std::mem::take(&mut *running()).into_values() {
        end(leader, &mark);
        strike_note(&mark);
    }
}

fn running() -> std::sync::MutexGuard<'static, BTreeMap<u64, (Pid, String)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(leader: Pid, mark: &str) {
    let Some(below) = stop_all(leader) else {
        // An error means that the group has already ended.
        let _ = kill_process_group(leader, Signal::KILL);
        return;
    };
    let _ = kill_process_group(leader, Signal::KILL);
    for entry in below {
        kill::signal(entry, Signal::KILL);
    }
    // What has lost its parent is below nobody.
    end_marked(MARK, mark);
}

/// Stops the program and everything below it, so that nothing new is started while it is killed. None, and nothing is
/// stopped, if the program has ended: then its children are no longer below it, and may be meant to go on.
fn stop_all(leader: Pid) -> Option<Vec<ProcessEntry>> {
    let pid = u32::try_from(leader.as_raw_pid()).ok()?;
    // A number that was given to another process is not our child.
    if table::entry(pid).is_none_or(|entry| entry.is_zombie || entry.parent != std::process::id()) {
        return None;
    }
    let _ = kill_process_group(leader, Signal::STOP);
    let mut found: Vec<ProcessEntry> = Vec::new();
    for _ in 0..LOOKS {
        let new: Vec<ProcessEntry> =
            Table::read().below(pid).into_iter().filter(|entry| !found.contains(entry)).collect();
        if new.is_empty() {
            break;
        }
        new.iter().for_each(|entry| kill::signal(*entry, Signal::STOP));
        found.extend(new);
    }
    Some(found)
}
