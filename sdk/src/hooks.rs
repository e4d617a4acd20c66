//! What a harness's own hooks call, in two steps on one instance.

use serde_json::{Map, Value, json};

pub use crate::bindings::exports::relay::adapter::hooks::{Call, Event, Findings, Reading, Reply};
use crate::{Error, Mail};

/// Reads a hook's payload and words its answer. By default the harness has no hooks.
pub trait Hooks {
    /// What the payload means: who, what happened, and what of ours fits into the answer.
    fn read(call: &Call) -> Result<Reading, Error> {
        Err(Error::Unsupported(format!("there is no hook named `{}`", call.name)))
    }

    /// The answer in the harness's own shape, from what the host found.
    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        let _ = found;
        Err(Error::Unsupported(format!("there is no hook named `{}`", call.name)))
    }
}

impl Call {
    /// A call without variables, of a process that is not known.
    pub fn new(name: impl Into<String>, payload: impl Into<String>) -> Call {
        Call { name: name.into(), payload: payload.into(), environment: Vec::new(), process: None }
    }

    /// A variable of the hook's process, where it reached us and is not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        crate::variable(&self.environment, name)
    }
}

impl Reading {
    /// Nothing of interest: no speaker, no events, no room for mail.
    pub fn nothing() -> Reading {
        Reading {
            speaker: None,
            events: Vec::new(),
            moment: None,
            room: 0,
            attended: false,
            watches_bell: false,
            edits: Vec::new(),
        }
    }
}

impl Reply {
    /// Prints nothing and lets the harness go on.
    pub fn silent() -> Reply {
        Reply { stdout: None, stderr: None, exit_code: 0, shows_mail: false }
    }

    /// Prints text on standard output and ends well.
    pub fn stdout(text: impl Into<String>) -> Reply {
        Reply { stdout: Some(text.into()), ..Reply::silent() }
    }

    /// The same reply, which says whether the mail is in it.
    pub fn showing(self, shows_mail: bool) -> Reply {
        Reply { shows_mail, ..self }
    }
}

/// The text for the model where an answer may hold both: the protocol first, then the mail.
///
/// ```
/// use relay_mesh_sdk::{hooks::in_context, testing::mail};
/// assert_eq!(in_context(Some("Protocol.".into()), Some(&mail("<mail>"))).as_deref(), Some("Protocol.\n\n<mail>"));
/// assert_eq!(in_context(None, None), None);
/// ```
pub fn in_context(protocol: Option<String>, mail: Option<&Mail>) -> Option<String> {
    let texts: Vec<String> = protocol.into_iter().chain(mail.map(|mail| mail.text.clone())).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The name under which a ticket goes into the arguments of a tool. The host takes it out before the tool
/// sees them.
const HIDDEN: &str = "_relay";

/// The arguments of a call of ours with the session's ticket in them, for a harness that lets a hook
/// rewrite them. None where the host gave no ticket.
///
/// ```
/// use relay_mesh_sdk::hooks::with_ticket;
/// let arguments = serde_json::json!({"name": "alice"});
/// let rewritten = with_ticket(arguments.as_object().unwrap(), r#"{"session":"s1"}"#).unwrap();
/// assert_eq!(rewritten.to_string(), r#"{"name":"alice","_relay":{"ticket":{"session":"s1"}}}"#);
/// assert_eq!(with_ticket(arguments.as_object().unwrap(), ""), None);
/// ```
pub fn with_ticket(arguments: &Map<String, Value>, ticket: &str) -> Option<Value> {
    let ticket: Value = serde_json::from_str(ticket).ok()?;
    let mut arguments = arguments.clone();
    arguments.insert(HIDDEN.to_owned(), json!({"ticket": ticket}));
    Some(Value::Object(arguments))
}
