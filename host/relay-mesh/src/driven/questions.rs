//! What an agent's harness asks its user: put to them where they find all questions, and answered with what they said.

use std::collections::BTreeMap;

use mesh::asks::{AskKind, AskOutcome, NewAsk};
use mesh::names::MessageId;
use mesh::ports::driver::{Action, Operation, Question, UserAnswer};
use mesh::ports::harness::HarnessError;
use mesh::ports::machine::Machine as _;
use mesh::sessions::Activity;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::agent::Driving;
use super::transcript::Happening;
use crate::errors::CommandError;

/// A question that waits for its answer.
pub(super) struct OpenQuestion {
    ask: MessageId,
    kept: Option<Value>,
    waits: JoinHandle<()>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.waits.abort();
    }
}

/// The answers that come, and those that were given in this turn.
pub(super) struct AnswerQueue {
    sender: mpsc::UnboundedSender<(String, AskOutcome)>,
    queue: mpsc::UnboundedReceiver<(String, AskOutcome)>,
    given: BTreeMap<String, (Option<Value>, UserAnswer)>,
}

impl Default for AnswerQueue {
    fn default() -> AnswerQueue {
        let (sender, queue) = mpsc::unbounded_channel();
        AnswerQueue { sender, queue, given: BTreeMap::new() }
    }
}

impl AnswerQueue {
    /// The next answer, with its question. Cancel-safe.
    pub(super) async fn next(&mut self) -> (String, AskOutcome) {
        match self.queue.recv().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    /// The turn is over: no answer to it can be refused any more.
    pub(super) fn turn_ended(&mut self) {
        self.given.clear();
    }
}

impl Driving {
    /// Puts a question to the user. What cannot be put to them is refused.
    pub(super) async fn asked(&mut self, question: Question) -> Result<(), CommandError> {
        let Question { id, operation, reason, choices, kept } = question;
        let asks = Happening::Asks { question: id.clone(), operation: operation.clone(), reason: reason.clone() };
        let what = match operation {
            Operation::Other(text) if !choices.is_empty() => AskKind::Question(text),
            operation => AskKind::Approval(operation),
        };
        let process = Some(self.host.open.machine.this_process());
        let new = NewAsk { reason, choices, process, ..NewAsk::new((&self.principal).into(), what) };
        let asked = self.host.open.mesh.ask(new).await;
        // Not before: a user who follows the transcript may answer at once.
        self.note(asks);
        match asked {
            Ok(ask) => {
                let (mesh, sender, of) = (self.host.open.mesh.clone(), self.answers.sender.clone(), id.clone());
                let waits = tokio::spawn(async move {
                    let outcome = mesh.wait_for_answer(ask.id).await.unwrap_or_else(|error| {
                        tracing::warn!(%error, "the answer to a question could not be waited for");
                        AskOutcome::Expired
                    });
                    let _over = sender.send((of, outcome));
                });
                self.questions.insert(id, OpenQuestion { ask: ask.id, kept, waits });
                self.does(Activity::NeedsInput).await
            }
            Err(error) => {
                let why = format!("relay-mesh could not put this to the user: {}", store::reasons(&error));
                self.note(Happening::Note { text: why.clone() });
                self.answer(id, kept, UserAnswer::Refuse(why));
                Ok(())
            }
        }
    }

    /// The user has answered, or nobody did in time.
    pub(super) async fn answered(&mut self, id: &str, outcome: AskOutcome) -> Result<(), CommandError> {
        let Some(mut question) = self.questions.remove(id) else { return Ok(()) };
        let answer = match outcome {
            AskOutcome::Answered(answer) => Some(answer),
            AskOutcome::Expired => Some(UserAnswer::Refuse("no answer came in time".to_owned())),
            AskOutcome::Settled => None,
        };
        self.note(Happening::Settled { question: id.to_owned(), answer: answer.clone() });
        if let Some(answer) = answer {
            self.answer(id.to_owned(), question.kept.take(), answer);
        }
        self.goes_on().await
    }

    fn answer(&mut self, question: String, kept: Option<Value>, answer: UserAnswer) {
        let Some(linked) = &self.linked else { return };
        let Some(session) = linked.session.clone() else { return };
        self.answers.given.insert(question.clone(), (kept.clone(), answer.clone()));
        linked.handle.act(Action::Answer { session, question, kept, answer });
    }

    /// The harness does not take such an answer: then it gets a plainer one, so that it does not wait for ever.
    pub(super) fn answer_refused(&mut self, question: &str, error: &HarnessError) -> bool {
        let Some((kept, answer)) = self.answers.given.remove(question) else { return false };
        self.note(Happening::Note { text: format!("it does not take the answer: {error}") });
        match answer {
            UserAnswer::AllowForSession => self.answer(question.to_owned(), kept, UserAnswer::Allow),
            UserAnswer::Stop | UserAnswer::Choose(_) | UserAnswer::Fill(_) | UserAnswer::Allow => {
                self.answer(question.to_owned(), kept, UserAnswer::Refuse("it takes no such answer".to_owned()));
            }
            UserAnswer::Refuse(_) => {}
        }
        true
    }

    /// Somebody has answered in the harness itself, or nobody has to any more.
    pub(super) async fn settled(&mut self, id: &str) -> Result<(), CommandError> {
        let Some(question) = self.questions.remove(id) else { return Ok(()) };
        self.host
            .open
            .mesh
            .settle_ask(question.ask, "it was answered in its harness, or is not asked any more")
            .await?;
        self.note(Happening::Settled { question: id.to_owned(), answer: None });
        self.goes_on().await
    }

    /// Nobody can answer any more.
    pub(super) async fn withdraw(
        &mut self,
        questions: BTreeMap<String, OpenQuestion>,
        why: &str,
    ) -> Result<(), CommandError> {
        for (id, question) in questions {
            self.host.open.mesh.settle_ask(question.ask, why).await?;
            self.note(Happening::Settled { question: id, answer: None });
        }
        Ok(())
    }

    async fn goes_on(&self) -> Result<(), CommandError> {
        let activity = if self.turn.is_some() { Activity::Busy } else { Activity::Idle };
        self.does(activity).await
    }
}
