//! Channels: `channel`.

use mesh::messages::channel::{Channel, ChannelName};
use mesh::names::AgentName;
use serde::Serialize;

use crate::render::{Show, table};

/// That an agent has joined or left a channel.
#[derive(Debug, Serialize)]
pub(crate) struct MembershipShape {
    channel: String,
    agent: String,
    joined: bool,
    /// Whether it was in it before.
    #[serde(skip)]
    was_in_it: bool,
}

impl MembershipShape {
    pub(crate) fn joined(agent: &AgentName, channel: &ChannelName) -> MembershipShape {
        MembershipShape { channel: channel.to_string(), agent: agent.to_string(), joined: true, was_in_it: false }
    }

    pub(crate) fn left(agent: &AgentName, channel: &ChannelName, was_in_it: bool) -> MembershipShape {
        MembershipShape { joined: false, was_in_it, ..MembershipShape::joined(agent, channel) }
    }
}

impl Show for MembershipShape {
    fn text(&self) -> String {
        let stands = match (self.joined, self.was_in_it) {
            (true, _) => "is in",
            (false, true) => "is no longer in",
            (false, false) => "was not in",
        };
        format!("{} {stands} {}", self.agent, self.channel)
    }
}

/// Every channel.
#[derive(Debug, Serialize)]
pub(crate) struct ChannelsShape {
    channels: Vec<ChannelShape>,
}

#[derive(Debug, Serialize)]
struct ChannelShape {
    name: String,
    members: Vec<String>,
}

impl ChannelsShape {
    pub(crate) fn of(channels: &[Channel]) -> ChannelsShape {
        let shape = |channel: &Channel| ChannelShape {
            name: channel.name.to_string(),
            members: channel.members.iter().map(ToString::to_string).collect(),
        };
        ChannelsShape { channels: channels.iter().map(shape).collect() }
    }
}

impl Show for ChannelsShape {
    fn text(&self) -> String {
        if self.channels.is_empty() {
            return String::new();
        }
        let row = |channel: &ChannelShape| vec![channel.name.clone(), channel.members.join(" ")];
        table(&["CHANNEL", "MEMBERS"], &self.channels.iter().map(row).collect::<Vec<_>>())
    }
}
