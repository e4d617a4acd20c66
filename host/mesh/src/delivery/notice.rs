//! What a harness's user is told about mail that a hook shows to the model: who wrote, and about what.

use store::Durability;

use crate::core::Core;
use crate::messages::Message;
use crate::ports::harness::{Harness, Reply};
use crate::sessions::{SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How many messages are named.
const MOST_NAMED: usize = 3;
/// The longest notice, in lines: one of now, and one that has waited.
const MOST_LINES: usize = 2 * (MOST_NAMED + 1);
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

/// Tells the user of the mail in an answer, and of earlier mail that they are still to be told of. What they do not see
/// in this answer waits for the next one of the turn: mail begins one in a session that it wakes.
pub(crate) async fn tell(
    core: &Core,
    adapter: &dyn Harness,
    session: &SessionRef,
    hook: &str,
    answer: Option<&mut Reply>,
    untold: Option<String>,
    of_mail: Option<String>,
) {
    let of_mail = of_mail.filter(|_| answer.as_ref().is_some_and(|reply| reply.shows_mail));
    let lines: Vec<String> = untold.into_iter().chain(of_mail).collect();
    let notice = lines.iter().flat_map(|lines| lines.lines()).take(MOST_LINES).collect::<Vec<_>>().join("\n");
    if notice.is_empty() || !adapter.shows_notices() {
        return;
    }
    if !answer.is_some_and(|reply| adapter.put_notice(hook, reply, &notice)) {
        keep(core, session, Some(notice)).await;
    }
}

/// Keeps the notice of messages that a route gives to a session: its user is told with a hook of the turn that begins.
pub(crate) async fn keep_for_route<'m>(
    core: &Core,
    adapter: &dyn Harness,
    session: &SessionRef,
    messages: impl Iterator<Item = &'m Message>,
) {
    if let (true, Some(notice)) = (adapter.shows_notices(), of(messages)) {
        keep(core, session, Some(notice)).await;
    }
}

/// Keeps what the session's user is to be told with the next hook of a turn, or forgets it. It is no sign of life.
pub(crate) async fn keep(core: &Core, session: &SessionRef, notice: Option<String>) {
    let mut change = |old: Option<SessionRecord>| match old {
        Some(record) if record.notice != notice => (Next::Put(SessionRecord { notice: notice.clone(), ..record }), ()),
        Some(_) | None => (Next::Keep, ()),
    };
    let key = keys::session(session);
    if let Err(error) = records::update(core.local.as_ref(), &key, Durability::Process, &mut change).await {
        tracing::warn!(%error, "the user is not told who has written");
    }
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
