//! `relay-mesh register`: register an agent for this command line, or for the session that it belongs to.

use mesh::Registration;
use mesh::agents::Profile;
use mesh::names::AgentName;

use crate::command::CommandSpec;
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
        let shape = RegisteredShape::from(&registered);
        context.printer.show(&shape)?;
        if let Some(how) = &shape.adoptable {
            context.printer.say(how);
        }
        let name = &registered.agent.name;
        context
            .printer
            .say(&format!("speak as it by `--from {name}`, or for a whole shell by `export RELAY_AGENT={name}`"));
        Ok(Exit::Success)
    }
}
