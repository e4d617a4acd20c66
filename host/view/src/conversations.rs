//! Looking back at what was said: threads, who talks to whom, what a search found.

use mesh::{MessageStatus, Pair, SearchHit, Thread, ThreadSummary, folded};
use serde::Serialize;

use crate::{MessageView, RecipientView, StepView, Timestamp};

/// A message of a thread, and where it stands with each recipient.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadMessageView {
    /// The message, as its first recipient has it.
    #[serde(flatten)]
    pub message: MessageView,
    /// Each recipient.
    pub recipients: Vec<RecipientView>,
}

impl From<&MessageStatus> for ThreadMessageView {
    fn from(status: &MessageStatus) -> ThreadMessageView {
        let recipients = status.recipients.iter().map(RecipientView::from).collect();
        ThreadMessageView { message: (&status.message).into(), recipients }
    }
}

impl ThreadMessageView {
    /// The names of the recipients, as in `bob, carol`.
    pub fn to(&self) -> String {
        self.recipients.iter().map(|recipient| recipient.to.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// A thread, oldest message first.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadView {
    /// Its name: the id of its first message, or a word.
    pub thread: String,
    /// How many earlier messages are left out.
    pub earlier: usize,
    /// The messages.
    pub messages: Vec<ThreadMessageView>,
}

impl From<&Thread> for ThreadView {
    fn from(thread: &Thread) -> ThreadView {
        ThreadView {
            thread: thread.thread.clone(),
            earlier: thread.earlier,
            messages: thread.messages.iter().map(ThreadMessageView::from).collect(),
        }
    }
}

impl ThreadView {
    /// The subject of the first message.
    pub fn subject(&self) -> &str {
        self.messages.first().map_or("", |first| first.message.subject.as_str())
    }

    /// What it is called for people: its subject, else its name.
    pub(crate) fn title(&self) -> &str {
        match self.subject() {
            "" => &self.thread,
            subject => subject,
        }
    }

    /// Everybody who wrote or was written to, by name.
    pub fn agents(&self) -> Vec<&str> {
        let wrote = self.messages.iter().map(|one| one.message.from.as_str());
        let got = self.messages.iter().flat_map(|one| one.recipients.iter().map(|recipient| recipient.to.as_str()));
        let mut agents: Vec<&str> = wrote.chain(got).collect();
        agents.sort_unstable();
        agents.dedup();
        agents
    }
}

impl RecipientView {
    /// How far the message got with this recipient, in one line: the status, since when, by which route, and what keeps it
    /// from going further. Reasons in it are other people's text.
    pub fn sentence(&self) -> String {
        let last = self.history.last().map(|StepView { at, route, .. }| {
            format!(" {at}{}", route.as_ref().map_or_else(String::new, |route| format!(" by {route}")))
        });
        let mut line = format!("{}: {}{}", self.to, self.status.as_str(), last.unwrap_or_default());
        let held = self.held.as_ref().map(|reason| format!("held: {reason}"));
        let undeliverable = self.undeliverable.as_ref().map(|reason| format!("undeliverable: {reason}"));
        let expired = self.expired.then(|| "expired".to_owned());
        let rest = [self.open.clone(), self.waits.clone(), self.cut.clone(), held, undeliverable, expired];
        rest.into_iter().flatten().for_each(|part| line.push_str(&format!("; {part}")));
        line
    }
}

/// A thread in the list of threads.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadSummaryView {
    /// Its name: the id of its first message, or a word.
    pub thread: String,
    /// The subject of its first message that is kept.
    pub subject: String,
    /// Everybody who wrote in it or was written to, by name.
    pub agents: Vec<String>,
    /// How many messages it has; one to several agents counts once.
    pub messages: usize,
    /// How many times a message of it waits for a recipient.
    pub waiting: usize,
    /// When the first one was stored.
    pub first: Timestamp,
    /// When the last one was stored.
    pub last: Timestamp,
    /// Who wrote the last one.
    pub last_from: String,
}

impl From<&ThreadSummary> for ThreadSummaryView {
    fn from(thread: &ThreadSummary) -> ThreadSummaryView {
        ThreadSummaryView {
            thread: thread.thread.clone(),
            subject: thread.subject.clone(),
            agents: thread.agents.iter().map(ToString::to_string).collect(),
            messages: thread.messages,
            waiting: thread.waiting,
            first: Timestamp(thread.first),
            last: Timestamp(thread.last),
            last_from: thread.last_from.to_string(),
        }
    }
}

/// How much one agent wrote to another.
#[derive(Clone, Debug, Serialize)]
pub struct PairView {
    /// Who wrote.
    pub from: String,
    /// To whom.
    pub to: String,
    /// How many messages.
    pub messages: usize,
    /// When the last one was stored.
    pub last: Timestamp,
}

impl From<&Pair> for PairView {
    fn from(pair: &Pair) -> PairView {
        PairView {
            from: pair.from.to_string(),
            to: pair.to.to_string(),
            messages: pair.messages,
            last: Timestamp(pair.last),
        }
    }
}

/// A message that a search found.
#[derive(Clone, Debug, Serialize)]
pub struct SearchHitView {
    /// The message, as one of its recipients has it.
    #[serde(flatten)]
    pub message: MessageView,
    /// Everybody who got it, by name.
    pub recipients: Vec<String>,
    /// The part of the body around the first word that was found, on one line.
    pub excerpt: String,
    /// How well it fits; of use only beside the others.
    pub score: u32,
}

/// How many characters an excerpt has at most.
const EXCERPT: usize = 160;
/// How many of them come before the word.
const BEFORE: usize = 40;

impl SearchHitView {
    /// A hit of a search for these words.
    pub fn of(hit: &SearchHit, words: &[String]) -> SearchHitView {
        SearchHitView {
            message: (&hit.message).into(),
            recipients: hit.to.iter().map(ToString::to_string).collect(),
            excerpt: excerpt(&hit.message.body, words),
            score: hit.score,
        }
    }
}

/// The part of a text around the first of the words, on one line; its beginning if none is in it.
fn excerpt(text: &str, words: &[String]) -> String {
    // Where each character ends in the folded text, so that a place there is a place in the text.
    let characters: Vec<char> = text.chars().map(|one| if one.is_whitespace() { ' ' } else { one }).collect();
    let (mut whole, mut ends) = (String::with_capacity(text.len()), Vec::with_capacity(characters.len()));
    for character in &characters {
        whole.push_str(&folded(character.encode_utf8(&mut [0; 4])));
        ends.push(whole.len());
    }
    let found = words.iter().filter_map(|word| whole.find(&folded(word.trim()))).min().unwrap_or_default();
    let at = ends.partition_point(|end| *end <= found);
    let begin = at.saturating_sub(BEFORE);
    let begin =
        if begin + EXCERPT > characters.len() { characters.len().saturating_sub(EXCERPT).min(begin) } else { begin };
    let end = (begin + EXCERPT).min(characters.len());
    let middle: String = characters[begin..end].iter().collect();
    let words = middle.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let (before, after) = (if begin > 0 { "…" } else { "" }, if end < characters.len() { "…" } else { "" });
    format!("{before}{words}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, word: &str, expected: &str) {
        assert_eq!(excerpt(text, &[word.to_owned()]), expected);
    }

    #[test]
    fn an_excerpt_is_one_line_around_the_word() {
        check("which\n port?\n", "PORT", "which port?");
        check("", "port", "");
        check("nothing of it", "port", "nothing of it");
        let long = format!("{} the PORT is open {}", "before ".repeat(50), "after ".repeat(50));
        let found = excerpt(&long, &["port".to_owned()]);
        assert!(found.starts_with('…') && found.ends_with('…') && found.contains("the PORT is"), "{found}");
        assert!(found.chars().count() <= EXCERPT + 2, "{found}");
        let wide = format!("{}ÄPFEL", "字".repeat(500));
        assert!(excerpt(&wide, &["äpfel".to_owned()]).ends_with("ÄPFEL"), "the end is shown whole");
    }
}
