//! The audit of the mail tools, for servers that show the tools that talk with other agents.

use std::sync::Arc;

use mesh::Mesh;
use mesh::audit::Audited;
use mesh::sessions::Principal;
use serde_json::{Map, Value};

/// The tools about mail.
const MAIL: [&str; 8] = [
    "atm_broadcast",
    "atm_pending_count",
    "atm_read",
    "atm_send",
    "broadcast",
    "fetch_messages",
    "relay_pending",
    "send_message",
];

/// A call about mail, to be audited once its caller is known; none if it is about something else.
pub(crate) fn of_mail(tool: &str, arguments: &Map<String, Value>) -> Option<Audited> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let to = match arguments.get("to") {
        Some(Value::String(to)) => vec![to.clone()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(_) | None if tool.ends_with("broadcast") => vec!["*".to_owned()],
        Some(_) | None => Vec::new(),
    };
    MAIL.contains(&tool).then(|| Audited {
        tool: tool.to_owned(),
        to,
        text: [text("body"), text("message")].concat(),
        ..Audited::default()
    })
}

pub(crate) async fn note(mesh: &Arc<Mesh>, caller: &Principal, audited: Audited) {
    let correlation = mesh.new_uuid();
    mesh.audit(&Audited { by: caller.agent().cloned(), correlation, ..audited }).await;
}
