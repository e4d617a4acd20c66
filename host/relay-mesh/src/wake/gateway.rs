//! The gateway: a program that the user names in their own settings, such as a harness's wake command.

use std::process::Stdio;
use std::time::Duration;

use mesh::Wake;
use processes::Group;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, Command};
use tokio::time::timeout;

use crate::render::printable_line;

/// Bytes of its standard error that are kept.
const COMPLAINT: usize = 2_048;
/// How long to read its standard error after it ended.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Runs the program with the wake's text filled in. Without a shell, so the text is never more than one argument. The
/// program is killed if the future is dropped.
pub(super) async fn run(words: &[String], wake: &Wake) -> Result<String, String> {
    let Some((program, arguments)) = words.split_first() else { return Err("it names no program".to_owned()) };
    let shown = printable_line(program);
    let mut command = Command::new(program);
    command.args(arguments.iter().map(|argument| filled(argument, wake)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let (mut child, group) =
        Group::spawn(&mut command).map_err(|error| format!("`{shown}` could not be started: {error}"))?;
    let mut complaint = Vec::new();
    let status = match child.stderr.take() {
        None => child.wait().await,
        Some(mut errors) => {
            let ended = tokio::select! {
                status = child.wait() => Some(status),
                () = hear(&mut errors, &mut complaint) => None,
            };
            match ended {
                // A child that it left behind may keep the pipe open: we do not wait for it.
                Some(status) => {
                    let _late = timeout(LAST_WORDS, hear(&mut errors, &mut complaint)).await;
                    status
                }
                None => child.wait().await,
            }
        }
    };
    // Children that it left behind are meant to keep running.
    group.goes_on();
    let status = status.map_err(|error| format!("could not wait for `{shown}`: {error}"))?;
    if status.success() {
        return Ok(format!("`{shown}` took it"));
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let last = complaint.lines().rfind(|line| !line.trim().is_empty()).map(printable_line);
    Err(format!("`{shown}` ended with {status}{}", last.map_or_else(String::new, |last| format!(": {last}"))))
}

/// Reads standard error to its end and drops what exceeds the limit, so that the program never blocks on the pipe.
async fn hear(errors: &mut ChildStderr, complaint: &mut Vec<u8>) {
    let mut part = [0; 1_024];
    // A broken pipe counts as the end.
    while let Ok(bytes @ 1..) = errors.read(&mut part).await {
        let room = COMPLAINT.saturating_sub(complaint.len());
        complaint.extend(part.iter().take(bytes).take(room));
    }
}

/// Fills in an argument's blanks once; blanks in the filled-in text are not filled.
fn filled(argument: &str, wake: &Wake) -> String {
    let to = wake.to.as_ref().map(ToString::to_string).unwrap_or_default();
    let id = wake.id.to_string();
    let blanks = [("{text}", wake.worded.as_str()), ("{from}", wake.from.as_str()), ("{to}", &to), ("{id}", &id)];
    let mut text = String::with_capacity(argument.len());
    let mut rest = argument;
    while let Some(character) = rest.chars().next() {
        match blanks.iter().find(|(blank, _)| rest.starts_with(blank)) {
            Some((blank, value)) => {
                text.push_str(value);
                rest = &rest[blank.len()..];
            }
            None => {
                text.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use mesh::ports::machine::Instant;

    use super::*;

    fn wake(text: &str) -> Wake {
        Wake {
            id: "01JD8Z3K5V0000000000000000".parse().expect("an id"),
            from: "alice".parse().expect("a name"),
            to: None,
            at: Instant(0),
            text: text.to_owned(),
            worded: format!("<{text}>"),
        }
    }

    #[test]
    fn blanks_are_filled_once_and_everywhere() {
        for (argument, expected) in [
            ("--text", "--text"),
            ("{text}", "<{from} $(rm)>"),
            ("from={from};to={to};", "from=alice;to=;"),
            ("{id}", "01JD8Z3K5V0000000000000000"),
            ("{other} ü {", "{other} ü {"),
        ] {
            assert_eq!(filled(argument, &wake("{from} $(rm)")), expected);
        }
    }
}
