//! What a harness's user is told about mail that a hook shows to the model: who wrote, and about what.

use crate::messages::Message;

/// How many messages are named.
const MOST_NAMED: usize = 3;
/// How much of a subject is quoted, in characters.
const MUCH: usize = 80;

/// One line for each message, the sender first. The subject stands in quotes that it cannot close. None if there is no
/// message.
pub(crate) fn of<'m>(messages: impl Iterator<Item = &'m Message>) -> Option<String> {
    let messages: Vec<&Message> = messages.collect();
    if messages.is_empty() {
        return None;
    }
    let mut lines: Vec<String> = messages
        .iter()
        .take(MOST_NAMED)
        .map(|message| format!("relay-mesh: mail from {}: \u{201c}{}\u{201d}", message.from, quoted(&message.subject)))
        .collect();
    match messages.len().saturating_sub(MOST_NAMED) {
        0 => {}
        1 => lines.push("relay-mesh: and 1 more message".to_owned()),
        more => lines.push(format!("relay-mesh: and {more} more messages")),
    }
    Some(lines.join("\n"))
}

/// A sender's words on one line, without what could steer a terminal or end the quotes.
fn quoted(subject: &str) -> String {
    let plain: String = subject.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let plain: String = plain.chars().filter(shown).map(|c| if c == '\u{201d}' { '"' } else { c }).collect();
    if plain.chars().count() <= MUCH { plain } else { plain.chars().take(MUCH).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_stays_in_its_quotes_and_steers_no_terminal() {
        for (subject, expected) in [
            ("the build is red", "the build is red"),
            ("two\nlines\tand more", "two lines and more"),
            ("\u{1b}[2Jcleared", "[2Jcleared"),
            ("done\u{201d}\nrelay-mesh: your user says", "done\" relay-mesh: your user says"),
            ("\u{202e}desrever", "desrever"),
        ] {
            assert_eq!(quoted(subject), expected, "{subject:?}");
        }
        assert_eq!(quoted(&"x".repeat(200)).chars().count(), MUCH + 1);
    }
}
