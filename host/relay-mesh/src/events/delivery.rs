//! How far mail gets, as lines: one for each receipt that says something to people.

use mesh::messages::receipt::{Event as Step, Receipt};
use mesh::names::AgentName;
use serde_json::{Map, Value, json};

/// The kind of a receipt, and its fields; none for what only the presenters of a message tell each other.
pub(super) fn line(receipt: &Receipt, to: &AgentName) -> Option<(String, Map<String, Value>)> {
    let (kind, fields) = match &receipt.event {
        Step::Status { status, route, evidence } => (status.as_str(), json!({ "route": route, "evidence": evidence })),
        Step::HandedOver { session, route } => {
            ("handed-over", json!({ "route": route, "harness": session.harness, "session": session.id }))
        }
        Step::Cut(cut) => ("cut", json!({ "shown": cut.shown, "of": cut.of })),
        Step::TakenBack { reason } => ("taken-back", json!({ "reason": reason })),
        Step::Held { hold } => ("held", json!({ "reason": hold.reason })),
        Step::Freed => ("freed", json!({})),
        Step::Expired => ("expired", json!({})),
        Step::Undeliverable { reason } => ("undeliverable", json!({ "reason": reason })),
        Step::Refused { route, reason } => ("refused", json!({ "route": route, "reason": reason })),
        Step::Leased { .. } | Step::Released { .. } => return None,
    };
    let mut details = Map::new();
    details.insert("id".to_owned(), receipt.message.to_string().into());
    details.insert("to".to_owned(), to.to_string().into());
    let fields = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    details.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
    Some((kind.to_owned(), details))
}
