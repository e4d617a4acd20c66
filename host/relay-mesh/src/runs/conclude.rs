//! The end of a run: everything that is known of it is put together, kept, and told.

use mesh::ports::machine::Machine as _;
use mesh::ports::runner::{Start, Usage};
use mesh::runs::{
    Halt, RunEnd, RunId, RunRecord, RunReport, SchemaCheck, UsageScope, asked_again, judge, usage_of_run,
};
use mesh::sessions::Principal;
use view::RunView;

use super::record_folder::RESULT;
use super::settle::{Settler, left_to_the_user};
use super::supervise::Attempt;
use super::{AnswerSchema, MARK, RunFolder, Runs, agent, changes, files, reports};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;

/// What is known at the end of a run.
pub(super) struct Conclusion {
    pub(super) attempt: Attempt,
    pub(super) notes: Vec<String>,
    pub(super) by: Settler,
}

/// Kills what a run has left after its guard was killed.
pub(super) fn end_what_is_left(id: RunId) {
    processes::end_marked(MARK, &id.to_string());
}

/// Puts the result of a run together and keeps it. After this the run has ended for everybody.
pub(super) async fn conclude(
    context: &Context,
    open: &Open,
    folder: &RunFolder,
    mut record: RunRecord,
    principal: &Principal,
    Conclusion { attempt, mut notes, by }: Conclusion,
) -> Result<RunReport, CommandError> {
    let Attempt { outcome, exit, halt } = attempt;
    // Before anybody is told, so that what is concluded again is told alike.
    if halt != Halt::No && record.halt != Some(halt) {
        record.halt = Some(halt);
        folder.keep(&record)?;
    }
    let answer = match &record.task.schema {
        None => SchemaCheck::Free,
        Some(schema) => AnswerSchema::of(schema)?.check(&outcome),
    };
    let stdout = files::text(&folder.of_attempt("output", record.attempts), &mut notes);
    let events = files::events(&folder.events(), &mut notes);
    let verdict = judge(&outcome, halt, &answer, asked_again(events.iter()).as_deref());
    let git = changes::git(context);
    let changes = changes::changes(&git, &record, folder, &mut notes).await;
    if by != Settler::Command && changes.is_none() && changes::can_be_told(&record) {
        return Err(left_to_the_user(notes.pop().unwrap_or_default()));
    }
    notes.extend(changes.as_ref().and_then(|changes| agent::beyond_reserved(open, &record, changes)));
    notes.extend(changes::nested_within(&git, &record.workplace).await);
    let usage = usage(context, &record, outcome.usage);
    agent::release(open, principal, &record).await;
    let mail = agent::unread(open, principal).await;
    let ended = open.machine.now();
    let changed = changes.as_ref().map_or(0, |changes| changes.written.len() + changes.deleted.len());
    record.ended = Some(RunEnd {
        at: ended,
        ending: verdict.ending,
        ok: verdict.ok,
        why: verdict.why.clone(),
        session: outcome.session.clone(),
        session_usage: outcome.usage.filter(|usage| usage.whole_session),
        cost: usage.0.and_then(|usage| usage.cost),
        changed,
    });
    let report = RunReport { record, ended, outcome, exit, verdict, stdout, events, notes, changes, usage, mail };
    let bytes = serde_json::to_vec(&RunView::from(&report)).unwrap_or_default();
    // The result and the report first: a run that has ended has them, and one whose process is killed before it is told
    // to have ended is concluded again.
    folder.write(RESULT, &bytes)?;
    let reported = agent::report(open, principal, &report).await;
    agent::leave(open, principal).await;
    folder.keep(&report.record)?;
    open.mesh.note_run_ended(&report.record).await;
    reports::wake(open, principal, &reported, by).await;
    if changed == 0 {
        changes::remove_if_clean(&git, &report.record.workplace).await;
    }
    if let Err(error) = std::fs::remove_dir_all(folder.scratch()) {
        tracing::debug!(%error, "the scratch folder of a run stays until it is deleted");
    }
    Ok(report)
}

/// What the run itself used, over all of its attempts.
fn usage(context: &Context, record: &RunRecord, said: Option<Usage>) -> (Option<Usage>, UsageScope) {
    let (usage, scope) = match &record.task.start {
        Start::Fresh(_) => usage_of_run(said, None, false),
        Start::Resume(session) | Start::Fork(session) => {
            let before = said.filter(|usage| usage.whole_session).and_then(|_| before(context, record, session));
            usage_of_run(said, before, true)
        }
    };
    let sum = match (usage, record.earlier) {
        (Some(usage), Some(earlier)) if !usage.whole_session => Some(Usage {
            input: usage.input + earlier.input,
            cached_input: usage.cached_input + earlier.cached_input,
            output: usage.output + earlier.output,
            reasoning: sum(usage.reasoning, earlier.reasoning),
            cost: sum(usage.cost, earlier.cost),
            whole_session: false,
        }),
        (usage, _) => usage,
    };
    (sum, scope)
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.map(|one| one + other.unwrap_or(0)).or(other)
}

/// What a session had used before this run, as the last earlier run of it was told.
fn before(context: &Context, record: &RunRecord, session: &str) -> Option<Usage> {
    let runs = Runs::of(&context.settings.dir.value);
    let mut earlier = runs.ended_with(session).filter(|other| other.id < record.id);
    let last = earlier.find(|other| other.harness == record.harness)?;
    last.ended?.session_usage
}
