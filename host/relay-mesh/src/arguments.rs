//! Reads the command line, and tells what is wrong with it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, FromArgMatches, Parser};

use crate::cli::{Cli, Common};
use crate::commands::{
    self, ack, agents, cmd, heartbeat, hook, listen, mcp, message, release, reservations, reserve, send, serve, status,
    wait_for,
};
use crate::exit::Exit;
use crate::render;

/// What a command line says.
///
/// Of the commands that have no time to lose, the one that the first argument names is looked for
/// alone: to describe some forty of them to clap, and to have it give each a copy of what every
/// command takes, costs a sixth of what a `send` may. What is not understood that way, help included,
/// is read again in full, and told by that.
pub(crate) fn read(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    read_alone(arguments).map_or_else(|| Cli::try_parse_from(arguments), Ok)
}

/// The commands that come and go, and those of which many stay at once.
const HURRIED: [Hurried; 16] = [
    ("ack", ack::Args::augment_args),
    ("agents", agents::Args::augment_args),
    ("cmd", cmd::Args::augment_args),
    ("heartbeat", heartbeat::Args::augment_args),
    ("hook", hook::Args::augment_args),
    ("listen", listen::Args::augment_args),
    ("mcp", mcp::Args::augment_args),
    ("message", message::Args::augment_args),
    ("read", commands::read::Args::augment_args),
    ("release", release::Args::augment_args),
    ("reservations", reservations::Args::augment_args),
    ("reserve", reserve::Args::augment_args),
    ("send", send::Args::augment_args),
    ("serve", serve::Args::augment_args),
    ("status", status::Args::augment_args),
    ("wait-for", wait_for::Args::augment_args),
];

/// A command's name, and what tells clap what it takes.
type Hurried = (&'static str, fn(clap::Command) -> clap::Command);

fn read_alone(arguments: &[OsString]) -> Option<Cli> {
    let name = arguments.get(1)?.to_str()?;
    let (name, takes) = HURRIED.into_iter().find(|(hurried, _)| *hurried == name)?;
    Cli::from_arg_matches(&alone(name, takes).try_get_matches_from(arguments).ok()?).ok()
}

/// relay-mesh as if it had one command.
fn alone(name: &'static str, takes: fn(clap::Command) -> clap::Command) -> clap::Command {
    let bare = clap::Command::new("relay-mesh").disable_help_subcommand(true);
    Common::augment_args(bare).subcommand(takes(clap::Command::new(name)))
}

/// Help and version are data; everything else is talk. A hook's command line that is not
/// understood, perhaps one of another version, must not stop the harness.
pub(crate) fn usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let asked_for = !error.use_stderr();
    let is_hook = arguments.iter().skip(1).any(|argument| argument == "hook");
    if is_hook && !asked_for {
        render::last_words(&format!("relay-mesh: {}", render::what_is_wrong(&error.to_string())));
        return Exit::Success.into();
    }
    // There are no parsed options to ask.
    let wants_json =
        arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json");
    if wants_json && !asked_for {
        render::usage_as_json(&error.to_string());
        return Exit::Usage.into();
    }
    match error.print() {
        Err(failure) if failure.kind() != std::io::ErrorKind::BrokenPipe => Exit::Failure.into(),
        Ok(()) | Err(_) if asked_for => Exit::Success.into(),
        Ok(()) | Err(_) => Exit::Usage.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn a_command_read_alone_is_what_it_is_among_all() {
        for line in [
            "relay-mesh send bob hello --from alice --priority high --tag one --tag two",
            "relay-mesh send bob hello --json --quiet --dir /somewhere --durability process",
            "relay-mesh reserve src/** --ttl 2h --shared --store nats://one:4222",
            "relay-mesh hook claude-code PreToolUse",
            "relay-mesh read --agent bob --unread",
            "relay-mesh mcp --tools core,claims",
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let alone = read_alone(&arguments).unwrap_or_else(|| panic!("not read alone: {line}"));
            let among_all = Cli::try_parse_from(&arguments).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(format!("{alone:?}"), format!("{among_all:?}"), "{line}");
        }
    }

    #[test]
    fn hurried_commands_take_what_they_take_among_all() {
        let takes = |command: &clap::Command| -> BTreeSet<String> {
            command.get_arguments().map(|argument| format!("{argument:?}")).collect()
        };
        let mut every = Cli::command();
        every.build();
        for (name, describe) in HURRIED {
            let mut alone = alone(name, describe);
            alone.build();
            let [alone, among_all] = [&alone, &every].map(|all| all.find_subcommand(name).map(takes));
            let among_all = among_all.unwrap_or_else(|| panic!("{name} is no command"));
            let differing: Vec<_> = among_all.symmetric_difference(&alone.unwrap_or_default()).cloned().collect();
            assert!(differing.is_empty(), "{name}: {differing:#?}");
        }
    }

    #[test]
    fn what_is_not_read_alone_is_told_as_ever() {
        for line in [
            "relay-mesh",
            "relay-mesh --help",
            "relay-mesh help send",
            "relay-mesh send --help",
            "relay-mesh snd bob hello",
            "relay-mesh send bob hello --pri high",
            "relay-mesh --json --version",
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let told = read(&arguments).expect_err(line).to_string();
            assert_eq!(told, Cli::try_parse_from(&arguments).expect_err(line).to_string(), "{line}");
        }
    }
}
