//! Hook answers in the shape that Claude Code and Codex share: JSON on standard output. In it
//! `hookSpecificOutput` adds context or denies a tool call, and `decision` keeps a turn going.
//!
//! ```
//! use relay_mesh_sdk::{hook_output, testing::mail};
//!
//! let reply = hook_output::context("PostToolUse", Some("<protocol>".into()), Some(mail("<mail>")), []);
//! assert_eq!(
//!     reply.stdout.as_deref(),
//!     Some(r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"<protocol>\n\n<mail>"}}"#),
//! );
//! assert!(reply.shows_mail);
//! ```

use serde_json::{Map, Value, json};

use crate::Mail;
use crate::hooks::{Reply, in_context};

/// Adds the protocol and then the mail to the model's context, and `further` fields of the harness's own.
/// Prints nothing if all of these are missing.
pub fn context<'f>(
    event: &str,
    protocol: Option<String>,
    mail: Option<Mail>,
    further: impl IntoIterator<Item = (&'f str, Value)>,
) -> Reply {
    let shows_mail = mail.is_some();
    let context = in_context(protocol, mail.as_ref()).map(|text| ("additionalContext", Value::from(text)));
    let fields: Vec<_> = context.into_iter().chain(further).collect();
    if fields.is_empty() { Reply::silent() } else { specific(event, fields).showing(shows_mail) }
}

/// Denies the tool call that is about to run. Prints nothing if there is no refusal.
pub fn deny(event: &str, refusal: Option<String>) -> Reply {
    match refusal {
        None => Reply::silent(),
        Some(reason) => specific(
            event,
            vec![("permissionDecision", json!("deny")), ("permissionDecisionReason", Value::from(reason))],
        ),
    }
}

/// Keeps the agent from ending its turn, with the mail as the reason.
pub fn block(mail: &Mail) -> Reply {
    Reply::stdout(json!({"decision": "block", "reason": mail.text}).to_string()).showing(true)
}

fn specific(event: &str, fields: Vec<(&str, Value)>) -> Reply {
    let named = std::iter::once(("hookEventName", Value::from(event))).chain(fields);
    let output: Map<String, Value> = named.map(|(name, value)| (name.to_owned(), value)).collect();
    Reply::stdout(json!({"hookSpecificOutput": output}).to_string())
}
