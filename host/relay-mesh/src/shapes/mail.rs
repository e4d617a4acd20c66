//! Messages: `send`, `read`, `ack` and the lines of `listen`.

use mesh::ports::machine::Instant;
use mesh::{Acknowledged, FetchedMessage, Queued};
use serde::Serialize;
use view::{MessageView, PriorityView, SentToView, StatusView, Timestamp};

pub(crate) use view::{MessageView as MessageShape, SentView as SentShape};

use super::agents::waits;
use super::ago;
use crate::render::{Show, printable, printable_line, table};
use crate::screen::Screen;

/// Sender, recipient and time of a message, on one line.
pub(crate) fn headline(message: &MessageView, now: Instant) -> String {
    let mut line = format!("{}  {} → {}  {}", message.id, message.from, message.to, ago(message.at.0, now));
    if message.priority != PriorityView::Normal {
        line.push_str(&format!("  {}", message.priority.as_str()));
    }
    if let Some(answered) = &message.reply_to {
        line.push_str(&format!("  answers {answered}"));
    }
    for tag in &message.tags {
        line.push_str(&format!("  #{}", printable_line(tag)));
    }
    line
}

/// The body, indented, below the subject if that says more than the body's first line.
pub(crate) fn message_text(message: &MessageView) -> String {
    let body = printable(&message.body);
    let mut lines: Vec<String> = Vec::new();
    if !message.body.trim_start().starts_with(&message.subject) {
        lines.push(format!("  {}", printable_line(&message.subject)));
    }
    lines.extend(body.lines().map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }));
    lines.join("\n")
}

/// A message that was read, with its delivery status.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReadMessageShape {
    #[serde(flatten)]
    pub(crate) message: MessageView,
    /// The status before this command read it.
    pub(crate) status: StatusView,
}

impl From<&FetchedMessage> for ReadMessageShape {
    fn from(fetched: &FetchedMessage) -> ReadMessageShape {
        ReadMessageShape { message: (&fetched.message).into(), status: fetched.history.status().into() }
    }
}

/// `relay-mesh read`.
#[derive(Debug, Serialize)]
pub(crate) struct MailShape {
    /// The agent whose mail this is.
    pub(crate) agent: String,
    /// The requested messages, oldest first.
    pub(crate) messages: Vec<ReadMessageShape>,
    /// Further unread messages.
    pub(crate) waiting: usize,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

impl MailShape {
    /// Each message below its headline, which is laid out.
    fn laid_out(&self, headline_of: impl Fn(String) -> String) -> String {
        let one = |read: &ReadMessageShape| {
            let unread = match read.status {
                StatusView::Stored | StatusView::Notified | StatusView::Accepted => "  new",
                StatusView::Queued | StatusView::Shown | StatusView::Read | StatusView::Acknowledged => "",
            };
            let headline = headline_of(format!("{}{unread}", headline(&read.message, self.now)));
            format!("{headline}\n{}", message_text(&read.message))
        };
        self.messages.iter().map(one).collect::<Vec<_>>().join("\n\n")
    }
}

impl Show for MailShape {
    fn text(&self) -> String {
        self.laid_out(|headline| headline)
    }

    fn text_on(&self, screen: &Screen) -> String {
        self.laid_out(|headline| screen.sentences(&headline))
    }
}

impl Show for SentShape {
    fn text(&self) -> String {
        let one = |recipient: &SentToView| {
            let presence = if recipient.paused { "paused" } else { recipient.presence.as_str() };
            let status = recipient.status.as_str();
            let mut line = format!("{}  {status} for {} ({presence})", self.id, recipient.to);
            if recipient.duplicate {
                line.push_str("; it had been sent before under the same key");
            }
            if recipient.status == StatusView::Queued {
                let until = recipient.waits_until.unwrap_or("the servers take it");
                line.push_str(&format!("; it waits on this machine until {until} (`relay-mesh status` says more)"));
            }
            if let Some(reason) = &recipient.held {
                line.push_str(&format!("; held: {}", printable_line(reason)));
            }
            line
        };
        self.recipients.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}

/// A message that waits on this machine until the servers can be reached.
#[derive(Debug, Serialize)]
pub(crate) struct QueuedShape {
    pub(crate) id: String,
    /// When it was sent.
    pub(crate) at: Timestamp,
    /// Who sent it.
    pub(crate) from: String,
    /// The recipients that have not been sent it yet.
    pub(crate) to: Vec<String>,
    pub(crate) subject: String,
    /// Why the servers refused it, if they answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// The recipients to whom it cannot be sent, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) returned: Vec<ReturnedShape>,
}

/// A recipient to whom a message cannot be sent.
#[derive(Debug, Serialize)]
pub(crate) struct ReturnedShape {
    pub(crate) to: String,
    pub(crate) reason: String,
}

impl From<&Queued> for QueuedShape {
    fn from(queued: &Queued) -> QueuedShape {
        let returned = queued.returned.iter();
        QueuedShape {
            id: queued.id.to_string(),
            at: Timestamp(queued.at),
            from: queued.from.to_string(),
            to: queued.to.clone(),
            subject: queued.subject.clone(),
            refused: queued.refused.clone(),
            returned: returned.map(|(to, why)| ReturnedShape { to: to.clone(), reason: why.clone() }).collect(),
        }
    }
}

/// The table of the outbox.
pub(crate) fn queued_table(queued: &[QueuedShape], now: Instant) -> String {
    let row = |one: &QueuedShape, to: &str, why: String| {
        let subject = printable_line(&one.subject);
        vec![one.id.clone(), one.from.clone(), printable_line(to), ago(one.at.0, now), why, subject]
    };
    let rows: Vec<Vec<String>> = queued
        .iter()
        .flat_map(|one| {
            let why = match &one.refused {
                Some(why) => format!("waits, not taken: {}", printable_line(why)),
                None => "waits for the servers".to_owned(),
            };
            let waiting = one.to.iter().map(move |to| row(one, to, why.clone()));
            let returned = one.returned.iter().map(|back| row(one, &back.to, printable_line(&back.reason)));
            waiting.chain(returned).collect::<Vec<_>>()
        })
        .collect();
    table(&["QUEUED", "FROM", "TO", "SENT", "BECAUSE", "ABOUT"], &rows)
}

/// One acknowledged message.
#[derive(Debug, Serialize)]
pub(crate) struct AcknowledgedShape {
    /// The message.
    pub(crate) id: String,
    /// Whether it had been acknowledged before.
    pub(crate) again: bool,
}

/// `relay-mesh ack ID…`.
#[derive(Debug, Serialize)]
pub(crate) struct AckShape {
    /// The agent that acknowledged.
    pub(crate) agent: String,
    pub(crate) acknowledged: Vec<AcknowledgedShape>,
}

impl AckShape {
    pub(crate) fn of(agent: String, acknowledged: &[Acknowledged]) -> AckShape {
        let acknowledged =
            acknowledged.iter().map(|one| AcknowledgedShape { id: one.id.to_string(), again: one.again }).collect();
        AckShape { agent, acknowledged }
    }
}

impl Show for AckShape {
    fn text(&self) -> String {
        let one = |one: &AcknowledgedShape| {
            let before = if one.again { " (it was before)" } else { "" };
            format!("{}  acknowledged{before}", one.id)
        };
        self.acknowledged.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}

/// The note below a truncated list; none if no more mail waits. `named` is the flag that names the agent, so that the
/// user can copy the command.
pub(crate) fn more_waits(waiting: usize, named: &str) -> Option<String> {
    (waiting > 0).then(|| format!("{} besides; `relay-mesh read --unread{named}` shows the oldest", waits(waiting)))
}
