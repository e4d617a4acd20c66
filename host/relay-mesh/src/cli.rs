//! The command line: global options and the list of commands.

use std::path::PathBuf;
use std::pin::Pin;

use clap::{Args, Parser, Subcommand};

use crate::command::{CommandSpec, Threads};
use crate::config::{ConfigError, Durable, NatsOption, NatsValues, StoreAt, Values};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Format, Talk};
use crate::screen::ColourWhen;

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
    /// Colour states and labels; NO_COLOR turns it off where this says nothing
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_default_value = true,
        hide_short_help = true,
        help_heading = "For every command"
    )]
    pub(crate) color: ColourWhen,
    /// When a message counts as stored [$RELAY_DURABILITY, else disk]
    #[arg(long, global = true, value_enum, hide_short_help = true, help_heading = "For every command")]
    pub(crate) durability: Option<Durable>,
}

impl Common {
    /// The settings given by these flags together with the command's own.
    fn settings_of<Arguments: CommandSpec>(&self, arguments: &Arguments) -> Result<Values, ConfigError> {
        if matches!(self.store, Some(None)) && !Arguments::ALLOWS_BARE_STORE {
            return Err(ConfigError::NoStore);
        }
        let (dir, shared) = StoreAt::with_dir(self.dir.clone(), self.store.clone().flatten())?;
        let nats = NatsValues::of_options(&self.nats_option).map_err(ConfigError::NatsOptions)?;
        Ok(arguments.settings(Values { dir, shared, nats, durability: self.durability, ..Values::default() }))
    }

    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }

    pub(crate) fn talk(&self) -> Talk {
        if self.quiet { Talk::Quiet } else { Talk::Normal }
    }
}

/// Generates the command enum. Each line names a command and its arguments; their [`CommandSpec`] has the rest.
macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($module:ident::$arguments:ident),)*) => {
        /// Every command.
        #[derive(Debug, Subcommand)]
        #[command(defer = true)]
        pub(crate) enum Command {
            $($(#[$attribute])* $name($crate::commands::$module::$arguments),)*
        }

        impl Command {
            pub(crate) fn settings(&self, common: &Common) -> Result<Values, ConfigError> {
                match self {
                    $(Command::$name(arguments) => common.settings_of(arguments),)*
                }
            }

            pub(crate) fn threads(&self) -> Threads {
                match self {
                    $(Command::$name(arguments) => threads_of(arguments),)*
                }
            }

            pub(crate) fn resumes_agents(&self) -> bool {
                match self {
                    $(Command::$name(arguments) => resuming_of(arguments),)*
                }
            }

            pub(crate) fn uses_folder(&self) -> bool {
                match self {
                    $(Command::$name(arguments) => arguments.uses_folder(),)*
                }
            }

            pub(crate) fn may_start_cleanup(&self) -> bool {
                match self {
                    $(Command::$name(arguments) => cleanup_of(arguments),)*
                }
            }

            /// Runs the command. Each future is boxed separately: a single future for all commands would be as large as
            /// the largest, and a short command would touch as many stack pages.
            pub(crate) fn run(self, context: &Context) -> Pin<Box<dyn Future<Output = Result<Exit, CommandError>> + '_>> {
                match self {
                    $(Command::$name(arguments) => Box::pin(arguments.run(context)),)*
                }
            }
        }
    };
}

commands! {
    /// Send a message to an agent
    Send(send::Args),
    /// Show an agent's mail
    Read(read::Args),
    /// Acknowledge messages
    Ack(ack::Args),
    /// Show what became of a message
    Message(message::Args),
    /// Show a conversation: what everybody in it wrote, and how far each message got
    Thread(thread::Args),
    /// Show the conversations, and who talks to whom
    Threads(threads::Args),
    /// Find messages by words in their subjects and texts
    Search(search::Args),
    /// Write a conversation as one file: a page, Markdown or JSON
    Export(export::Args),
    /// Register an agent of the command line
    Register(register::Args),
    /// Show who is here
    Agents(agents::Args),
    /// Let an agent of an ended session or a lost machine go on here
    Adopt(adopt::Args),
    /// Remove an agent that is gone and has got its mail
    Forget(forget::Args),
    /// Show the sessions of each harness, also those that have not joined
    Discover(discover::Args),
    /// Ask a session to join
    Invite(invite::Args),
    /// Reserve paths of a repository
    Reserve(reserve::Args),
    /// Give back what you reserved
    Release(release::Args),
    /// Show who has reserved what
    Reservations(reservations::Args),
    /// Stop commits of what another agent holds
    Guard(guard::Args),
    /// Ask an agent to run a command
    Cmd(cmd::Args),
    /// Join topics, whose members get what is sent to them
    Channel(channel::Args),
    /// Show what agents ask you, and answer
    Asks(asks::Args),
    /// Ask the user of this machine something
    Ask(ask::Args),
    /// Let agents do nothing more until you resume them
    Pause(pause::Args),
    /// Let paused agents go on
    Resume(resume::Args),
    /// Say that you live, and what you are doing
    Heartbeat(heartbeat::Args),
    /// Wait until agents are here
    WaitFor(wait_for::Args),
    /// Show how the mesh is doing
    Status(status::Args),
    /// Show what happened on the mesh
    Log(log::Args),
    /// Watch the mesh and work in it: agents, conversations, delivery, questions
    Ui(ui::Args),
    /// Follow events as JSON lines: mail, reservations, commands, turns, agents
    Events(events::Args),
    /// Have something done whenever agents do something
    On(on::Args),
    /// Wake an agent, or a listener of your own
    Wake(wake::Args),
    /// Delete what is finished and old
    Gc(gc::Args),

    /// Run a harness for one task, to its end
    Run(run::Args),
    /// Show runs, follow, stop and apply them
    Runs(runs::Args),
    /// Start an agent that you and others talk with
    Spawn(spawn::Args),
    /// Show the threads of the tool `codex`, and what they summed up
    Codex(codex::Args),
    /// See what an agent that you started does, and talk with it
    Attach(attach::Args),
    /// Tell an agent that you started something
    Steer(steer::Args),
    /// Stop the turn of an agent that you started
    Interrupt(interrupt::Args),
    /// End an agent that you started
    Dismiss(dismiss::Args),
    /// Have harnesses review a change
    Review(review::Args),
    /// Let one harness implement, others review, and the first correct
    Pipeline(pipeline::Args),

    /// Start the server in the background
    Up(up::Args),
    /// Stop the server that runs in the background
    #[command(alias = "mesh-down")]
    Down(down::Args),
    /// Run the server here: MCP over HTTP, and delivery for every session
    Serve(serve::Args),
    /// Keep the server of one harness running
    #[command(hide = true)]
    ServeHarness(serve_harness::Args),
    /// As `up --with auto`
    #[command(hide = true, name = "mesh-up")]
    MeshUp(up::MeshArgs),
    /// Print the token for clients over HTTP, once the server has proved that it is yours
    Token(token::Args),

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
    /// Move a mesh to another store or to a file, show its size, or trust a folder
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
    /// Say by which command this program is upgraded
    Upgrade(upgrade::Args),
    /// Explain the exit codes
    #[command(hide = true)]
    ExitCodes(exit_codes::Args),

    /// As `install claude-code`
    #[command(hide = true, name = "install-claude-code")]
    InstallClaudeCode(install::ClaudeCodeArgs),
    /// As `install codex`
    #[command(hide = true, name = "install-codex")]
    InstallCodex(install::CodexArgs),
    /// As `install opencode`
    #[command(hide = true, name = "install-opencode-plugin")]
    InstallOpencodePlugin(install::OpencodeArgs),
}

fn resuming_of<Arguments: CommandSpec>(_: &Arguments) -> bool {
    Arguments::RESUMES_AGENTS
}

fn cleanup_of<Arguments: CommandSpec>(_: &Arguments) -> bool {
    Arguments::STARTS_CLEANUP
}

fn threads_of<Arguments: CommandSpec>(_: &Arguments) -> Threads {
    Arguments::THREADS
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
    fn every_command_that_speaks_for_an_agent_takes_its_name_by_either_flag() {
        let speaks = |flag: &&clap::Arg| {
            flag.get_help().is_some_and(|help| help.to_string().starts_with("Speak for this agent"))
        };
        let mut flags = 0;
        for command in all() {
            for flag in command.get_arguments().filter(speaks) {
                let mut names = flag.get_long_and_visible_aliases().unwrap_or_default();
                names.sort_unstable();
                assert_eq!(names, ["agent", "from"], "`{}`", command.get_name());
                flags += 1;
            }
        }
        assert!(flags > 5, "{flags}");
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
                    // Indented lines are examples or tables, and a short line is a heading.
                    let goes_on =
                        pair[0].len() > 60 && !pair[0].starts_with(' ') && pair[1].starts_with(char::is_alphanumeric);
                    assert!(!goes_on, "`{}` breaks a line by itself: {}", command.get_name(), pair[0]);
                }
            }
        }
    }

    /// Every visible command and its subcommands.
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
