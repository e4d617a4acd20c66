//! `relay-mesh man`: the manual, made from the same words as the help.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::{Cli, Outcome};
use crate::commands::exit_codes;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Print the manual page
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh man | man -l -\n  \
    relay-mesh man send | man -l -\n  \
    relay-mesh man --out ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The page of this command [default: the page of relay-mesh itself]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write every page into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let mut cli = Cli::command();
    cli.build();
    if let Some(folder) = &args.out {
        let count = write_all(&cli, folder)?;
        context.printer.say(&format!("wrote {count} pages into {}", folder.display()));
        return Ok(Outcome::DONE);
    }
    let page = match &args.command {
        None => main_page(&cli)?,
        Some(name) => match visible(&cli).find(|command| command.get_name() == name) {
            Some(command) => page_of(command)?,
            None => {
                return Err(CommandError::Told {
                    what: format!("there is no command `{name}`"),
                    hint: Some("`relay-mesh help` lists them".to_owned()),
                    exit: Exit::NotFound,
                    source: None,
                });
            }
        },
    };
    context.printer.bytes(&page)?;
    Ok(Outcome::DONE)
}

fn visible(cli: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    cli.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn main_page(cli: &clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut page = page_of(cli)?;
    page.extend_from_slice(b".SH EXIT STATUS\n");
    for (code, meaning) in exit_codes::rows() {
        page.extend_from_slice(format!(".TP\n\\fB{code}\\fR\n{meaning}\n").as_bytes());
    }
    Ok(page)
}

fn page_of(command: &clap::Command) -> Result<Vec<u8>, CommandError> {
    let title = match command.get_name() {
        "relay-mesh" => "relay-mesh".to_owned(),
        name => format!("relay-mesh-{name}"),
    };
    let mut page = Vec::new();
    // A page is long: it says what each flag does, also of those that a short help leaves out.
    let command = command.clone().mut_args(|argument| argument.hide_short_help(false));
    Man::new(command).title(title).render(&mut page)?;
    Ok(page)
}

fn write_all(cli: &clap::Command, folder: &Path) -> Result<usize, CommandError> {
    let write = |name: &str, page: Vec<u8>| {
        let path = folder.join(name);
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, page)).map_err(|source| {
            CommandError::Told {
                what: format!("could not write `{}`", path.display()),
                hint: None,
                exit: Exit::Failure,
                source: Some(Box::new(source)),
            }
        })
    };
    write("relay-mesh.1", main_page(cli)?)?;
    let mut count = 1;
    for command in visible(cli) {
        write(&format!("relay-mesh-{}.1", command.get_name()), page_of(command)?)?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_every_page_is_explained() {
        let mut cli = Cli::command();
        cli.build();
        for command in visible(&cli).chain([&cli]) {
            let page = String::from_utf8(page_of(command).expect("rendered")).expect("text");
            let lines: Vec<&str> = page.lines().skip_while(|line| *line != ".SH OPTIONS").collect();
            assert!(lines.len() > 10, "{page}");
            for pair in lines.windows(2) {
                let (head, text) = (pair[0], pair[1]);
                let is_flag = head.starts_with("\\fB\\-");
                assert!(!is_flag || !text.trim().is_empty(), "`{}`: {head}", command.get_name());
            }
        }
    }
}
