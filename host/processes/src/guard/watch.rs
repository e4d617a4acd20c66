//! What a guard does from the order to the end.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use super::end;
use super::input::{InputRequest, Leash, leave_streams};
use super::order::{Cause, Ended, Limits, Order, Running};
use super::process::{Errors, Program};
use crate::space::own_space;
use crate::table::{self, ProcessId};

/// How often to look at the length of the output.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait for the end of standard error once nothing is left that could write to it.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A program with what the guard hears of it.
pub(super) struct Watched {
    pub(super) program: Program,
    /// None once it has ended.
    errors: Option<Errors>,
    /// What was said on standard error, once it has ended.
    said: String,
    children: Signal,
}

impl Watched {
    /// Returns when the program has ended.
    pub(super) async fn ended(&mut self) {
        loop {
            self.program.reap();
            if self.program.has_ended() {
                return;
            }
            tokio::select! {
                _ = self.children.recv() => {}
                () = read(&mut self.errors, &mut self.said) => {}
            }
        }
    }

    /// Reads standard error once; waits for ever after its end.
    pub(super) async fn read_errors(&mut self) {
        read(&mut self.errors, &mut self.said).await;
    }

    async fn stderr_end(&mut self) -> String {
        let rest = async {
            while self.errors.is_some() {
                read(&mut self.errors, &mut self.said).await;
            }
        };
        let _elapsed = timeout(LAST_WORDS, rest).await;
        self.errors.as_ref().map_or_else(|| self.said.clone(), Errors::end)
    }
}

async fn read(errors: &mut Option<Errors>, said: &mut String) {
    match errors {
        Some(open) => {
            if !open.read().await {
                *said = open.end();
                *errors = None;
            }
        }
        None => std::future::pending().await,
    }
}

/// Runs the order that comes by the leash to its end. An error means that there was no order.
pub(super) async fn watch() -> io::Result<()> {
    let mut stop = Stop::listen()?;
    let children = signal(SignalKind::child())?;
    let mut leash = Leash::of_standard_error()?;
    let order = leash.order().await?;
    let own = table::this_process();
    #[cfg(target_os = "linux")]
    let _unsupported = rustix::process::set_child_subreaper(kill_number(own));
    write(&order.running, &Running { guard: own, program: None })?;
    let mut program = match Program::start(&order) {
        Ok(program) => program,
        Err(error) => {
            let ended = Ended { cause: Cause::Itself, not_started: Some(error.to_string()), ..nothing() };
            return write(&order.ended, &ended);
        }
    };
    let started = Running { guard: own, program: Some(started(program.pid)) };
    let _full_disk = write(&order.running, &started);
    leave_streams()?;
    leash.say(&started).await;
    let errors = program.keep_errors(order.errors.clone())?;
    let mut watched = Watched { program, errors, said: String::new(), children };
    let cause = cause(&mut watched, &order, &mut leash, &mut stop).await;
    if cause != Cause::Itself {
        end::ask_to_stop(&mut watched, &order).await;
    }
    let remains = end::end_the_rest(&mut watched).await;
    let stderr_end = watched.stderr_end().await;
    let status = watched.program.status();
    let ended = Ended {
        cause,
        code: status.and_then(rustix::process::WaitStatus::exit_status),
        signal: status.and_then(rustix::process::WaitStatus::terminating_signal),
        killed: remains.killed,
        left: remains.left,
        not_started: None,
        stderr_end,
    };
    write(&order.ended, &ended)
}

/// Waits until the program ends, or until there is a reason to end it.
async fn cause(watched: &mut Watched, order: &Order, leash: &mut Leash, stop: &mut Stop) -> Cause {
    let mut limits = Watch::new(order.limits);
    // What has no limits may run for months.
    let looks = order.limits.output.is_some() || order.limits.silence.is_some();
    loop {
        let time = limits.time;
        tokio::select! {
            biased;
            () = watched.ended() => return Cause::Itself,
            request = leash.request() => match request {
                InputRequest::Stop => return Cause::Stopped,
                InputRequest::Nothing => return Cause::Leash,
            },
            () = stop.asked() => return Cause::Stopped,
            () = at(time) => return Cause::Time,
            () = tokio::time::sleep(LOOK), if looks => {}
        }
        let output = order.streams.output().and_then(|output| fs::metadata(output).ok()).map_or(0, |found| found.len());
        let errors = watched.errors.as_ref().map_or(0, Errors::total);
        if let Some(cause) = limits.reached(output, errors) {
            return cause;
        }
    }
}

/// The limits of a program, and how it stands to them.
struct Watch {
    limits: Limits,
    time: Option<Instant>,
    heard: Instant,
    /// Lengths of output and error when they last grew.
    lengths: (u64, u64),
}

impl Watch {
    fn new(limits: Limits) -> Watch {
        let now = Instant::now();
        let time = limits.time.and_then(|time| now.checked_add(Duration::from_millis(time)));
        Watch { limits, time, heard: now, lengths: (0, 0) }
    }

    fn reached(&mut self, output: u64, errors: u64) -> Option<Cause> {
        if self.lengths != (output, errors) {
            self.lengths = (output, errors);
            self.heard = Instant::now();
        }
        if self.limits.output.is_some_and(|most| output > most) {
            return Some(Cause::Output);
        }
        let silent = self.limits.silence.is_some_and(|most| self.heard.elapsed() > Duration::from_millis(most));
        silent.then_some(Cause::Silence)
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The signals that ask a guard to end its program: the guard lives until that is done.
struct Stop([Signal; 3]);

impl Stop {
    fn listen() -> io::Result<Stop> {
        let [interrupt, terminate, hang_up] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Stop([interrupt?, terminate?, hang_up?]))
    }

    async fn asked(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
}

fn nothing() -> Ended {
    Ended::guard_lost(String::new())
}

fn started(pid: u32) -> ProcessId {
    table::find(pid).unwrap_or(ProcessId { pid, start: 0, space: own_space() })
}

#[cfg(target_os = "linux")]
fn kill_number(own: ProcessId) -> Option<rustix::process::Pid> {
    crate::kill::number(own.pid)
}

/// Replaces a file in one step.
fn write(path: &Path, what: &impl Serialize) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec(what)?)?;
    fs::rename(new, path)
}
