//! An event as a hook's command, recipient and webhook get it.

use std::collections::BTreeMap;

use mesh::event_hooks::{HookTrigger, Occurrence};
use mesh::ports::machine::Instant;
use serde_json::{Map, Value, json};

use crate::shapes::rfc3339;

/// The longest text of a notice or a message's first line, in characters.
const LONGEST_LINE: usize = 200;

/// The event as JSON: what a webhook gets, and a command on standard input.
pub(super) fn json_of(hook: &str, id: &str, event: &Occurrence) -> Value {
    json!({
        "type": event.on.as_str(),
        "timestamp": rfc3339(event.at),
        "id": id,
        "hook": hook,
        "data": event.details,
    })
}

/// The variables of a command. An environment holds no NUL, so that one is left out of a value.
pub(super) fn variables(hook: &str, id: &str, event: &Occurrence) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([
        ("RELAY_EVENT".to_owned(), event.on.as_str().to_owned()),
        ("RELAY_EVENT_ID".to_owned(), id.to_owned()),
        ("RELAY_HOOK".to_owned(), hook.to_owned()),
    ]);
    for (variable, field) in [
        // RELAY_AGENT would have `relay-mesh` speak as that agent.
        ("RELAY_EVENT_AGENT", "agent"),
        ("RELAY_EVENT_HARNESS", "harness"),
        ("RELAY_EVENT_SESSION", "session"),
        ("RELAY_FOLDER", "folder"),
        ("RELAY_FILE", "path"),
        ("RELAY_COMMAND", "command"),
        ("RELAY_TEXT", "text"),
        ("RELAY_BECAUSE", "because"),
        ("RELAY_FROM", "from"),
        ("RELAY_MESSAGE", "id"),
    ] {
        if let Some(value) = event.text(field) {
            variables.insert(variable.to_owned(), value.replace('\0', ""));
        }
    }
    if let Some(succeeded) = event.details.get("succeeded").and_then(Value::as_bool) {
        variables.insert("RELAY_SUCCEEDED".to_owned(), succeeded.to_string());
    }
    variables
}

/// The event in one line, for a notice and for a message's subject.
pub(super) fn line(event: &Occurrence) -> String {
    let who = event.text("agent").or_else(|| event.text("from"));
    let who = who.or_else(|| event.text("harness")).unwrap_or("an agent");
    let what = ["path", "command", "text", "because"].iter().find_map(|field| event.text(field));
    let text = match (event.on, what) {
        (HookTrigger::Message, _) => format!("{who} sent a message"),
        (on, Some(what)) => format!("{who}: {on}: {what}"),
        (on, None) => format!("{who}: {on}"),
    };
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_LINE).collect();
    plain.trim().to_owned()
}

/// A message about the event.
pub(super) fn message(hook: &str, event: &Occurrence) -> String {
    let details = serde_json::to_string(&event.details).unwrap_or_default();
    format!("{}\n\nTold by the event hook `{hook}` of the user. The event: {details}", line(event))
}

/// An event of a kind as it could be, to try a hook.
pub(crate) fn sample(on: HookTrigger, at: Instant, folder: &str) -> Occurrence {
    let mut details = Map::new();
    let mut field = |name: &str, value: Value| details.insert(name.to_owned(), value);
    if on == HookTrigger::Message {
        field("from", "shell".into());
        field("to", json!(["nobody"]));
    } else {
        field("harness", "test".into());
        field("session", "test".into());
        field("folder", folder.into());
    }
    match on {
        HookTrigger::FileChanged => drop(field("path", format!("{folder}/test").into())),
        HookTrigger::CommandRun => {
            field("command", "true".into());
            field("succeeded", true.into());
        }
        HookTrigger::ItemStarted | HookTrigger::NeedsInput | HookTrigger::TurnCompleted => {
            field("text", "a test of the hook".into());
        }
        HookTrigger::TurnFailed | HookTrigger::Ended => drop(field("because", "a test of the hook".into())),
        HookTrigger::TurnStarted | HookTrigger::Spawned | HookTrigger::Message => {}
    }
    Occurrence { at, on, details }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_in_variables_in_json_and_in_one_line() {
        let details = json!({"agent": "alice", "path": "/work/a\nb\0.rs", "folder": "/work"});
        let Value::Object(details) = details else { panic!("fields") };
        let event = Occurrence { at: Instant(0), on: HookTrigger::FileChanged, details };
        let variables = variables("h1", "h1-0-7", &event);
        assert_eq!(variables["RELAY_FILE"], "/work/a\nb.rs");
        assert_eq!(variables["RELAY_EVENT_AGENT"], "alice");
        assert!(!variables.contains_key("RELAY_AGENT") && !variables.contains_key("RELAY_COMMAND"));
        assert_eq!(line(&event), "alice: file-changed: /work/a b .rs");
        assert_eq!(json_of("h1", "h1-0-7", &event)["timestamp"], "1970-01-01T00:00:00.000Z");
        for on in HookTrigger::ALL {
            assert!(!line(&sample(on, Instant(0), "/work")).is_empty(), "{on}");
        }
    }
}
