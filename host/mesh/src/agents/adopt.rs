//! Adopting: an agent whose machine was lost, or is left behind, goes on at this one under its own name, with the
//! mail that waits for it. Never by a timer: a machine that is cut off looks the same from outside, so a person
//! says that it is to be, and where the servers keep machines apart, with the operator's login.

use store::{Durability, Moving, StoreError, SwapError};

use crate::Mesh;
use crate::agents::{Agent, Presence};
use crate::commands::Command;
use crate::messages::receipt::{Event, Receipt};
use crate::names::AgentName;
use crate::reservations::repository::Repository;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// What became of an agent that was adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The agent.
    pub agent: AgentName,
    /// The machine that it lived on.
    pub from: String,
    /// Messages that wait for it.
    pub waiting: usize,
}

/// Why an agent was not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Nobody has that name.
    #[error("no agent named `{0}` has joined")]
    Unknown(AgentName),
    /// It is here already.
    #[error("`{0}` lives on this machine already")]
    Here(AgentName),
    /// It does not look lost.
    #[error("`{agent}` is {} on the machine `{host}`: {evidence}", presence.as_str())]
    Heard {
        /// The agent.
        agent: AgentName,
        /// The machine that it lives on.
        host: String,
        /// How present it is.
        presence: Presence,
        /// The sentence that says why we think so.
        evidence: String,
    },
    /// The store failed.
    #[error("the agent could not be brought here")]
    Store(#[from] StoreError),
}

impl Mesh {
    /// Brings an agent of another machine here, of which nothing was heard for as long as an agent may be silent,
    /// or of which its machine says that it has gone. Who registers under its name here next is it.
    pub async fn adopt(&self, name: &AgentName) -> Result<Adopted, AdoptError> {
        let agent = self.load_agent(name).await?.ok_or_else(|| AdoptError::Unknown(name.clone()))?;
        if agent.host == self.machine.host() {
            return Err(AdoptError::Here(name.clone()));
        }
        let (_, presence, evidence) = self.judged(&agent).await?;
        match presence {
            Presence::Away | Presence::Gone => {}
            Presence::Live | Presence::Idle => {
                return Err(AdoptError::Heard { agent: name.clone(), host: agent.host, presence, evidence });
            }
        }
        self.take_over_what_others_share(name).await?;
        let now = self.machine.now();
        let nothing = Receipt { message: self.new_id(now), at: now, event: Event::Released { claim: String::new() } };
        let moving = Moving {
            home: &keys::agents().child(name.as_str()),
            left: &[keys::cursor(name), keys::heartbeat(name)],
            decides: &keys::receipts(name),
            // A receipt of a message that is not there says nothing, and stands at the end.
            fence: &records::json(&nothing),
        };
        let moved = self.shared.move_home(&moving).await?.ok_or_else(|| AdoptError::Unknown(name.clone()))?;
        let from = moved.from.unwrap_or_else(|| agent.host.clone());
        let here = self.machine.host().to_owned();
        records::update(self.shared.as_ref(), &keys::meta(name), Durability::Synced, |old: Option<Agent>| match old {
            // Somebody who registered here meanwhile is it already.
            Some(old) if old.host == here => (Next::Keep, ()),
            Some(old) => {
                let moved_from = Some(from.clone());
                (Next::Put(Agent { session: None, host: here.clone(), moved_from, key_digest: None, ..old }), ())
            }
            None => (Next::Keep, ()),
        })
        .await?;
        self.note("adopted", serde_json::json!({ "agent": name, "from": from, "to": here })).await;
        Ok(Adopted { agent: name.clone(), waiting: self.waiting(name).await?, from })
    }

    /// Says once more, in this machine's name, how everything stands that several machines write: of this agent's
    /// part in it this machine's word counts from then on, also where it had said something else long ago.
    async fn take_over_what_others_share(&self, name: &AgentName) -> Result<(), StoreError> {
        for key in self.shared.list(&keys::reservations()).await? {
            loop {
                let (revision, ledger) = match self.shared.get(&key).await? {
                    Some(found) => (Some(found.revision), found.bytes),
                    None => {
                        let repository = Repository::named(&key.leaf());
                        (None, records::json(&serde_json::json!({ "repository": repository, "reservations": [] })))
                    }
                };
                if self.say_again(&key, revision, &ledger).await? {
                    break;
                }
            }
        }
        for key in self.shared.list(&keys::commands()).await? {
            while let Some((revision, command)) = records::load::<Command>(self.shared.as_ref(), &key).await? {
                let concerned = command.from == *name || command.to == *name;
                if !concerned || self.say_again(&key, Some(revision), &records::json(&command)).await? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether nobody was faster.
    async fn say_again(
        &self,
        key: &store::Key,
        revision: Option<store::Revision>,
        value: &[u8],
    ) -> Result<bool, StoreError> {
        match self.shared.swap(key, revision, Some(value), Durability::Synced).await {
            Ok(_) => Ok(true),
            Err(SwapError::Changed { .. }) => Ok(false),
            Err(SwapError::Store(error)) => Err(error),
        }
    }

    /// An agent that this process knew as this machine's, for as long as it is. One that was adopted elsewhere
    /// meanwhile speaks from there alone. While the servers cannot be reached, it is what it was.
    pub(crate) async fn unless_adopted(&self, agent: Option<AgentName>) -> Option<AgentName> {
        let agent = agent?;
        if !self.has_servers() {
            return Some(agent);
        }
        {
            let looked = self.looked_after.lock().expect("no holder of this lock panics");
            if looked.get(&agent).is_some_and(|at| at.elapsed() < LOOK_AGAIN) {
                return Some(agent);
            }
        }
        match self.lives_elsewhere(&agent).await {
            Ok(true) => None,
            Ok(false) => {
                let mut looked = self.looked_after.lock().expect("no holder of this lock panics");
                looked.insert(agent.clone(), tokio::time::Instant::now());
                Some(agent)
            }
            Err(error) => {
                tracing::debug!(%agent, %error, "it is not known whether the agent lives elsewhere by now");
                Some(agent)
            }
        }
    }
}

/// After how long it is looked again whether an agent is still this machine's: less than a move takes.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(3);
