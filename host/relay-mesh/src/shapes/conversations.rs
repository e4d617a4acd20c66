//! Looking back: `thread`, `threads`, `search`, `read --sent` and `read --list`.

use mesh::ports::machine::Instant;
use mesh::{FetchedMessage, MessageStatus};
use serde::Serialize;
use view::{
    MessageView, PairView, RecipientView, SearchHitView, StatusView, ThreadMessageView, ThreadSummaryView, ThreadView,
};

use super::mail::{headline, message_text};
use super::{ago, counted};
use crate::render::{Show, printable_line, table};

/// `relay-mesh thread ID`.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadShape {
    #[serde(flatten)]
    pub(crate) thread: ThreadView,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

/// A message with all its recipients, and a line for each of those.
fn with_recipients(one: &ThreadMessageView, now: Instant) -> String {
    let message = MessageView { to: one.to(), ..one.message.clone() };
    let recipients = one.recipients.iter().map(|recipient| format!("  · {}", printable_line(&recipient.sentence())));
    let recipients: Vec<String> = recipients.collect();
    format!("{}\n{}\n{}", headline(&message, now), message_text(&message), recipients.join("\n"))
}

impl Show for ThreadShape {
    fn text(&self) -> String {
        let messages: Vec<String> = self.thread.messages.iter().map(|one| with_recipients(one, self.now)).collect();
        messages.join("\n\n")
    }
}

/// `relay-mesh threads`.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadListShape {
    /// The thread of the newest message first.
    pub(crate) threads: Vec<ThreadSummaryView>,
    /// Further threads that are not listed.
    pub(crate) more: usize,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

impl Show for ThreadListShape {
    fn text(&self) -> String {
        if self.threads.is_empty() {
            return String::new();
        }
        let row = |one: &ThreadSummaryView| {
            let waiting = if one.waiting > 0 { one.waiting.to_string() } else { String::new() };
            let agents = one.agents.join(" ");
            let last = ago(one.last.0, self.now);
            let thread = printable_line(&one.thread);
            vec![thread, one.messages.to_string(), waiting, last, agents, printable_line(&one.subject)]
        };
        let rows: Vec<Vec<String>> = self.threads.iter().map(row).collect();
        table(&["THREAD", "MESSAGES", "WAITING", "LAST", "AGENTS", "ABOUT"], &rows)
    }
}

/// `relay-mesh threads --pairs`.
#[derive(Debug, Serialize)]
pub(crate) struct PairsShape {
    /// Who wrote to whom, most messages first.
    pub(crate) pairs: Vec<PairView>,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

impl Show for PairsShape {
    fn text(&self) -> String {
        if self.pairs.is_empty() {
            return String::new();
        }
        let row = |pair: &PairView| {
            vec![pair.from.clone(), pair.to.clone(), pair.messages.to_string(), ago(pair.last.0, self.now)]
        };
        table(&["FROM", "TO", "MESSAGES", "LAST"], &self.pairs.iter().map(row).collect::<Vec<_>>())
    }
}

/// `relay-mesh search WORD…`.
#[derive(Debug, Serialize)]
pub(crate) struct SearchShape {
    /// Best first.
    pub(crate) hits: Vec<SearchHitView>,
    /// How many messages have the words, also those that are not listed.
    pub(crate) found: usize,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

impl Show for SearchShape {
    fn text(&self) -> String {
        let one = |hit: &SearchHitView| {
            let message = MessageView { to: hit.recipients.join(", "), ..hit.message.clone() };
            let mut text = headline(&message, self.now);
            if !hit.message.body.trim_start().starts_with(&hit.message.subject) {
                text.push_str(&format!("\n  {}", printable_line(&hit.message.subject)));
            }
            format!("{text}\n  {}", printable_line(&hit.excerpt))
        };
        self.hits.iter().map(one).collect::<Vec<_>>().join("\n\n")
    }
}

/// `relay-mesh read --sent`, and with `--list` one line for each message.
#[derive(Debug, Serialize)]
pub(crate) struct SentMailShape {
    /// The agent that sent them.
    pub(crate) agent: String,
    /// Oldest first.
    pub(crate) messages: Vec<ThreadMessageView>,
    /// Whether only one line is shown for each.
    #[serde(skip)]
    pub(crate) is_list: bool,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

impl SentMailShape {
    pub(crate) fn of(agent: String, sent: &[MessageStatus], is_list: bool, now: Instant) -> SentMailShape {
        SentMailShape { agent, messages: sent.iter().map(ThreadMessageView::from).collect(), is_list, now }
    }
}

impl Show for SentMailShape {
    fn text(&self) -> String {
        if !self.is_list {
            let messages: Vec<String> = self.messages.iter().map(|one| with_recipients(one, self.now)).collect();
            return messages.join("\n\n");
        }
        let row = |one: &ThreadMessageView, to: &RecipientView| {
            let subject = printable_line(&one.message.subject);
            vec![one.message.id.clone(), ago(one.message.at.0, self.now), to.to.clone(), stands(to), subject]
        };
        let rows: Vec<Vec<String>> =
            self.messages.iter().flat_map(|one| one.recipients.iter().map(|to| row(one, to))).collect();
        if rows.is_empty() { String::new() } else { table(&["ID", "SENT", "TO", "STATUS", "ABOUT"], &rows) }
    }
}

/// The status in a word, or what keeps the message from going further.
fn stands(recipient: &RecipientView) -> String {
    match recipient {
        RecipientView { expired: true, .. } => "expired".to_owned(),
        RecipientView { undeliverable: Some(_), .. } => "undeliverable".to_owned(),
        RecipientView { held: Some(_), status: StatusView::Stored | StatusView::Notified, .. } => "held".to_owned(),
        RecipientView { status, .. } => status.as_str().to_owned(),
    }
}

/// A message in a list, without its body.
#[derive(Debug, Serialize)]
struct ListedShape {
    id: String,
    /// When it was sent.
    at: String,
    from: String,
    status: StatusView,
    subject: String,
    thread: String,
    #[serde(skip)]
    sent: Instant,
}

/// `relay-mesh read --list`: an inbox, one line for each message.
#[derive(Debug, Serialize)]
pub(crate) struct MailListShape {
    /// The agent whose mail this is.
    agent: String,
    /// Oldest first.
    messages: Vec<ListedShape>,
    /// Further unread messages.
    waiting: usize,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    now: Instant,
}

impl MailListShape {
    pub(crate) fn of(agent: String, fetched: &[FetchedMessage], waiting: usize, now: Instant) -> MailListShape {
        let listed = |fetched: &FetchedMessage| {
            let message = MessageView::from(&fetched.message);
            ListedShape {
                id: message.id,
                at: message.at.to_string(),
                from: message.from,
                status: fetched.history.status().into(),
                subject: message.subject,
                thread: message.thread,
                sent: fetched.message.at,
            }
        };
        MailListShape { agent, messages: fetched.iter().map(listed).collect(), waiting, now }
    }
}

impl Show for MailListShape {
    fn text(&self) -> String {
        let row = |one: &ListedShape| {
            let about = printable_line(&one.subject);
            vec![one.id.clone(), ago(one.sent, self.now), one.from.clone(), one.status.as_str().to_owned(), about]
        };
        let rows: Vec<Vec<String>> = self.messages.iter().map(row).collect();
        if rows.is_empty() { String::new() } else { table(&["ID", "SENT", "FROM", "STATUS", "ABOUT"], &rows) }
    }
}

/// What is said below a list that was cut; none if it was not.
pub(crate) fn more_are_left(more: usize, noun: &str) -> Option<String> {
    (more > 0).then(|| format!("{} besides; `--last NUMBER` shows more", counted(more, noun)))
}
