//! `relay-mesh completions`: a script that completes commands in a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// Print a script that completes commands in a shell
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh completions bash > ~/.local/share/bash-completion/completions/relay-mesh\n  \
    relay-mesh completions zsh > ~/.zfunc/_relay-mesh\n  \
    relay-mesh completions fish > ~/.config/fish/completions/relay-mesh.fish")]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "relay-mesh", &mut script);
        let script = match self.shell {
            // clap_complete 4.6 spells the hyphen of our name in two ways, so bash completed no subcommands.
            Shell::Bash => String::from_utf8_lossy(&script).replace("relay__subcmd__mesh", "relay__mesh").into_bytes(),
            _ => script,
        };
        context.printer.bytes(&script)?;
        Ok(Exit::Success)
    }
}
