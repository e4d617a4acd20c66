//! The turn of a call: waiting for its end, its time-out, and what it came to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp::{ThreadCall, TurnReport, TurnState};
use mesh::asks::{AskOutcome, AskStatus};
use mesh::driven::{DrivenId, DrivenRecord, RequestKind};
use mesh::names::MessageId;
use mesh::ports::driver::{TurnEnd, UserAnswer};
use mesh::ports::machine::Machine as _;
use mesh::tool_threads::TurnAnswer;
use tokio::time::Instant;

use super::Shared;
use crate::driven::begin;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

/// How often the clock of a turn is looked at. It stands still while the user is asked.
const LOOK: Duration = Duration::from_secs(1);

impl Shared {
    /// The agent of a call, live or ended; none while the user is asked.
    pub(super) async fn record(&self, call: &ThreadCall) -> Result<Option<DrivenRecord>, CommandError> {
        let id: DrivenId = call.agent.parse().map_err(|_| gone(&call.agent))?;
        Ok(self.open.mesh.driven(id).await?)
    }

    /// Waits for the end of the turn. Cancel-safe.
    pub(super) async fn finished(&self, call: &ThreadCall) -> Result<TurnReport, CommandError> {
        if let Some(question) = &call.question {
            self.agreed(question).await?;
        }
        let waiting = async {
            // Watch before reading, so that no change is missed in between.
            let mut changes = self.open.mesh.watch_driven().await?;
            loop {
                match self.record(call).await? {
                    Some(record) => {
                        if let Some(report) = self.report(call, &record)? {
                            return Ok(report);
                        }
                    }
                    None => self.is_to_come(call).await?,
                }
                tokio::select! {
                    changed = changes.changed() => changed?,
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        };
        begin::while_driven(&self.context, &self.open, waiting).await
    }

    /// Waits until the user has agreed. The agent is begun by the process that took the answer.
    async fn agreed(&self, question: &str) -> Result<(), CommandError> {
        let id: MessageId = question.parse().map_err(|_| gone(question))?;
        let why = match self.open.mesh.wait_for_answer(id).await? {
            AskOutcome::Answered(UserAnswer::Refuse(why)) if !why.is_empty() => format!("the user refused: {why}"),
            AskOutcome::Answered(UserAnswer::Refuse(_) | UserAnswer::Stop) => "the user refused".to_owned(),
            AskOutcome::Answered(_) => return Ok(()),
            AskOutcome::Expired => "the user did not answer in time".to_owned(),
            AskOutcome::Settled => "the question was withdrawn".to_owned(),
        };
        let hint = Some("do the work here, or ask for less".to_owned());
        Err(Failure { what: why, hint, exit: Exit::Refused, source: None }.into())
    }

    /// An error if there is no agent of this call and there will be none: the user has agreed, and it could not be begun.
    async fn is_to_come(&self, call: &ThreadCall) -> Result<(), CommandError> {
        let question = call.question.as_ref().and_then(|question| question.parse::<MessageId>().ok());
        let ask = match question {
            Some(question) => self.open.mesh.ask_record(question).await?,
            None => None,
        };
        if ask.is_some_and(|ask| !ask.is_done()) || self.record(call).await?.is_some() {
            return Ok(());
        }
        let what = "the agent could not be started".to_owned();
        let hint = Some("fetch_messages: relay-mesh has told why".to_owned());
        Err(Failure { what, hint, exit: Exit::Failure, source: None }.into())
    }

    /// What the call came to, once it has come to something.
    fn report(&self, call: &ThreadCall, record: &DrivenRecord) -> Result<Option<TurnReport>, CommandError> {
        let Some(prompt) = prompt_of(call, record) else { return Ok(None) };
        if let Some(answer) = record.tool.as_ref().and_then(|tool| tool.answer(&prompt)) {
            let timed_out = self.timed_out().remove(&prompt);
            return told(record, answer, timed_out.then(|| self.timeout())).map(Some);
        }
        if let Some(failed) =
            record.outcomes.iter().find(|outcome| outcome.id == prompt).and_then(|done| done.failed.clone())
        {
            return Err(failed_turn(record, &failed));
        }
        match &record.ended {
            Some(end) => Err(failed_turn(record, &end.why)),
            None => Ok(None),
        }
    }

    /// How the call stands now.
    pub(super) async fn look(&self, call: &ThreadCall) -> Result<TurnReport, CommandError> {
        let Some(record) = self.record(call).await? else {
            let content =
                "(relay-mesh: your user is asked first. Call again with this threadId and an empty prompt to wait.)";
            return Ok(TurnReport { thread: call.agent.clone(), content: content.to_owned(), state: TurnState::Waits });
        };
        if let Some(report) = self.report(call, &record)? {
            return Ok(report);
        }
        let content =
            "(relay-mesh: the turn goes on. Call again with this threadId and an empty prompt to wait for it.)";
        Ok(TurnReport { thread: thread_of(&record), content: content.to_owned(), state: TurnState::Running })
    }

    /// Stops the turn; a prompt that waits yet is taken back with it, because its agent gives it to nobody then.
    pub(super) async fn interrupt(&self, call: &ThreadCall) -> Result<(), CommandError> {
        let Some(record) = self.record(call).await?.filter(|record| record.ended.is_none()) else { return Ok(()) };
        let Some(prompt) = prompt_of(call, &record) else { return Ok(()) };
        let is_given = record.given.iter().any(|given| given.prompt == prompt);
        if is_given {
            self.open.mesh.ask_driven(&call.agent, RequestKind::Interrupt, None).await?;
        } else {
            let withdrawn = Some("the caller has cancelled it".to_owned());
            self.open.mesh.change_driven(record.id, |record| record.done(&prompt, withdrawn.clone(), None)).await?;
        }
        Ok(())
    }

    /// Has the turn of a call stopped once its time is up, also if nobody waits for it any more.
    pub(super) fn watch_over(self: &Arc<Self>, call: ThreadCall) {
        if !self.has_threads.swap(true, Ordering::Relaxed) {
            self.tasks.spawn(Arc::clone(self).keep_saying_that_it_lives());
        }
        let shared = Arc::clone(self);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let watched = stop.run_until_cancelled(shared.keep_time(&call)).await;
            if let Some(Err(error)) = watched {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "the time of a turn is not kept any more");
            }
        });
    }

    async fn keep_time(&self, call: &ThreadCall) -> Result<(), CommandError> {
        if let Some(question) = &call.question {
            self.agreed(question).await?;
        }
        let (mut last, mut spent) = (Instant::now(), Duration::ZERO);
        loop {
            tokio::time::sleep(LOOK).await;
            let since = std::mem::replace(&mut last, Instant::now());
            let Some(record) = self.record(call).await? else {
                self.is_to_come(call).await?;
                continue;
            };
            let prompt = prompt_of(call, &record);
            let answered = |prompt: &String| record.tool.as_ref().is_some_and(|tool| tool.answer(prompt).is_some());
            if record.ended.is_some() || prompt.as_ref().is_none_or(answered) {
                return Ok(());
            }
            // A prompt that waits behind another has its time before it.
            let begun = prompt.as_ref().is_some_and(|prompt| record.given.iter().any(|given| given.prompt == *prompt));
            if begun && !self.is_asking(&record).await? {
                spent += last.duration_since(since);
            }
            if spent >= self.timeout()
                && let Some(prompt) = prompt
            {
                tracing::warn!(agent = %record.agent.name, "the time of a turn is up, and it is stopped");
                self.timed_out().insert(prompt);
                self.open.mesh.ask_driven(&call.agent, RequestKind::Interrupt, None).await?;
                return Ok(());
            }
        }
    }

    /// Whether the user is asked something that this agent waits for.
    async fn is_asking(&self, record: &DrivenRecord) -> Result<bool, CommandError> {
        let now = self.open.machine.now();
        let of_it = |ask: &mesh::asks::Ask| {
            ask.status(now) == AskStatus::Open
                && ask.by.agent.as_ref().is_some_and(|agent| agent.as_str() == record.agent.name)
        };
        Ok(self.open.mesh.asks().await?.iter().any(of_it))
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.context.settings.threads.timeout())
    }

    fn timed_out(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeSet<String>> {
        self.timed_out.lock().expect("no holder of this lock panics")
    }
}

/// The prompt of a call; its agent's first one if the user was asked before it.
fn prompt_of(call: &ThreadCall, record: &DrivenRecord) -> Option<String> {
    let first = || record.requests.first().map(|request| request.id.clone());
    let given = || record.given.first().map(|given| given.prompt.clone());
    let answered = || record.tool.as_ref()?.answers.first().map(|answer| answer.prompt.clone());
    call.prompt.clone().or_else(answered).or_else(given).or_else(first)
}

fn thread_of(record: &DrivenRecord) -> String {
    record.session.clone().unwrap_or_else(|| record.id.to_string())
}

fn told(record: &DrivenRecord, answer: &TurnAnswer, time: Option<Duration>) -> Result<TurnReport, CommandError> {
    let text = answer.text.clone().unwrap_or_default();
    let with = |note: String| if text.is_empty() { note } else { format!("{text}\n\n{note}") };
    let (content, state) = match (&answer.end, time) {
        (TurnEnd::Completed, _) => (text, TurnState::Completed),
        (TurnEnd::Interrupted, Some(time)) => {
            let note = format!(
                "(relay-mesh: the time of {} s was up, so the turn was stopped. This is what there is of it; the thread \
                 goes on with its next prompt.)",
                time.as_secs()
            );
            (with(note), TurnState::TimedOut)
        }
        (TurnEnd::Interrupted, None) => {
            (with("(relay-mesh: the turn was stopped.)".to_owned()), TurnState::Interrupted)
        }
        (TurnEnd::Failed { why, .. }, _) => return Err(failed_turn(record, why)),
    };
    Ok(TurnReport { thread: thread_of(record), content, state })
}

fn failed_turn(record: &DrivenRecord, why: &str) -> CommandError {
    let name = &record.agent.name;
    Failure {
        what: format!("{name} of {} did not answer: {why}", record.harness),
        hint: Some(format!("its thread is {}; a further prompt goes on with it", thread_of(record))),
        exit: Exit::Failure,
        source: None,
    }
    .into()
}

fn gone(id: &str) -> CommandError {
    CommandError::usage(&format!("there is no agent `{id}`"), "codex_threads lists the threads")
}
