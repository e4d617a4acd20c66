//! `relay-mesh register`: register an agent for this command line, or for the session that it belongs to.

use mesh::Registration;
use mesh::agents::{Presence, Profile};
use mesh::names::AgentName;
use mesh::ports::machine::Machine;

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::config::team;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::agents::RegisteredShape;

/// Register an agent of the command line
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh register alice\n  \
    relay-mesh register ci@backend --program cron --role 'runs the tests'\n  \
    export RELAY_AGENT=$(relay-mesh register builder --json | jq -r .name)")]
pub(crate) struct Args {
    /// The name to ask for: `alice`, or `alice@backend` in a team
    #[arg(value_name = "NAME")]
    name: AgentName,
    /// The program that speaks for it
    #[arg(long)]
    program: Option<String>,
    /// The model behind it
    #[arg(long)]
    model: Option<String>,
    /// What it is doing
    #[arg(long)]
    task: Option<String>,
    /// What it is for
    #[arg(long)]
    role: Option<String>,
    /// The issue that it works on, in the tracker's own spelling
    #[arg(long, alias = "bead")]
    issue: Option<String>,
    /// What it can do; may be given several times
    #[arg(long = "skill", value_name = "SKILL")]
    skills: Vec<String>,
    /// The team to join, if the name has none [$RELAY_TEAM]
    #[arg(long, value_parser = team)]
    team: Option<String>,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        // Asking for a name is not speaking for that agent: the mesh decides who gets the name.
        let caller = open.mesh.identify(&context.call(None)).await?;
        let profile = Profile {
            harness: None,
            program: self.program,
            model: self.model,
            project: Some(context.workdir.display().to_string()).filter(|path| path.len() <= 200),
            role: self.role,
            task: self.task,
            issue: self.issue,
            skills: self.skills,
        };
        // The settings' team is for names without one; a flag that contradicts the name is an error.
        let usual = if self.name.team().is_some() { None } else { context.settings.team.value.clone() };
        let team = self.team.or(usual);
        let registered = open.mesh.register(&caller, Registration { name: Some(self.name), team, profile }).await?;
        context.printer.show(&RegisteredShape::from(&registered))?;
        if let mesh::RegisterOutcome::Numbered { wanted } = &registered.outcome {
            tell_of_lost(wanted, context, &open).await?;
        }
        let name = &registered.agent.name;
        context
            .printer
            .say(&format!("speak as it by `--from {name}`, or for a whole shell by `export RELAY_AGENT={name}`"));
        Ok(Exit::Success)
    }
}

/// Says how to adopt the wanted agent if its machine seems lost.
async fn tell_of_lost(wanted: &AgentName, context: &Context, open: &Open) -> Result<(), CommandError> {
    let Some(seen) = open.mesh.agent(wanted).await? else { return Ok(()) };
    let is_lost = match seen.presence {
        Presence::Away | Presence::Offline => seen.agent.machine != open.machine.name(),
        Presence::Busy | Presence::NeedsInput | Presence::Idle => false,
    };
    if is_lost {
        context.printer.say(&format!(
            "{wanted} lives on the machine {} and is {}; `relay-mesh adopt {wanted}` brings it here, with its mail",
            seen.agent.machine,
            seen.presence.as_str()
        ));
    }
    Ok(())
}
