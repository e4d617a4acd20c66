//! Asks the user whether one command may run, if its sender is not allowed to have any run.

use store::StoreError;

use crate::asks::ask::{self, AskError};
use crate::asks::record::{AskKind, AskStage, AskStatus, AskedBy, ConsentFor, NewAsk};
use crate::commands::Command;
use crate::core::Core;
use crate::ports::driver::UserAnswer;

/// What the user has said of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandConsent {
    /// This one may run.
    Allowed,
    /// It may not, with what to say of it.
    Refused(String),
    /// They have not answered yet.
    Asked,
    /// They are not asked: the command comes from nobody whom they could know, or could not run.
    NotAsked,
}

/// What the user says of a command; asks them if they were not asked before.
pub(crate) async fn consent(core: &Core, command: &Command) -> Result<CommandConsent, StoreError> {
    let runs_never = command.arguments.iter().any(|argument| argument.chars().any(char::is_control));
    if command.from.is_shell() || runs_never {
        return Ok(CommandConsent::NotAsked);
    }
    let by = AskedBy { agent: Some(command.from.clone()), ..AskedBy::default() };
    let what = ConsentFor::Command { id: command.id, to: command.to.clone(), line: command.line() };
    let same_as = Some(format!("command:{}", command.id));
    let new = NewAsk { same_as, ..NewAsk::new(by, AskKind::Consent(what)) };
    let ask = match ask::ask(core, new).await {
        Ok(ask) => ask,
        Err(AskError::Store(error)) => return Err(error),
        Err(error) => {
            tracing::warn!(id = %command.id, %error, "the user is not asked about a command");
            return Ok(CommandConsent::NotAsked);
        }
    };
    Ok(match (&ask.stage, ask.status(core.machine.now())) {
        (AskStage::Answered { answer: UserAnswer::Allow, .. }, _) => CommandConsent::Allowed,
        (AskStage::Answered { answer: UserAnswer::Refuse(why), .. }, _) if !why.is_empty() => {
            CommandConsent::Refused(format!("the user of `{}` refused it: {why}", command.to))
        }
        (AskStage::Answered { .. }, _) => CommandConsent::Refused(format!("the user of `{}` refused it", command.to)),
        (_, AskStatus::Open) => CommandConsent::Asked,
        (_, _) => CommandConsent::NotAsked,
    })
}
