//! How a guard ends a program and everything below it.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout};

use super::order::{Order, Step, StepSignal};
use super::process::Program;
use super::watch::Watched;
use crate::kill;
use crate::space::lists_own_processes;
use crate::table::{ProcessEntry, ProcessId, Table};

/// How a program is asked if its harness wants no other way.
const USUAL: [Step; 1] = [Step { signal: StepSignal::Terminate, grace: 2_000 }];
/// How long what outlives the program may take to end by itself, once asked.
const GRACE: Duration = Duration::from_millis(300);
/// How long to go on if something cannot be killed.
const GIVES_UP: Duration = Duration::from_secs(10);
/// Between two looks at the list of processes.
const PAUSE: Duration = Duration::from_millis(4);

/// How many processes were killed beside the program, and how many could not be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remains {
    pub(super) killed: usize,
    pub(super) left: usize,
}

/// Asks the program to stop, in its harness's order, and kills it if it does not.
pub(super) async fn ask_to_stop(watched: &mut Watched, order: &Order) {
    let steps = if order.stop.is_empty() { &USUAL[..] } else { &order.stop };
    for step in steps {
        if watched.program.has_ended() {
            return;
        }
        watched.program.ask(step.signal);
        let _elapsed = timeout(Duration::from_millis(step.grace), watched.ended()).await;
    }
    if !watched.program.has_ended() {
        watched.program.kill();
        let _elapsed = timeout(GIVES_UP, watched.ended()).await;
    }
}

/// Ends everything that the program has left, also if it ended by itself.
pub(super) async fn end_the_rest(watched: &mut Watched) -> Remains {
    // Where nothing falls to this process, or the system lists nothing, what is found is at least the program's group.
    if !cfg!(target_os = "linux") || !lists_own_processes() {
        watched.program.kill();
    }
    let mut killed: Vec<ProcessId> = Vec::new();
    let began = Instant::now();
    let mut has_asked = false;
    loop {
        watched.program.reap();
        let alive = alive(&watched.program);
        if alive.is_empty() {
            return Remains { killed: killed.len(), left: 0 };
        }
        if began.elapsed() > GIVES_UP {
            return Remains { killed: killed.len(), left: alive.len() };
        }
        if !has_asked {
            alive.iter().for_each(|entry| kill::signal(*entry, Signal::TERM));
            has_asked = true;
        } else if began.elapsed() > GRACE {
            for entry in alive {
                kill::signal(entry, Signal::KILL);
                if !killed.contains(&entry.process) {
                    killed.push(entry.process);
                }
            }
        }
        // Standard error is read meanwhile, so that nothing waits for a full pipe.
        tokio::select! {
            () = watched.read_errors() => {}
            () = sleep(PAUSE) => {}
        }
    }
}

fn alive(program: &Program) -> Vec<ProcessEntry> {
    let mut below = Table::read().below(std::process::id());
    below.retain(|entry| !entry.is_zombie || (entry.process.pid == program.pid && !program.has_ended()));
    below
}
