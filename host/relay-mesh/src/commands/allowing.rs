//! The user's permissions for agents: `allow`, `disallow` and `allowed` of `runs` and of `spawn`.

use mesh::allowances::{Allowance, Budget, Starts};
use mesh::names::AgentName;
use mesh::ports::runner::Reach;

use crate::config::Allowed;
use crate::context::Context;
use crate::driven;
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;
use crate::runs::{begin, permission};
use crate::shapes::allowances::{AllowanceShape, AllowancesShape, DisallowancesShape};

/// What `allow` takes.
#[derive(clap::Args, Debug)]
pub(super) struct AllowArgs {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: AgentName,
    /// The harness that it may start
    #[arg(value_name = "HARNESS")]
    harness: String,
    /// What that may change at most
    #[arg(long, value_name = "REACH", default_value = "look")]
    reach: Reach,
    /// How many within a day [default: any number]
    #[arg(long, value_name = "N/day")]
    budget: Option<Budget>,
}

/// What `disallow` takes.
#[derive(clap::Args, Debug)]
pub(super) struct DisallowArgs {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: AgentName,
    /// Of this harness alone
    #[arg(value_name = "HARNESS")]
    harness: Option<String>,
}

/// Nothing like that was allowed.
#[derive(Debug, thiserror::Error)]
#[error("nothing like that is allowed")]
struct NothingAllowed(Starts);

impl Explain for NothingAllowed {
    fn exit(&self) -> Exit {
        Exit::NotFound
    }

    fn hint(&self) -> Option<String> {
        Some(format!("run `relay-mesh {} allowed` to see what is", self.0.command()))
    }
}

pub(super) async fn allow(starts: Starts, wanted: AllowArgs, context: &Context) -> Result<Exit, CommandError> {
    let AllowArgs { agent, harness, reach, budget } = wanted;
    let open = context.open()?;
    permission::only_the_user(context, &open, "consent").await?;
    let found = match starts {
        Starts::Runs => begin::harness(&open, &harness).await?,
        Starts::Agents => driven::begin::harness(&open, &harness).await?,
    };
    let kept = Allowed::to_start(starts, &context.settings, &context.environment)?;
    let allowance = Allowance { agent, harness: found.about().harness.clone(), reach, budget };
    kept.allow(&allowance)?;
    context.printer.show(&AllowanceShape::of(starts, &allowance))?;
    context.printer.say(&format!(
        "kept in {}; `relay-mesh {} disallow {}` takes it back",
        kept.path().display(),
        starts.command(),
        allowance.agent
    ));
    Ok(Exit::Success)
}

pub(super) fn disallow(starts: Starts, wanted: &DisallowArgs, context: &Context) -> Result<Exit, CommandError> {
    let kept = Allowed::to_start(starts, &context.settings, &context.environment)?;
    let harness = wanted.harness.as_deref().map(begin::full_name);
    let gone = kept.disallow(&wanted.agent, harness)?;
    if gone.is_empty() {
        return Err(NothingAllowed(starts).into());
    }
    context.printer.show(&DisallowancesShape::of(starts, &gone, kept.path()))?;
    context.printer.say("what was started already goes on");
    Ok(Exit::Success)
}

pub(super) fn allowed(starts: Starts, context: &Context) -> Result<Exit, CommandError> {
    let kept = Allowed::to_start(starts, &context.settings, &context.environment)?;
    let listed = kept.listed()?;
    context.printer.show(&AllowancesShape::of(starts, &listed, kept.path()))?;
    if listed.is_empty() {
        let command = starts.command();
        context.printer.say(&format!("no agent may; `relay-mesh {command} allow AGENT HARNESS` lets one"));
    }
    context.printer.say(&format!("kept in {}", kept.path().display()));
    Ok(Exit::Success)
}
