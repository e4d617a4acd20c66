//! What a harness's user is told about mail that a hook shows to the model, who wrote and about what, and about mail
//! that the loop guard holds.

use store::{Durability, StoreError};

use crate::agents::list;
use crate::core::Core;
use crate::messages::Message;
use crate::names::AgentName;
use crate::ports::harness::{Harness, Reply};
use crate::sessions::{SessionRecord, SessionRef, record};
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
        // Ahead of what a route has given meanwhile.
        add(core, session, |later| joined(Some(&notice), later)).await;
    }
}

/// Keeps a line for the user of an agent's session here. They see it with the next hook of a turn.
pub(crate) async fn keep(core: &Core, agent: &AgentName, line: &str) {
    let kept = async {
        let Some(session) = list::load_agent(core, agent).await?.and_then(|agent| agent.session) else {
            return Ok(());
        };
        let Some(SessionRecord { session, .. }) = record::current_record(core, &session).await? else { return Ok(()) };
        // Where no adapter is, or it fails, no hook will ask for the line.
        if let Ok(Some(adapter)) = core.harnesses.get(&session.harness).await
            && adapter.shows_notices()
        {
            add(core, &session, |earlier| joined(earlier, Some(line))).await;
        }
        Ok::<(), StoreError>(())
    };
    if let Err(error) = kept.await {
        tracing::warn!(%agent, %error, "the user is not told in the session");
    }
}

/// A notice that waits, and what waited before it came.
pub(crate) struct Waiting {
    before: Option<String>,
    now: String,
}

/// Keeps the notice of messages that a route gives to a session: its user is told with a hook of the turn that begins.
pub(crate) async fn keep_for_route<'m>(
    core: &Core,
    adapter: &dyn Harness,
    session: &SessionRef,
    messages: impl Iterator<Item = &'m Message>,
) -> Option<Waiting> {
    let notice = of(messages).filter(|_| adapter.shows_notices())?;
    add(core, session, |earlier| joined(earlier, Some(&notice))).await
}

/// Takes the notice back of messages that a route has refused. Earlier mail is still to be told of. If a hook has told
/// of both meanwhile, nothing waits.
pub(crate) async fn take_back(core: &Core, session: &SessionRef, refused: Waiting) {
    let Waiting { before, now } = refused;
    change(core, session, |waits| if waits == Some(&now) { before.clone() } else { waits.cloned() }).await;
}

async fn add(
    core: &Core,
    session: &SessionRef,
    join: impl Fn(Option<&str>) -> String + Send + Sync,
) -> Option<Waiting> {
    let before = change(core, session, |waits| Some(join(waits.map(String::as_str)))).await?;
    let now = join(before.as_deref());
    Some(Waiting { before, now })
}

/// Changes what the session's user is to be told with the next hook of a turn. It is no sign of life. Returns what
/// waited before; none if there is no such session.
async fn change(
    core: &Core,
    session: &SessionRef,
    to: impl Fn(Option<&String>) -> Option<String> + Send + Sync,
) -> Option<Option<String>> {
    let mut change = |old: Option<SessionRecord>| {
        let Some(record) = old else { return (Next::Keep, None) };
        let (before, notice) = (record.notice.clone(), to(record.notice.as_ref()));
        let next = if before == notice { Next::Keep } else { Next::Put(SessionRecord { notice, ..record }) };
        (next, Some(before))
    };
    let key = keys::session(session);
    records::update(core.local.as_ref(), &key, Durability::Process, &mut change).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the user is not told who has written");
        None
    })
}

/// Two notices as one. A line that stands in both is said once: a message is tried again by another route.
fn joined(first: Option<&str>, second: Option<&str>) -> String {
    let mut lines: Vec<&str> = first.into_iter().flat_map(str::lines).collect();
    for line in second.into_iter().flat_map(str::lines) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.truncate(MOST_LINES);
    lines.join("\n")
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
