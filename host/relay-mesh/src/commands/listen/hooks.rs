//! Hook events that the connector sends as lines: answered as `relay-mesh hook` does, without a process for each.

use mesh::names::MessageId;
use mesh::ports::harness::HookCall;
use mesh::{HookOutcome, reasons};

use super::connector_lines::Output;
use super::listener::{Listener, Printed};
use super::target::Target;
use crate::errors::CommandError;

impl Listener {
    /// Answers one event. Mail in the answer is leased until the connector sends its receipts.
    pub(super) async fn hook(
        &mut self,
        name: String,
        payload: serde_json::Value,
        call: Option<u64>,
    ) -> Result<(), CommandError> {
        let Some(harness) = self.harness() else {
            return self.complain("an event belongs to a harness: start with `--harness`");
        };
        let asked =
            HookCall { name, payload: payload.to_string(), environment: self.environment.clone(), process: None };
        let HookOutcome { reply, speaker, lease, invitation } = match self.mesh.hook(harness, &asked).await {
            Ok(outcome) => outcome,
            Err(error) => {
                let error = Some(reasons(&error));
                return self.printer.line(&Output::Answer { call, output: None, mail: Vec::new(), error });
            }
        };
        let mut mail: Vec<MessageId> = Vec::new();
        if let (Some(lease), Some(speaker)) = (lease, speaker) {
            for lease in lease.each() {
                mail.extend(&lease.messages);
                for id in lease.messages.clone() {
                    self.pending.insert((id, Target::Session(speaker.clone())), Printed::Mail(lease.clone()));
                }
            }
        }
        if let Some((session, id)) = invitation {
            mail.push(id);
            self.pending.insert((id, Target::Session(session)), Printed::AnsweredInvitation);
        }
        let as_json = |text: String| serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
        self.printer.line(&Output::Answer { call, output: reply.stdout.map(as_json), mail, error: None })
    }
}
