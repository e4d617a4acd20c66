//! Answers the harness's own hooks, in two steps on one instance.

use serde_json::{Map, Value, json};

pub use crate::bindings::exports::relay::adapter::hooks::{Call, Event, Findings, Reading, Reply};
use crate::{Error, Mail};

/// Reads a hook's payload and writes its answer. By default the harness has no hooks.
pub trait Hooks {
    /// What the payload means: whose session, what happened, and how much mail fits into the answer.
    fn read(call: &Call) -> Result<Reading, Error> {
        Err(Error::Unsupported(format!("there is no hook named `{}`", call.name)))
    }

    /// The answer in the harness's own shape, made from what the host found.
    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        let _ = found;
        Err(Error::Unsupported(format!("there is no hook named `{}`", call.name)))
    }
}

impl Call {
    /// A call without variables and without a known process.
    pub fn new(name: impl Into<String>, payload: impl Into<String>) -> Call {
        Call { name: name.into(), payload: payload.into(), environment: Vec::new(), process: None }
    }

    /// A variable of the hook's process; none if it is empty or did not reach us.
    pub fn variable(&self, name: &str) -> Option<&str> {
        crate::variable(&self.environment, name)
    }

    /// The id of the calling process; none if it is unknown. For a harness that runs its hooks itself, this is the
    /// process of the session: the host then sees when it was killed.
    ///
    /// ```
    /// use relay_mesh_sdk::hooks::Call;
    /// let call = Call { process: Some("4711.8125.4026531836".into()), ..Call::new("Stop", "{}") };
    /// assert_eq!(call.process_id(), Some(4711));
    /// assert_eq!(Call::new("Stop", "{}").process_id(), None);
    /// ```
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_deref()?.split('.').next()?.parse().ok()
    }
}

impl Reading {
    /// A reading without session and events that takes no mail.
    pub fn nothing() -> Reading {
        Reading {
            speaker: None,
            events: Vec::new(),
            occasion: None,
            max_bytes: 0,
            attended: false,
            watches_wake_file: false,
            edits: Vec::new(),
        }
    }
}

impl Reply {
    /// Prints nothing and exits with 0, so the harness goes on.
    pub fn silent() -> Reply {
        Reply { stdout: None, stderr: None, exit_code: 0, shows_mail: false }
    }

    /// Prints text on standard output and exits with 0.
    pub fn stdout(text: impl Into<String>) -> Reply {
        Reply { stdout: Some(text.into()), ..Reply::silent() }
    }

    /// Sets whether the mail is in the reply.
    pub fn showing(self, shows_mail: bool) -> Reply {
        Reply { shows_mail, ..self }
    }
}

/// The text for the model: the protocol first, then the mail. None if both are missing.
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

/// The argument that holds the ticket. The host removes it before the tool sees the arguments.
const HIDDEN: &str = "_relay";

/// A tool call's arguments with the session's ticket added, for a harness that lets a hook rewrite them. None
/// if the host gave no ticket.
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
