//! How a guard ends a program and everything below it.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout};

use super::order::{Order, Step, StepSignal};
use super::process::{INHERITS, Program};
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
    // Apple's own programs show no mark, and some systems list nothing: at least the program's group is ended there.
    if !INHERITS || !lists_own_processes() {
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
    let mut left = of_guard(&Table::read(), std::process::id(), program.mark());
    left.retain(|entry| !entry.is_zombie || (entry.process.pid == program.pid && !program.has_ended()));
    left
}

/// What is below a guard, and what has its mark: the latter also if it fell to another process.
fn of_guard(table: &Table, guard: u32, mark: Option<&[u8]>) -> Vec<ProcessEntry> {
    let mut found = table.below(guard);
    for entry in mark.map(|line| table.marked(line)).unwrap_or_default() {
        if entry.process.pid != guard && !found.contains(&entry) {
            found.push(entry);
        }
    }
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_fell_to_another_process_is_found_by_the_mark() {
        let value = std::process::id().to_string();
        #[expect(clippy::disallowed_methods, reason = "the test is about a process that this one started")]
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 300 & echo; wait"]).env("RELAY_GUARD", &value).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell runs");
        let mut output = child.stdout.take().expect("a pipe");
        output.read_exact(&mut [0]).expect("it has started its child");

        let (table, line) = (Table::read(), format!("RELAY_GUARD={value}"));
        let found = |guard: u32, mark: Option<&[u8]>| of_guard(&table, guard, mark).len();
        // Nothing is below a process that is not there, as nothing is below a guard to which nothing falls.
        let by_mark = of_guard(&table, u32::MAX, Some(line.as_bytes()));
        let counts = (found(u32::MAX, None), by_mark.len(), found(child.id(), None));
        let once_each = found(child.id(), Some(line.as_bytes()));
        let others = found(u32::MAX, Some(&b"RELAY_GUARD=another"[..]));
        for entry in by_mark {
            kill::signal(entry, Signal::KILL);
        }
        child.wait().expect("it ends");
        assert_eq!(counts, (0, 2, 1), "the shell and its child have the mark");
        assert_eq!(once_each, 1, "and the guard itself is none of them");
        assert_eq!(others, 0, "what another guard watches over is let alone");
    }
}
