//! `relay-mesh man`: the manual, made from the same texts as the help.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::command::CommandSpec;
use crate::commands::exit_codes;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

/// Print the manual page
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh man | man -l -\n  \
    relay-mesh man send | man -l -\n  \
    relay-mesh man plugin install | man -l -\n  \
    relay-mesh man --out ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The page of this command [default: the page of relay-mesh itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write every page into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

impl CommandSpec for Args {
    fn uses_folder(&self) -> bool {
        false
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let mut cli = Cli::command();
        cli.build();
        if let Some(folder) = &self.out {
            let count = write_all(&cli, folder)?;
            context.printer.say(&format!("wrote {count} pages into {}", folder.display()));
            return Ok(Exit::Success);
        }
        let page = if self.command.is_empty() {
            page_of(&cli)?
        } else {
            let wanted = page_name(&self.command.join("-"));
            match all(&cli).into_iter().chain(topics(&cli)).find(|command| name_of(command) == wanted) {
                Some(command) => page_of(command)?,
                None => {
                    return Err(Failure {
                        what: format!("there is no command `{}`", self.command.join(" ")),
                        hint: Some("`relay-mesh help` lists them".to_owned()),
                        exit: Exit::NotFound,
                        source: None,
                    }
                    .into());
                }
            }
        };
        context.printer.bytes(&page)?;
        Ok(Exit::Success)
    }
}

/// Every visible command and its subcommands. Each page lists the pages of its subcommands.
fn all(cli: &clap::Command) -> Vec<&clap::Command> {
    let visible = |command: &&clap::Command| !command.is_hide_set() && command.get_name() != "help";
    let mut all = Vec::new();
    for command in cli.get_subcommands().filter(visible) {
        all.push(command);
        all.extend(self::all(command));
    }
    all
}

/// Commands that exist for what their help says, and that the list of commands leaves out.
fn topics(cli: &clap::Command) -> Option<&clap::Command> {
    cli.find_subcommand("exit-codes")
}

fn page_name(command: &str) -> String {
    format!("relay-mesh-{command}")
}

/// The page's name: clap's display name of the built command.
fn name_of(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page_of(command: &clap::Command) -> Result<Vec<u8>, CommandError> {
    let title = name_of(command);
    let mut page = Vec::new();
    // The manual also explains the flags that the short help leaves out.
    let mut command = command.clone().mut_args(|argument| argument.hide_short_help(false));
    if command.find_subcommand("help").is_some() {
        // `help` has no page.
        command = command.mut_subcommand("help", |help| help.hide(true));
    }
    Man::new(command).title(title).render(&mut page)?;
    page.extend_from_slice(b".SH EXIT STATUS\n");
    for (code, meaning) in exit_codes::rows() {
        page.extend_from_slice(format!(".TP\n\\fB{code}\\fR\n{meaning}\n").as_bytes());
    }
    Ok(page)
}

fn write_all(cli: &clap::Command, folder: &Path) -> Result<usize, CommandError> {
    let write = |name: &str, page: Vec<u8>| {
        let path = folder.join(name);
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, page)).map_err(|source| {
            CommandError::from(Failure {
                what: format!("could not write `{}`", path.display()),
                hint: None,
                exit: Exit::Failure,
                source: Some(Box::new(source)),
            })
        })
    };
    write("relay-mesh.1", page_of(cli)?)?;
    let mut count = 1;
    for command in all(cli).into_iter().chain(topics(cli)) {
        write(&format!("{}.1", name_of(command)), page_of(command)?)?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_that_a_page_names_is_written() {
        let mut cli = Cli::command();
        cli.build();
        let folder = tempfile::tempdir().expect("a folder");
        let count = write_all(&cli, folder.path()).expect("written");
        assert!(count > 60, "{count}");
        for command in all(&cli).into_iter().chain([&cli]) {
            let page = String::from_utf8(page_of(command).expect("rendered")).expect("text").replace("\\-", "-");
            for name in page.lines().filter_map(|line| line.strip_suffix("(1)")) {
                assert!(folder.path().join(format!("{name}.1")).is_file(), "{}: {name}", name_of(command));
            }
        }
    }

    #[test]
    fn every_page_has_the_exit_codes_and_they_have_one_too() {
        let mut cli = Cli::command();
        cli.build();
        let pages = all(&cli).into_iter().chain([&cli]).chain(topics(&cli));
        let mut names = Vec::new();
        for command in pages {
            let page = String::from_utf8(page_of(command).expect("rendered")).expect("text");
            assert!(page.contains(".SH EXIT STATUS\n.TP\n\\fB0\\fR\ndone\n"), "{page}");
            names.push(name_of(command));
        }
        assert!(names.contains(&"relay-mesh-exit-codes".to_owned()), "{names:?}");
        let folder = tempfile::tempdir().expect("a folder");
        write_all(&cli, folder.path()).expect("written");
        assert!(folder.path().join("relay-mesh-exit-codes.1").is_file());
    }

    #[test]
    fn every_flag_of_every_page_is_explained() {
        let mut cli = Cli::command();
        cli.build();
        for command in all(&cli).into_iter().chain([&cli]) {
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
