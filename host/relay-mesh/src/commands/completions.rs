//! `relay-mesh completions`: a script that completes commands in a shell, and names of agents and harnesses.
//!
//! clap_complete's scripts know the commands and flags. The names are asked for at each completion, by the hidden
//! `relay-mesh completions --names KIND`.

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use mesh::ports::harness::Harnesses as _;

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
    #[arg(value_enum, required_unless_present = "names")]
    shell: Option<Shell>,
    /// Print names instead, one on each line: what the scripts call
    #[arg(long, value_enum, hide = true, conflicts_with = "shell", value_name = "KIND")]
    names: Option<Names>,
}

/// Names that only this machine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Names {
    Agents,
    Harnesses,
}

impl Names {
    fn word(self) -> &'static str {
        match self {
            Names::Agents => "agents",
            Names::Harnesses => "harnesses",
        }
    }

    /// The names that a value of an argument is one of.
    fn of(argument: &Arg) -> Option<Names> {
        let shown = argument.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
        match (shown, argument.get_id().as_str()) {
            ("AGENT", _) | (_, "agent" | "agents" | "sender" | "target") => Some(Names::Agents),
            ("HARNESS", _) | (_, "harness") => Some(Names::Harnesses),
            _ => None,
        }
    }
}

impl CommandSpec for Args {
    fn uses_folder(&self) -> bool {
        self.names.is_some()
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match (self.names, self.shell) {
            (Some(names), _) => {
                let open = context.open()?;
                let mut lines: Vec<String> = match names {
                    Names::Agents => open.mesh.agents().await?.iter().map(|seen| seen.agent.name.to_string()).collect(),
                    Names::Harnesses => open.adapters.names(),
                };
                lines.sort();
                let text: String = lines.iter().map(|name| format!("{name}\n")).collect();
                context.printer.bytes(text.as_bytes())?;
            }
            (None, Some(shell)) => context.printer.bytes(script(shell).as_bytes())?,
            (None, None) => {}
        }
        Ok(Exit::Success)
    }
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "relay-mesh", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        // clap_complete 4.6 spells the hyphen of our name in two ways, so bash completed no subcommands.
        Shell::Bash => format!("{}\n{}", script.replace("relay__subcmd__mesh", "relay__mesh"), bash()),
        Shell::Zsh => zsh(&script),
        Shell::Fish => format!("{script}\n{}", fish()),
        _ => script,
    }
}

/// Where names are completed: after these flags, and after these commands.
struct Places {
    names: Names,
    flags: Vec<String>,
    commands: Vec<String>,
}

fn places() -> [Places; 2] {
    let mut cli = Cli::command();
    cli.build();
    [Names::Agents, Names::Harnesses].map(|names| {
        let mut places = Places { names, flags: Vec::new(), commands: Vec::new() };
        places.collect(&cli);
        places.flags.sort();
        places.flags.dedup();
        places.commands.sort();
        places.commands.dedup();
        places
    })
}

impl Places {
    fn collect(&mut self, command: &Command) {
        for argument in command.get_arguments().filter(|argument| Names::of(argument) == Some(self.names)) {
            match argument.get_long() {
                Some(long) => self.flags.push(long.to_owned()),
                None if argument.get_index() == Some(1) => self.commands.push(command.get_name().to_owned()),
                None => {}
            }
        }
        // Its words are recipients and then the text, so no argument of it is called an agent.
        if self.names == Names::Agents && ["send", "wake"].contains(&command.get_name()) {
            self.commands.push(command.get_name().to_owned());
        }
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            self.collect(below);
        }
    }
}

fn bash() -> String {
    let cases: String = places()
        .iter()
        .map(|place| {
            let flags: Vec<String> = place.flags.iter().map(|flag| format!("--{flag}")).collect();
            let (flags, commands, kind) = (flags.join("|"), place.commands.join("|"), place.names.word());
            // After a flag nothing else may stand; a command may have subcommands too.
            format!("        {flags}) kind={kind} COMPREPLY=() ;;\n        {commands}) kind={kind} ;;\n")
        })
        .collect();
    format!(
        "_relay_mesh_and_names() {{\n    local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" kind=\n    _relay__mesh \"$@\"\n    \
         case \"$3\" in\n{cases}    esac\n    [[ -n $kind && $cur != -* ]] || return 0\n    \
         COMPREPLY+=($(compgen -W \"$(\"$1\" completions --names \"$kind\" 2>/dev/null)\" -- \"$cur\"))\n}}\n\
         complete -F _relay_mesh_and_names -o bashdefault -o default relay-mesh\n"
    )
}

fn fish() -> String {
    let mut lines = String::new();
    for place in places() {
        let asks = format!("-a '(relay-mesh completions --names {} 2>/dev/null)'", place.names.word());
        for flag in &place.flags {
            lines.push_str(&format!("complete -c relay-mesh -l {flag} -x {asks}\n"));
        }
        let commands = place.commands.join(" ");
        lines.push_str(&format!("complete -c relay-mesh -n '__fish_seen_subcommand_from {commands}' -f {asks}\n"));
    }
    lines
}

/// The generated script, with our functions in place of its `_default` where names belong.
fn zsh(script: &str) -> String {
    let mut functions = String::new();
    for names in [Names::Agents, Names::Harnesses] {
        let word = names.word();
        functions.push_str(&format!(
            "_relay_mesh_{word}() {{\n    local -a names\n    \
             names=(${{(f)\"$(relay-mesh completions --names {word} 2>/dev/null)\"}})\n    \
             _describe '{word}' names\n}}\n"
        ));
    }
    let lines: Vec<String> = script
        .lines()
        .map(|line| {
            let begins = line.trim_start_matches(['\'', ':', '*']);
            let positional = line.starts_with('\'').then(|| begins.split(" -- ").next().unwrap_or_default());
            let names = match positional {
                Some("agent" | "agents" | "sender" | "target") => Some(Names::Agents),
                Some("harness") => Some(Names::Harnesses),
                _ if line.contains(":AGENT:_default") => Some(Names::Agents),
                _ if line.contains(":HARNESS:_default") => Some(Names::Harnesses),
                _ => None,
            };
            match names {
                Some(names) => line.replace(":_default'", &format!(":_relay_mesh_{}'", names.word())),
                None => line.to_owned(),
            }
        })
        .collect();
    let body = lines.join("\n");
    match body.split_once('\n') {
        Some((first, rest)) => format!("{first}\n\n{functions}\n{rest}\n"),
        None => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_for_where_a_command_takes_one() {
        let [agents, harnesses] = places();
        for command in ["adopt", "cmd", "send", "take", "wait-for", "wake"] {
            assert!(agents.commands.contains(&command.to_owned()), "{command}: {:?}", agents.commands);
        }
        for flag in ["agent", "from", "to"] {
            assert!(agents.flags.contains(&flag.to_owned()), "{flag}: {:?}", agents.flags);
        }
        for command in ["doctor", "install", "run", "uninstall"] {
            assert!(harnesses.commands.contains(&command.to_owned()), "{command}: {:?}", harnesses.commands);
        }
        assert!(harnesses.flags.contains(&"harness".to_owned()), "{:?}", harnesses.flags);
        let both: Vec<&String> = agents.commands.iter().filter(|name| harnesses.commands.contains(name)).collect();
        assert!(both.is_empty(), "{both:?}");
    }

    #[test]
    fn each_shell_is_told_how_to_ask() {
        for (shell, asks) in [
            (Shell::Bash, "completions --names \"$kind\""),
            (Shell::Zsh, ":AGENT:_relay_mesh_agents'"),
            (Shell::Zsh, "relay-mesh completions --names harnesses"),
            (Shell::Fish, "complete -c relay-mesh -l from -x -a '(relay-mesh completions --names agents 2>/dev/null)'"),
        ] {
            assert!(script(shell).contains(asks), "{shell}: {asks}");
        }
        assert!(script(Shell::Zsh).starts_with("#compdef relay-mesh\n"), "the line that zsh looks for stays the first");
    }
}
