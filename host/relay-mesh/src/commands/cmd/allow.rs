//! The user's consent to commands in the sessions of their agents: allow, disallow, list.

use mesh::names::AgentName;
use mesh::ports::consent::Consent;

use super::ConsentArgs;
use crate::config::AllowedCommands;
use crate::context::Context;
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::commands::{AllowedShape, ConsentShape, DisallowedShape};

/// Why nothing was allowed or taken back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConsentError {
    /// The anonymous command line.
    #[error("`shell` is no agent, so nothing can be allowed to it")]
    Nobody,
    /// There is nothing to take back.
    #[error("nothing like that is allowed")]
    NotAllowed,
}

impl Explain for ConsentError {
    fn exit(&self) -> Exit {
        match self {
            ConsentError::Nobody => Exit::Usage,
            ConsentError::NotAllowed => Exit::NotFound,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            ConsentError::Nobody => {
                "register a name for your terminal (`relay-mesh register NAME`), allow that, and ask with `--from NAME`"
            }
            ConsentError::NotAllowed => "run `relay-mesh cmd allowed` to see what is",
        };
        Some(hint.to_owned())
    }
}

pub(super) async fn allow(args: ConsentArgs, context: &Context) -> Result<Exit, CommandError> {
    let consent = consent(args)?;
    let open = context.open()?;
    // A shell inside an agent's session is not the user, whichever agent it speaks for.
    permission::only_the_user(context, &open, "consent").await?;
    let kept = AllowedCommands::of(&context.settings, &context.environment)?;
    let is_new = kept.allow(&consent)?;
    let freed = open.mesh.look_again().await?;
    context.printer.show(&ConsentShape::of(&consent))?;
    if !is_new {
        context.printer.say("it was allowed before");
    }
    context.printer.say(&format!(
        "kept in {}; `relay-mesh cmd disallow {}` takes it back",
        kept.path().display(),
        consent.from
    ));
    for command in freed {
        context
            .printer
            .say(&format!("{} {} waits for {}, which runs it when it can", command.id, command.command, command.to));
    }
    Ok(Exit::Success)
}

pub(super) async fn disallow(args: ConsentArgs, context: &Context) -> Result<Exit, CommandError> {
    let kept = AllowedCommands::of(&context.settings, &context.environment)?;
    let gone = kept.disallow(&consent(args)?)?;
    if gone.is_empty() {
        return Err(ConsentError::NotAllowed.into());
    }
    context.printer.show(&DisallowedShape::of(&gone, kept.path()))?;
    context.printer.say("a command that is running already goes on");
    Ok(Exit::Success)
}

pub(super) fn allowed(context: &Context) -> Result<Exit, CommandError> {
    let kept = AllowedCommands::of(&context.settings, &context.environment)?;
    let listed = kept.listed()?;
    context.printer.show(&AllowedShape::of(&listed, kept.path()))?;
    if listed.is_empty() {
        context.printer.say("no sender's commands run by themselves here; `relay-mesh cmd allow SENDER` lets them");
    }
    context.printer.say(&format!("kept in {}", kept.path().display()));
    Ok(Exit::Success)
}

fn consent(args: ConsentArgs) -> Result<Consent, CommandError> {
    let ConsentArgs { sender, command, to } = args;
    if sender == AgentName::shell().as_str() {
        return Err(ConsentError::Nobody.into());
    }
    Ok(Consent { from: sender.parse()?, command, to })
}
