//! The verbs of questions to the user.

use store::{StoreError, Watch};

use crate::Mesh;
use crate::asks::answer::{self, AnswerError};
use crate::asks::ask::{self, AskError};
use crate::asks::list::{self, FindAskError};
use crate::asks::{Ask, AskOutcome, AskStatus, NewAsk, wait};
use crate::names::MessageId;
use crate::ports::driver::UserAnswer;
use crate::storage::keys;

impl Mesh {
    /// Puts a question to the user of this machine. It is on disk when this returns. The same question again is the
    /// same ask, answered or not; one that was settled or has expired is asked anew.
    pub async fn ask(&self, new: NewAsk) -> Result<Ask, AskError> {
        ask::ask(&self.core, new).await
    }

    /// The questions that wait for the user, oldest first. Those of processes that have ended are settled.
    pub async fn asks(&self) -> Result<Vec<Ask>, StoreError> {
        let all = list::looked_after(self).await?;
        let now = self.core.machine.now();
        Ok(all.into_iter().filter(|ask| ask.status(now) == AskStatus::Open).collect())
    }

    /// Every question that is kept, oldest first: also those that have been over for less than a day.
    pub async fn all_asks(&self) -> Result<Vec<Ask>, StoreError> {
        list::looked_after(self).await
    }

    /// One question, if it is kept.
    pub async fn ask_record(&self, id: MessageId) -> Result<Option<Ask>, StoreError> {
        list::by_id(&self.core, id).await
    }

    /// The question whose id begins with what was typed.
    pub async fn find_ask(&self, typed: &str) -> Result<Ask, FindAskError> {
        list::find(&self.core, typed).await
    }

    /// Answers a question. The first answer wins; any other gets an error that says what the first one was. `via` says
    /// where it was given. The caller has made sure that it is the user who answers.
    pub async fn answer_ask(&self, id: MessageId, answer: UserAnswer, via: &str) -> Result<Ask, AnswerError> {
        answer::answer_ask(self, id, answer, via).await
    }

    /// Notes that a question was answered elsewhere, or that no answer is needed any more. Does nothing to a question
    /// that is over or gone.
    pub async fn settle_ask(&self, id: MessageId, why: &str) -> Result<(), StoreError> {
        list::settle(&self.core, id, why).await.map(drop)
    }

    /// Waits until a question is over. What has expired is refused, not cancelled. Cancel it to stop waiting.
    pub async fn wait_for_answer(&self, id: MessageId) -> Result<AskOutcome, StoreError> {
        wait::wait_for_answer(&self.core, id).await
    }

    /// Nobody waits for the answer to this question any more: its agent gets it as a message.
    pub async fn leave_ask_to_mail(&self, id: MessageId) -> Result<(), StoreError> {
        list::leave_to_mail(&self.core, id).await
    }

    /// Watches all questions from now on.
    pub async fn watch_asks(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.core.local.watch(&[keys::asks()]).await
    }
}
