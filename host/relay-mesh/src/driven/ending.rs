//! The end of a driven agent: it is dismissed, its budget is spent, or it could not be had.

use std::time::Duration;

use mesh::Release;
use mesh::driven::{DrivenEnd, DrivenRecord, RequestKind};
use mesh::messages::Draft;
use mesh::names::AgentName;
use mesh::ports::machine::Machine as _;
use mesh::sessions::Principal;
use store::StoreError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::agent::{self, Driving, Step};
use super::host::Host;
use super::prompts::STOPS;
use super::tool::{self, ThreadEnd};
use super::transcript::Happening;
use crate::errors::CommandError;
use crate::runs::changes;

/// How long the end of a program may take.
const ENDS: Duration = Duration::from_secs(30);
/// How long a summary may take.
const SUMS_UP: Duration = Duration::from_secs(120);
/// How long that of a thread of a tool may take, whose server waits for it.
const TOOL_SUMS_UP: Duration = Duration::from_secs(10);
/// What stands in the place of a summary that did not come.
pub(super) const NO_SUMMARY: &str = "(no summary came in time)";
/// What an agent is asked that is dismissed with a summary.
const SUMMARY: &str = "relay-mesh: you are being dismissed. Sum up in a few sentences what you have done, what is left, \
    and what the next agent has to know. Use no tools.";

/// An agent that is being ended.
pub(super) struct Dismissal {
    pub(super) request: String,
    /// The prompt that asks for the summary, once it was given.
    pub(super) summary: Summary,
    pub(super) until: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Summary {
    None,
    Wanted,
    Asked,
    Done(Option<String>),
}

impl Driving {
    /// Ends the agent because a limit is reached, as soon as no turn runs. `at_once`, or if it is dismissed meanwhile, the
    /// one that runs is stopped, and one that does not stop ends with its program.
    pub(super) async fn spent(&mut self, why: &str, at_once: bool) -> Result<Step, CommandError> {
        self.begin_dismissal().await?;
        if self.turn.is_some() {
            let dismissed_by = self.dismissing.as_ref().map(|dismissal| dismissal.until);
            if at_once && dismissed_by.is_none() && self.stops_by.is_none() {
                self.stops_by = Some(Instant::now() + STOPS);
                self.interrupt(Vec::new());
            }
            if dismissed_by.or(self.stops_by).is_none_or(|until| Instant::now() < until) {
                return Ok(Step::On);
            }
        }
        self.end(why, true, None).await
    }

    /// Ends the agent. Nothing of it is left running when this returns.
    pub(super) async fn end(&mut self, why: &str, meant: bool, summary: Option<String>) -> Result<Step, CommandError> {
        self.end_thread(why, meant, ThreadEnd::Usual(summary)).await
    }

    /// The same, with what its row in the registry is to tell if it is a thread of a tool.
    pub(super) async fn end_thread(&mut self, why: &str, meant: bool, how: ThreadEnd) -> Result<Step, CommandError> {
        let questions = std::mem::take(&mut self.questions);
        self.withdraw(questions, "its agent has ended").await?;
        self.leave_link().await;
        let told = (!meant).then_some(why);
        tell_and_release(&self.host, &self.record, (&self.principal, &self.name), told).await;
        if !std::mem::replace(&mut self.told_end, true) {
            self.note(Happening::Ended { why: why.to_owned() });
        }
        tool::thread_ends(&self.host.open.mesh, &self.record, &how, why).await?;
        self.tell_events().await;
        self.leave_session().await?;
        let end = DrivenEnd { at: self.host.open.machine.now(), why: why.to_owned(), meant };
        let request = self.dismissing.as_ref().map(|dismissal| dismissal.request.clone());
        self.change(|record| {
            if let Some(request) = &request {
                record.done(request, None, how.summary().map(str::to_owned));
            }
            record.ended.get_or_insert_with(|| end.clone());
            record.mark = None;
            record.program_mark = None;
            record.socket = None;
            record.driver = None;
            record.environment.clear();
        })
        .await?;
        // Not before: if that fails, the next step ends it and asks for no summary once more.
        self.dismissing = None;
        Ok(Step::Over)
    }

    /// Leaves its session before its record says that it has ended: who waits for that finds it offline. A damaged
    /// record of the session keeps no agent from ending.
    async fn leave_session(&self) -> Result<(), StoreError> {
        let (agent, mesh) = (&self.name, &self.host.open.mesh);
        for left in [mesh.run_leaves(&self.session).await, mesh.listens_no_more(&self.session).await] {
            match left {
                Err(error) if error.is_for_good() => {
                    tracing::warn!(%agent, %error, "that an agent has left its session could not be noted");
                }
                left => left?,
            }
        }
        Ok(())
    }

    /// Leaves its link, and returns once nothing of it runs.
    pub(super) async fn leave_link(&mut self) {
        let Some(linked) = self.linked.take() else { return };
        let (gone, is_gone) = oneshot::channel();
        linked.handle.leave(linked.session, gone);
        let _ended = tokio::time::timeout(ENDS, is_gone).await;
        self.end_commands().await;
    }

    /// Takes what is to end the agent.
    pub(super) async fn take_dismissal(&mut self) -> Result<Step, CommandError> {
        self.begin_dismissal().await?;
        let Some(dismissal) = &self.dismissing else { return Ok(Step::On) };
        let is_late = Instant::now() >= dismissal.until;
        if self.turn.is_some() && !is_late {
            return Ok(Step::On);
        }
        self.go_on_dismissing(is_late).await
    }

    async fn begin_dismissal(&mut self) -> Result<(), CommandError> {
        if self.dismissing.is_some() {
            return Ok(());
        }
        let wanted = self.record.requests.iter().find_map(|request| match request.kind {
            RequestKind::Dismiss { summary } => Some((request.id.clone(), summary)),
            RequestKind::Prompt { .. } | RequestKind::Steer { .. } | RequestKind::Interrupt => None,
        });
        let Some((request, summary)) = wanted else { return Ok(()) };
        let has_something_to_say =
            self.record.session.is_some() && (self.record.spent.turns > 0 || self.turn.is_some());
        let summary = if summary && has_something_to_say { Summary::Wanted } else { Summary::None };
        self.dismissing = Some(Dismissal { request, summary, until: Instant::now() + STOPS });
        if self.turn.is_some() {
            self.interrupt(Vec::new());
        }
        Ok(())
    }

    /// The turn has stopped, or time is up.
    async fn go_on_dismissing(&mut self, is_late: bool) -> Result<Step, CommandError> {
        let sums_up = if self.record.tool.is_some() { TOOL_SUMS_UP } else { SUMS_UP };
        let Some(dismissal) = &mut self.dismissing else { return Ok(Step::On) };
        match dismissal.summary.clone() {
            Summary::Wanted if !is_late => {
                if self.linked.is_none() {
                    dismissal.until = Instant::now() + sums_up;
                    return self.connect().await;
                }
                if !self.is_open() || !self.is_idle() {
                    return Ok(Step::On);
                }
                if let Some(dismissal) = &mut self.dismissing {
                    dismissal.summary = Summary::Asked;
                    dismissal.until = Instant::now() + sums_up;
                }
                self.give_own(SUMMARY).await?;
                Ok(Step::On)
            }
            Summary::Asked if !is_late => Ok(Step::On),
            Summary::Done(words) => self.end("it was dismissed", true, words).await,
            Summary::Wanted | Summary::Asked => self.end("it was dismissed", true, Some(NO_SUMMARY.to_owned())).await,
            Summary::None => self.end("it was dismissed", true, None).await,
        }
    }
}

/// The end of an agent that this process cannot drive at all, for all who would wait for it.
pub(super) async fn ends_undriven(host: &Host, record: &DrivenRecord, why: &str) -> Result<(), CommandError> {
    // First: what keeps it from being driven may keep it from joining too, and the next call goes by the row.
    let row = tool::thread_ends(&host.open.mesh, record, &ThreadEnd::Usual(None), why).await;
    let (principal, name) = agent::join(host, record, agent::session_of(record)).await?;
    tell_and_release(host, record, (&principal, &name), Some(why)).await;
    row
}

/// Tells the spawner why the agent has ended, if nobody meant that, and releases what the agent has.
async fn tell_and_release(
    host: &Host,
    record: &DrivenRecord,
    (principal, name): (&Principal, &AgentName),
    why: Option<&str>,
) {
    let mesh = &host.open.mesh;
    if let (Some(why), Some(by)) = (why, &record.by) {
        let draft = Draft {
            body: format!("The agent {name} of {} has ended: {why}.", record.harness),
            subject: Some(format!("{name} has ended")),
            idempotency_key: Some(format!("ended-{}", record.id)),
            ..Draft::default()
        };
        if let Err(error) = mesh.send(principal, &[by.to_string()], draft).await {
            tracing::warn!(to = %by, error = %store::reasons(&error), "the end of a driven agent could not be told");
        }
    }
    if let Ok(checkout) = mesh.checkout(&record.agent.folder)
        && let Err(error) = mesh.release_reservations(principal, &checkout.repository, &Release::All).await
    {
        tracing::warn!(%error, "the reservations of a driven agent lapse by themselves");
    }
    changes::remove_if_clean(&changes::git(&host.context), &record.workplace).await;
}
