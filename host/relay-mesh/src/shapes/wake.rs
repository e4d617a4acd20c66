//! Wakes: `wake`.

use serde::Serialize;

use crate::render::{Show, printable_line};

/// A method that was tried.
#[derive(Debug, Serialize)]
pub(crate) struct TriedShape {
    /// `routes`, `gateway`, `socket` or `file`.
    pub(crate) method: &'static str,
    /// Whether it worked, as far as the method can tell.
    pub(crate) worked: bool,
    /// A detail, or the reason for the failure.
    pub(crate) detail: String,
}

/// `relay-mesh wake`.
#[derive(Debug, Serialize)]
pub(crate) struct WokenShape {
    /// Whether one of the methods worked.
    pub(crate) woken: bool,
    /// The method that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<&'static str>,
    /// The agent to be woken, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The message by which the agent was to be woken. It stays in the inbox in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// The methods tried, in order.
    pub(crate) tried: Vec<TriedShape>,
}

impl Show for WokenShape {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self
            .tried
            .iter()
            .map(|tried| {
                let how = if tried.worked { "worked" } else { "failed" };
                format!("{} {how}: {}", tried.method, printable_line(&tried.detail))
            })
            .collect();
        lines.extend(match (&self.to, self.method, &self.message) {
            // A file proves nothing about who reads it.
            (Some(to), Some("file"), _) => Some(format!("whether {to} wakes is unknown")),
            (Some(to), Some(method), _) => Some(format!("woke {to} by {method}")),
            (Some(to), None, Some(id)) => Some(format!("did not wake {to}; message {id} waits")),
            (Some(to), None, None) => Some(format!("did not wake {to}")),
            // What was tried is all there is to say.
            (None, Some(_), _) => None,
            (None, None, _) => Some("woke no session: none of your methods worked".to_owned()),
        });
        lines.join("\n")
    }
}
