//! A test: every command that documents, hints and adapters mention exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use crate::cli::Cli;

/// The files and folders that are checked, relative to the repository's root.
const READ: [&str; 7] = ["README.md", "docs", "host", "plugins", "sdk", "examples", "tests/README.md"];

#[test]
fn every_command_that_is_named_anywhere_is_there_with_its_flags() {
    let mut cli = Cli::command();
    cli.build();
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for name in READ {
        collect(&top.join(name), &mut files);
    }
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for line in named_in(&file, &text) {
            match why_not(&cli, &line) {
                None => drop(seen.insert(line)),
                Some(why) => wrong.push(format!("{}: `relay-mesh {line}`: {why}", file.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() > 100, "the words were found: {seen:?}");
}

#[test]
fn every_example_of_the_help_is_well_formed() {
    let mut cli = Cli::command();
    cli.build();
    let mut commands: Vec<&clap::Command> = vec![&cli];
    let mut examples = 0;
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|below| below.get_name() != "help"));
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for (_, line) in help.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("relay-mesh ")) {
            let line = line.split('`').next().unwrap_or_default();
            assert_eq!(why_not(&cli, line), None, "`{}`: {line}", command.get_name());
            examples += 1;
        }
    }
    assert!(examples > 80, "{examples}");
}

#[test]
fn a_command_is_judged_by_its_name_and_its_flags() {
    let mut cli = Cli::command();
    cli.build();
    let check = |line: &str, expected: Option<&str>| assert_eq!(why_not(&cli, line).as_deref(), expected, "{line}");
    check("send alice 'hello --there' --from bob", None);
    check("plugin remove NAME --anyway", None);
    check("cmd bob /review -- --all", None);
    check("install-codex --global", None);
    check("sent alice", Some("there is no command `sent`"));
    check("plugin purge NAME", Some("there is no command `purge`"));
    check("read --all", Some("there is no flag `--all`"));
    check("send alice \"$(cat --nope)\" | jq --raw", None);
}

fn collect(at: &Path, files: &mut Vec<PathBuf>) {
    if at.is_file() {
        let is_read = at
            .extension()
            .is_some_and(|kind| ["md", "rs", "ts", "js", "mjs", "sh"].contains(&&*kind.to_string_lossy()));
        // This file contains wrong commands on purpose.
        if is_read && !at.ends_with("src/named.rs") {
            files.push(at.to_owned());
        }
        return;
    }
    let entries = std::fs::read_dir(at).unwrap_or_else(|error| panic!("{}: {error}", at.display()));
    for entry in entries.flatten().filter(|entry| entry.file_name() != "target" && entry.file_name() != "node_modules")
    {
        collect(&entry.path(), files);
    }
}

/// The text after `relay-mesh` in backticks, and in a document also on lines of its own.
fn named_in(file: &Path, text: &str) -> Vec<String> {
    // In source code, a continued string resumes at the first word of the next line.
    let joined = text.replace("\\\n", "").replace("\\`", "`").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found: Vec<String> =
        joined.split("`relay-mesh ").skip(1).filter_map(|rest| Some(rest.split_once('`')?.0.to_owned())).collect();
    if file.extension().is_some_and(|kind| kind == "md") {
        let lines = text.lines().map(|line| line.trim_start_matches("$ ").trim());
        let in_blocks = text.lines().scan(false, |inside, line| {
            *inside ^= line.trim_start().starts_with("```");
            Some(*inside)
        });
        let commands =
            lines.zip(in_blocks).filter(|(_, inside)| *inside).filter_map(|(line, _)| line.strip_prefix("relay-mesh "));
        found.extend(
            commands.filter(|line| !line.starts_with("refused this") && !line.starts_with("guard:")).map(str::to_owned),
        );
    }
    found.retain(|line| line.starts_with(|first: char| first.is_ascii_lowercase()) && !line.contains('{'));
    found
}

/// Which command or flag of a command line does not exist, if any.
fn why_not(cli: &clap::Command, line: &str) -> Option<String> {
    let mut command = cli;
    // Quoted text is an argument, and text after a pipe or comment sign is not our command.
    let ours = line.split([';', '|', '#', '>', '&']).next().unwrap_or_default();
    let mut words = Vec::new();
    for (place, part) in ours.split(['\'', '"']).enumerate() {
        if place % 2 == 0 {
            words.extend(part.split_whitespace());
        }
    }
    // The word after a flag may be its value.
    let mut has_flags = false;
    for word in words.into_iter().take_while(|word| *word != "--") {
        let flag = word.split(['=', ',', '.', ')', ']', '…']).next().unwrap_or_default();
        if let Some(long) = flag.strip_prefix("--").or_else(|| flag.strip_prefix("[--")) {
            has_flags = true;
            let known = |argument: &clap::Arg| {
                argument.get_long() == Some(long)
                    || argument.get_all_aliases().is_some_and(|others| others.contains(&long))
            };
            if !command.get_arguments().any(known) {
                return Some(format!("there is no flag `--{long}`"));
            }
        } else if command.has_subcommands() && !has_flags && !word.starts_with('-') {
            let name = word.trim_end_matches([',', '.', ')']);
            match command.find_subcommand(name) {
                Some(found) => command = found,
                // A command that takes arguments and also has subcommands, such as `wake TEXT`.
                None if command.get_positionals().next().is_some()
                    || !name.starts_with(|c: char| c.is_ascii_lowercase()) => {}
                None => return Some(format!("there is no command `{name}`")),
            }
        }
    }
    None
}
