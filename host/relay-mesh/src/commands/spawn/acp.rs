//! `relay-mesh spawn acp`: which programs of the user's own may be started as agents. A program that is named on a command line
//! could be any, so the user agrees to each whole command line first; an agent never can.

use crate::config::{AcpProgram, AcpPrograms, InvalidCommand, as_typed, command_of};
use crate::context::Context;
use crate::errors::{CommandError, Explain, Failure};
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::acp::{AcpProgramShape, AcpProgramsShape};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Allow a program that speaks the Agent Client Protocol to be started
    #[command(after_help = "Examples:\n  relay-mesh spawn acp allow 'opencode acp'\n  \
        relay-mesh spawn acp allow 'my-agent --acp' --env MY_AGENT_KEY\n\n\
        It applies to this whole command line, and is stored in your own settings. The program runs as you, and nothing \
        guards it but what it asks itself. It gets none of your variables that could hold keys, except those that you \
        name. An agent cannot allow it: it is refused below a harness, below a run and below a driven agent.")]
    Allow {
        /// The program and its arguments, as one word for the shell; no shell will see it
        #[arg(value_name = "COMMAND")]
        command: String,
        /// A variable of yours that it gets; may be given several times
        #[arg(long = "env", value_name = "NAME")]
        environment: Vec<String>,
    },
    /// Take that back
    #[command(after_help = "Example:\n  relay-mesh spawn acp disallow 'opencode acp'")]
    Disallow {
        /// The program and its arguments
        #[arg(value_name = "COMMAND")]
        command: String,
    },
    /// Show which programs may be started, and the file that says so
    #[command(after_help = "Example:\n  relay-mesh spawn acp allowed")]
    Allowed,
}

pub(super) async fn run(verb: Verb, context: &Context) -> Result<Exit, CommandError> {
    let programs = AcpPrograms::of(&context.environment)?;
    match verb {
        Verb::Allow { command, environment } => {
            permission::only_the_user(context, &context.open()?, "allow a program").await?;
            if let Some(name) = environment.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
                let what = format!("`{name}` is no name of a variable");
                return Err(CommandError::usage(
                    &what,
                    "name it alone: what it holds is read when the agent is started",
                ));
            }
            let command = command_of(&command, &context.environment, &context.workdir)?;
            let program = AcpProgram { command, environment };
            programs.allow(&program)?;
            context.printer.show(&AcpProgramShape::of(&program))?;
            context.printer.say(&format!(
                "kept in {}; `relay-mesh spawn NAME --acp COMMAND` starts it",
                programs.path().display()
            ));
        }
        Verb::Disallow { command } => {
            // One that is not installed any more is named by its path.
            let command = command_of(&command, &context.environment, &context.workdir)
                .or_else(|error| shlex::split(&command).ok_or(error))?;
            if !programs.disallow(&command)? {
                return Err(not_allowed(&command, Exit::NotFound, "`relay-mesh spawn acp allowed` shows what is"));
            }
            context.printer.say("no longer allowed; agents that were started already go on");
        }
        Verb::Allowed => {
            context.printer.show(&AcpProgramsShape::of(&programs.listed()?, programs.path()))?;
            context.printer.say(&format!("kept in {}", programs.path().display()));
        }
    }
    Ok(Exit::Success)
}

/// The program that is typed, as the user has allowed it.
pub(super) async fn allowed(typed: &str, context: &Context) -> Result<AcpProgram, CommandError> {
    permission::only_the_user(context, &context.open()?, "name a program to start").await?;
    let command = command_of(typed, &context.environment, &context.workdir)?;
    let listed = AcpPrograms::of(&context.environment)?.listed()?;
    let hint =
        format!("if you trust it with all that you may do, run `relay-mesh spawn acp allow {}` first", quoted(typed));
    listed.into_iter().find(|program| program.command == command).ok_or_else(|| {
        // Whole, so that what would run is seen before it is agreed to.
        not_allowed(&command, Exit::Refused, &hint)
    })
}

fn not_allowed(command: &[String], exit: Exit, hint: &str) -> CommandError {
    let what = format!("you have not allowed `{}`", crate::render::printable_line(&as_typed(command)));
    Failure { what, hint: Some(hint.to_owned()), exit, source: None }.into()
}

fn quoted(typed: &str) -> String {
    as_typed(&[crate::render::printable_line(typed)])
}

impl Explain for InvalidCommand {
    fn exit(&self) -> Exit {
        match self {
            InvalidCommand::Words(_) => Exit::Usage,
            InvalidCommand::NoProgram(_) => Exit::NotFound,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            InvalidCommand::Words(_) => "write it as one word for the shell, as in 'opencode acp'".to_owned(),
            InvalidCommand::NoProgram(_) => "install it, or name it by its path".to_owned(),
        })
    }
}
