//! Running a run: starts the harness under a guard, reads what it prints, and ends it when it has to end.

use std::path::PathBuf;
use std::time::Duration;

use mesh::ports::harness::{Harness, HarnessError};
use mesh::ports::machine::Machine as _;
use mesh::ports::runner::{Ending, Launch, ProcessExit, RunEvent, RunOutcome, Start, StopSignal, Task};
use mesh::runs::{Halt, RunRecord, RunReport, SchemaCheck, budget, charged_below, repair_task};
use mesh::sessions::Principal;
use processes::guard::{Cause, Ended, Limits, Order, Step, StepSignal, Streams};
use processes::{Guard, GuardError};

use super::begin::{Begun, TASK};
use super::conclude::{self, Conclusion};
use super::reading::{EventLog, Reading};
use super::settle::Settler;
use super::{AnswerSchema, MARK, RunFolder, Runs, RunsError, agent, runner_of};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Explain, adapters};
use crate::exit::Exit;
use crate::signals::Stop;

/// How often to look for new output.
const LOOK: Duration = Duration::from_millis(25);

/// Who watches a run.
pub(crate) trait Audience: Send {
    /// Something was reported.
    fn event(&mut self, event: &RunEvent);
}

/// Nobody watches: the files of the run tell.
pub(crate) struct Unwatched;

impl Audience for Unwatched {
    fn event(&mut self, _: &RunEvent) {}
}

/// What one start of the harness's program came to.
pub(super) struct Attempt {
    pub(super) outcome: RunOutcome,
    pub(super) exit: ProcessExit,
    pub(super) halt: Halt,
}

/// A run in work.
struct Work<'a> {
    context: &'a Context,
    open: &'a Open,
    harness: &'a dyn Harness,
    folder: &'a RunFolder,
    record: &'a mut RunRecord,
    principal: &'a mut Principal,
    notes: &'a mut Vec<String>,
    stop: &'a mut Stop,
    audience: &'a mut (dyn Audience + 'a),
    /// Events until now, over all attempts.
    events: u64,
    /// The turns of the attempts before this one, as far as the harness says.
    turns: u32,
}

impl Explain for GuardError {
    fn exit(&self) -> Exit {
        Exit::Failure
    }

    fn hint(&self) -> Option<String> {
        Some("the system may be out of processes or memory: see `ulimit -a`".to_owned())
    }
}

/// Runs a begun run to its end, and keeps its result. If that fails, as on a full disk, the next command concludes it.
pub(crate) async fn supervise(
    context: &Context,
    open: &Open,
    begun: Begun,
    stop: &mut Stop,
    audience: &mut dyn Audience,
) -> Result<RunReport, CommandError> {
    let folder = begun.folder.clone();
    let outcome = to_its_end(context, open, begun, stop, audience).await;
    if outcome.is_err() {
        folder.give_up();
    }
    outcome
}

async fn to_its_end(
    context: &Context,
    open: &Open,
    begun: Begun,
    stop: &mut Stop,
    audience: &mut dyn Audience,
) -> Result<RunReport, CommandError> {
    let Begun { harness, folder, mut record, mut principal, mut notes } = begun;
    record.supervisor = agent::supervisor(open);
    folder.keep(&record)?;
    let text = String::from_utf8_lossy(&folder.read(TASK)?).into_owned();
    let mut work = Work {
        context,
        open,
        harness: harness.as_ref(),
        folder: &folder,
        record: &mut record,
        principal: &mut principal,
        notes: &mut notes,
        stop,
        audience,
        events: 0,
        turns: 0,
    };
    let attempt = work.attempts(text).await?;
    let conclusion = Conclusion { attempt, notes, by: Settler::Command };
    conclude::conclude(context, open, &folder, record, &principal, conclusion).await
}

impl Work<'_> {
    /// The task, and one further turn if the answer does not have its shape.
    async fn attempts(&mut self, text: String) -> Result<Attempt, CommandError> {
        let task = self.record.task.clone();
        let launch = self.record.launch.clone().unwrap_or_else(nothing);
        let first = self.attempt(&task, launch, text).await?;
        let Some(schema) = &task.schema else { return Ok(first) };
        let answer = AnswerSchema::of(schema)?.check(&first.outcome);
        let may_repair = first.halt == Halt::No && matches!(first.outcome.ending, Ending::Answered | Ending::Shape);
        let (SchemaCheck::Misses(reasons), true, Some(session)) = (answer, may_repair, first.outcome.session.clone())
        else {
            return Ok(first);
        };
        let turns = first.outcome.turns.unwrap_or(0);
        let (turns_left, cost_left) = (left(task.turns, turns), left(task.cost, self.spent_by(&first.outcome)));
        let (Some(turns_left), Some(cost_left)) = (turns_left, cost_left) else {
            self.notes.push("its answer did not fit the schema, and nothing was left to ask it once more".to_owned());
            return Ok(first);
        };
        let repair = Task { start: Start::Resume(session), turns: turns_left, cost: cost_left, ..task.clone() };
        let runner = runner_of(self.harness).map_err(|error| self.failed(error))?;
        let Ok(launch) = runner.prepare(&repair, &self.folder.files()).await else { return Ok(first) };
        for (file, text) in &launch.files {
            let written = std::fs::write(self.folder.files().join(file), text);
            written.map_err(|source| RunsError::Unwritable { id: self.record.id, source })?;
        }
        self.notes.push(format!("its first answer did not fit the schema ({reasons}), and it was asked once more"));
        self.record.earlier = first.outcome.usage.filter(|usage| !usage.whole_session);
        self.turns = turns;
        self.attempt(&repair, launch, repair_task(schema, &reasons)).await
    }

    /// Starts the harness's program once, and waits for its end.
    async fn attempt(&mut self, task: &Task, launch: Launch, input: String) -> Result<Attempt, CommandError> {
        self.record.attempts += 1;
        self.folder.keep(self.record)?;
        let order = self.order(task, &launch, input);
        let binary = binary()?;
        let mut guard = Guard::start(&binary, &order).await?;
        let runner = runner_of(self.harness).map_err(|error| self.failed(error))?;
        let Some(running) = guard.started().await else {
            let ended = guard.ended().await?;
            return Ok(self.not_started(ended));
        };
        if let (Some(program), Some(session)) = (running.program, self.principal.session().map(|of| of.id.clone()))
            && let Err(error) = self.open.mesh.run_is(self.principal, &session, program.pid).await
        {
            tracing::warn!(%error, "the process of a run could not be noted");
        }
        let unreadable = |source| RunsError::Unreadable { id: self.folder.id, source };
        let mut reading = Reading::open(runner, task, &self.output()).map_err(unreadable)?;
        let mut log = EventLog::open(&self.folder.events());
        let mut halt = Halt::No;
        let mut refusals = 0;
        let ended = loop {
            tokio::select! {
                biased;
                ended = guard.ended() => break ended?,
                () = self.stop.asked() => {
                    halt = Halt::Stopped;
                    guard.stop().await;
                }
                () = tokio::time::sleep(LOOK) => {
                    while let Some(events) = reading.more().await.map_err(unreadable)? {
                        log.write(&events);
                        if let Some(reason) = self.heard(&events, &mut refusals).await && halt == Halt::No {
                            halt = reason;
                            guard.stop().await;
                        }
                    }
                }
            }
        };
        let events = reading.rest().await.map_err(unreadable)?;
        log.write(&events);
        self.heard(&events, &mut refusals).await;
        if let Some(why) = &log.failed {
            self.notes.push(format!("not all of its events could be kept: {why}"));
        }
        Ok(self.ended(reading, ended, halt).await)
    }

    /// Takes note of what was reported. Returns why the run has to be ended, if it has to.
    async fn heard(&mut self, events: &[RunEvent], refusals: &mut u32) -> Option<Halt> {
        let limits = self.record.limits;
        let mut reason = None;
        for event in events {
            self.events += 1;
            self.audience.event(event);
            match event {
                RunEvent::Session { session } => self.is_session(session).await,
                RunEvent::Retries { status: Some(status @ (401 | 403)), .. } => {
                    *refusals += 1;
                    if *refusals >= limits.refusals {
                        reason = reason.or(Some(Halt::Refused(*status)));
                    }
                }
                RunEvent::Used { usage } => {
                    if let Some(cost) = usage.cost.filter(|_| !usage.whole_session)
                        && self.has_spent(cost)
                    {
                        reason = reason.or(Some(Halt::Cost));
                    }
                }
                RunEvent::Turns { taken } => {
                    let taken = taken.saturating_add(self.turns);
                    if let Some(most) = self.record.task.turns.filter(|most| taken >= *most) {
                        reason = reason.or(Some(Halt::Turns(most)));
                    }
                }
                RunEvent::Retries { .. }
                | RunEvent::Said { .. }
                | RunEvent::Tool { .. }
                | RunEvent::Wrote { .. }
                | RunEvent::Denied { .. }
                | RunEvent::Note { .. } => {}
            }
        }
        if self.events > limits.events { reason.or(Some(Halt::Events(limits.events))) } else { reason }
    }

    /// Notes what this run has cost so far. Returns whether its budget is spent, of which runs below it have their part.
    fn has_spent(&mut self, cost: u64) -> bool {
        let (Some(own), Some(all)) = (self.record.task.cost, budget(self.record)) else { return false };
        let cost = cost + self.record.earlier.and_then(|earlier| earlier.cost).unwrap_or(0);
        if self.record.spent.is_none_or(|known| known < cost) {
            self.record.spent = Some(cost);
            if let Err(error) = self.folder.keep(self.record) {
                tracing::warn!(%error, "what a run has cost could not be noted");
            }
        }
        let below = match self.record.root == self.record.id {
            true => charged_below(self.record, &self.runs().since(self.record.started)),
            false => 0,
        };
        cost > own || cost.saturating_add(below) > all
    }

    /// What the first attempt has cost, as far as the harness says. The figures of a session that is continued count
    /// what earlier runs of it cost.
    fn spent_by(&self, first: &RunOutcome) -> u64 {
        let is_fresh = matches!(self.record.task.start, Start::Fresh(_));
        let said = first.usage.filter(|usage| is_fresh || !usage.whole_session).and_then(|usage| usage.cost);
        said.max(self.record.spent).unwrap_or(0)
    }

    fn runs(&self) -> Runs {
        Runs::of(&self.context.settings.dir.value)
    }

    async fn is_session(&mut self, session: &str) {
        if self.principal.session().is_some_and(|known| known.id == session) {
            return;
        }
        let running = self.folder.running(self.record.attempts).and_then(|running| running.program);
        let process = running.map_or_else(std::process::id, |program| program.pid);
        if let Err(error) = self.open.mesh.run_is(self.principal, session, process).await {
            tracing::warn!(%error, "the session of a run could not be noted");
            return;
        }
        self.record.session = Some(session.to_owned());
        if let Err(error) = self.folder.keep(self.record) {
            tracing::warn!(%error, "the session of a run could not be noted in its record");
        }
    }

    async fn ended(&mut self, reading: Reading<'_>, ended: Ended, halt: Halt) -> Attempt {
        let halt = if halt == Halt::No { halt_of(ended.cause, self.record) } else { halt };
        if ended.cause == Cause::GuardLost {
            conclude::end_what_is_left(self.record.id);
        }
        if ended.left > 0 {
            self.notes.push(format!("{} of its processes could not be killed", ended.left));
        }
        let exit = exit_of(&ended);
        let outcome = match reading.conclude(&exit).await {
            Ok(outcome) => outcome,
            Err(error) => unread(&error),
        };
        Attempt { outcome, exit, halt }
    }

    fn not_started(&self, ended: Ended) -> Attempt {
        if ended.cause == Cause::GuardLost {
            conclude::end_what_is_left(self.record.id);
        }
        let outcome = RunOutcome {
            why: Some(format!("its program could not be started: {}", ended.why_not_started())),
            ..RunOutcome::of(Ending::BrokeOff)
        };
        Attempt { outcome, exit: exit_of(&ended), halt: Halt::No }
    }

    fn order(&self, task: &Task, launch: &Launch, input: String) -> Order {
        let attempt = self.record.attempts;
        let limits = self.record.limits;
        let spent = self.open.machine.now().since(self.record.started);
        let mut environment = launch.environment.clone();
        environment.retain(|(name, _)| name != MARK && name != "RELAY_DIR");
        environment.push((MARK.to_owned(), self.record.id.to_string()));
        environment.push(("RELAY_DIR".to_owned(), self.context.settings.dir.value.display().to_string()));
        Order {
            command: launch.command.clone(),
            environment,
            folder: task.folder.clone(),
            streams: Streams::Files { input, output: self.output() },
            stop: launch.stop.iter().map(step).collect(),
            limits: Limits {
                time: Some(limits.time.saturating_sub(spent)),
                silence: Some(limits.silence),
                output: Some(limits.output),
            },
            errors: self.folder.of_attempt("errors", attempt),
            running: self.folder.of_attempt("running", attempt),
            ended: self.folder.of_attempt("ended", attempt),
        }
    }

    /// Where the program's standard output goes.
    fn output(&self) -> PathBuf {
        self.folder.of_attempt("output", self.record.attempts)
    }

    fn failed(&self, error: HarnessError) -> CommandError {
        adapters::failed(&self.record.harness, error)
    }
}

pub(crate) fn step(step: &mesh::ports::runner::StopStep) -> Step {
    Step {
        signal: match step.signal {
            StopSignal::Interrupt => StepSignal::Interrupt,
            StopSignal::Terminate => StepSignal::Terminate,
        },
        grace: u64::try_from(step.grace.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Why a guard ended a run, as the mesh judges it.
pub(super) fn halt_of(cause: Cause, record: &RunRecord) -> Halt {
    match cause {
        Cause::Itself => Halt::No,
        Cause::Stopped => Halt::Stopped,
        Cause::Time => Halt::Time,
        Cause::Silence => Halt::Silence(record.limits.silence),
        Cause::Output => Halt::Output(record.limits.output),
        Cause::Leash => Halt::Abandoned,
        Cause::GuardLost => Halt::Unguarded,
    }
}

pub(crate) fn exit_of(ended: &Ended) -> ProcessExit {
    ProcessExit {
        code: ended.code,
        signal: ended.signal,
        asked_to_stop: ended.cause != Cause::Itself,
        stderr_end: ended.stderr_end.clone(),
    }
}

/// What came of a run whose adapter could not read its output.
pub(super) fn unread(error: &HarnessError) -> RunOutcome {
    RunOutcome {
        why: Some(format!("its adapter could not read what it printed: {error}")),
        ..RunOutcome::of(Ending::BrokeOff)
    }
}

/// What is left of a limit, which is none if there is no limit. None if it is spent.
fn left<T>(most: Option<T>, spent: T) -> Option<Option<T>>
where
    T: Copy + PartialOrd + std::ops::Sub<Output = T>,
{
    match most {
        Some(most) if most > spent => Some(Some(most - spent)),
        Some(_) => None,
        None => Some(None),
    }
}

fn nothing() -> Launch {
    Launch { command: Vec::new(), environment: Vec::new(), files: Vec::new(), stop: Vec::new(), without: Vec::new() }
}

/// The binary that is the guard: this one.
#[cfg(not(test))]
pub(crate) fn binary() -> Result<PathBuf, CommandError> {
    processes::this_program().map_err(|source| GuardError::Start(source).into())
}

/// In a test, the one that is built beside it.
#[cfg(test)]
pub(crate) fn binary() -> Result<PathBuf, CommandError> {
    let test = std::env::current_exe().map_err(GuardError::Start)?;
    let folder = test.parent().and_then(std::path::Path::parent).unwrap_or(&test);
    Ok(folder.join("relay-mesh"))
}
