//! Wakes: `wake`.

use serde::Serialize;

use crate::render::{Show, printable_line};

/// A way that was tried.
#[derive(Debug, Serialize)]
pub(crate) struct TriedShape {
    /// `routes`, `gateway`, `socket` or `file`.
    pub(crate) method: &'static str,
    /// Whether it worked, as far as that way can tell.
    pub(crate) worked: bool,
    /// What is known of it, or why it did not.
    pub(crate) detail: String,
}

/// `relay-mesh wake`.
#[derive(Debug, Serialize)]
pub(crate) struct WokenShape {
    /// Whether one of them worked.
    pub(crate) woken: bool,
    /// Which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<&'static str>,
    /// Who was to be woken, where one agent was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The message by which the agent was to be woken. It waits for it in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// What was tried, in order.
    pub(crate) tried: Vec<TriedShape>,
}

impl Show for WokenShape {
    fn text(&self) -> String {
        let who = self.to.as_deref().unwrap_or("whoever listens");
        let mut lines: Vec<String> = self
            .tried
            .iter()
            .map(|tried| {
                let how = if tried.worked { "worked" } else { "failed" };
                format!("{} {how}: {}", tried.method, printable_line(&tried.detail))
            })
            .collect();
        lines.push(match (self.method, &self.message) {
            (Some(method), _) => format!("woke {who} by {method}"),
            (None, Some(id)) => format!("did not wake {who}; message {id} waits"),
            (None, None) => format!("did not wake {who}"),
        });
        lines.join("\n")
    }
}
