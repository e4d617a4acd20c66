//! `channels`: join and leave topics, and see who is in them.

use mesh::messages::channel::{ChannelError, ChannelName, InvalidChannel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    join: Option<List>,
    leave: Option<List>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    channels: Vec<Listed>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    name: String,
    members: Vec<String>,
}

pub(super) struct Channels;

impl Tool for Channels {
    const NAME: &'static str = "channels";
    const TITLE: &'static str = "Join and list channels";
    const DESCRIPTION: &'static str =
        "Join or leave channels, and list all. send_message to #name reaches every member.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let agent = call.agent()?;
        let parsed = |list: Option<List>| -> Result<Vec<ChannelName>, ToolError> {
            let names = list.map(|list| list.0).unwrap_or_default();
            Ok(names.iter().map(|name| name.parse()).collect::<Result<_, InvalidChannel>>()?)
        };
        let (join, leave) = (parsed(input.join)?, parsed(input.leave)?);
        for channel in &join {
            call.mesh.join_channel(&agent, channel).await?;
        }
        for channel in &leave {
            call.mesh.leave_channel(&agent, channel).await?;
        }
        let channels = call.mesh.channels().await.map_err(ChannelError::Store)?;
        let listed: Vec<Listed> = channels
            .into_iter()
            .map(|channel| Listed {
                name: channel.name.to_string(),
                members: channel.members.iter().map(ToString::to_string).collect(),
            })
            .collect();
        let text = match listed.as_slice() {
            [] => "no channel has members".to_owned(),
            some => {
                let line = |one: &Listed| format!("{}: {}", one.name, one.members.join(", "));
                some.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        };
        Ok(ToolOutput::new(Output { channels: listed }, text))
    }
}
