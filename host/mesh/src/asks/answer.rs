//! Answering a question: the first answer wins.

use store::{Durability, StoreError};

use crate::agents::list::load_agent;
use crate::asks::ask::{AskError, plain};
use crate::asks::list;
use crate::asks::record::{Ask, AskKind, AskStage, AskStatus, ConsentFor, LONGEST_QUESTION, answer_text};
use crate::commands::run;
use crate::core::Core;
use crate::delivery::chain;
use crate::messages::Draft;
use crate::names::{AgentName, MessageId};
use crate::ports::driver::UserAnswer;
use crate::ports::machine::Instant;
use crate::sessions::Principal;
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::{AddressError, Mesh, SendError};

/// Most bytes of the text that says where an answer was given.
const LONGEST_VIA: usize = 100;
/// How much of a question its answer quotes, in characters.
const MUCH: usize = 500;

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
        why: String,
    },
    /// Somebody was first.
    #[error("question `{id}` has been answered already: `{}`, {via}", answer_text(answer))]
    AlreadyAnswered {
        /// The question's id.
        id: MessageId,
        /// The answer that counts.
        answer: Box<UserAnswer>,
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

pub(crate) async fn answer_ask(mesh: &Mesh, id: MessageId, answer: UserAnswer, via: &str) -> Result<Ask, AnswerError> {
    let core = &mesh.core;
    if let UserAnswer::Refuse(text) | UserAnswer::Fill(serde_json::Value::String(text)) = &answer {
        plain("answer", text, LONGEST_QUESTION).map_err(AnswerError::Text)?;
    }
    let via: String = via.chars().filter(|c| !c.is_control()).take(LONGEST_VIA).collect();
    let now = core.machine.now();
    let found = list::by_id(core, id).await?.ok_or(AnswerError::Unknown(id))?;
    if let Some(why) = list::why_nobody_waits(core, &found).await? {
        list::settle(core, id, why).await?;
    }
    let (answered, is_first) =
        records::update(core.local.as_ref(), &keys::ask(&found.slot), Durability::Synced, |old: Option<Ask>| {
            let Some(old) = old.filter(|old| old.id == id) else {
                return (Next::Keep, Err(AnswerError::Unknown(id)));
            };
            // The same again, after a try that broke off, perhaps before it was synced: it is carried out now.
            if old.answer() == Some(&answer) && sets_off(&old, now) {
                return (Next::Put(old.clone()), Ok((old, false)));
            }
            if let Err(error) = may_answer(&old, &answer, now) {
                return (Next::Keep, Err(error));
            }
            let ask = Ask { stage: AskStage::Answered { at: now, answer: answer.clone(), via: via.clone() }, ..old };
            (Next::Put(ask.clone()), Ok((ask, true)))
        })
        .await??;
    if is_first {
        core.event_log.note("ask-answered", serde_json::json!({ "id": id, "agent": answered.by.agent })).await;
    }
    carry_out(mesh, &answered).await?;
    Ok(answered)
}

/// Decides whether an answer counts.
fn may_answer(ask: &Ask, answer: &UserAnswer, now: Instant) -> Result<(), AnswerError> {
    let id = ask.id;
    match (&ask.stage, ask.status(now)) {
        (AskStage::Answered { at, answer, via }, _) => {
            Err(AnswerError::AlreadyAnswered { id, answer: Box::new(answer.clone()), via: via.clone(), at: *at })
        }
        (AskStage::Settled { why, .. }, _) => Err(AnswerError::Gone { id, why: why.clone() }),
        (AskStage::Open, AskStatus::Expired) => {
            Err(AnswerError::Gone { id, why: "no answer came in time, so it counts as refused".to_owned() })
        }
        (AskStage::Open, _) if ask.takes(answer) => Ok(()),
        (AskStage::Open, _) => Err(AnswerError::NotOffered { id, answer: answer_text(answer), offers: ask.offers() }),
    }
}

/// Whether the end of a question still sets something off in the mesh, because that has not been done yet. What was
/// settled sets nothing off.
pub(super) fn sets_off(ask: &Ask, now: Instant) -> bool {
    let is_over = match ask.status(now) {
        AskStatus::Answered | AskStatus::Expired => true,
        AskStatus::Open | AskStatus::Settled => false,
    };
    let frees = match &ask.what {
        AskKind::HeldLoop(_) | AskKind::Consent(ConsentFor::Command { .. }) => is_allowed(ask),
        AskKind::Approval(_) | AskKind::Question(_) | AskKind::Consent(_) => false,
    };
    is_over && !ask.done && (frees || to_mail(ask).is_some())
}

fn is_allowed(ask: &Ask) -> bool {
    ask.answer() == Some(&UserAnswer::Allow)
}

/// The agent that is mailed what became of its question. One that wanted another started is told once that is there.
fn to_mail(ask: &Ask) -> Option<&AgentName> {
    let is_told_later = is_allowed(ask) && matches!(ask.what, AskKind::Consent(ConsentFor::Spawn(_)));
    ask.by.agent.as_ref().filter(|_| ask.by_mail && !is_told_later)
}

/// Does what the end of a question sets off, unless that was done. Doing it twice is the same as doing it once.
pub(crate) async fn carry_out(mesh: &Mesh, ask: &Ask) -> Result<(), StoreError> {
    let core = &mesh.core;
    if !sets_off(ask, core.machine.now()) {
        return Ok(());
    }
    match &ask.what {
        AskKind::HeldLoop(held) if is_allowed(ask) => chain::person_spoke(core, &mesh.inboxes, &held.to).await?,
        AskKind::Consent(ConsentFor::Command { id, .. }) if is_allowed(ask) => run::free(core, *id).await?,
        AskKind::HeldLoop(_) | AskKind::Approval(_) | AskKind::Question(_) | AskKind::Consent(_) => {}
    }
    if let Some(agent) = to_mail(ask) {
        mail(mesh, ask, agent, &told(ask)).await?;
    }
    is_done(core, ask).await
}

/// Notes that what the end of a question sets off has been done.
pub(super) async fn is_done(core: &Core, ask: &Ask) -> Result<(), StoreError> {
    let id = ask.id;
    records::update(core.local.as_ref(), &keys::ask(&ask.slot), Durability::Process, |old: Option<Ask>| match old {
        Some(old) if old.id == id => (Next::Put(Ask { done: true, ..old }), ()),
        Some(_) | None => (Next::Keep, ()),
    })
    .await
}

/// What the agent that asked is told.
fn told(ask: &Ask) -> String {
    match ask.answer() {
        Some(UserAnswer::Refuse(why)) if why.is_empty() => "Your user refused.".to_owned(),
        Some(UserAnswer::Refuse(why)) => format!("Your user refused: {why}"),
        Some(answer) => format!("Your user answered: {}", answer_text(answer)),
        None => "No answer came in time, so it counts as refused.".to_owned(),
    }
}

/// Sends an agent what became of its question, as what it is: words from this user's command line. Fails only if
/// another try may succeed.
pub(super) async fn mail(mesh: &Mesh, ask: &Ask, agent: &AgentName, told: &str) -> Result<(), StoreError> {
    match load_agent(&mesh.core, agent).await {
        Ok(Some(_)) => {}
        Ok(None) => return Ok(()),
        Err(error) if error.is_for_good() => {
            tracing::warn!(%agent, %error, "the answer was not sent");
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    let asked: String = match &ask.what {
        AskKind::Question(text) => text.chars().take(MUCH).collect(),
        AskKind::Consent(ConsentFor::Spawn(wanted)) => {
            let text: String = wanted.text.chars().take(MUCH).collect();
            format!("for an agent of {}: {text}", wanted.harness)
        }
        AskKind::Approval(_) | AskKind::Consent(_) | AskKind::HeldLoop(_) => String::new(),
    };
    let draft = Draft {
        body: format!("{told}\n\nYou had asked: {asked}"),
        subject: Some("the answer to your question".to_owned()),
        idempotency_key: Some(format!("ask-{}", ask.id)),
        ..Draft::default()
    };
    match mesh.tell(&Principal::of_user(), &AgentName::shell(), agent, draft).await {
        Ok(()) => Ok(()),
        // Another try may succeed, and has a key, so that nothing comes twice.
        Err(
            SendError::Store { source, .. }
            | SendError::Unreadable(source)
            | SendError::NotQueued(source)
            | SendError::Address(AddressError::Store(source)),
        ) if !source.is_for_good() => Err(source),
        Err(error) => {
            // It can be read by `asks show`.
            tracing::warn!(%agent, %error, "the answer was not sent");
            Ok(())
        }
    }
}
