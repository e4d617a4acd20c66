//! A hook, and which events it is for.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Event;
use crate::names::AgentName;
use crate::ports::machine::Instant;

/// What a hook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookTrigger {
    /// A turn began.
    TurnStarted,
    /// A turn ended by itself.
    TurnCompleted,
    /// A turn failed, or was stopped.
    TurnFailed,
    /// A driven agent began something.
    ItemStarted,
    /// An agent changed a file.
    FileChanged,
    /// A driven agent's harness ran a shell command.
    CommandRun,
    /// An agent waits for its user.
    NeedsInput,
    /// The user started an agent.
    Spawned,
    /// An agent, or its session, is over.
    Ended,
    /// A message was sent.
    Message,
}

impl HookTrigger {
    /// Every one.
    pub const ALL: [HookTrigger; 10] = [
        HookTrigger::TurnStarted,
        HookTrigger::TurnCompleted,
        HookTrigger::TurnFailed,
        HookTrigger::ItemStarted,
        HookTrigger::FileChanged,
        HookTrigger::CommandRun,
        HookTrigger::NeedsInput,
        HookTrigger::Spawned,
        HookTrigger::Ended,
        HookTrigger::Message,
    ];

    /// The word that users write.
    pub fn as_str(self) -> &'static str {
        match self {
            HookTrigger::TurnStarted => "turn-started",
            HookTrigger::TurnCompleted => "turn-completed",
            HookTrigger::TurnFailed => "turn-failed",
            HookTrigger::ItemStarted => "item-started",
            HookTrigger::FileChanged => "file-changed",
            HookTrigger::CommandRun => "command-run",
            HookTrigger::NeedsInput => "needs-input",
            HookTrigger::Spawned => "spawned",
            HookTrigger::Ended => "ended",
            HookTrigger::Message => "message",
        }
    }

    /// The kind of its events in the event log.
    pub fn kind(self) -> &'static str {
        match self {
            HookTrigger::CommandRun => "shell-command",
            HookTrigger::Message => "sent",
            HookTrigger::TurnStarted
            | HookTrigger::TurnCompleted
            | HookTrigger::TurnFailed
            | HookTrigger::ItemStarted
            | HookTrigger::FileChanged
            | HookTrigger::NeedsInput
            | HookTrigger::Spawned
            | HookTrigger::Ended => self.as_str(),
        }
    }

    /// The field of its events that a pattern is compared with.
    fn matched_field(self) -> &'static str {
        match self {
            HookTrigger::TurnStarted | HookTrigger::Spawned => "folder",
            HookTrigger::TurnCompleted | HookTrigger::ItemStarted | HookTrigger::NeedsInput => "text",
            HookTrigger::TurnFailed | HookTrigger::Ended => "because",
            HookTrigger::FileChanged => "path",
            HookTrigger::CommandRun => "command",
            HookTrigger::Message => "from",
        }
    }
}

impl fmt::Display for HookTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No event has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the events are {}", HookTrigger::ALL.map(HookTrigger::as_str).join(", "))]
pub struct UnknownTrigger;

impl FromStr for HookTrigger {
    type Err = UnknownTrigger;

    fn from_str(text: &str) -> Result<HookTrigger, UnknownTrigger> {
        HookTrigger::ALL.into_iter().find(|trigger| trigger.as_str() == text).ok_or(UnknownTrigger)
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// Run a shell command.
    Run(String),
    /// Send a message to an agent or to a channel.
    Tell(String),
    /// Post the event to a URL.
    Post(String),
    /// Show a notice on the desktop.
    Notify,
}

/// A pattern of files, commands or texts.
#[derive(Clone, Debug)]
pub struct HookMatch {
    text: String,
    file: GlobMatcher,
    other: GlobMatcher,
}

impl PartialEq for HookMatch {
    fn eq(&self, other: &HookMatch) -> bool {
        self.text == other.text
    }
}

/// A text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no pattern: {1}")]
pub struct InvalidMatch(String, String);

impl FromStr for HookMatch {
    type Err = InvalidMatch;

    fn from_str(text: &str) -> Result<HookMatch, InvalidMatch> {
        let invalid = |error: globset::Error| InvalidMatch(text.to_owned(), error.kind().to_string());
        if text.is_empty() {
            return Err(InvalidMatch(String::new(), "it is empty".to_owned()));
        }
        // As in .gitignore, a pattern without a slash is one of names.
        let of_files = if text.contains('/') { text.to_owned() } else { format!("**/{text}") };
        let compiled = |pattern: &str, separates: bool| {
            GlobBuilder::new(pattern).literal_separator(separates).build().map(|glob| glob.compile_matcher())
        };
        Ok(HookMatch {
            text: text.to_owned(),
            file: compiled(&of_files, true).map_err(invalid)?,
            other: compiled(text, false).map_err(invalid)?,
        })
    }
}

impl HookMatch {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn fits(&self, trigger: HookTrigger, details: &Map<String, Value>) -> bool {
        let text = |name: &str| details.get(name).and_then(Value::as_str).unwrap_or_default();
        let value = text(trigger.matched_field());
        if trigger != HookTrigger::FileChanged {
            return self.other.is_match(value);
        }
        let path = Path::new(value);
        self.file.is_match(path.strip_prefix(text("folder")).unwrap_or(path)) || self.file.is_match(path)
    }
}

/// One of the user's event hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHook {
    /// Its id, which the user types to remove it.
    pub id: String,
    /// What it is for.
    pub on: HookTrigger,
    /// Only events of this agent; of messages, those to it.
    pub agent: Option<AgentName>,
    /// Only events of this harness.
    pub harness: Option<String>,
    /// Only events of which this fits.
    pub matches: Option<HookMatch>,
    /// What is to be done.
    pub action: HookAction,
    /// How long a command may take, in milliseconds.
    pub timeout: u64,
    /// What a webhook's requests are signed with.
    pub secret: Option<String>,
    /// When it was made: it is for nothing that happened before.
    pub since: Instant,
}

impl EventHook {
    /// Whether it is for an event.
    pub fn is_for(&self, event: &Event) -> bool {
        let details = &event.details;
        let is = |field: &str, wanted: &str| match details.get(field) {
            Some(Value::Array(several)) => several.iter().any(|one| one.as_str() == Some(wanted)),
            other => other.and_then(Value::as_str) == Some(wanted),
        };
        let whose = if self.on == HookTrigger::Message { "to" } else { "agent" };
        event.kind == self.on.kind()
            && event.at >= self.since
            // A message that a hook sends sets off no further one.
            && !(self.on == HookTrigger::Message && details.contains_key("hook"))
            && self.agent.as_ref().is_none_or(|agent| is(whose, agent.as_str()))
            && self.harness.as_ref().is_none_or(|harness| is("harness", harness))
            && self.matches.as_ref().is_none_or(|wanted| wanted.fits(self.on, details))
    }
}

/// An event as an invocation keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occurrence {
    /// When it happened.
    pub at: Instant,
    /// What, in the word of its hook.
    pub on: HookTrigger,
    /// All other fields.
    pub details: Map<String, Value>,
}

impl Occurrence {
    /// One of its fields, as text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.details.get(field).and_then(Value::as_str)
    }

    /// The agent whose chain of messages a message about this goes on with.
    pub(crate) fn cause(&self) -> Option<AgentName> {
        self.text("agent").or_else(|| self.text("from"))?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Position;

    fn hook(on: &str, agent: Option<&str>, harness: Option<&str>, matches: Option<&str>) -> EventHook {
        EventHook {
            id: "h1".to_owned(),
            on: on.parse().expect("an event"),
            agent: agent.map(|name| name.parse().expect("a name")),
            harness: harness.map(str::to_owned),
            matches: matches.map(|text| text.parse().expect("a pattern")),
            action: HookAction::Notify,
            timeout: 0,
            secret: None,
            since: Instant(100),
        }
    }

    fn event(kind: &str, at: u64, details: Value) -> Event {
        let Value::Object(details) = details else { panic!("fields") };
        Event { at: Instant(at), kind: kind.to_owned(), details, next: Position(7) }
    }

    #[test]
    fn a_hook_is_for_the_events_of_its_kind_its_agent_its_harness_and_its_pattern() {
        let changed = |path: &str| {
            let details = serde_json::json!({"agent": "alice", "harness": "codex", "folder": "/work", "path": path});
            event("file-changed", 100, details)
        };
        let check = |hook: &EventHook, event: &Event, expected: bool| {
            assert_eq!(hook.is_for(event), expected, "{hook:?} {event:?}");
        };
        let lib = changed("/work/src/lib.rs");
        check(&hook("file-changed", None, None, None), &lib, true);
        check(&hook("turn-started", None, None, None), &lib, false);
        check(&hook("file-changed", None, None, None), &Event { at: Instant(99), ..lib.clone() }, false);
        check(&hook("file-changed", Some("alice"), Some("codex"), Some("*.rs")), &lib, true);
        check(&hook("file-changed", Some("bob"), None, None), &lib, false);
        check(&hook("file-changed", None, Some("opencode"), None), &lib, false);
        check(&hook("file-changed", None, None, Some("*.ts")), &lib, false);
        check(&hook("file-changed", None, None, Some("src/*")), &lib, true);
        check(&hook("file-changed", None, None, Some("src/*")), &changed("/work/src/a/b.rs"), false);
        check(&hook("file-changed", None, None, Some("src/**")), &changed("/work/src/a/b.rs"), true);
        check(&hook("file-changed", None, None, Some("/etc/**")), &changed("/etc/passwd"), true);
        let ran =
            |command: &str| event("shell-command", 100, serde_json::json!({"agent": "alice", "command": command}));
        check(&hook("command-run", None, None, Some("*rm -rf*")), &ran("cd /tmp && rm -rf x\nls"), true);
        check(&hook("command-run", None, None, Some("rm*")), &ran("ls"), false);
        // The mesh's own commands are another thing.
        check(&hook("command-run", None, None, None), &event("command-run", 100, serde_json::json!({})), false);
    }

    #[test]
    fn a_message_is_for_its_recipients_and_one_that_a_hook_sent_for_nobody() {
        let sent = |details: Value| event("sent", 100, details);
        let one = sent(serde_json::json!({"from": "alice", "to": ["bob", "carol"]}));
        assert!(hook("message", None, None, None).is_for(&one));
        assert!(hook("message", Some("bob"), None, Some("al*")).is_for(&one));
        assert!(!hook("message", Some("alice"), None, None).is_for(&one));
        let of_a_hook = sent(serde_json::json!({"from": "shell", "to": ["bob"], "hook": "h1"}));
        assert!(!hook("message", None, None, None).is_for(&of_a_hook));
    }

    #[test]
    fn what_is_no_pattern_is_an_error() {
        for text in ["", "[a", "{a", "a{b"] {
            assert!(text.parse::<HookMatch>().is_err(), "{text}");
        }
        assert_eq!("turn-over".parse::<HookTrigger>(), Err(UnknownTrigger));
        assert!(UnknownTrigger.to_string().contains("turn-started, turn-completed"));
    }
}
