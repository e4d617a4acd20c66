//! The launch agent of macOS that runs a program whenever the trigger file is written.

use std::path::Path;

/// launchd's name of the agent.
pub(super) const LABEL: &str = "relay-mesh.wake";
/// The file that describes it, in `~/Library/LaunchAgents`.
pub(super) const FILE: &str = "relay-mesh.wake.plist";
/// Where launchd writes what the program says, in `~/Library/Logs`.
pub(super) const LOG: &str = "relay-mesh.wake.log";

/// The text of the file, or the first character that no property list can hold.
///
/// It does what the systemd units do, and no more: nothing runs at login (`RunAtLoad`), because nobody has called then,
/// and a program that crashes is not started again (`KeepAlive`) before the next call.
pub(super) fn agent(trigger: &Path, program: &[String], log: &Path) -> Result<String, char> {
    let trigger = escaped(&trigger.display().to_string())?;
    let log = escaped(&log.display().to_string())?;
    let mut words = String::new();
    for word in program {
        words.push_str(&format!("\t\t<string>{}</string>\n", escaped(word)?));
    }
    Ok(format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>{LABEL}</string>
	<key>ProgramArguments</key>
	<array>
{words}	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>RELAY_WAKE_FILE</key>
		<string>{trigger}</string>
	</dict>
	<key>WatchPaths</key>
	<array>
		<string>{trigger}</string>
	</array>
	<key>RunAtLoad</key>
	<false/>
	<key>StandardOutPath</key>
	<string>{log}</string>
	<key>StandardErrorPath</key>
	<string>{log}</string>
</dict>
</plist>
"#
    ))
}

/// Escapes a text for XML. A reader would take a bare carriage return for the end of a line; most other control
/// characters cannot be written at all.
fn escaped(text: &str) -> Result<String, char> {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\r' => escaped.push_str("&#13;"),
            '\t' | '\n' => escaped.push(character),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => return Err(character),
            other => escaped.push(other),
        }
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use serde_json::{Value, json};

    use super::*;

    const SCRIPT: &str = "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";

    /// What Python's reader of property lists finds in a text.
    #[expect(clippy::disallowed_methods, reason = "the reader is a program of its own")]
    fn read_back(text: &str) -> Value {
        let mut python = Command::new("python3");
        let mut python =
            python.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        python.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
        let output = python.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{text}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    #[test]
    fn another_reader_of_property_lists_finds_every_word_as_it_was_given() {
        let program = [
            "/Applications/R&D <beta>/wake me",
            "]]>",
            "&amp;",
            "a \"quoted\" 'word'",
            " two\nlines\tand\r\none more ",
            "$HOME 100% \\",
            "",
            "ärger 🔔",
        ]
        .map(str::to_owned);
        let trigger = "/Users/u/R&D <mesh>/wake/trigger";
        let log = "/Users/u & v/Library/Logs/relay-mesh.wake.log";
        let text = agent(Path::new(trigger), &program, Path::new(log)).expect("all of it can be written");
        let expected = json!({
            "Label": "relay-mesh.wake",
            "ProgramArguments": program,
            "EnvironmentVariables": {"RELAY_WAKE_FILE": trigger},
            "WatchPaths": [trigger],
            "RunAtLoad": false,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        });
        assert_eq!(read_back(&text), expected, "{text}");
    }

    #[test]
    fn what_no_property_list_can_hold_is_refused_and_not_lost() {
        for sign in ['\0', '\u{1b}', '\u{ffff}'] {
            let word = format!("a{sign}b");
            assert_eq!(agent(Path::new("/t"), &["/bin/echo".to_owned(), word.clone()], Path::new("/l")), Err(sign));
            assert_eq!(agent(Path::new(&word), &["/bin/echo".to_owned()], Path::new("/l")), Err(sign));
        }
    }
}
