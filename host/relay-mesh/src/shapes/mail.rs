//! Messages: `send`, `read`, `ack` and the lines of `listen`.

use mesh::FetchedMessage;
use mesh::machine::Instant;
use mesh::message::{Message, Priority};
use mesh::receipt::Rung;
use mesh::{Acknowledged, Queued, Sent};
use serde::Serialize;

use super::agents::waits;
use super::{ago, rfc3339};
use crate::render::{Show, printable, printable_line, table};

/// A message.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MessageShape {
    /// Its id.
    pub(crate) id: String,
    /// When it was stored.
    pub(crate) at: String,
    /// Who sent it, as worked out by the host.
    pub(crate) from: String,
    /// In whose inbox it lies.
    pub(crate) to: String,
    /// What it is about.
    pub(crate) subject: String,
    /// The text, as its sender wrote it.
    pub(crate) body: String,
    /// The conversation that it belongs to.
    pub(crate) thread: String,
    /// The message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<String>,
    /// `low`, `normal`, `high` or `urgent`.
    pub(crate) priority: &'static str,
    /// Free words to filter by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// Whether it went to everyone.
    pub(crate) broadcast: bool,
    /// When it was stored, for "how long ago".
    #[serde(skip)]
    pub(crate) stored: Instant,
}

impl From<&Message> for MessageShape {
    fn from(message: &Message) -> MessageShape {
        MessageShape {
            id: message.id.to_string(),
            at: rfc3339(message.at),
            from: message.from.to_string(),
            to: message.to.to_string(),
            subject: message.subject.clone(),
            body: message.body.clone(),
            thread: message.thread.clone(),
            reply_to: message.reply_to.map(|id| id.to_string()),
            priority: priority(message.priority),
            tags: message.tags.clone(),
            broadcast: message.broadcast,
            stored: message.at,
        }
    }
}

/// The word for a priority.
pub(crate) fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
        Priority::Urgent => "urgent",
    }
}

impl MessageShape {
    /// Who, when and about what, on one line.
    pub(crate) fn headline(&self, now: Instant) -> String {
        let mut line = format!("{}  {} → {}  {}", self.id, self.from, self.to, ago(self.stored, now));
        if self.priority != "normal" {
            line.push_str(&format!("  {}", self.priority));
        }
        if let Some(answered) = &self.reply_to {
            line.push_str(&format!("  answers {answered}"));
        }
        for tag in &self.tags {
            line.push_str(&format!("  #{}", printable_line(tag)));
        }
        line
    }

    /// The body, indented, below the subject where that says more than the body's first line.
    pub(crate) fn text(&self) -> String {
        let body = printable(&self.body);
        let mut lines: Vec<String> = Vec::new();
        if !self.body.trim_start().starts_with(&self.subject) {
            lines.push(format!("  {}", printable_line(&self.subject)));
        }
        lines.extend(body.lines().map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }));
        lines.join("\n")
    }
}

/// A message that was read, and how far it had got by then.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReadMessageShape {
    /// The message.
    #[serde(flatten)]
    pub(crate) message: MessageShape,
    /// The rung on which it stood before it was read now.
    pub(crate) rung: &'static str,
}

impl From<&FetchedMessage> for ReadMessageShape {
    fn from(fetched: &FetchedMessage) -> ReadMessageShape {
        ReadMessageShape { message: (&fetched.message).into(), rung: fetched.ladder.rung().as_str() }
    }
}

/// `relay-mesh read`.
#[derive(Debug, Serialize)]
pub(crate) struct MailShape {
    /// Whose mail.
    pub(crate) agent: String,
    /// What was asked for, oldest first.
    pub(crate) messages: Vec<ReadMessageShape>,
    /// How many more wait unread.
    pub(crate) waiting: usize,
    /// The time of asking, for "how long ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

impl Show for MailShape {
    fn text(&self) -> String {
        let one = |read: &ReadMessageShape| {
            let unread = match read.rung {
                "stored" | "offered" | "accepted" => "  new",
                _ => "",
            };
            format!("{}{unread}\n{}", read.message.headline(self.now), read.message.text())
        };
        self.messages.iter().map(one).collect::<Vec<_>>().join("\n\n")
    }
}

/// What became of a sending with one recipient.
#[derive(Debug, Serialize)]
pub(crate) struct SentToShape {
    /// The recipient.
    pub(crate) to: String,
    /// How far it got: `stored`, `offered` where a bell was rung, or `queued` where it waits on this machine.
    pub(crate) rung: &'static str,
    /// How present the recipient is.
    pub(crate) presence: &'static str,
    /// Why nobody was woken, where waking stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<String>,
    /// The same had been stored before under the same idempotency key: this is that message.
    pub(crate) duplicate: bool,
}

/// `relay-mesh send`.
#[derive(Debug, Serialize)]
pub(crate) struct SentShape {
    /// The message's id, one for all recipients.
    pub(crate) id: String,
    /// The conversation that it belongs to.
    pub(crate) thread: String,
    /// Who speaks in it.
    pub(crate) from: String,
    /// Each recipient.
    pub(crate) recipients: Vec<SentToShape>,
}

impl SentShape {
    /// What became of a sending by an agent.
    pub(crate) fn of(sent: &Sent, from: String) -> SentShape {
        SentShape {
            id: sent.id.to_string(),
            thread: sent.thread.clone(),
            from,
            recipients: sent
                .recipients
                .iter()
                .map(|recipient| SentToShape {
                    to: recipient.to.to_string(),
                    rung: recipient.rung.as_str(),
                    presence: recipient.presence.as_str(),
                    held: recipient.held.clone(),
                    duplicate: recipient.duplicate,
                })
                .collect(),
        }
    }
}

impl Show for SentShape {
    fn text(&self) -> String {
        let one = |recipient: &SentToShape| {
            let mut line = format!("{}  {} for {} ({})", self.id, recipient.rung, recipient.to, recipient.presence);
            if recipient.duplicate {
                line.push_str("; it had been sent before under the same key");
            }
            if recipient.rung == Rung::Queued.as_str() {
                line.push_str("; it waits on this machine until the servers take it (`relay-mesh status` says why)");
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
    /// Its id.
    pub(crate) id: String,
    /// When it was sent.
    pub(crate) at: String,
    /// Who sent it.
    pub(crate) from: String,
    /// To whom it is still to be sent.
    pub(crate) to: Vec<String>,
    /// What it is about.
    pub(crate) subject: String,
    /// Why the servers did not take it, where they were there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// To whom it cannot be sent, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) returned: Vec<ReturnedShape>,
    #[serde(skip)]
    sent: Instant,
}

/// Somebody to whom a message cannot be sent.
#[derive(Debug, Serialize)]
pub(crate) struct ReturnedShape {
    /// Who.
    pub(crate) to: String,
    /// Why.
    pub(crate) reason: String,
}

impl From<&Queued> for QueuedShape {
    fn from(queued: &Queued) -> QueuedShape {
        let returned = queued.returned.iter();
        QueuedShape {
            id: queued.id.to_string(),
            at: rfc3339(queued.at),
            from: queued.from.to_string(),
            to: queued.to.clone(),
            subject: queued.subject.clone(),
            refused: queued.refused.clone(),
            returned: returned.map(|(to, why)| ReturnedShape { to: to.clone(), reason: why.clone() }).collect(),
            sent: queued.at,
        }
    }
}

/// The outbox as a table.
pub(crate) fn queued_table(queued: &[QueuedShape], now: Instant) -> String {
    let row = |one: &QueuedShape, to: &str, why: String| {
        let subject = printable_line(&one.subject);
        vec![one.id.clone(), one.from.clone(), printable_line(to), ago(one.sent, now), why, subject]
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
    /// Who acknowledged.
    pub(crate) agent: String,
    /// What.
    pub(crate) acknowledged: Vec<AcknowledgedShape>,
}

impl AckShape {
    /// What an agent acknowledged.
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

/// The note below a list that is not all there is; none where nothing waits. `named` is the flag by which the
/// agent was named, so that the command can be typed as it stands.
pub(crate) fn more_waits(waiting: usize, named: &str) -> Option<String> {
    (waiting > 0).then(|| format!("{} besides; `relay-mesh read --unread{named}` shows the oldest", waits(waiting)))
}
