//! Putting a question to the user.

use store::{Durability, StoreError};

use crate::asks::list;
use crate::asks::record::{
    Ask, AskKind, AskStage, AskStatus, ConsentFor, LONGEST_LABEL, LONGEST_OPERATION, LONGEST_PATIENCE,
    LONGEST_QUESTION, MOST_CHOICES, NewAsk, SHORTEST_PATIENCE,
};
use crate::core::Core;
use crate::ports::driver::{Operation, UserAnswer};
use crate::ports::machine::Instant;
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::turns;

/// Most open questions of one asker.
const MOST_OF_ONE: usize = 20;
/// Most open questions of a machine.
const MOST: usize = 500;

/// Why a question was not put to the user.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no text.
    #[error("the question is empty")]
    Empty,
    /// The text is too long.
    #[error("the {what} has {bytes} bytes and may have {most}")]
    TooLong {
        /// Which part of it.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest.
        most: usize,
    },
    /// The text has characters that could steer a terminal.
    #[error("the {what} holds the control character U+{:04X}", *character as u32)]
    Control {
        /// Which part of it.
        what: &'static str,
        /// The first one.
        character: char,
    },
    /// There are too many choices.
    #[error("the question has {0} choices and may have {MOST_CHOICES}")]
    Choices(usize),
    /// A choice has no id, or two have the same.
    #[error("`{0}` is no choice: each needs a name of its own")]
    Choice(String),
    /// The time to wait is below a second or above a day.
    #[error("a question can wait between a second and a day for its answer")]
    Patience,
    /// The asker has too many open questions.
    #[error("{0} questions of this asker are open, and no more can be")]
    TooMany(usize),
    /// The store failed.
    #[error("the question could not be stored")]
    Store(#[from] StoreError),
}

pub(crate) async fn ask(core: &Core, new: NewAsk) -> Result<Ask, AskError> {
    ask_unless_asked(core, new).await.map(|(ask, _)| ask)
}

/// Puts a question to the user, unless an open one stands for it. Returns whether it is asked anew.
pub(crate) async fn ask_unless_asked(core: &Core, new: NewAsk) -> Result<(Ask, bool), AskError> {
    check(&new)?;
    let now = core.machine.now();
    let patience = new.patience.unwrap_or(core.limits.ask_patience);
    let id = core.new_id(now);
    let slot = new.same_as.as_deref().map_or_else(|| id.to_string(), slot_of);
    let open = list::all(core).await?.into_iter().filter(|ask| ask.status(now) == AskStatus::Open && ask.slot != slot);
    let (mut of_one, mut of_all) = (0, 0);
    for ask in open {
        of_all += 1;
        of_one += usize::from(ask.by == new.by);
    }
    if of_one >= MOST_OF_ONE || of_all >= MOST {
        return Err(AskError::TooMany(if of_one >= MOST_OF_ONE { of_one } else { of_all }));
    }
    let NewAsk { by, what, reason, choices, process, by_mail, .. } = new;
    let until = now.plus(patience);
    let stage = AskStage::Open;
    let ask = Ask { id, by, what, reason, choices, at: now, until, process, by_mail, done: false, slot, stage };
    let key = keys::ask(&ask.slot);
    let kept = records::update(core.local.as_ref(), &key, Durability::Synced, |old: Option<Ask>| match old {
        Some(old) if is_same(&old, &ask, now) => (reasked(old.clone(), &ask), old),
        Some(_) | None => (Next::Put(ask.clone()), ask.clone()),
    })
    .await?;
    let is_new = kept.id == ask.id;
    if is_new {
        core.event_log.note("asked", serde_json::json!({ "id": ask.id, "agent": ask.by.agent })).await;
        turns::note_need(core, &ask.by, ask.what.text()).await;
        let asker = ask.by.agent.as_ref().map_or_else(|| "relay-mesh".to_owned(), ToString::to_string);
        core.desktop.notice(&format!("{asker} asks you"), "see `relay-mesh asks`").await;
    }
    Ok((kept, is_new))
}

/// Somebody else waits for an open question that is asked again: the process that asked before may have ended.
fn reasked(old: Ask, again: &Ask) -> Next<Ask> {
    if old.stage == AskStage::Open && (old.process != again.process || old.by_mail != again.by_mail) {
        Next::Put(Ask { process: again.process, by_mail: again.by_mail, ..old })
    } else {
        Next::Keep
    }
}

/// Whether a question that has the same key stands for this one.
fn is_same(old: &Ask, new: &Ask, now: Instant) -> bool {
    match (&old.what, &new.what, old.status(now)) {
        // What the user has refused, or left unanswered, is asked no more for the same chain of messages. What they
        // have allowed is over: the chain has gone on since.
        (AskKind::HeldLoop(old_loop), AskKind::HeldLoop(new_loop), AskStatus::Answered | AskStatus::Expired) => {
            old_loop.chain == new_loop.chain && old.answer() != Some(&UserAnswer::Allow)
        }
        // A command waits longer than the question about it, and is not asked about twice.
        (AskKind::Consent(ConsentFor::Command { .. }), _, AskStatus::Expired)
        | (_, _, AskStatus::Open | AskStatus::Answered) => true,
        (_, _, AskStatus::Settled | AskStatus::Expired) => false,
    }
}

/// The last segment of the key of a question that is the same whenever it is asked.
pub(crate) fn slot_of(same_as: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(same_as.as_bytes());
    format!("same-{}", hex::encode(&digest[..16]))
}

fn check(new: &NewAsk) -> Result<(), AskError> {
    match &new.what {
        AskKind::Question(text) => {
            if text.trim().is_empty() {
                return Err(AskError::Empty);
            }
            plain("question", text, LONGEST_QUESTION)?;
        }
        // What a harness or a peer would do is shown whole and escaped: it is refused for nothing but its size.
        AskKind::Approval(operation) => fits("operation", bytes_of(operation), LONGEST_OPERATION)?,
        AskKind::Consent(ConsentFor::Spawn(wanted)) => {
            fits("task", wanted.text.len(), LONGEST_OPERATION)?;
            fits("role", wanted.role.as_ref().map_or(0, String::len), LONGEST_QUESTION)?;
        }
        AskKind::Consent(ConsentFor::Run { task, .. }) => fits("task", task.len(), LONGEST_OPERATION)?,
        AskKind::Consent(ConsentFor::Command { line, .. }) => fits("command", line.len(), LONGEST_OPERATION)?,
        AskKind::HeldLoop(held) => fits("reason", held.why.len(), LONGEST_QUESTION)?,
    }
    match (&new.what, &new.reason) {
        (AskKind::Question(_), Some(reason)) => plain("reason", reason, LONGEST_QUESTION)?,
        (_, Some(reason)) => fits("reason", reason.len(), LONGEST_OPERATION)?,
        (_, None) => {}
    }
    if new.choices.len() > MOST_CHOICES {
        return Err(AskError::Choices(new.choices.len()));
    }
    for (at, (id, label)) in new.choices.iter().enumerate() {
        line("choice", id)?;
        line("choice", label)?;
        if id.trim().is_empty() || new.choices[..at].iter().any(|(other, _)| other == id) {
            return Err(AskError::Choice(id.clone()));
        }
    }
    if new.patience.is_some_and(|patience| !(SHORTEST_PATIENCE..=LONGEST_PATIENCE).contains(&patience)) {
        return Err(AskError::Patience);
    }
    Ok(())
}

fn bytes_of(operation: &Operation) -> usize {
    match operation {
        Operation::Command(text) | Operation::Other(text) => text.len(),
        Operation::Files(paths) => paths.iter().map(String::len).sum(),
        Operation::Tool(name, arguments) => name.len() + arguments.to_string().len(),
    }
}

fn fits(what: &'static str, bytes: usize, most: usize) -> Result<(), AskError> {
    if bytes > most { Err(AskError::TooLong { what, bytes, most }) } else { Ok(()) }
}

/// Text of an asker in several lines.
pub(crate) fn plain(what: &'static str, text: &str, most: usize) -> Result<(), AskError> {
    fits(what, text.len(), most)?;
    match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        Some(character) => Err(AskError::Control { what, character }),
        None => Ok(()),
    }
}

fn line(what: &'static str, text: &str) -> Result<(), AskError> {
    fits(what, text.len(), LONGEST_LABEL)?;
    match text.chars().find(|c| c.is_control()) {
        Some(character) => Err(AskError::Control { what, character }),
        None => Ok(()),
    }
}
