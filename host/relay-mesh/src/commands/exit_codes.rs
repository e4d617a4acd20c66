//! `relay-mesh help exit-codes`: the exit codes that scripts may rely on.

use serde::Serialize;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, table};

/// Explain the exit codes
#[derive(clap::Args, Debug)]
#[command(
    long_about = "How every command ends.\n\n\
        0  done\n\
        1  something failed, or a check found something broken\n\
        2  the command line, a name, an id or a setting is not well formed; nothing was done\n\
        3  the agent, message or harness is not there\n\
        4  it is not yours to do, or no consent was given\n\
        5  the data folder is missing, unreadable, full or damaged\n\
        6  another agent holds what was asked for; nothing was done\n\
        7  what was waited for did not come in time\n\n\
        `hook` is the exception: it ends as the harness expects of its hooks, and with 0 whenever relay-mesh itself \
        has failed, so that a harness is never stopped by the mesh.",
    after_help = "Example:\n  relay-mesh exit-codes --json"
)]
pub(crate) struct Args {}

#[derive(Debug, Serialize)]
struct ExitCodeShape {
    code: u8,
    meaning: &'static str,
}

#[derive(Debug, Serialize)]
struct ExitCodesShape {
    exit_codes: Vec<ExitCodeShape>,
}

impl Show for ExitCodesShape {
    fn text(&self) -> String {
        let rows: Vec<Vec<String>> =
            self.exit_codes.iter().map(|one| vec![one.code.to_string(), one.meaning.to_owned()]).collect();
        table(&["CODE", "MEANING"], &rows)
    }
}

pub(crate) fn rows() -> impl Iterator<Item = (u8, &'static str)> {
    Exit::DOCUMENTED.into_iter().map(|exit| (exit.code(), exit.meaning()))
}

impl CommandSpec for Args {
    fn uses_folder(&self) -> bool {
        false
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let exit_codes = rows().map(|(code, meaning)| ExitCodeShape { code, meaning }).collect();
        context.printer.show(&ExitCodesShape { exit_codes })?;
        Ok(Exit::Success)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_and_the_codes_say_the_same() {
        let mut cli = crate::cli::Cli::command();
        cli.build();
        let command = cli.find_subcommand("exit-codes").expect("the command");
        let help = command.get_long_about().expect("a help text").to_string();
        for (code, meaning) in rows() {
            assert!(help.contains(&format!("{code}  {meaning}")), "{code}: {meaning}");
        }
    }
}
