//! A run as an agent of the mesh: joining, reserving, reporting, leaving.

use std::path::Path;

use mesh::agents::Profile;
use mesh::messages::{Draft, LONGEST_BODY, Message, Priority, shortened};
use mesh::names::MessageId;
use mesh::ports::machine::{Machine as _, Process};
use mesh::ports::runner::Start;
use mesh::reservations::{LONGEST_TTL, Mode, Ttl};
use mesh::runs::{RunChanges, RunRecord, RunReport, agent_label};
use mesh::sessions::{Principal, SessionRef};
use mesh::{Fetch, Others, Own, Release, Reserve, Reserved};

use super::reports;
use crate::compose::Open;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::patterns;

/// How long a reservation outlasts the time of its run, so that a run that is being ended still holds it.
const AFTER: u64 = 5 * 60_000;
/// Mail that goes into a result.
const MAIL: usize = 100;

/// The session that a run is: what its harness called it, and before that its own, or the one that it continues.
fn session(record: &RunRecord) -> SessionRef {
    let id = match (&record.session, &record.task.start) {
        (Some(id), _) | (None, Start::Fresh(id) | Start::Resume(id)) => id.clone(),
        // A copy of a session has an id that only the harness knows.
        (None, Start::Fork(_)) => format!("run-{}", record.id),
    };
    SessionRef { harness: record.harness.clone(), id }
}

/// Registers a run as an agent. `process` shows that it lives.
pub(super) async fn join(open: &Open, record: &mut RunRecord, process: u32) -> Result<Principal, CommandError> {
    let usual = || format!("{}-run", agent_label(&record.harness)).parse().ok();
    let name = record.agent.clone().or_else(usual);
    let profile = Profile {
        harness: Some(record.harness.clone()),
        program: None,
        model: record.task.model.clone(),
        project: Some(record.task.folder.display().to_string()),
        role: Some("run".to_owned()),
        task: Some(record.about.chars().take(60).collect()),
        issue: None,
        skills: Vec::new(),
    };
    let principal = open.mesh.run_joins(session(record), process, name, profile).await?;
    record.agent = principal.agent().cloned();
    Ok(principal)
}

/// Reserves what a run in the user's own folder is about to change. All of it, or nothing.
pub(super) async fn reserve(open: &Open, principal: &Principal, record: &RunRecord) -> Result<(), CommandError> {
    let (repository, patterns) = patterns::meant(&open.mesh, &record.task.folder, &record.reserve)?;
    let ttl = Ttl::new((record.limits.time + AFTER).clamp(1_000, LONGEST_TTL)).unwrap_or_default();
    let wanted = Reserve {
        repository,
        patterns,
        mode: Mode::Exclusive,
        ttl,
        reason: Some(format!("run {}", record.id)),
        others: Others::Respect,
        own: Own::Keep,
    };
    match open.mesh.reserve(principal, wanted).await? {
        Reserved::Granted { .. } => Ok(()),
        Reserved::Held(conflicts) => {
            let held: Vec<String> = conflicts
                .iter()
                .map(|conflict| format!("{} holds `{}`", conflict.held.owner, conflict.held.pattern))
                .collect();
            Err(Failure {
                what: format!("the run cannot have what it would change: {}", held.join(", ")),
                hint: Some("name less by `--reserve PATTERN`, use a worktree instead of `--here`, or wait".to_owned()),
                exit: Exit::Held,
                source: None,
            }
            .into())
        }
    }
}

/// A note of the files that a run changed beyond what it had reserved, if it did. Nothing keeps its harness from that.
pub(super) fn beyond_reserved(open: &Open, record: &RunRecord, changes: &RunChanges) -> Option<String> {
    const NAMED: usize = 5;
    if record.reserve.is_empty() {
        return None;
    }
    let (_, patterns) = patterns::meant(&open.mesh, &record.task.folder, &record.reserve).ok()?;
    let is_beyond = |path: &&String| !patterns.iter().any(|pattern| pattern.matches(path));
    let beyond: Vec<&str> =
        changes.written.iter().chain(&changes.deleted).filter(is_beyond).map(String::as_str).collect();
    let more = beyond.len().saturating_sub(NAMED);
    let named = beyond.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let and = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!beyond.is_empty()).then(|| format!("beyond what it had reserved, this changed while it worked: {named}{and}"))
}

/// Gives back what a run has reserved. What cannot be given back now lapses by itself.
pub(super) async fn release(open: &Open, principal: &Principal, record: &RunRecord) {
    if record.reserve.is_empty() {
        return;
    }
    let Ok(checkout) = open.mesh.checkout(&record.task.folder) else { return };
    if let Err(error) = open.mesh.release_reservations(principal, &checkout.repository, &Release::All).await {
        tracing::warn!(%error, run = %record.id, "a run's reservations lapse by themselves");
    }
}

/// Mail that the run never read. It stays unread: only the reader of the result can say that it was.
pub(super) async fn unread(open: &Open, principal: &Principal) -> Vec<Message> {
    let Some(agent) = principal.agent() else { return Vec::new() };
    let ask = Fetch { limit: MAIL, max_length: LONGEST_BODY, peek: true, ..Fetch::default() };
    match open.mesh.fetch(agent, &ask).await {
        Ok(fetched) => fetched.messages.into_iter().map(|fetched| fetched.message).collect(),
        Err(error) => {
            tracing::warn!(%error, %agent, "the mail of a run could not be read");
            Vec::new()
        }
    }
}

/// Sends a result to those who were to have it. A run that two processes conclude is reported once to each. Returns what
/// they have got.
pub(super) async fn report(open: &Open, principal: &Principal, report: &RunReport) -> Vec<MessageId> {
    let RunReport { record, verdict, outcome, .. } = report;
    let mut sent = Vec::new();
    if record.report.is_empty() {
        return sent;
    }
    let mut body = format!("Run {} of {} ended: {}", record.id, record.harness, verdict.ending.as_str());
    if let Some(why) = &verdict.why {
        body.push_str(&format!(" ({why})"));
    }
    body.push_str(".\n");
    let written = report.written();
    if !written.is_empty() {
        body.push_str(&format!("It wrote {} files: `relay-mesh runs diff {}`.\n", written.len(), record.id));
    }
    let answer = verdict.output.as_ref().map(ToString::to_string).or_else(|| outcome.answer.clone());
    if let Some(answer) = answer {
        body.push('\n');
        body.push_str(&answer);
    }
    let tail = format!("\n[cut: `relay-mesh runs show {}` has all of it]", record.id);
    let draft = Draft {
        body: shortened(body, &tail),
        subject: Some(format!("run {}: {}", record.id, verdict.ending.as_str())),
        priority: Priority::Normal,
        idempotency_key: Some(format!("run-{}", record.id)),
        ..Draft::default()
    };
    for to in &record.report {
        let outcome = open.mesh.send(principal, std::slice::from_ref(to), draft.clone()).await;
        reports::note(outcome, (record.id, to), &mut sent);
    }
    sent
}

/// Notes that nobody works on a run that could not join.
pub(super) async fn leave_half_joined(open: &Open, record: &RunRecord) {
    leave_session(open, &session(record)).await;
}

/// Notes that the run has ended.
pub(super) async fn leave(open: &Open, principal: &Principal) {
    if let Some(session) = principal.session() {
        leave_session(open, session).await;
    }
}

async fn leave_session(open: &Open, session: &SessionRef) {
    if let Err(error) = open.mesh.run_leaves(session).await {
        tracing::warn!(%error, "the end of a run's session could not be noted");
    }
}

/// This process, as the one that runs something.
pub(super) fn supervisor(open: &Open) -> Process {
    open.machine.this_process()
}

/// A folder as it is shown.
pub(super) fn shown(folder: &Path) -> String {
    folder.display().to_string()
}
