//! Names of agents and teams, and message ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::messages::id_prefix::SHORTEST_PREFIX;

/// Longest name, and longest team, in characters.
pub const LONGEST_NAME: usize = 63;

/// Names that no agent registers, because the text "from NAME" would mislead a model.
const MISLEADING: &[&str] = &[
    "assistant",
    "claude",
    "claude-code",
    "codex",
    "copilot",
    "cursor",
    "developer",
    "gemini",
    "gemini-cli",
    "human",
    "model",
    "opencode",
    "person",
    "relay-mesh",
    "system",
    "tool",
    "user",
];

/// What every error says of a name that no agent has.
pub fn no_such_agent(name: impl fmt::Display) -> String {
    format!("no agent named `{name}` has joined")
}

/// An agent's stable name: `alice`, or `alice@backend` in a team.
///
/// Both parts are `[a-z0-9][a-z0-9-]*` and at most [`LONGEST_NAME`] characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// The sender of messages from a command line that acts for no agent. No agent can register this name.
    pub fn shell() -> AgentName {
        AgentName("shell".to_owned())
    }

    /// Whether this is the anonymous command line.
    pub fn is_shell(&self) -> bool {
        self.0 == "shell"
    }

    /// The whole name, with its team.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`.
    pub fn local(&self) -> &str {
        self.0.split_once('@').map_or(self.0.as_str(), |(local, _)| local)
    }

    /// The part after the `@`.
    pub fn team(&self) -> Option<&str> {
        self.0.split_once('@').map(|(_, team)| team)
    }

    /// Checks a stored name without building an [`AgentName`]. Stored data may also hold `shell`, which only relay-mesh
    /// itself writes.
    pub(crate) fn check_kept(text: &str) -> Result<(), InvalidName> {
        if text == "shell" { Ok(()) } else { check(text) }
    }

    /// A text that only stands before a number: the name of a harness, which alone is no agent's.
    pub(crate) fn label(text: &str) -> Result<AgentName, InvalidName> {
        let meant = text.to_ascii_lowercase();
        check(&meant).map_err(|error| error.about(text))?;
        Ok(AgentName(meant))
    }

    /// A label in a team.
    pub(crate) fn label_in_team(&self, team: Option<&str>) -> Result<AgentName, InvalidName> {
        match team {
            Some(team) => AgentName::label(&format!("{}@{team}", self.local())),
            None => Ok(self.clone()),
        }
    }

    /// The same name in a team, or in none.
    pub fn in_team(&self, team: Option<&str>) -> Result<AgentName, InvalidName> {
        match team {
            Some(team) => format!("{}@{team}", self.local()).parse(),
            None => self.local().parse(),
        }
    }

    /// The same name with a numeric suffix, shortened if it would become too long.
    #[must_use]
    pub fn numbered(&self, number: u32) -> AgentName {
        let suffix = format!("-{number}");
        let most = LONGEST_NAME - suffix.len();
        let local: String = self.local().chars().take(most).collect();
        match self.team() {
            Some(team) => AgentName(format!("{}{suffix}@{team}", local.trim_end_matches('-'))),
            None => AgentName(format!("{}{suffix}", local.trim_end_matches('-'))),
        }
    }
}

/// Why text is not an agent's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It has characters that are not allowed.
    #[error("`{0}` is not a name: use a-z, 0-9 and -, starting with a letter or digit, and optionally @team")]
    Alphabet(String),
    /// It exceeds [`LONGEST_NAME`].
    #[error("`{0}` is too long for a name: at most {LONGEST_NAME} characters")]
    TooLong(String),
    /// It is `shell`, which has a meaning of its own.
    #[error("`{0}` is reserved: it stands for a command line that acts for no agent")]
    Reserved(String),
    /// A model would take it for something other than an agent.
    #[error("`{0}` is no name for an agent: it could be taken for a user, a model, a harness or relay-mesh itself")]
    Misleading(String),
}

impl InvalidName {
    /// The same, of the text as it was written.
    fn about(self, text: &str) -> InvalidName {
        let text = shorten(text);
        match self {
            InvalidName::Alphabet(_) => InvalidName::Alphabet(text),
            InvalidName::TooLong(_) => InvalidName::TooLong(text),
            InvalidName::Reserved(_) => InvalidName::Reserved(text),
            InvalidName::Misleading(_) => InvalidName::Misleading(text),
        }
    }
}

fn check_part(whole: &str, part: &str) -> Result<(), InvalidName> {
    let alphabet = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if part.len() > LONGEST_NAME {
        Err(InvalidName::TooLong(shorten(whole)))
    } else if part.is_empty() || part.starts_with('-') || !part.bytes().all(alphabet) {
        Err(InvalidName::Alphabet(shorten(whole)))
    } else {
        Ok(())
    }
}

/// Untrusted input, shortened and without control characters, to quote in an error.
pub(crate) fn shorten(text: &str) -> String {
    let short: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

impl FromStr for AgentName {
    type Err = InvalidName;

    /// People and models also write `Alice` and mean `alice`. Stored names are read by `try_from`, which does not.
    fn from_str(text: &str) -> Result<AgentName, InvalidName> {
        let meant = text.to_ascii_lowercase();
        check(&meant).map_err(|error| error.about(text))?;
        let name = AgentName(meant);
        if name.is_shell() {
            Err(InvalidName::Reserved(text.to_owned()))
        } else if MISLEADING.contains(&name.local()) {
            Err(InvalidName::Misleading(text.to_owned()))
        } else {
            Ok(name)
        }
    }
}

fn check(text: &str) -> Result<(), InvalidName> {
    let (local, team) = match text.split_once('@') {
        Some((local, team)) => (local, Some(team)),
        None => (text, None),
    };
    check_part(text, local)?;
    team.map_or(Ok(()), |team| check_part(text, team))
}

impl TryFrom<String> for AgentName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<AgentName, InvalidName> {
        AgentName::check_kept(&text)?;
        Ok(AgentName(text))
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> String {
        name.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A message's id: a ULID, so ids sort by creation time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageId(pub(crate) ulid::Ulid);

/// Why text is not a message's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessageId {
    /// Only a whole id would do.
    #[error("`{0}` is not an id: one is 26 characters long, as in 01JD8Z3K5V0000000000000000")]
    Whole(String),
    /// The beginning of one would do.
    #[error(
        "`{0}` is not an id: one is 26 letters and digits, as in 01JD8Z3K5V0000000000000000, and at least its first \
         {SHORTEST_PREFIX} are needed"
    )]
    Beginning(String),
}

impl FromStr for MessageId {
    type Err = InvalidMessageId;

    fn from_str(text: &str) -> Result<MessageId, InvalidMessageId> {
        ulid::Ulid::from_string(text).map(MessageId).map_err(|_| InvalidMessageId::Whole(shorten(text)))
    }
}

impl TryFrom<String> for MessageId {
    type Error = InvalidMessageId;

    fn try_from(text: String) -> Result<MessageId, InvalidMessageId> {
        text.parse()
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> String {
        id.0.to_string()
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let outcome = match text.parse::<AgentName>() {
            Ok(name) => format!("{} of {}", name.local(), name.team().unwrap_or("no team")),
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{text}: {outcome}");
    }

    #[test]
    fn names_are_parsed_at_the_edge() {
        check("alice", "alice of no team");
        check("alice-2@backend", "alice-2 of backend");
        check("7", "7 of no team");
        check("Alice", "alice of no team");
        check("Alice@Backend", "alice of backend");
        check("Älice", "`Älice` is not a name");
        check("-a", "is not a name");
        check("a@", "is not a name");
        check("a@b@c", "is not a name");
        check("a/../b", "is not a name");
        check("", "is not a name");
        check(&"a".repeat(64), "too long");
        check("shell", "reserved");
        check("SHELL", "reserved");
        check("user", "no name for an agent");
        check("User", "no name for an agent");
        check("claude@backend", "no name for an agent");
        check("claude-2", "claude-2 of no team");
    }

    #[test]
    fn a_stored_name_is_read_as_it_stands() {
        for (text, expected) in [("alice", true), ("shell", true), ("Alice", false)] {
            assert_eq!(AgentName::try_from(text.to_owned()).is_ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_numbered_name_is_still_a_name() {
        let long: AgentName = format!("{}@t", "a".repeat(63)).parse().expect("a name");
        let numbered = long.numbered(12);
        assert_eq!(numbered.local().len(), 63);
        assert_eq!(numbered.as_str().parse::<AgentName>().expect("a name"), numbered);
    }
}
