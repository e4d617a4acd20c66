//! Our hooks in settings of the shape that Claude Code began and Codex took over: an object `hooks`
//! that lists, per event, groups of handlers.
//!
//! ```
//! use relay_mesh_sdk::{edit::jsonc::Document, hook_groups};
//! use serde_json::json;
//!
//! let is_ours = |handler: &serde_json::Value| handler["command"] == "relay-mesh hook codex Stop";
//! let ours = json!({"hooks": [{"type": "command", "command": "relay-mesh hook codex Stop"}]});
//! let theirs = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}"#;
//! let mut settings = Document::parse(Some(theirs))?;
//! hook_groups::put(&mut settings, &[("Stop", ours.clone())], is_ours)?;
//! assert_eq!(settings.get(&["hooks", "Stop"]).unwrap()[1], ours);
//! hook_groups::take(&mut settings, is_ours);
//! assert_eq!(settings.text(), Some(theirs));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde_json::Value;

use crate::checklist::Checklist;
use crate::edit::jsonc::{Document, Occupied, Step};

/// Puts our groups under their events, in the place of an older install's.
pub fn put(
    document: &mut Document,
    wanted: &[(&str, Value)],
    is_ours: impl Fn(&Value) -> bool,
) -> Result<(), Occupied> {
    let before = document.get(&["hooks"]).unwrap_or_default();
    let is_current = |event: &str, index: usize| {
        let group = before.get(event).and_then(|groups| groups.get(index));
        wanted.iter().any(|(name, want)| *name == event && Some(want) == group)
    };
    remove(document, &is_ours, is_current);
    for (event, group) in wanted {
        let groups = document.get(&["hooks", event]);
        if !groups.as_ref().and_then(Value::as_array).is_some_and(|groups| groups.contains(group)) {
            document.append(&["hooks", event], group)?;
        }
    }
    Ok(())
}

/// Takes every handler of ours out, of this install or an older one.
pub fn take(document: &mut Document, is_ours: impl Fn(&Value) -> bool) {
    remove(document, &is_ours, |_, _| false);
}

/// Whether every handler of a group is ours, so that the group may go whole.
fn is_our_group(group: &Value, is_ours: impl Fn(&Value) -> bool) -> bool {
    let handlers = group.get("hooks").and_then(Value::as_array);
    handlers.is_some_and(|handlers| !handlers.is_empty() && handlers.iter().all(is_ours))
}

/// Whether every hook that we want stands in the settings, said to `list`.
pub fn check(
    list: &mut Checklist,
    path: &str,
    settings: Option<&Value>,
    wanted: &[(&str, Value)],
    is_ours: impl Fn(&Value) -> bool,
    fix: &str,
) {
    let groups = |event: &str| settings.and_then(|settings| settings.get("hooks")?.get(event)?.as_array());
    let without = |like: &dyn Fn(&Value, &Value) -> bool| -> Vec<&str> {
        let lacks =
            |(event, want): &&(&str, Value)| !groups(event).into_iter().flatten().any(|group| like(group, want));
        wanted.iter().filter(lacks).map(|(event, _)| *event).collect()
    };
    let missing = without(&|group, _| is_our_group(group, &is_ours));
    let outdated = without(&|group, want| group == want);
    if !missing.is_empty() {
        list.broken(format!("{path} lacks our hooks for {}", missing.join(", ")), fix);
    } else if !outdated.is_empty() {
        list.warn(format!("the hooks in {path} for {} are of another install", outdated.join(", ")), fix);
    } else {
        list.ok(format!("{path} has all {} hooks", wanted.len()));
    }
}

/// Takes out our groups, and our handlers in a group that was merged by hand, but for what is current.
fn remove(document: &mut Document, is_ours: &impl Fn(&Value) -> bool, is_current: impl Fn(&str, usize) -> bool) {
    document.remove_where(|path, value| match path {
        [Step::Key(hooks), Step::Key(event), Step::Index(index)] if hooks == "hooks" => {
            !is_current(event, *index) && is_our_group(value, is_ours)
        }
        [Step::Key(hooks), Step::Key(event), Step::Index(index), Step::Key(list), Step::Index(_)] => {
            hooks == "hooks" && list == "hooks" && !is_current(event, *index) && is_ours(value)
        }
        _ => false,
    });
}
