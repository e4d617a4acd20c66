//! What Codex asks its user, and the answer.

use relay_mesh_sdk::optional::driver::rpc::{answer, refuse};
use relay_mesh_sdk::optional::driver::{AgentEvent, Answer, ChoiceOffered, Operation, Outbox, Question, Reply};
use relay_mesh_sdk::optional::runner::reading::{short, text};
use relay_mesh_sdk::{Activity, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Link;

/// What is kept of a question until its answer.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    id: Value,
    kind: ApprovalKind,
}

#[derive(Debug, Serialize, Deserialize)]
enum ApprovalKind {
    /// A command, or a change of files.
    Decision,
    /// Wider permissions than the sandbox gives: these.
    Permissions(Value),
    /// A question of the model, with this id.
    Question(String),
    /// A form of an MCP server.
    Form,
}

impl Link {
    /// Every request gets an answer: here, or by the user.
    pub(super) fn asked(&mut self, id: &Value, method: &str, params: &Value, out: &mut Outbox) {
        let thread = text(params, "/threadId");
        if !self.threads.contains_key(thread) {
            return refuse(out, id, method);
        }
        let (operation, kind, choices) = match method {
            "item/commandExecution/requestApproval" => {
                (Operation::Command(text(params, "/command").to_owned()), ApprovalKind::Decision, Vec::new())
            }
            "item/fileChange/requestApproval" => {
                let item = text(params, "/itemId");
                let files = self.threads.get(thread).and_then(|thread| thread.changes.get(item)).cloned();
                let unnamed = || Operation::Other("change files".to_owned());
                (files.map_or_else(unnamed, Operation::Files), ApprovalKind::Decision, Vec::new())
            }
            "item/permissions/requestApproval" => {
                let wanted = params["permissions"].clone();
                let told = Operation::Tool(("wider permissions".to_owned(), wanted.to_string()));
                (told, ApprovalKind::Permissions(wanted), Vec::new())
            }
            "item/tool/requestUserInput" => match params["questions"].as_array().map(Vec::as_slice) {
                Some([question]) => {
                    let offered = question["options"].as_array().into_iter().flatten();
                    let choices = offered.map(|option| {
                        let label = text(option, "/label").to_owned();
                        ChoiceOffered { id: label.clone(), label }
                    });
                    let told = Operation::Other(text(question, "/question").to_owned());
                    (told, ApprovalKind::Question(text(question, "/id").to_owned()), choices.collect())
                }
                // Several at once have no place in one answer.
                Some(_) | None => return answer(out, id, &json!({"answers": {}})),
            },
            "mcpServer/elicitation/request" => {
                let message = text(params, "/message").to_owned();
                (Operation::Other(message), ApprovalKind::Form, Vec::new())
            }
            _ => return refuse(out, id, method),
        };
        let reason = text(params, "/reason");
        let question = Question {
            id: id.to_string(),
            operation,
            reason: (!reason.is_empty()).then(|| short(reason)),
            choices,
            kept: serde_json::to_string(&Kept { id: id.clone(), kind }).ok(),
        };
        out.say(thread, AgentEvent::Activity(Activity::NeedsInput));
        out.say(thread, AgentEvent::Asks(question));
    }

    /// A late answer does nothing: the server ignores it and has said that the question is settled.
    pub(super) fn answer(&mut self, thread: &str, reply: Reply, out: &mut Outbox) {
        let kept = reply.kept.as_deref().and_then(|kept| serde_json::from_str::<Kept>(kept).ok());
        let Some(Kept { id, kind }) = kept else {
            let gone = Error::NotFound("no request waits for this answer any more".to_owned());
            return out.refuse(Some(thread), &reply.question, gone);
        };
        let Some(result) = result(&kind, reply.answer) else {
            let unfit = Error::Unsupported("this question takes no such answer".to_owned());
            return out.refuse(Some(thread), &reply.question, unfit);
        };
        answer(out, &id, &result);
    }
}

/// The answer in Codex's words; none if it does not fit the question.
fn result(kind: &ApprovalKind, given: Answer) -> Option<Value> {
    let decision = |word: &str| Some(json!({"decision": word}));
    match (kind, given) {
        (ApprovalKind::Decision, Answer::Allow) => decision("accept"),
        (ApprovalKind::Decision, Answer::AllowForSession) => decision("acceptForSession"),
        (ApprovalKind::Decision, Answer::Refuse(_)) => decision("decline"),
        (ApprovalKind::Decision, Answer::Stop) => decision("cancel"),
        (ApprovalKind::Permissions(wanted), Answer::Allow) => Some(json!({"permissions": wanted, "scope": "turn"})),
        (ApprovalKind::Permissions(wanted), Answer::AllowForSession) => {
            Some(json!({"permissions": wanted, "scope": "session"}))
        }
        (ApprovalKind::Permissions(_), Answer::Refuse(_) | Answer::Stop) => Some(json!({"permissions": {}})),
        (ApprovalKind::Question(id), Answer::Choose(choice)) => Some(json!({"answers": {id: {"answers": [choice]}}})),
        (ApprovalKind::Question(id), Answer::Fill(text)) => {
            let text = serde_json::from_str::<String>(&text).unwrap_or(text);
            Some(json!({"answers": {id: {"answers": [text]}}}))
        }
        (ApprovalKind::Question(_), Answer::Refuse(_) | Answer::Stop) => Some(json!({"answers": {}})),
        (ApprovalKind::Form, Answer::Allow) => Some(json!({"action": "accept", "content": {}})),
        (ApprovalKind::Form, Answer::Fill(form)) => {
            let content: Value = serde_json::from_str(&form).ok()?;
            Some(json!({"action": "accept", "content": content}))
        }
        (ApprovalKind::Form, Answer::Refuse(_)) => Some(json!({"action": "decline"})),
        (ApprovalKind::Form, Answer::Stop) => Some(json!({"action": "cancel"})),
        (ApprovalKind::Decision, Answer::Choose(_) | Answer::Fill(_))
        | (ApprovalKind::Permissions(_), Answer::Choose(_) | Answer::Fill(_))
        | (ApprovalKind::Question(_), Answer::Allow | Answer::AllowForSession)
        | (ApprovalKind::Form, Answer::AllowForSession | Answer::Choose(_)) => None,
    }
}
