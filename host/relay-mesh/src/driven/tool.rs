//! What is different about an agent that is a thread of a tool: it ends with the server by which its caller talks with
//! it, rests when it was unused for a while, is not started anew when its program dies, and has a row in the
//! registry from which it can be gone on with.

use std::time::Duration;

use mesh::Mesh;
use mesh::driven::{DrivenRecord, RequestKind, after_another_session};
use mesh::ports::driver::Prompt;
use mesh::ports::machine::Machine as _;
use mesh::tool_threads::ThreadStatus;
use tokio::time::Instant;

use super::agent::{Driving, Step};
use super::ending::NO_SUMMARY;
use super::prompts::STOPS;
use super::transcript::Happening;
use crate::errors::CommandError;

/// How long a thread keeps its program between two calls, in milliseconds. It goes on without loss later.
const RESTS_AFTER: u64 = 10 * 60_000;
/// How often to look whether its server lives.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// Why it ends.
const UNUSED: &str = "it was unused for a while";
const FORSAKEN: &str = "the server that it was started by has ended";

impl Driving {
    /// Ends a thread whose server has ended, or that nobody uses.
    pub(super) async fn leave_tool(&mut self) -> Result<Step, CommandError> {
        let Some(tool) = &self.record.tool else { return Ok(Step::On) };
        let now = self.host.open.machine.now();
        let asked_to_end = |record: &DrivenRecord| {
            record.requests.iter().any(|request| matches!(request.kind, RequestKind::Dismiss { .. }))
        };
        if self.dismissing.is_some() || asked_to_end(&self.record) {
            return Ok(Step::On);
        }
        let why = if tool.is_forsaken(|server| self.host.open.machine.life(server), now) {
            FORSAKEN
        } else if self.is_unused() && now.since(tool.last_active) > RESTS_AFTER {
            UNUSED
        } else {
            return Ok(Step::On);
        };
        if self.turn.is_some() {
            // A turn that does not stop is not waited for without an end.
            let until = *self.stops_by.get_or_insert_with(|| Instant::now() + STOPS);
            if self.interrupting.is_none() {
                self.interrupt(Vec::new());
            }
            if Instant::now() < until {
                return Ok(Step::On);
            }
        }
        let how = if why == FORSAKEN { ThreadEnd::Forsaken } else { ThreadEnd::Usual(None) };
        self.end_thread(why, true, how).await
    }

    /// Whether nothing runs, nothing waits, and nothing was given of which it is not known what became of it.
    fn is_unused(&self) -> bool {
        self.turn.is_none()
            && self.record.requests.is_empty()
            && self.record.given.is_empty()
            && self.dismissing.is_none()
    }

    /// When to look next.
    pub(super) fn leaves_tool_at(&self) -> Option<Instant> {
        self.record.tool.is_some().then(|| Instant::now() + BETWEEN_LOOKS)
    }

    /// A prompt with its context in the place that the harness has for it, else before its text.
    pub(super) fn with_context(&self, prompt: Prompt) -> Prompt {
        let has_place = self.linked.as_ref().is_some_and(|linked| linked.handle.able.context);
        match prompt.context {
            Some(context) if !has_place => {
                Prompt { text: format!("{context}\n\n{}", prompt.text), context: None, ..prompt }
            }
            context => Prompt { context, ..prompt },
        }
    }

    /// Its program has died. The caller hears of it; nothing is started by itself.
    pub(super) async fn tool_died(&mut self, why: &str) -> Result<(), CommandError> {
        let waited_for = !self.record.requests.is_empty() || !self.record.given.is_empty();
        let how = if waited_for { ThreadEnd::Usual(None) } else { ThreadEnd::Died };
        self.end_thread(why, false, how).await.map(drop)
    }

    /// A thread could not be begun or gone on with. One that its harness does not have any more begins anew, with what is
    /// known of it; any other ends.
    pub(super) async fn tool_failed(&mut self, why: &str) -> Result<Option<Step>, CommandError> {
        let Some(tool) = self.record.tool.clone() else { return Ok(None) };
        if self.record.session.is_none() {
            return self.falls_back_or_ends(why).await.map(Some);
        }
        let words = tool.summary.clone().or_else(|| self.record.last_words.clone());
        if words.is_none() {
            tracing::warn!(agent = %self.name, "a thread begins anew, and no summary of it is kept");
        }
        let id = self.host.open.mesh.new_uuid();
        self.change(|record| {
            record.session = None;
            record.agent.id.clone_from(&id);
            record.agent.guidance = after_another_session(&record.agent.guidance, words.as_deref());
        })
        .await?;
        self.note(Happening::Note {
            text: format!("its thread cannot be gone on with, and it begins a new one: {why}"),
        });
        Ok(Some(Step::On))
    }

    /// Its program or its session could not be had. One of a harness that has no live protocol, as an old version of it, is
    /// run for one prompt at a time; any other ends.
    pub(super) async fn falls_back_or_ends(&mut self, why: &str) -> Result<Step, CommandError> {
        if self.record.session.is_none() && self.falls_back(why).await? {
            return Ok(Step::On);
        }
        self.not_to_be_had(why).await
    }

    /// Ends a thread whose program or session could not be had.
    pub(super) async fn not_to_be_had(&mut self, why: &str) -> Result<Step, CommandError> {
        self.end(&format!("it could not be had: {why}"), false, None).await
    }

    /// Writes its row in the registry, if it is a thread.
    pub(super) async fn note_thread(&self, status: ThreadStatus) -> Result<(), CommandError> {
        Ok(self.host.open.mesh.note_thread(&self.record, status).await?)
    }
}

/// How a thread ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ThreadEnd {
    /// With what it summed up, if it was asked for that.
    Usual(Option<String>),
    /// Its server has ended.
    Forsaken,
    /// Its program has died, and nobody waits: that is told at the next call.
    Died,
}

impl ThreadEnd {
    /// What was summed up.
    pub(super) fn summary(&self) -> Option<&str> {
        match self {
            ThreadEnd::Usual(summary) => summary.as_deref(),
            ThreadEnd::Forsaken | ThreadEnd::Died => None,
        }
    }
}

/// The end of a thread, as its row tells it. One that was asked for a summary and gave none was interrupted. All of it
/// comes before the agent's record says that it has ended: the next call goes by the row from then on.
pub(super) async fn thread_ends(
    mesh: &Mesh,
    record: &DrivenRecord,
    how: &ThreadEnd,
    why: &str,
) -> Result<(), CommandError> {
    let Some(tool) = &record.tool else { return Ok(()) };
    let unsummed = how.summary() == Some(NO_SUMMARY);
    let summary = how.summary().filter(|summary| *summary != NO_SUMMARY);
    let was_used = record.spent.turns > 0 || tool.continues.is_some();
    let is_done = was_used && record.given.is_empty() && *how != ThreadEnd::Forsaken;
    let status = match summary {
        Some(_) => ThreadStatus::Closed,
        None if is_done && !unsummed => ThreadStatus::Idle,
        None => ThreadStatus::Interrupted,
    };
    mesh.note_thread(record, status).await?;
    if let (Some(thread), Some(summary)) = (&record.session, summary) {
        mesh.keep_thread_summary(thread, summary).await?;
    }
    if let (Some(thread), ThreadEnd::Died) = (&record.session, how) {
        mesh.change_thread(thread, |row| row.died = Some(why.to_owned())).await?;
    }
    Ok(())
}
