//! Working on a pipeline, step by step. The record is kept before and after each step; a step that was begun when the
//! process was killed is looked up, and done again unless its run had given an answer.

use std::time::Duration;

use mesh::ports::machine::{Machine, Process};
use mesh::ports::runner::{Ending, Extensions, Reach, Start};
use mesh::reviews::{Next, PipelineRecord, Step, StepKind, StepState, Subject, counts_against, fix_task, next_step};
use mesh::runs::{RunId, RunLimits, RunStage, agent_label};
use serde_json::{Value, json};
use tokio::time::Instant;
use view::{FindingView, Timestamp};

use super::{PipelineFolder, changes as own_changes};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::reviews::stop::settle as settle_review;
use crate::reviews::work::{ReviewAudience, work as review};
use crate::reviews::{ReviewRequest, Reviews, begin as reviews};
use crate::runs::permission::Evidence;
use crate::runs::settle::Settler;
use crate::runs::supervise::{Unwatched, supervise};
use crate::runs::{RunRequest, Runs, WorkFolder, alive, begin, changes, settle};
use crate::signals::Stop;

/// How long to wait for what an interrupted step had come to.
const CONCLUDED: Duration = Duration::from_secs(30);
/// How often to look.
const LOOK: Duration = Duration::from_millis(200);

/// How what an interrupted step had begun stands.
enum Stands<T> {
    /// It has ended, or nothing of it is there.
    Over(Option<T>),
    /// Something works on it.
    Lives,
    /// Another process may be concluding it, or it cannot be told here.
    Unknown,
}

fn stands<T>(end: Option<T>, by: Process, works: impl Fn() -> bool, machine: &dyn Machine) -> Stands<T> {
    match end {
        Some(end) => Stands::Over(Some(end)),
        None if !alive::is_out_of_sight(by, machine) && works() => Stands::Lives,
        None => Stands::Unknown,
    }
}

/// A pipeline in work.
pub(crate) struct Work<'a> {
    pub(crate) context: &'a Context,
    pub(crate) open: &'a Open,
    pub(crate) evidence: &'a Evidence,
    pub(crate) folder: &'a PipelineFolder,
    pub(crate) stop: &'a mut Stop,
    pub(crate) audience: &'a mut dyn ReviewAudience,
}

impl Work<'_> {
    /// Does what is left to do, and returns the whole result.
    pub(crate) async fn go_on(&mut self, mut record: PipelineRecord) -> Result<Value, CommandError> {
        record.supervisor = self.open.machine.this_process();
        settle::settle(self.context, self.open, &self.runs()).await;
        self.take_up(&mut record).await?;
        self.folder.keep(&record)?;
        while let Next::Step(kind, round) = next_step(&record.steps, record.rounds) {
            let was_begun = matches!(record.steps.last(), Some(Step { state: StepState::Running, .. }));
            if was_begun {
                record.steps.pop();
            }
            let harnesses = match kind {
                StepKind::Implement | StepKind::Fix => vec![record.implement.clone()],
                StepKind::Review => record.review.clone(),
            };
            self.audience.says(&format!("{} (round {round}) by {}", kind.as_str(), harnesses.join(", ")));
            let step = Step { kind, round, harnesses, work: None, session: None, state: StepState::Running };
            record.steps.push(step);
            self.folder.keep(&record)?;
            let state = match kind {
                StepKind::Implement | StepKind::Fix => self.change(&mut record, was_begun).await,
                StepKind::Review => self.review(&mut record).await,
            };
            let state = state.unwrap_or_else(|error| StepState::Failed { why: mesh::reasons(&error) });
            if let StepState::Failed { why } = &state {
                self.audience.says(&format!("{} failed: {why}", kind.as_str()));
            }
            if let Some(step) = record.steps.last_mut() {
                step.state = state;
            }
            self.folder.keep(&record)?;
        }
        record.ended = Some(self.open.machine.now());
        let result = self.result(&record).await?;
        self.folder.keep_result(&result)?;
        self.folder.keep(&record)?;
        changes::remove_if_clean(&changes::git(self.context), &record.workplace).await;
        Ok(result)
    }

    fn runs(&self) -> Runs {
        Runs::of(&self.context.settings.dir.value)
    }

    fn reviews(&self) -> Reviews {
        Reviews::of(&self.context.settings.dir.value)
    }

    /// Takes up a step whose process was killed: what its run or review had come to counts, if it had an end.
    async fn take_up(&mut self, record: &mut PipelineRecord) -> Result<(), CommandError> {
        let (least, context, open, runs) = (record.least, self.context, self.open, self.runs());
        let Some(step) = record.steps.last_mut().filter(|step| step.state == StepState::Running) else { return Ok(()) };
        let Some(id) = step.work else { return Ok(()) };
        match step.kind {
            StepKind::Implement | StepKind::Fix => {
                let run = runs.folder(id);
                let end = self.concluded(id, async || {
                    if let Err(error) = settle::settle_one(context, open, &run, Settler::Command).await {
                        tracing::debug!(error = %store::reasons(&error), run = %id, "what came of it is not known");
                    }
                    let Ok(record) = run.record() else { return Stands::Over(None) };
                    let works = || run.stage(&record, open.machine.as_ref()) == RunStage::Running;
                    stands(record.ended.clone(), record.supervisor, works, open.machine.as_ref())
                });
                if let Some(end) = end.await?.filter(|end| end.ok) {
                    step.session = end.session;
                    step.state = StepState::Done { open: 0 };
                }
            }
            StepKind::Review => {
                let review = self.reviews().folder(id);
                let end = self.concluded(id, async || {
                    if let Err(error) = settle_review(context, open, &review, Settler::Command).await {
                        tracing::debug!(error = %store::reasons(&error), review = %id, "what came of it is not known");
                    }
                    let Ok(record) = review.record() else { return Stands::Over(None) };
                    let works = || review.is_worked_on(&record, open.machine.as_ref());
                    stands(record.ended.clone(), record.supervisor, works, open.machine.as_ref())
                });
                if end.await?.is_some_and(|end| end.ok) {
                    step.state = StepState::Done { open: counts_against(&review.findings()?, least) };
                }
            }
        }
        Ok(())
    }

    /// What a killed step's run or review had come to. Another process may be concluding it, or its guard be ending it:
    /// nothing else works in its folder until then. None if that is not known, and the step is done again.
    async fn concluded<T>(&mut self, id: RunId, look: impl AsyncFn() -> Stands<T>) -> Result<Option<T>, CommandError> {
        let until = Instant::now() + CONCLUDED;
        let not_now = |what: String, exit: Exit| {
            let hint = Some(format!("`relay-mesh runs stop {id}` ends what still runs of it; then try again"));
            CommandError::from(Failure { what, hint, exit, source: None })
        };
        loop {
            let stands = look().await;
            match stands {
                Stands::Over(end) => return Ok(end),
                Stands::Lives if Instant::now() >= until => {
                    let what =
                        format!("the step that was interrupted, {id}, has not ended within {} s", CONCLUDED.as_secs());
                    return Err(not_now(what, Exit::TimedOut));
                }
                Stands::Unknown if Instant::now() >= until => {
                    self.audience.says(&format!("what the step that was interrupted, {id}, had come to is not known"));
                    return Ok(None);
                }
                Stands::Lives | Stands::Unknown => {}
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.stop.asked() => {
                    let what = format!("stopped before the step that was interrupted, {id}, had ended");
                    return Err(not_now(what, Exit::Failure));
                }
            }
        }
    }

    /// Lets the implementing harness work: on the task, or on what the last review found.
    async fn change(&mut self, record: &mut PipelineRecord, was_begun: bool) -> Result<StepState, CommandError> {
        let fixes = record.steps.last().is_some_and(|step| step.kind == StepKind::Fix);
        let mut text = if fixes { self.fix(record)? } else { record.prompt.clone() };
        if was_begun {
            text = format!("{text}\n\n(An earlier attempt was interrupted: the folder may hold part of the work.)");
        }
        let earlier = record.steps.iter().rev().find_map(|step| step.session.clone());
        let is_worktree = matches!(record.workplace, mesh::runs::Workplace::Worktree { .. });
        let request = RunRequest {
            harness: record.implement.clone(),
            text,
            folder: record.folder.clone(),
            place: if is_worktree { WorkFolder::Given } else { WorkFolder::Here },
            reach: Reach::Edit,
            start: earlier.filter(|_| fixes).map(Start::Resume),
            extensions: Extensions::Mesh,
            model: None,
            schema: None,
            turns: None,
            cost: None,
            below: None,
            limits: RunLimits { time: record.time, ..RunLimits::default() },
            name: None,
            reserve: Vec::new(),
            report: Vec::new(),
        };
        let begun = begin::begin_for(self.context, self.open, self.evidence, request).await?;
        self.began(record, begun.record.id)?;
        let report = supervise(self.context, self.open, begun, self.stop, &mut Unwatched).await?;
        if let Some(step) = record.steps.last_mut() {
            step.session.clone_from(&report.outcome.session);
        }
        if !report.verdict.ok {
            let why = report.verdict.why.map_or_else(String::new, |why| format!(": {why}"));
            let why = format!("run {} ended, {}{why}", report.record.id, report.verdict.ending.as_str());
            return Ok(StepState::Failed { why });
        }
        let git = changes::git(self.context);
        if !fixes && own_changes::until_now(&git, self.folder, record).await?.patch.is_empty() {
            let why = format!("run {} answered and changed nothing", report.record.id);
            return Ok(StepState::Failed { why });
        }
        Ok(StepState::Done { open: 0 })
    }

    /// The task that corrects what the last review found.
    fn fix(&self, record: &PipelineRecord) -> Result<String, CommandError> {
        let findings = self.last_findings(record)?;
        let wanted = findings.iter().filter(|one| one["stands"] == true).cloned().collect::<Vec<Value>>();
        Ok(fix_task(&record.prompt, &Value::Array(wanted).to_string()))
    }

    async fn review(&mut self, record: &mut PipelineRecord) -> Result<StepState, CommandError> {
        let request = ReviewRequest {
            subject: Subject::Base(record.commit.clone()),
            folder: record.folder.clone(),
            by: record.review.clone(),
            verify: record.verify.clone(),
            time: record.time,
            report: Vec::new(),
        };
        let (folder, _) = reviews::begin(self.context, self.open, self.evidence, request).await?;
        self.began(record, folder.id())?;
        let review = review(self.context, self.open, &folder, self.stop, self.audience).await?;
        if !review.is_ok() {
            let why = view::ReviewView::from(&review).why.unwrap_or_default();
            return Ok(StepState::Failed { why });
        }
        Ok(StepState::Done { open: counts_against(&review.findings, record.least) })
    }

    fn began(&self, record: &mut PipelineRecord, id: RunId) -> Result<(), CommandError> {
        if let Some(step) = record.steps.last_mut() {
            step.work = Some(id);
        }
        Ok(self.folder.keep(record)?)
    }

    /// The findings of the last review that ended as one; none if there was none.
    fn last_findings(&self, record: &PipelineRecord) -> Result<Vec<Value>, CommandError> {
        let is_done = |step: &&Step| step.kind == StepKind::Review && matches!(step.state, StepState::Done { .. });
        let Some(id) = record.steps.iter().rev().find(is_done).and_then(|step| step.work) else {
            return Ok(Vec::new());
        };
        let findings = self.reviews().folder(id).findings()?;
        let views = findings.iter().enumerate().map(|(at, finding)| FindingView::of(at + 1, finding));
        Ok(views.filter_map(|view| serde_json::to_value(view).ok()).collect())
    }

    /// The whole result. What a failed step leaves open is not claimed.
    async fn result(&mut self, record: &PipelineRecord) -> Result<Value, CommandError> {
        let git = changes::git(self.context);
        let changes = own_changes::until_now(&git, self.folder, record).await?;
        let mut notes = changes::of_left_out(&changes.left_out);
        notes.extend(changes::nested_within(&git, &record.workplace).await);
        let failed = record.failure();
        // If the last review failed, what an earlier one found is not what stands.
        let reviewed = record.steps.iter().rev().find(|step| step.kind != StepKind::Implement);
        let is_reviewed =
            reviewed.is_some_and(|step| step.kind == StepKind::Review && matches!(step.state, StepState::Done { .. }));
        let findings = if is_reviewed { self.last_findings(record)? } else { Vec::new() };
        let issues = findings.into_iter().filter(|one| one["stands"] == true).map(|mut issue| {
            issue["files"] = json!([issue["file"]]);
            issue
        });
        let steps = record.steps.iter().map(|step| self.step(step)).collect::<Vec<Value>>();
        let (branch, folder) = match &record.workplace {
            mesh::runs::Workplace::Worktree { branch, .. } => (Some(branch), Some(&record.asked_folder)),
            mesh::runs::Workplace::Here { .. } => (None, None),
        };
        let ended = record.ended.unwrap_or_else(|| self.open.machine.now());
        Ok(json!({
            "pipeline": record.id.to_string(),
            "ok": failed.is_none(),
            "why": failed,
            "reviewed": is_reviewed,
            "cwd": record.folder,
            "folder": folder,
            "branch": branch,
            "started_at": Timestamp(record.started),
            "ended_at": Timestamp(ended),
            "duration_ms": ended.since(record.started),
            "rounds": record.rounds,
            "steps": steps,
            "issues": issues.collect::<Vec<Value>>(),
            "files_written": changes.written,
            "files_deleted": changes.deleted,
            "git_diff": String::from_utf8_lossy(&changes.patch),
            "notes": notes,
        }))
    }

    fn step(&self, step: &Step) -> Value {
        let agents: Vec<&str> = step.harnesses.iter().map(|harness| agent_label(harness)).collect();
        let ended = step.work.and_then(|id| self.runs().load(id).ok()).and_then(|(_, run)| run.ended);
        let ended = ended.map(|end| end.ending).or(match step.state {
            StepState::Done { .. } => Some(Ending::Answered),
            StepState::Running | StepState::Failed { .. } => None,
        });
        let (ok, why) = match &step.state {
            StepState::Done { .. } => (true, None),
            StepState::Failed { why } => (false, Some(why)),
            StepState::Running => (false, None),
        };
        json!({
            "step": step.kind.as_str(),
            "round": step.round,
            "agents": agents,
            "harnesses": step.harnesses,
            "id": step.work.map(|id| id.to_string()),
            "ok": ok,
            "ended": ended.map(Ending::as_str),
            "why": why,
        })
    }
}
