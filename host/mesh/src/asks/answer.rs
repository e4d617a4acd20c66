//! Answering a question: the first answer wins.

use store::{Durability, StoreError};

use crate::asks::ask::{AskError, plain};
use crate::asks::list;
use crate::asks::record::{Ask, AskKind, AskStage, AskStatus, LONGEST_QUESTION, answer_text};
use crate::core::Core;
use crate::delivery::chain;
use crate::messages::inboxes::Inboxes;
use crate::names::MessageId;
use crate::ports::driver::Answer;
use crate::ports::machine::Instant;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Most bytes of the text that says where an answer was given.
const LONGEST_VIA: usize = 100;

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// There is no such question.
    #[error("no question to the user has the id `{0}`")]
    Unknown(MessageId),
    /// Nobody waits for the answer any more.
    #[error("question `{id}` is gone: {why}")]
    Gone {
        /// The question's id.
        id: MessageId,
        /// Why.
        why: String,
    },
    /// Somebody was first.
    #[error("question `{id}` has been answered already: `{}`, {via}", answer_text(answer))]
    AlreadyAnswered {
        /// The question's id.
        id: MessageId,
        /// The answer that counts.
        answer: Box<Answer>,
        /// Where it was given.
        via: String,
        /// When it was given.
        at: Instant,
    },
    /// It cannot be answered so.
    #[error("question `{id}` does not offer `{answer}`")]
    NotOffered {
        /// The question's id.
        id: MessageId,
        /// What was answered.
        answer: String,
        /// What it offers.
        offers: Vec<String>,
    },
    /// The answer's text is too long, or could steer a terminal.
    #[error(transparent)]
    Text(AskError),
    /// The store failed.
    #[error("the answer could not be stored")]
    Store(#[from] StoreError),
}

pub(crate) async fn answer_ask(
    core: &Core,
    inboxes: &Inboxes,
    id: MessageId,
    answer: Answer,
    via: &str,
) -> Result<Ask, AnswerError> {
    if let Answer::Refuse(text) | Answer::Fill(serde_json::Value::String(text)) = &answer {
        plain("answer", text, LONGEST_QUESTION).map_err(AnswerError::Text)?;
    }
    let via: String = via.chars().filter(|c| !c.is_control()).take(LONGEST_VIA).collect();
    let now = core.machine.now();
    let found = list::by_id(core, id).await?.ok_or(AnswerError::Unknown(id))?;
    let asker_ended = found.process.is_some_and(|process| core.machine.has_ended(process));
    if asker_ended {
        list::settle(core, id, "the process that asked has ended").await?;
    }
    let answered =
        records::update(core.local.as_ref(), &keys::ask(&found.slot), Durability::Synced, |old: Option<Ask>| {
            let Some(old) = old.filter(|old| old.id == id) else {
                return (Next::Keep, Err(AnswerError::Unknown(id)));
            };
            if let Err(error) = may_answer(&old, &answer, now) {
                return (Next::Keep, Err(error));
            }
            let done = !sets_off(&old, &answer);
            let stage = AskStage::Answered { at: now, answer: answer.clone(), via: via.clone(), done };
            let ask = Ask { stage, ..old };
            (Next::Put(ask.clone()), Ok(ask))
        })
        .await??;
    carry_out(core, inboxes, &answered).await?;
    core.event_log.note("ask-answered", serde_json::json!({ "id": id, "agent": answered.by.agent })).await;
    Ok(answered)
}

/// Decides whether an answer counts.
fn may_answer(ask: &Ask, answer: &Answer, now: Instant) -> Result<(), AnswerError> {
    let id = ask.id;
    match (&ask.stage, ask.status(now)) {
        (AskStage::Answered { at, answer, via, .. }, _) => {
            Err(AnswerError::AlreadyAnswered { id, answer: Box::new(answer.clone()), via: via.clone(), at: *at })
        }
        (AskStage::Settled { why, .. }, _) => Err(AnswerError::Gone { id, why: why.clone() }),
        (AskStage::Open, AskStatus::Expired) => {
            Err(AnswerError::Gone { id, why: "nobody answered in time, so that it was refused".to_owned() })
        }
        (AskStage::Open, _) if ask.takes(answer) => Ok(()),
        (AskStage::Open, _) => Err(AnswerError::NotOffered { id, answer: answer_text(answer), offers: ask.offers() }),
    }
}

/// Whether an answer makes the mesh do something.
fn sets_off(ask: &Ask, answer: &Answer) -> bool {
    matches!((&ask.what, answer), (AskKind::HeldLoop(_), Answer::Allow))
}

/// Does what an answer sets off. Doing it twice is the same as doing it once.
pub(crate) async fn carry_out(core: &Core, inboxes: &Inboxes, ask: &Ask) -> Result<(), StoreError> {
    let AskStage::Answered { done: false, .. } = &ask.stage else { return Ok(()) };
    if let AskKind::HeldLoop(held) = &ask.what {
        chain::person_spoke(core, inboxes, &held.to).await?;
    }
    let id = ask.id;
    records::update(core.local.as_ref(), &keys::ask(&ask.slot), Durability::Process, |old: Option<Ask>| match old {
        Some(mut old) if old.id == id => {
            if let AskStage::Answered { done, .. } = &mut old.stage {
                *done = true;
            }
            (Next::Put(old), ())
        }
        Some(_) | None => (Next::Keep, ()),
    })
    .await
}
