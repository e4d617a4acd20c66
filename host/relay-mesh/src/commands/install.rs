//! `relay-mesh install`: sets a harness up, after showing what that changes.

use mcp::Profile;
use mesh::ports::harness::{Action, Finding, Harnesses as _, Scope, Setup, Severity};

use crate::command::CommandSpec;
use crate::commands::spawn::ANY_PROGRAM;
use crate::context::Context;
use crate::errors;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Format, framed, printable, printable_line};
use crate::setup::agreement::Confirmation;
use crate::setup::apply::{PlanContext, carry_out};
use crate::setup::changes::Changes;
use crate::setup::installed::scope_name;
use crate::setup::request::{Installation, Reach, ServerUrl, setup};
use crate::setup::scope_args::ScopeArgs;
use crate::setup::shapes::{PlanOutcome, PlanShape};

/// Set a harness up for the mesh
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh install claude-code --project . --dry-run\n  \
    relay-mesh install claude-code --user --yes\n  \
    relay-mesh install codex --tools core,reservations,commands\n  \
    relay-mesh install claude-code --transport http --http-url http://127.0.0.1:7423/mcp\n  \
    relay-mesh install generic\n\n\
    Every change is listed first; at the question, `d` shows the diff, and `--dry-run` prints it. Without a terminal and without `--yes` nothing changes, and the command \
    exits with 4. A second run changes nothing.")]
pub(crate) struct Args {
    /// Which harness, as `relay-mesh harnesses` lists them
    harness: String,
    #[command(flatten)]
    rest: NamedArgs,
}

// Arguments of the aliases that name their harness: `install-claude-code` and the like. No doc comment:
// clap would print it in place of the alias's own description.
#[derive(clap::Args, Debug)]
struct NamedArgs {
    #[command(flatten)]
    place: ScopeArgs,
    /// How the harness reaches relay-mesh: it starts one itself (the default), or connects to the server
    #[arg(long, value_enum)]
    transport: Option<Transport>,
    /// The URL of the server's MCP endpoint; implies `--transport http`
    #[arg(long, value_name = "URL")]
    http_url: Option<ServerUrl>,
    /// Groups of tools that the harness's own server shows: core, reservations, commands, runs, runners, asks, spawn, channels, codex, subagents, atm [default: those of the settings]
    #[arg(long, value_name = "GROUP,…")]
    tools: Option<Profile>,
    /// Show the changes and make none
    #[arg(long)]
    dry_run: bool,
    /// Make the changes without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Transport {
    /// The harness starts `relay-mesh mcp` itself.
    Stdio,
    /// The harness connects to a running server.
    Http,
}

impl NamedArgs {
    fn reach(&self, host: ServerUrl) -> Result<Reach, CommandError> {
        if self.tools.is_some() && (self.transport == Some(Transport::Http) || self.http_url.is_some()) {
            return Err(CommandError::usage(
                "the server shows the same tools to each of its clients",
                "leave out `--tools`, and say it to the server: `relay-mesh up --tools core,reservations`",
            ));
        }
        match (self.transport, &self.http_url) {
            (Some(Transport::Stdio), Some(_)) => Err(CommandError::usage(
                "a harness that starts relay-mesh itself connects to no URL",
                "leave out `--http-url`, or say `--transport http`",
            )),
            (Some(Transport::Http) | None, Some(url)) => Ok(Reach::Http(url.clone())),
            (Some(Transport::Http), None) => Ok(Reach::Http(host)),
            (Some(Transport::Stdio) | None, None) => Ok(Reach::Stdio(self.tools)),
        }
    }
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let Args { harness: name, rest } = self;
        let context = &context.at(rest.place.folder(&context.workdir)?);
        let open = context.open()?;
        let harness = match open.adapters.get(&name).await {
            Ok(Some(harness)) => harness,
            Ok(None) => return Err(errors::adapters::unknown(&name, open.adapters.as_ref())),
            Err(error) => return Err(errors::adapters::failed(&name, error)),
        };
        let name = harness.about().harness.as_str();
        let title = &harness.about().title;
        let scope = rest.place.scope();
        let reach = rest.reach(ServerUrl::of_listener(context.settings.listen.value))?;
        let asked = setup(Action::Install, scope, &reach, &Installation::of(context)?);
        let failed = |error| errors::adapters::failed(name, error);
        let is_foreign = !open.adapters.is_built_in(name);
        let plan = harness.propose(&asked).await.map_err(failed)?;
        if plan.edits.is_empty() {
            let removal = harness.propose(&Setup { action: Action::Remove, ..asked.clone() }).await.map_err(failed)?;
            if removal.edits.is_empty() {
                // There are no files that we could change, so the answer is what the user has to do.
                let steps = match plan.next_steps.is_empty() {
                    true => vec![how_it_joins(name, title, harness.driver().is_ok())],
                    false => plan.next_steps,
                };
                match context.printer.format() {
                    Format::Json => context.printer.show(&by_hand(name, scope, steps))?,
                    Format::Text if is_foreign => {
                        context.printer.data(&left_to_the_user(title, &steps.join("\n\n")))?;
                    }
                    Format::Text => context.printer.data(&printable(&steps.join("\n\n")))?,
                }
                return Ok(Exit::Success);
            }
        }
        let about = PlanContext {
            harness: name,
            is_foreign,
            scope,
            confirmation: Confirmation::from_flags(rest.dry_run, rest.yes),
            nothing_to_do: format!("{title} is already set up for the {}.", scope_name(scope)),
            done: format!("{title} is set up for the {}", scope_name(scope)),
        };
        let changes = Changes { context, open: &open, harness: name, scope };
        let make = async || harness.propose(&asked).await.map_err(failed);
        let exit =
            carry_out(context, &about, make, |edit| changes.path_of(edit), |plan| changes.apply(Action::Install, plan))
                .await?;
        if exit == Exit::Success && !rest.dry_run {
            warn(context, &harness.check(&asked).await.map_err(failed)?);
        }
        Ok(exit)
    }
}

/// Says what keeps a set-up that was written from working, such as a settings file that its harness cannot read.
fn warn(context: &Context, findings: &[Finding]) {
    for broken in findings.iter().filter(|finding| finding.severity == Severity::Broken) {
        context.printer.say(&format!("warning: it does not work yet: {}", printable_line(&broken.what)));
        if let Some(fix) = &broken.fix {
            context.printer.say(&format!("hint: {}", printable_line(fix)));
        }
    }
}

/// How an agent joins whose adapter has nothing to set up.
fn how_it_joins(name: &str, title: &str, is_driven: bool) -> String {
    match (name, is_driven) {
        (ANY_PROGRAM, true) => format!(
            "{title} needs no setup: `relay-mesh spawn NAME --acp 'PROGRAM ARGUMENTS'` starts one in the mesh, once \
             `relay-mesh spawn acp allow 'PROGRAM ARGUMENTS'` has allowed it."
        ),
        (_, true) => format!(
            "{title} needs no setup: `relay-mesh spawn {name} --name NAME` starts an agent of it in the mesh. One that you \
             start yourself joins as any MCP client does: `relay-mesh install generic` shows how."
        ),
        (_, false) => format!(
            "There is nothing to set up for {title}: `relay-mesh install generic` shows how any MCP client joins."
        ),
    }
}

/// What `--json` says where there are no files to change.
fn by_hand(name: &str, scope: Scope, steps: Vec<String>) -> PlanShape {
    PlanShape {
        harness: Some(name.to_owned()),
        scope: Some(scope_name(scope)),
        outcome: PlanOutcome::Unchanged,
        files: Vec::new(),
        next_steps: steps,
    }
}

/// The steps of an adapter that is not part of the program, whose author could write lines that look like ours.
fn left_to_the_user(title: &str, steps: &str) -> String {
    format!("{title} is set up by hand:{}", framed(steps))
}

/// Defines an alias of `install` that names its harness. The struct has no doc comment: clap would print it in
/// place of the alias's own description.
macro_rules! alias {
    ($arguments:ident, $harness:literal) => {
        #[derive(clap::Args, Debug)]
        pub(crate) struct $arguments {
            #[command(flatten)]
            rest: NamedArgs,
        }

        impl CommandSpec for $arguments {
            async fn run(self, context: &Context) -> Result<Exit, CommandError> {
                Args { harness: $harness.to_owned(), rest: self.rest }.run(context).await
            }
        }
    };
}

alias!(ClaudeCodeArgs, "claude-code");
alias!(CodexArgs, "codex");
alias!(OpencodeArgs, "opencode");

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestArgs {
        #[command(flatten)]
        args: Args,
    }

    fn check(line: &str, expected: &str) {
        let outcome = match TestArgs::try_parse_from(std::iter::once("install").chain(line.split(' '))) {
            Err(error) => error.to_string(),
            Ok(TestArgs { args }) => match args.rest.reach(ServerUrl::of_listener("127.0.0.1:7423")) {
                Ok(reach) => format!("{reach:?} for the {}", scope_name(args.rest.place.scope())),
                Err(error) => error.to_string(),
            },
        };
        assert!(outcome.contains(expected), "{line}: {outcome}");
    }

    #[test]
    fn an_agent_without_a_setup_is_told_how_it_joins() {
        for (name, is_driven, expected) in [
            ("acp", true, "`relay-mesh spawn NAME --acp 'PROGRAM ARGUMENTS'` starts one"),
            ("copilot", true, "`relay-mesh spawn copilot --name NAME` starts an agent"),
            ("toad", false, "nothing to set up for Toad: `relay-mesh install generic`"),
        ] {
            let told = how_it_joins(name, "Toad", is_driven);
            assert!(told.contains(expected) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn the_flags_say_how_and_where() {
        check("claude-code", "Stdio(None) for the project");
        check("claude-code --user", "Stdio(None) for the user");
        check("claude-code --global", "Stdio(None) for the user");
        check("claude-code --project-dir . --transport stdio", "Stdio(None) for the project");
        check("claude-code --tools core,reservations", "Stdio(Some(Profile(core,reservations)))");
        check("claude-code --tools all", "`all` is not a group of tools");
        check("claude-code --tools reservations --transport http", "the same tools to each");
        check("claude-code --transport http", "http://127.0.0.1:7423/mcp");
        check("claude-code --http-url http://127.0.0.1:9/mcp", "Http(ServerUrl(\"http://127.0.0.1:9/mcp\"))");
        check("claude-code --http-url nowhere", "is not a URL of a server");
        check("claude-code --transport stdio --http-url http://127.0.0.1:9/mcp", "connects to no URL");
        check("claude-code --project . --user", "cannot be used with");
    }
}
