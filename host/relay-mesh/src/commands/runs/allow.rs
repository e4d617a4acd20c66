//! The user's permission for agents to start runs: allow, disallow, list.

use mesh::names::AgentName;
use mesh::runs::Allowance;

use super::Allow;
use crate::config::AllowedRuns;
use crate::context::Context;
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;
use crate::runs::{begin, permission};
use crate::shapes::runs::{AllowanceShape, AllowancesShape};

/// Why nothing was allowed or taken back.
#[derive(Debug, thiserror::Error)]
enum RunConsentError {
    #[error("nothing like that is allowed")]
    NotAllowed,
}

impl Explain for RunConsentError {
    fn exit(&self) -> Exit {
        match self {
            RunConsentError::NotAllowed => Exit::NotFound,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            RunConsentError::NotAllowed => "run `relay-mesh runs allowed` to see what is",
        };
        Some(hint.to_owned())
    }
}

pub(super) async fn allow(wanted: Allow, context: &Context) -> Result<Exit, CommandError> {
    let Allow { agent, harness, reach, budget } = wanted;
    let open = context.open()?;
    permission::only_the_user(context, &open, "consent").await?;
    let harness = begin::harness(&open, &harness).await?.about().harness.clone();
    let kept = AllowedRuns::of(&context.settings, &context.environment)?;
    let allowance = Allowance { agent, harness, reach, budget };
    kept.allow(&allowance)?;
    context.printer.show(&AllowanceShape::of(&allowance))?;
    context.printer.say(&format!(
        "kept in {}; `relay-mesh runs disallow {}` takes it back",
        kept.path().display(),
        allowance.agent
    ));
    Ok(Exit::Success)
}

pub(super) fn disallow(agent: &AgentName, harness: Option<&str>, context: &Context) -> Result<Exit, CommandError> {
    let kept = AllowedRuns::of(&context.settings, &context.environment)?;
    let harness = harness.map(begin::full_name);
    let gone = kept.disallow(agent, harness)?;
    if gone.is_empty() {
        return Err(RunConsentError::NotAllowed.into());
    }
    context.printer.show(&AllowancesShape::of(&gone, kept.path()))?;
    context.printer.say("no longer allowed; a run that was started already goes on");
    Ok(Exit::Success)
}

pub(super) fn allowed(context: &Context) -> Result<Exit, CommandError> {
    let kept = AllowedRuns::of(&context.settings, &context.environment)?;
    let listed = kept.listed()?;
    context.printer.show(&AllowancesShape::of(&listed, kept.path()))?;
    if listed.is_empty() {
        context.printer.say("no agent may start runs; `relay-mesh runs allow AGENT HARNESS` lets one");
    }
    context.printer.say(&format!("kept in {}", kept.path().display()));
    Ok(Exit::Success)
}
