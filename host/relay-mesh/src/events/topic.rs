//! What can be followed, and to which of it an event of the event log belongs.

use mesh::Event;
use mesh::agents::Presence;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Topic {
    /// The mail that is stored for one agent
    Inbox,
    /// What is reserved, taken and released, and edits that met it
    Reservations,
    /// Commands: asked for, taken, ended
    Commands,
    /// What agents do: turns, items, files, commands of their harnesses, who needs their user, who starts and ends
    Turns,
    /// What driven agents say, while they say it; kept nowhere
    Deltas,
    /// Who registers, goes offline, comes back, is adopted, is invited, is woken, is held back, asks the user or is deleted
    Agents,
    /// Every message that is sent, of the whole mesh for its user, else what one agent sends and gets
    Messages,
    /// How far mail gets, that of the whole mesh for its user, else that of one agent: each status with route and evidence
    Delivery,
    /// Who is busy, idle, away or offline, and who needs their user
    Activity,
    /// Questions to the user: asked, answered, settled
    Asks,
    /// Runs: started, ended
    Runs,
}

impl Topic {
    pub(crate) const ALL: [Topic; 11] = [
        Topic::Inbox,
        Topic::Reservations,
        Topic::Commands,
        Topic::Turns,
        Topic::Agents,
        Topic::Deltas,
        Topic::Messages,
        Topic::Delivery,
        Topic::Activity,
        Topic::Asks,
        Topic::Runs,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Topic::Inbox => "inbox",
            Topic::Reservations => "reservations",
            Topic::Commands => "commands",
            Topic::Turns => "turns",
            Topic::Agents => "agents",
            Topic::Deltas => "deltas",
            Topic::Messages => "messages",
            Topic::Delivery => "delivery",
            Topic::Activity => "activity",
            Topic::Asks => "asks",
            Topic::Runs => "runs",
        }
    }

    /// Whether it is followed if no topic is named. The others say again what these say, from another side.
    pub(crate) fn is_usual(self) -> bool {
        match self {
            Topic::Inbox | Topic::Reservations | Topic::Commands | Topic::Turns | Topic::Agents => true,
            Topic::Deltas | Topic::Messages | Topic::Delivery | Topic::Activity | Topic::Asks | Topic::Runs => false,
        }
    }

    /// Whether its events are in the event log.
    pub(crate) fn is_of_event_log(self) -> bool {
        match self {
            Topic::Inbox | Topic::Deltas | Topic::Delivery => false,
            Topic::Reservations
            | Topic::Commands
            | Topic::Turns
            | Topic::Agents
            | Topic::Messages
            | Topic::Activity
            | Topic::Asks
            | Topic::Runs => true,
        }
    }

    /// The topics of an event in the event log. How far mail gets is not there: it is read from the receipts.
    pub(crate) fn of(event: &Event) -> &'static [Topic] {
        match event.kind.as_str() {
            "reserved" | "reservation-taken" | "released" | "edit-refused" | "edit-advised" => &[Topic::Reservations],
            "commanded" | "command-waits" | "command-run" | "command-taken" | "command-done" => &[Topic::Commands],
            "turn-started" | "turn-completed" | "turn-failed" | "needs-input" | "ended" => {
                &[Topic::Turns, Topic::Activity]
            }
            "item-started" | "file-changed" | "shell-command" | "spawned" => &[Topic::Turns],
            "agent-offline" | "agent-online" => &[Topic::Agents, Topic::Activity],
            // That its agent needs its user is an event of its own.
            "asked" | "ask-answered" | "ask-settled" => &[Topic::Agents, Topic::Asks],
            "registered" | "adopted" | "invited" | "woke" | "wake-failed" | "held" | "deleted" | "store-replaced"
            | "paused" | "resumed" => &[Topic::Agents],
            "sent" => &[Topic::Messages],
            "run-started" | "run-ended" => &[Topic::Runs],
            _ => &[],
        }
    }
}

/// What an event says of its agent's activity; none if it says nothing, or of no agent.
pub(crate) fn activity(event: &Event) -> Option<Presence> {
    event.details.get("agent").filter(|agent| agent.is_string())?;
    match event.kind.as_str() {
        "turn-started" => Some(Presence::Busy),
        "turn-completed" | "turn-failed" => Some(Presence::Idle),
        "needs-input" => Some(Presence::NeedsInput),
        "ended" => Some(Presence::Offline),
        "agent-offline" | "agent-online" => {
            let said = event.details.get("presence").and_then(|word| word.as_str())?;
            let all = [Presence::Busy, Presence::NeedsInput, Presence::Idle, Presence::Away, Presence::Offline];
            all.into_iter().find(|presence| presence.as_str() == said)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use mesh::ports::machine::Instant;
    use serde_json::json;
    use store::Position;

    use super::*;

    fn event(kind: &str, details: serde_json::Value) -> Event {
        let details = details.as_object().cloned().unwrap_or_default();
        Event { at: Instant(0), kind: kind.to_owned(), details, next: Position::START }
    }

    #[test]
    fn each_kind_of_event_has_its_topics() {
        for (topics, kinds) in [
            ("reservations", "reserved reservation-taken released edit-refused edit-advised"),
            ("commands", "commanded command-waits command-run command-taken command-done"),
            ("turns activity", "turn-started turn-completed turn-failed needs-input ended"),
            ("turns", "item-started file-changed shell-command spawned"),
            ("agents activity", "agent-offline agent-online"),
            ("agents asks", "asked ask-answered ask-settled"),
            ("agents", "registered adopted invited woke wake-failed held deleted store-replaced paused resumed"),
            ("messages", "sent"),
            ("runs", "run-started run-ended"),
            // The audit of tools is read with `log`.
            ("", "audit of-a-newer-version"),
        ] {
            for kind in kinds.split(' ') {
                let found: Vec<&str> = Topic::of(&event(kind, json!({}))).iter().map(|topic| topic.as_str()).collect();
                assert_eq!(found.join(" "), topics, "{kind}");
            }
        }
        let untold = mesh::EVENT_KINDS.iter().filter(|kind| Topic::of(&event(kind, json!({}))).is_empty());
        assert_eq!(untold.collect::<Vec<_>>(), [&"audit"], "every other kind can be followed");
    }

    #[test]
    fn an_event_says_what_its_agent_is_doing_or_nothing() {
        for (kind, details, expected) in [
            ("turn-started", json!({"agent": "bob"}), Some("busy")),
            ("turn-failed", json!({"agent": "bob"}), Some("idle")),
            ("needs-input", json!({"agent": "bob"}), Some("needs-input")),
            ("asked", json!({"agent": "bob"}), None),
            ("agent-online", json!({"agent": "bob", "presence": "idle"}), Some("idle")),
            ("agent-offline", json!({"agent": "bob", "presence": "away"}), Some("away")),
            ("agent-offline", json!({"agent": "bob", "presence": "newer"}), None),
            ("ended", json!({"agent": "bob"}), Some("offline")),
            ("turn-started", json!({"session": "s1"}), None),
            ("turn-started", json!({"agent": null}), None),
            ("registered", json!({"agent": "bob"}), None),
        ] {
            assert_eq!(activity(&event(kind, details)).map(Presence::as_str), expected, "{kind}");
        }
    }
}
