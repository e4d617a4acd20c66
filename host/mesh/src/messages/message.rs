//! A message as it is stored, and a draft as its sender writes it.

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// The longest body, in bytes.
pub const LONGEST_BODY: usize = 256 * 1024;
/// The longest subject, thread name, idempotency key or tag, in bytes.
pub const LONGEST_LABEL: usize = 200;
/// Maximum number of tags of a message.
pub const MOST_TAGS: usize = 16;

/// How far a message may interrupt its recipient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Waits for a hook of the harness, or for a fetch.
    Low,
    /// Wakes an idle session; reaches a busy one only between tools.
    #[default]
    Normal,
    /// As normal, and shown first.
    High,
    /// May steer a busy session.
    Urgent,
}

/// A message as it is stored in an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Message id. A broadcast has the same id in every inbox.
    pub id: MessageId,
    /// When it was stored.
    pub at: Instant,
    /// The sender, as the mesh identified it.
    pub from: AgentName,
    /// The recipient, in whose inbox it is stored.
    pub to: AgentName,
    /// The subject; made from the body if the sender gave none.
    pub subject: String,
    /// The text.
    pub body: String,
    /// The thread: the id of its first message, or a name.
    pub thread: String,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// How far it may interrupt.
    #[serde(default)]
    pub priority: Priority,
    /// Free words to filter by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The sender's key for this message: two sends with the same key store it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Whether it was sent to everyone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broadcast: bool,
    /// The chain of messages that led to this one.
    pub trace: Trace,
    /// Why the loop guard wakes nobody for it, decided before it was stored: whoever sees the message sees this too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
}

/// Why waking stopped for a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The reason, for users.
    pub reason: String,
    /// When it ends by itself; none if only the user or a fetch ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

/// A chain of messages that agents sent because of one another, with no user in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trace {
    /// The first message of the chain.
    pub root: MessageId,
    /// How many messages lie between the first one and this one.
    pub hops: u32,
}

/// A message as its sender writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The text.
    pub body: String,
    pub subject: Option<String>,
    /// The thread: the id of its first message, or a name.
    pub thread: Option<String>,
    /// The message that it answers. Replying acknowledges that one.
    pub reply_to: Option<MessageId>,
    /// How far it may interrupt.
    pub priority: Priority,
    /// Free words to filter by.
    pub tags: Vec<String>,
    /// The same key from the same sender to the same recipient is stored once; with other content it is an error.
    pub idempotency_key: Option<String>,
}

/// Why a draft is not a valid message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDraft {
    /// The body is empty.
    #[error("the message is empty")]
    Empty,
    /// An empty key would make every message without a key a duplicate of the first.
    #[error("the idempotency key is empty")]
    EmptyKey,
    /// The body is too long.
    #[error("the body has {bytes} bytes and a message carries at most {LONGEST_BODY}")]
    BodyTooLong {
        /// Its length.
        bytes: usize,
    },
    /// A subject, thread, key or tag that is too long.
    #[error("the {label} has {bytes} bytes and may have at most {LONGEST_LABEL}")]
    LabelTooLong {
        /// Which of them.
        label: &'static str,
        /// Its length.
        bytes: usize,
    },
    #[error("a message may have at most {MOST_TAGS} tags and this one has {0}")]
    TooManyTags(usize),
}

/// A text that is long enough to be a body, cut at a character boundary if it is too long. `tail` then says where the
/// rest is.
pub fn shortened(mut text: String, tail: &str) -> String {
    if text.len() > LONGEST_BODY {
        text.truncate(text.floor_char_boundary(LONGEST_BODY - tail.len()));
        text.push_str(tail);
    }
    text
}

impl Draft {
    /// Checks the body, the labels' lengths and the number of tags.
    pub fn validate(&self) -> Result<(), InvalidDraft> {
        if self.body.trim().is_empty() {
            return Err(InvalidDraft::Empty);
        }
        if self.body.len() > LONGEST_BODY {
            return Err(InvalidDraft::BodyTooLong { bytes: self.body.len() });
        }
        if self.idempotency_key.as_deref().is_some_and(|key| key.trim().is_empty()) {
            return Err(InvalidDraft::EmptyKey);
        }
        if self.tags.len() > MOST_TAGS {
            return Err(InvalidDraft::TooManyTags(self.tags.len()));
        }
        let labels = [("subject", &self.subject), ("thread", &self.thread), ("idempotency key", &self.idempotency_key)];
        let tags = self.tags.iter().map(|tag| ("tag", tag));
        for (label, text) in
            labels.into_iter().filter_map(|(label, text)| text.as_ref().map(|text| (label, text))).chain(tags)
        {
            if text.len() > LONGEST_LABEL {
                return Err(InvalidDraft::LabelTooLong { label, bytes: text.len() });
            }
        }
        Ok(())
    }

    /// Drops blank fields: a blank field counts as not set.
    pub(crate) fn without_blanks(mut self) -> Draft {
        let is_said = |text: &String| !text.trim().is_empty();
        self.subject = self.subject.filter(is_said);
        self.thread = self.thread.filter(is_said);
        self.tags.retain(is_said);
        self
    }

    /// The subject; if there is none, the first 80 characters of the body's first line.
    pub fn subject_or_default(&self) -> String {
        match &self.subject {
            Some(subject) => subject.clone(),
            None => {
                let line = self.body.trim_start().lines().next().unwrap_or_default();
                let end = line.char_indices().nth(80).map_or(line.len(), |(at, _)| at);
                line[..end].to_owned()
            }
        }
    }
}
