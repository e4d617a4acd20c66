//! Commands of other tools that have an event's values put into them: `${file}` becomes a variable of the shell in quotes,
//! so that a value is never part of the command.

/// What other tools call the values, and the variables that have them here.
const KNOWN: [(&str, &str); 6] = [
    ("${file}", "RELAY_FILE"),
    ("${command}", "RELAY_COMMAND"),
    ("${agent}", "RELAY_EVENT_AGENT"),
    ("${event}", "RELAY_EVENT"),
    ("${message}", "RELAY_TEXT"),
    ("${text}", "RELAY_TEXT"),
];

/// In which quotes of the shell a character stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// Why a command cannot be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsafe {
    /// The shell reads the value once more.
    #[error(
        "it gives an event's value to a second shell, which would read it as a command: use `\"$RELAY_FILE\"` there"
    )]
    ReadTwice,
}

/// A command with variables in the place of placeholders.
pub(super) fn with_variables(command: &str) -> Result<String, Unsafe> {
    let has_one = KNOWN.iter().any(|(placeholder, _)| command.contains(placeholder));
    if !has_one {
        return Ok(command.to_owned());
    }
    let mut words = command.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '`'));
    let reads_twice = |word: &str| {
        let is_option = word.starts_with('-') && !word.starts_with("--") && word.ends_with(['c', 'e']);
        is_option || matches!(word, "eval" | "ssh" | "source" | ".")
    };
    // Any of these may have a text read as code. What is refused in vain can be written by hand.
    if words.any(reads_twice) || command.contains('`') || command.contains("<<") {
        return Err(Unsafe::ReadTwice);
    }
    let (mut text, mut quotes, mut rest) = (String::with_capacity(command.len()), Quotes::None, command);
    while let Some(character) = rest.chars().next() {
        if let Some((placeholder, variable)) = KNOWN.iter().find(|(placeholder, _)| rest.starts_with(placeholder)) {
            text.push_str(&match quotes {
                Quotes::None => format!("\"${variable}\""),
                Quotes::Double => format!("${{{variable}}}"),
                Quotes::Single => format!("'\"${variable}\"'"),
            });
            rest = &rest[placeholder.len()..];
            continue;
        }
        quotes = match (quotes, character) {
            (Quotes::None, '\'') => Quotes::Single,
            (Quotes::None, '"') => Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => Quotes::None,
            (same, _) => same,
        };
        text.push(character);
        rest = &rest[character.len_utf8()..];
        if character == '\\' && quotes != Quotes::Single {
            let escaped = rest.chars().next();
            text.extend(escaped);
            rest = &rest[escaped.map_or(0, char::len_utf8)..];
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &str) {
        assert_eq!(with_variables(command).as_deref(), Ok(expected), "{command}");
    }

    #[test]
    fn a_value_stays_out_of_the_command_in_whatever_quotes_it_was() {
        check("npm test", "npm test");
        check("echo ${HOME} `date`", "echo ${HOME} `date`");
        check("npx eslint ${file}", r#"npx eslint "$RELAY_FILE""#);
        check("npx eslint --fix=${file}.bak", r#"npx eslint --fix="$RELAY_FILE".bak"#);
        check(r#"lint "${file}""#, r#"lint "${RELAY_FILE}""#);
        check("lint '${file}'", r#"lint ''"$RELAY_FILE"''"#);
        check(r#"echo \"${file}"#, r#"echo \""$RELAY_FILE""#);
        check(r#"echo "a\"${file}""#, r#"echo "a\"${RELAY_FILE}""#);
        check("echo ${agent} ran ${command}", r#"echo "$RELAY_EVENT_AGENT" ran "$RELAY_COMMAND""#);
        check("echo ${HOME}/${file}", r#"echo ${HOME}/"$RELAY_FILE""#);
    }

    #[test]
    fn a_value_that_would_be_read_as_a_command_is_refused() {
        for command in [
            r#"sh -c "lint ${file}""#,
            "bash -lc 'lint ${file}'",
            "eval lint ${file}",
            "true;eval lint ${file}",
            "python3 -c 'open(\"${file}\")'",
            "perl -e '${command}'",
            "lint `echo ${file}`",
            "cat <<END\n${file}\nEND",
            "ssh host lint ${file}",
        ] {
            assert_eq!(with_variables(command), Err(Unsafe::ReadTwice), "{command}");
        }
    }

    /// The shell itself is asked what it makes of it.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the shell is asked how it reads the command")]
    fn a_file_with_a_hostile_name_runs_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let trap = folder.path().join("trap");
        for name in ["\"; touch trap; \"", "'; touch trap; '", "$(touch trap)", "`touch trap`", "a b\ntouch trap"] {
            for command in ["printf %s ${file}", r#"printf %s "${file}""#, "printf %s '${file}'"] {
                let command = with_variables(command).expect("it is taken");
                let mut shell = std::process::Command::new("sh");
                let printed = shell.args(["-c", &command]).current_dir(&folder).env("RELAY_FILE", name).output();
                let printed = printed.expect("it runs").stdout;
                assert_eq!(String::from_utf8_lossy(&printed), name, "{command}");
                assert!(!trap.exists(), "{command} {name}");
            }
        }
    }
}
