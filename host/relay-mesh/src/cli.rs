//! The command line: its words, its help, and where each command is found.

use std::path::PathBuf;
use std::pin::Pin;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::{
    ack, adopt, agents, cmd, completions, config, detect_harness, discover, doctor, down, events, exit_codes, gc,
    guard, harnesses, heartbeat, hook, install, invite, listen, log, man, mcp, message, nats_auth, plugin, prompt,
    read, register, release, reservations, reserve, send, serve, status, store, uninstall, up, version, wait_for, wake,
};
use crate::config::{ConfigError, Durable, NatsOption, NatsValues, StoreAt, Values};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::render::Talk;

/// Lets coding agents in different harnesses find each other, talk, and be woken when mail comes.
#[derive(Debug, Parser)]
#[command(
    name = "relay-mesh",
    version,
    propagate_version = false,
    disable_help_subcommand = false,
    after_help = "Two shells talk:\n  \
        relay-mesh register alice\n  \
        relay-mesh register bob\n  \
        relay-mesh send bob 'the build is green' --from alice\n  \
        relay-mesh read --agent bob\n\n\
        An agent joins:\n  \
        relay-mesh up\n  \
        relay-mesh install claude-code --project .\n\n\
        `relay-mesh help COMMAND` shows examples; `relay-mesh help exit-codes` the exit codes."
)]
pub(crate) struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Data folder [$RELAY_DIR, else ~/.relay-mesh]
    #[arg(long, global = true, value_name = "DIR", help_heading = "For every command")]
    pub(crate) dir: Option<PathBuf>,
    /// What machines share: `files:DIR` for one, `nats://HOST:4222` for many [$RELAY_STORE]
    #[arg(long, global = true, value_name = "STORE", hide_short_help = true, help_heading = "For every command")]
    pub(crate) store: Option<Option<StoreAt>>,
    /// How servers are reached, a value of `[nats]` each, as in `domain=relay` [$RELAY_NATS_DOMAIN …]
    #[arg(long, global = true, value_name = "KEY=VALUE", hide_short_help = true, help_heading = "For every command")]
    pub(crate) nats_option: Vec<NatsOption>,
    /// Print results, and errors too, as JSON: one value on each line
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) json: bool,
    /// Print results and errors alone, no notes and no next steps
    #[arg(long, short, global = true, help_heading = "For every command")]
    pub(crate) quiet: bool,
    /// When a message counts as stored [$RELAY_DURABILITY, else disk]
    #[arg(long, global = true, value_enum, hide_short_help = true, help_heading = "For every command")]
    pub(crate) durability: Option<Durable>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: the shapes of [`crate::shapes`].
    Json,
}

impl Common {
    /// What these flags say about the settings.
    fn values(&self) -> Result<Values, ConfigError> {
        let (dir, shared) = StoreAt::with_dir(self.dir.clone(), self.store.clone().flatten())?;
        let nats = NatsValues::of_options(&self.nats_option).map_err(ConfigError::NatsOptions)?;
        Ok(Values { dir, shared, nats, durability: self.durability, ..Values::default() })
    }

    /// How results are printed.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }

    /// Whether people want to be talked to.
    pub(crate) fn talk(&self) -> Talk {
        if self.quiet { Talk::Quiet } else { Talk::Normal }
    }
}

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// How the process ends.
    pub(crate) exit: Exit,
}

impl Outcome {
    /// It did what it was asked.
    pub(crate) const DONE: Outcome = Outcome { exit: Exit::Success };

    /// It ran, and ends the process in a way of its own.
    pub(crate) fn ending(exit: Exit) -> Outcome {
        Outcome { exit }
    }
}

/// How many threads a command's work is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// It comes and goes: one thread, and nothing to start.
    One,
    /// It stays and serves.
    Many,
}

/// Every command.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Send a message to an agent
    Send(send::Args),
    /// Show an agent's mail
    Read(read::Args),
    /// Acknowledge messages
    Ack(ack::Args),
    /// Show what became of a message
    Message(message::Args),
    /// Register an agent of the command line
    Register(register::Args),
    /// Show who is here
    Agents(agents::Args),
    /// Bring an agent of a lost machine here, with its mail
    Adopt(adopt::Args),
    /// Show the sessions of each harness, also those that have not joined
    Discover(discover::Args),
    /// Ask a session to join
    Invite(invite::Args),
    /// Claim paths of a repository
    Reserve(reserve::Args),
    /// Give back what you reserved
    Release(release::Args),
    /// Show who has reserved what
    Reservations(reservations::Args),
    /// Stop commits of what another agent holds
    Guard(guard::Args),
    /// Ask an agent to run a command
    Cmd(cmd::Args),
    /// Say that you live, and what you are doing
    Heartbeat(heartbeat::Args),
    /// Wait until agents are here
    WaitFor(wait_for::Args),
    /// Show how the mesh is doing
    Status(status::Args),
    /// Show what happened on the mesh
    Log(log::Args),
    /// Follow events as JSON lines: mail, reservations, commands, agents
    Events(events::Args),
    /// Wake an agent, or whoever listens
    Wake(wake::Args),
    /// Let go of what is over and old
    Gc(gc::Args),

    /// Start the host in the background
    #[command(alias = "mesh-up")]
    Up(up::Args),
    /// Stop the host that runs in the background
    #[command(alias = "mesh-down")]
    Down(down::Args),
    /// Run the host here: MCP over HTTP, and delivery for every session
    Serve(serve::Args),

    /// Set a harness up for the mesh
    Install(install::Args),
    /// Take the mesh out of a harness
    Uninstall(uninstall::Args),
    /// Show which harnesses are here, and how they do
    Harnesses(harnesses::Args),
    /// Show what harness and session this shell belongs to
    DetectHarness(detect_harness::Args),
    /// Prove that everything works
    Doctor(doctor::Args),
    /// Move a mesh to another store, or write it to a file
    Store(store::Args),
    /// Print a nats-server configuration under which no machine passes for another
    NatsAuth(nats_auth::Args),
    /// Show the adapters, install further ones, and say what each may do
    Plugin(plugin::Args),

    /// Serve MCP over standard input and output: what a harness starts
    Mcp(mcp::Args),
    /// Answer a harness's hook: what a harness calls
    Hook(hook::Args),
    /// Print messages as they come, one JSON line each: what a connector runs
    Listen(listen::Args),

    /// Print what an agent should know of the mesh, for a prompt
    Prompt(prompt::Args),
    /// Show every setting and where it came from
    Config(config::Args),
    /// Print a script that completes commands in a shell
    Completions(completions::Args),
    /// Print the manual page
    Man(man::Args),
    /// Print the version
    Version(version::Args),
    /// Explain the exit codes
    #[command(hide = true)]
    ExitCodes(exit_codes::Args),

    /// As `install claude-code`
    #[command(hide = true, name = "install-claude-code")]
    InstallClaudeCode(install::NamedArgs),
    /// As `install codex`
    #[command(hide = true, name = "install-codex")]
    InstallCodex(install::NamedArgs),
    /// As `install opencode`
    #[command(hide = true, name = "install-opencode-plugin")]
    InstallOpencodePlugin(install::NamedArgs),
}

impl Command {
    /// What the command's own flags say about the settings.
    pub(crate) fn flags(&self, common: &Common) -> Result<Values, ConfigError> {
        if matches!((self, &common.store), (command, Some(None)) if !matches!(command, Command::Doctor(_))) {
            return Err(ConfigError::NoStore);
        }
        let values = common.values()?;
        Ok(match self {
            Command::Serve(args) => args.host.over(values),
            Command::Up(args) => args.host.over(values),
            Command::Mcp(args) => Values { tools: args.tools, ..values },
            Command::Send(_)
            | Command::Read(_)
            | Command::Ack(_)
            | Command::Message(_)
            | Command::Register(_)
            | Command::Agents(_)
            | Command::Adopt(_)
            | Command::Discover(_)
            | Command::Invite(_)
            | Command::Reserve(_)
            | Command::Release(_)
            | Command::Reservations(_)
            | Command::Guard(_)
            | Command::Cmd(_)
            | Command::Heartbeat(_)
            | Command::WaitFor(_)
            | Command::Status(_)
            | Command::Log(_)
            | Command::Events(_)
            | Command::Wake(_)
            | Command::Gc(_)
            | Command::Down(_)
            | Command::Install(_)
            | Command::Uninstall(_)
            | Command::Harnesses(_)
            | Command::DetectHarness(_)
            | Command::Doctor(_)
            | Command::NatsAuth(_)
            | Command::Store(_)
            | Command::Plugin(_)
            | Command::Hook(_)
            | Command::Listen(_)
            | Command::Prompt(_)
            | Command::Config(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Version(_)
            | Command::ExitCodes(_)
            | Command::InstallClaudeCode(_)
            | Command::InstallCodex(_)
            | Command::InstallOpencodePlugin(_) => values,
        })
    }

    /// How many threads it is worth.
    pub(crate) fn threads(&self) -> Threads {
        match self {
            Command::Serve(_) | Command::Mcp(_) => Threads::Many,
            Command::Send(_)
            | Command::Read(_)
            | Command::Ack(_)
            | Command::Message(_)
            | Command::Register(_)
            | Command::Agents(_)
            | Command::Adopt(_)
            | Command::Discover(_)
            | Command::Invite(_)
            | Command::Reserve(_)
            | Command::Release(_)
            | Command::Reservations(_)
            | Command::Guard(_)
            | Command::Cmd(_)
            | Command::Heartbeat(_)
            | Command::WaitFor(_)
            | Command::Status(_)
            | Command::Log(_)
            | Command::Events(_)
            | Command::Wake(_)
            | Command::Gc(_)
            | Command::Up(_)
            | Command::Down(_)
            | Command::Install(_)
            | Command::Uninstall(_)
            | Command::Harnesses(_)
            | Command::DetectHarness(_)
            | Command::Doctor(_)
            | Command::NatsAuth(_)
            | Command::Store(_)
            | Command::Plugin(_)
            | Command::Hook(_)
            | Command::Listen(_)
            | Command::Prompt(_)
            | Command::Config(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Version(_)
            | Command::ExitCodes(_)
            | Command::InstallClaudeCode(_)
            | Command::InstallCodex(_)
            | Command::InstallOpencodePlugin(_) => Threads::One,
        }
    }

    /// Does it. Each command's work is boxed by itself: one future for all of them would be as large
    /// as the largest, and a short command would touch as many pages of its stack as that has.
    pub(crate) fn run(self, context: &Context) -> Pin<Box<dyn Future<Output = Result<Outcome, CommandError>> + '_>> {
        match self {
            Command::Send(args) => Box::pin(send::run(args, context)),
            Command::Read(args) => Box::pin(read::run(args, context)),
            Command::Ack(args) => Box::pin(ack::run(args, context)),
            Command::Message(args) => Box::pin(message::run(args, context)),
            Command::Register(args) => Box::pin(register::run(args, context)),
            Command::Agents(args) => Box::pin(agents::run(args, context)),
            Command::Adopt(args) => Box::pin(adopt::run(args, context)),
            Command::Discover(args) => Box::pin(discover::run(args, context)),
            Command::Invite(args) => Box::pin(invite::run(args, context)),
            Command::Reserve(args) => Box::pin(reserve::run(args, context)),
            Command::Release(args) => Box::pin(release::run(args, context)),
            Command::Reservations(args) => Box::pin(reservations::run(args, context)),
            Command::Guard(args) => Box::pin(guard::run(args, context)),
            Command::Cmd(args) => Box::pin(cmd::run(args, context)),
            Command::Heartbeat(args) => Box::pin(heartbeat::run(args, context)),
            Command::WaitFor(args) => Box::pin(wait_for::run(args, context)),
            Command::Status(args) => Box::pin(status::run(args, context)),
            Command::Log(args) => Box::pin(log::run(args, context)),
            Command::Events(args) => Box::pin(events::run(args, context)),
            Command::Wake(args) => Box::pin(wake::run(args, context)),
            Command::Gc(args) => Box::pin(gc::run(args, context)),
            Command::Up(args) => Box::pin(up::run(args, context)),
            Command::Down(args) => Box::pin(down::run(args, context)),
            Command::Serve(args) => Box::pin(serve::run(args, context)),
            Command::Install(args) => Box::pin(install::run(args, context)),
            Command::Uninstall(args) => Box::pin(uninstall::run(args, context)),
            Command::Harnesses(args) => Box::pin(harnesses::run(args, context)),
            Command::DetectHarness(args) => Box::pin(detect_harness::run(args, context)),
            Command::Doctor(args) => Box::pin(doctor::run(args, context)),
            Command::Store(args) => Box::pin(store::run(args, context)),
            Command::NatsAuth(args) => Box::pin(nats_auth::run(args, context)),
            Command::Plugin(args) => Box::pin(plugin::run(args, context)),
            Command::Mcp(args) => Box::pin(mcp::run(args, context)),
            Command::Hook(args) => Box::pin(hook::run(args, context)),
            Command::Listen(args) => Box::pin(listen::run(args, context)),
            Command::Prompt(args) => Box::pin(prompt::run(args, context)),
            Command::Config(args) => Box::pin(config::run(args, context)),
            Command::Completions(args) => Box::pin(completions::run(args, context)),
            Command::Man(args) => Box::pin(man::run(args, context)),
            Command::Version(args) => Box::pin(version::run(args, context)),
            Command::ExitCodes(args) => Box::pin(exit_codes::run(args, context)),
            Command::InstallClaudeCode(args) => Box::pin(install::run(args.of("claude-code"), context)),
            Command::InstallCodex(args) => Box::pin(install::run(args.of("codex"), context)),
            Command::InstallOpencodePlugin(args) => Box::pin(install::run(args.of("opencode"), context)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_the_same_in_the_list_and_in_its_own_help() {
        let listed = Cli::command();
        let mut built = Cli::command();
        built.build();
        let visible = |command: &&clap::Command| !command.is_hide_set() && command.get_name() != "help";
        for command in built.get_subcommands().filter(visible) {
            let name = command.get_name();
            let words = listed.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
            assert_eq!(command.get_about().map(ToString::to_string), words, "{name}");
        }
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in all() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("relay-mesh "), "`{}` shows no example", command.get_name());
        }
    }

    #[test]
    fn every_paragraph_of_the_help_is_one_line_which_the_terminal_breaks() {
        for command in all() {
            let texts = [command.get_after_help(), command.get_long_about()].into_iter().flatten();
            for text in texts.map(ToString::to_string) {
                let lines: Vec<&str> = text.lines().collect();
                for pair in lines.windows(2) {
                    // What begins with spaces is an example or a table, and a short line the head of one.
                    let goes_on =
                        pair[0].len() > 60 && !pair[0].starts_with(' ') && pair[1].starts_with(char::is_alphanumeric);
                    assert!(!goes_on, "`{}` breaks a line by itself: {}", command.get_name(), pair[0]);
                }
            }
        }
    }

    /// Each command that people are shown, and those below it.
    fn all() -> Vec<clap::Command> {
        let mut cli = Cli::command();
        cli.build();
        let shown = |command: &clap::Command| -> Vec<clap::Command> {
            let visible = |command: &&clap::Command| !command.is_hide_set() && command.get_name() != "help";
            command.get_subcommands().filter(visible).cloned().collect()
        };
        let mut all = shown(&cli);
        let below: Vec<_> = all.iter().flat_map(shown).collect();
        all.extend(below);
        all
    }
}
