//! Channels: a `#name` that agents join. A message to it goes to every member, and each has a status of its own.
//!
//! A membership is a record of the agent's own, so that on servers its machine alone writes it, and that it goes with the
//! agent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::agents::list::{load_agent, names};
use crate::core::Core;
use crate::names::{AgentName, InvalidName};
use crate::storage::keys;
use crate::storage::records::{self, Next};
use crate::{Mesh, SendError};

/// The most channels of one agent.
pub const MOST_CHANNELS: usize = 64;

/// The name of a channel, without its `#`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChannelName(String);

impl ChannelName {
    /// Whether an address is meant as one.
    pub fn is_meant(address: &str) -> bool {
        address.starts_with('#')
    }

    /// Without its `#`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A text is no channel's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no channel: it is `#` and then a-z, 0-9 and -, at most 63 characters")]
pub struct InvalidChannel(String);

impl FromStr for ChannelName {
    type Err = InvalidChannel;

    /// With or without its `#`, which a shell takes for a comment.
    fn from_str(text: &str) -> Result<ChannelName, InvalidChannel> {
        let name = text.strip_prefix('#').unwrap_or(text);
        let name = name.to_ascii_lowercase();
        let is_name = match name.parse::<AgentName>() {
            Ok(agent) => agent.team().is_none(),
            // No agent has such a name, and a channel is none.
            Err(InvalidName::Reserved(_) | InvalidName::Misleading(_)) => true,
            Err(InvalidName::Alphabet(_) | InvalidName::TooLong(_)) => false,
        };
        if is_name {
            return Ok(ChannelName(name));
        }
        Err(InvalidChannel(text.chars().filter(|c| !c.is_control()).take(80).collect()))
    }
}

impl TryFrom<String> for ChannelName {
    type Error = InvalidChannel;

    fn try_from(text: String) -> Result<ChannelName, InvalidChannel> {
        text.parse()
    }
}

impl From<ChannelName> for String {
    fn from(name: ChannelName) -> String {
        name.0
    }
}

/// Why an agent could not join or leave a channel.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// It would have too many.
    #[error("`{0}` is in {MOST_CHANNELS} channels, and no more are possible")]
    TooMany(AgentName),
    /// The agent is not there.
    #[error("{}", crate::names::no_such_agent(.0))]
    Unknown(AgentName),
    /// Another machine writes what is known of it.
    #[error("`{agent}` lives on the machine `{machine}`, which says what channels it is in")]
    Elsewhere { agent: AgentName, machine: String },
    /// The store failed.
    #[error("the channel could not be stored")]
    Store(#[from] StoreError),
}

/// A channel and who is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub name: ChannelName,
    /// Its members, in alphabetical order.
    pub members: Vec<AgentName>,
}

impl Mesh {
    /// Has an agent join a channel, which exists while it has members. Returns whether it was not in it before.
    pub async fn join_channel(&self, agent: &AgentName, channel: &ChannelName) -> Result<bool, ChannelError> {
        change(&self.core, agent, |channels| {
            if channels.contains(channel) {
                return Ok(false);
            }
            if channels.len() >= MOST_CHANNELS {
                return Err(ChannelError::TooMany(agent.clone()));
            }
            channels.push(channel.clone());
            Ok(true)
        })
        .await
    }

    /// Has an agent leave a channel. Returns whether it was in it.
    pub async fn leave_channel(&self, agent: &AgentName, channel: &ChannelName) -> Result<bool, ChannelError> {
        change(&self.core, agent, |channels| {
            let before = channels.len();
            channels.retain(|other| other != channel);
            Ok(channels.len() < before)
        })
        .await
    }

    /// Every channel that has members, in alphabetical order.
    pub async fn channels(&self) -> Result<Vec<Channel>, StoreError> {
        let mut channels: Vec<Channel> = Vec::new();
        for name in names(&self.core).await? {
            for joined in channels_of(&self.core, &name).await? {
                match channels.iter_mut().find(|channel| channel.name == joined) {
                    Some(channel) => channel.members.push(name.clone()),
                    None => channels.push(Channel { name: joined, members: vec![name.clone()] }),
                }
            }
        }
        channels.iter_mut().for_each(|channel| channel.members.sort());
        channels.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(channels)
    }
}

/// Who gets a message to a channel: its members without the sender.
pub(crate) async fn recipients(core: &Core, address: &str, sender: &AgentName) -> Result<Vec<AgentName>, SendError> {
    let channel: ChannelName = address.parse()?;
    let mut members = members(core, &channel).await?;
    if members.is_empty() {
        return Err(SendError::EmptyChannel(channel));
    }
    members.retain(|member| member != sender);
    if members.is_empty() { Err(SendError::NobodyElse) } else { Ok(members) }
}

async fn members(core: &Core, channel: &ChannelName) -> Result<Vec<AgentName>, StoreError> {
    let mut members = Vec::new();
    for name in names(core).await? {
        if channels_of(core, &name).await?.contains(channel) {
            members.push(name);
        }
    }
    Ok(members)
}

async fn channels_of(core: &Core, agent: &AgentName) -> Result<Vec<ChannelName>, StoreError> {
    let found = records::load::<Vec<ChannelName>>(core.shared.as_ref(), &keys::channels_of(agent)).await?;
    Ok(found.map(|(_, channels)| channels).unwrap_or_default())
}

async fn change(
    core: &Core,
    agent: &AgentName,
    mut decide: impl FnMut(&mut Vec<ChannelName>) -> Result<bool, ChannelError> + Send,
) -> Result<bool, ChannelError> {
    let Some(record) = load_agent(core, agent).await? else { return Err(ChannelError::Unknown(agent.clone())) };
    if core.topology.has_other_machines() && record.machine != core.machine.name() {
        return Err(ChannelError::Elsewhere { agent: agent.clone(), machine: record.machine });
    }
    let key = keys::channels_of(agent);
    records::update(core.shared.as_ref(), &key, Durability::Synced, |old: Option<Vec<ChannelName>>| {
        let mut channels = old.unwrap_or_default();
        match decide(&mut channels) {
            Ok(true) if channels.is_empty() => (Next::Remove, Ok(true)),
            Ok(true) => (Next::Put(channels), Ok(true)),
            unchanged => (Next::Keep, unchanged),
        }
    })
    .await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_a_hash_and_a_name() {
        for (text, expected) in [
            ("#audit", "#audit"),
            ("audit", "#audit"),
            ("#codex", "#codex"),
            ("#Audit", "#audit"),
            ("#shell", "#shell"),
        ] {
            assert_eq!(text.parse::<ChannelName>().map(|name| name.to_string()).as_deref(), Ok(expected));
        }
        for text in ["", "#", "##a", "#a b", "#a@b", "#-a"] {
            assert!(text.parse::<ChannelName>().is_err(), "{text}");
        }
    }
}
