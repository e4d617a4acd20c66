//! `relay-mesh channel`: topics that agents join.

use mesh::messages::channel::{ChannelError, ChannelName};
use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Explain, NoAgent, WHO_IS_HERE};
use crate::exit::Exit;
use crate::shapes::channels::{ChannelsShape, MembershipShape};

/// Join topics, whose members get what is sent to them
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh channel join audit --agent alice\n  \
    relay-mesh channel list\n  \
    relay-mesh send '#audit' 'deploying in five minutes'\n\n\
    A message to #NAME goes to every member but its sender, and each has a status of its own. A channel is there while it \
    has members.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Have an agent join a channel
    #[command(after_help = "Example:\n  relay-mesh channel join audit --agent alice")]
    Join(Which),
    /// Have an agent leave a channel
    #[command(after_help = "Example:\n  relay-mesh channel leave audit --agent alice")]
    Leave(Which),
    /// Show the channels and who is in them
    #[command(after_help = "Example:\n  relay-mesh channel list --json | jq '.channels[].name'")]
    List,
}

#[derive(clap::Args, Debug)]
struct Which {
    /// Its name, with or without `#`
    #[arg(value_name = "CHANNEL")]
    channel: ChannelName,
    /// Which agent [$RELAY_AGENT, else this shell's session's]
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
}

impl Explain for ChannelError {
    fn exit(&self) -> Exit {
        match self {
            ChannelError::TooMany(_) | ChannelError::Elsewhere { .. } => Exit::Refused,
            ChannelError::Unknown(_) => Exit::NotFound,
            ChannelError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ChannelError::TooMany(_) => Some("leave one by `relay-mesh channel leave`".to_owned()),
            ChannelError::Unknown(_) => Some(WHO_IS_HERE.to_owned()),
            ChannelError::Elsewhere { .. } => Some("run it on that machine".to_owned()),
            ChannelError::Store(error) => error.hint(),
        }
    }
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        match self.verb {
            Verb::Join(Which { channel, agent }) => {
                let agent = who(context, &open, agent).await?;
                let is_new = open.mesh.join_channel(&agent, &channel).await?;
                context.printer.show(&MembershipShape::joined(&agent, &channel))?;
                if !is_new {
                    context.printer.say("it was in it before");
                }
            }
            Verb::Leave(Which { channel, agent }) => {
                let agent = who(context, &open, agent).await?;
                let was_in_it = open.mesh.leave_channel(&agent, &channel).await?;
                context.printer.show(&MembershipShape::left(&agent, &channel, was_in_it))?;
            }
            Verb::List => {
                let channels = open.mesh.channels().await?;
                context.printer.show(&ChannelsShape::of(&channels))?;
                if channels.is_empty() {
                    context.printer.say("no agent has joined a channel");
                }
            }
        }
        Ok(Exit::Success)
    }
}

async fn who(context: &Context, open: &Open, named: Option<AgentName>) -> Result<AgentName, CommandError> {
    let caller = context.principal(open, named).await?;
    caller.agent().cloned().ok_or_else(|| NoAgent.into())
}
