//! Reports what is wrong with a command line.

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::render;

/// Help and version go to standard output, everything else to standard error. A hook's command line that does not
/// parse, perhaps because it was written for another version, must not stop the harness.
pub(crate) fn usage(mut error: clap::Error, arguments: &[OsString]) -> ExitCode {
    if let Some(tip) = tip(&error, arguments) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let asked_for = !error.use_stderr();
    let is_hook = command_word(arguments).is_some_and(|word| word == "hook");
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

/// The command that a command line names: its first word that is neither an option nor the value of one.
fn command_word(arguments: &[OsString]) -> Option<Cow<'_, str>> {
    let ours = Cli::command();
    let takes_value = |option: &str| {
        let long = option.strip_prefix("--");
        let named = ours.get_arguments().find(|argument| argument.get_long().is_some() && argument.get_long() == long);
        named.is_some_and(|argument| argument.get_action().takes_values())
    };
    let mut follows_option = false;
    for word in arguments.iter().skip(1).map(|argument| argument.to_string_lossy()) {
        let is_option = word.starts_with('-');
        if !is_option && !follows_option {
            return Some(word);
        }
        follows_option = is_option && takes_value(&word);
    }
    None
}

/// Words that users of other tools try first, and what does it here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["history", "logs", "tail"], "`relay-mesh log` shows what happened, and `relay-mesh log --follow` goes on"),
    (&["list", "ls", "ps", "who", "peers"], "`relay-mesh agents` shows who is here"),
    (&["inbox", "mail", "messages", "unread"], "`relay-mesh read --agent NAME` shows an agent's mail"),
    (&["whoami", "me"], "`relay-mesh detect-harness` says what session this shell belongs to"),
    (&["stop", "quit", "shutdown"], "`relay-mesh down` stops the server, and `relay-mesh runs stop ID` a run"),
    (&["start", "daemon"], "`relay-mesh up` starts the server in the background"),
    (
        &["tell", "msg", "reply", "broadcast"],
        "`relay-mesh send NAME 'text'` sends a message, `send --broadcast` to all",
    ),
    (&["lock", "claim"], "`relay-mesh reserve PATTERN` reserves paths"),
    (&["unlock"], "`relay-mesh release PATTERN` gives back what you reserved"),
    (&["exec"], "`relay-mesh run HARNESS 'task'` runs a harness for one task"),
];

/// The same below a command.
const BELOW: &[(&str, &[&str], &str)] =
    &[("pipeline", &["list", "ls", "ps"], "`relay-mesh runs list` shows pipelines too")];

/// What the user probably meant, where clap knows nothing better.
fn tip(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
            let ours = Cli::command();
            let before = arguments.iter().skip(1).take_while(|argument| *argument != word.as_str());
            let found = match before.filter_map(|argument| ours.find_subcommand(argument)).next() {
                Some(command) => BELOW
                    .iter()
                    .find(|(above, words, _)| *above == command.get_name() && words.contains(&word.as_str()))
                    .map(|(_, _, tip)| tip),
                None => ELSEWHERE.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, tip)| tip),
            };
            found.map(|tip| (*tip).to_owned())
        }
        ErrorKind::TooManyValues | ErrorKind::UnknownArgument
            if arguments.get(1).is_some_and(|word| word == "send")
                && arguments.iter().skip(2).filter(|word| !word.to_string_lossy().starts_with('-')).count() > 2 =>
        {
            Some("put the text in quotes: relay-mesh send NAME 'the whole text'".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::try_parse_from(&arguments).expect_err("it is no command line");
        let tip = tip(&error, &arguments);
        assert_eq!(
            tip.as_deref().map(|tip| tip.contains(expected.unwrap_or_default())),
            expected.map(|_| true),
            "{line}"
        );
    }

    #[test]
    fn a_command_is_told_from_options_their_values_and_what_follows_it() {
        for (line, expected) in [
            ("relay-mesh hook --later", Some("hook")),
            ("relay-mesh --dir /data -q hook claude-code", Some("hook")),
            ("relay-mesh --dir=/data --json hook", Some("hook")),
            ("relay-mesh --store nats://10.0.0.7:4222 hook x", Some("hook")),
            ("relay-mesh --later hook claude-code Stop", Some("hook")),
            ("relay-mesh send bob fix the hook", Some("send")),
            ("relay-mesh --dir hook send bob a b c", Some("send")),
            ("relay-mesh --dir hook", None),
            ("relay-mesh", None),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(command_word(&arguments).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn every_word_of_another_tool_leads_to_a_command_and_is_none_itself() {
        let ours = Cli::command();
        for (words, told) in ELSEWHERE {
            let named: Vec<&str> =
                told.split("`relay-mesh ").skip(1).filter_map(|rest| rest.split([' ', '`']).next()).collect();
            assert!(!named.is_empty(), "{told}");
            for command in named {
                assert!(ours.find_subcommand(command).is_some(), "`{command}` is no command: {told}");
            }
            for word in *words {
                assert!(ours.find_subcommand(word).is_none(), "`{word}` has become a command, which no hint hides");
                check(&format!("relay-mesh {word}"), Some(told));
            }
        }
    }

    #[test]
    fn a_word_of_another_tool_leads_to_ours() {
        check("relay-mesh whoami", Some("detect-harness"));
        check("relay-mesh ps", Some("relay-mesh agents"));
        check("relay-mesh history", Some("relay-mesh log"));
        check("relay-mesh send bob hi there", Some("in quotes"));
        check("relay-mesh pipeline list", Some("relay-mesh runs list"));
        check("relay-mesh channel ls", None);
        check("relay-mesh frobnicate", None);
        check("relay-mesh send bob --frobnicate", None);
    }
}
