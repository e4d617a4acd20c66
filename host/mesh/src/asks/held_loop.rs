//! Asks the user whether agents that keep waking each other may go on.

use store::StoreError;

use crate::asks::ask;
use crate::asks::list;
use crate::asks::record::{Ask, AskKind, AskedBy, HeldLoop, LONGEST_PATIENCE, NewAsk, SHORTEST_PATIENCE};
use crate::core::Core;
use crate::delivery::notice;
use crate::delivery::wake_file::Ring;
use crate::messages::Hold;
use crate::names::AgentName;
use crate::storage::{keys, records};

/// The user has spoken to the agent: what was held is free, and nobody has to answer.
pub(crate) async fn settle(core: &Core, to: &AgentName) -> Result<(), StoreError> {
    let key = keys::ask(&ask::slot_of(&same_as(to)));
    match records::load::<Ask>(core.local.as_ref(), &key).await {
        Ok(Some((_, ask))) => list::settle(core, ask.id, "the user has spoken to the agent").await.map(drop),
        Ok(None) | Err(StoreError::Damaged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn same_as(to: &AgentName) -> String {
    format!("loop:{to}")
}

/// Asks once for each chain of messages, and one question at a time for each agent, and has the sessions of both agents
/// show why they have stopped. Only logs an error: the message is stored and held in any case.
pub(crate) async fn ask(core: &Core, ring: &Ring, to: &AgentName, hold: &Hold) {
    let what = AskKind::HeldLoop(HeldLoop {
        to: to.clone(),
        from: ring.from.clone(),
        chain: ring.trace.root,
        messages: ring.trace.hops,
        why: hold.reason.clone(),
    });
    // What the loop guard frees by itself need not be asked any longer.
    let frees_itself = hold.until.map(|until| until.since(core.machine.now()));
    let patience = frees_itself.map(|until| until.clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE));
    let patience = patience.filter(|until| *until < core.limits.ask_patience);
    let new = NewAsk { same_as: Some(same_as(to)), patience, ..NewAsk::new(AskedBy::default(), what) };
    match ask::ask_unless_asked(core, new).await {
        Ok((_, true)) => {
            let (from, reason) = (&ring.from, &hold.reason);
            let to_sender = format!("relay-mesh: mail to {to} waits: {reason}. To let them go on: relay-mesh asks");
            notice::keep(core, from, &to_sender).await;
            notice::keep(core, to, &format!("relay-mesh: mail from {from} was held: {reason}")).await;
        }
        Ok((_, false)) => {}
        Err(error) => tracing::warn!(%to, %error, "the user is not asked about messages that the loop guard holds"),
    }
}
