//! Listing and finding questions to the user.

use store::{Durability, StoreError};

use crate::Mesh;
use crate::asks::answer;
use crate::asks::record::{Ask, AskKind, AskStage, AskStatus, ConsentFor};
use crate::commands::{CommandStatus, order};
use crate::core::Core;
use crate::messages::id_prefix;
use crate::names::{AgentName, InvalidMessageId, MessageId};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Why text names no question.
#[derive(Debug, thiserror::Error)]
pub enum FindAskError {
    /// It is neither an id nor the beginning of one.
    #[error(transparent)]
    Invalid(#[from] InvalidMessageId),
    /// No question begins so.
    #[error("no question to the user has the id `{0}`")]
    Unknown(String),
    /// Several do.
    #[error("`{typed}` may mean {}", candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// What was typed.
        typed: String,
        /// The ids that it may mean, oldest first.
        candidates: Vec<MessageId>,
    },
    /// The store failed.
    #[error("the questions to the user could not be read")]
    Store(#[from] StoreError),
}

/// Every question that is kept, oldest first.
pub(crate) async fn all(core: &Core) -> Result<Vec<Ask>, StoreError> {
    let mut asks = Vec::new();
    for key in core.local.list(&keys::asks()).await? {
        match records::load::<Ask>(core.local.as_ref(), &key).await {
            Ok(found) => asks.extend(found.map(|(_, ask)| ask)),
            // A damaged record must hide only its own question.
            Err(error @ StoreError::Damaged { .. }) => tracing::warn!(%key, %error, "a damaged question is skipped"),
            Err(error) => return Err(error),
        }
    }
    asks.sort_by_key(|ask| ask.id);
    Ok(asks)
}

/// Every question that is kept, after settling those that nobody waits for any more and doing what their ends set off, if
/// the process that took the answer could not.
pub(crate) async fn looked_after(mesh: &Mesh) -> Result<Vec<Ask>, StoreError> {
    let core = &mesh.core;
    let now = core.machine.now();
    let mut asks = Vec::new();
    for ask in all(core).await? {
        let ask = match ask.status(now) {
            AskStatus::Open => match why_nobody_waits(core, &ask).await {
                Ok(Some(why)) => settle(core, ask.id, why).await?.unwrap_or(ask),
                Ok(None) => ask,
                Err(error) => unseen(ask, &error),
            },
            AskStatus::Answered | AskStatus::Expired => match answer::carry_out(mesh, &ask).await {
                Ok(()) => ask,
                Err(error) => unseen(ask, &error),
            },
            AskStatus::Settled => ask,
        };
        asks.push(ask);
    }
    Ok(asks)
}

/// Every question that is kept, after doing what the ends of those that are over still set off: the process that took
/// the answer may have been killed, and nobody takes what expires. Unlike [`looked_after`] it looks at no open one.
pub(super) async fn carried_out(mesh: &Mesh) -> Result<Vec<Ask>, StoreError> {
    let asks = all(&mesh.core).await?;
    for ask in &asks {
        if let Err(error) = answer::carry_out(mesh, ask).await {
            let error: &dyn std::error::Error = &error;
            // The server looks every few seconds, and what fails may do so for long: `looked_after` warns of it.
            tracing::debug!(id = %ask.id, error, "what a question sets off is not done now");
        }
    }
    Ok(asks)
}

/// A question that cannot be looked after now, as while the servers of its mesh are out of reach, hides no other one.
fn unseen(ask: Ask, error: &StoreError) -> Ask {
    let error: &dyn std::error::Error = error;
    tracing::warn!(id = %ask.id, error, "a question is not looked after now");
    ask
}

/// Why nobody has to answer an open question any more; none if somebody has to.
pub(crate) async fn why_nobody_waits(core: &Core, ask: &Ask) -> Result<Option<&'static str>, StoreError> {
    if ask.process.is_some_and(|process| core.machine.has_ended(process)) {
        return Ok(Some("the process that asked has ended"));
    }
    if let AskKind::Consent(ConsentFor::Command { id, .. }) = &ask.what {
        let standing = order::command(core, *id).await?.map(|command| command.standing(core.machine.now()));
        if standing != Some(CommandStatus::Pending) {
            return Ok(Some("the command waits no more"));
        }
    }
    Ok(None)
}

/// The agents of which a question is open.
pub(crate) async fn asking(core: &Core) -> Result<Vec<AgentName>, StoreError> {
    let now = core.machine.now();
    let open = all(core).await?.into_iter().filter(|ask| {
        // Who has sent a command, or wants an agent started, goes on meanwhile.
        let waits = !matches!(ask.what, AskKind::Consent(ConsentFor::Command { .. } | ConsentFor::Spawn(_)));
        waits
            && ask.status(now) == AskStatus::Open
            && !ask.process.is_some_and(|process| core.machine.has_ended(process))
    });
    Ok(open.filter_map(|ask| ask.by.agent).collect())
}

/// Nobody waits for the answer to an open question any more, but its agent wants it: it comes as a message.
pub(crate) async fn leave_to_mail(core: &Core, id: MessageId) -> Result<(), StoreError> {
    let Some(ask) = by_id(core, id).await? else { return Ok(()) };
    records::update(core.local.as_ref(), &keys::ask(&ask.slot), Durability::Synced, |old: Option<Ask>| match old {
        Some(old) if old.id == id && old.stage == AskStage::Open => {
            (Next::Put(Ask { process: None, by_mail: true, ..old }), ())
        }
        Some(_) | None => (Next::Keep, ()),
    })
    .await
}

pub(crate) async fn by_id(core: &Core, id: MessageId) -> Result<Option<Ask>, StoreError> {
    // A question without another key is stored under its id.
    if let Some((_, ask)) = records::load::<Ask>(core.local.as_ref(), &keys::ask(&id.to_string())).await? {
        return Ok(Some(ask));
    }
    Ok(all(core).await?.into_iter().find(|ask| ask.id == id))
}

/// The question whose id begins with what was typed.
pub(crate) async fn find(core: &Core, typed: &str) -> Result<Ask, FindAskError> {
    let typed = id_prefix::check(typed)?;
    let found: Vec<Ask> = all(core).await?.into_iter().filter(|ask| ask.id.to_string().starts_with(&typed)).collect();
    match found.as_slice() {
        [] => Err(FindAskError::Unknown(typed)),
        [_] => Ok(found.into_iter().next().expect("it has one element")),
        _ => Err(FindAskError::Ambiguous { typed, candidates: found.iter().map(|ask| ask.id).collect() }),
    }
}

/// Settles an open question; returns what it is now, none if there is no such question.
pub(crate) async fn settle(core: &Core, id: MessageId, why: &str) -> Result<Option<Ask>, StoreError> {
    let now = core.machine.now();
    let Some(ask) = by_id(core, id).await? else { return Ok(None) };
    let (settled, kept) =
        records::update(core.local.as_ref(), &keys::ask(&ask.slot), Durability::Synced, |old: Option<Ask>| match old {
            Some(old) if old.id == id && old.status(now) == AskStatus::Open => {
                let settled = Ask { stage: AskStage::Settled { at: now, why: why.to_owned() }, ..old };
                (Next::Put(settled.clone()), (true, Some(settled)))
            }
            old => (Next::Keep, (false, old.filter(|old| old.id == id))),
        })
        .await?;
    if settled {
        core.event_log.note("ask-settled", serde_json::json!({ "id": id, "agent": ask.by.agent })).await;
    }
    Ok(kept)
}
