//! What an agent is to do, as lines.

use relay_mesh_sdk::optional::driver::{Action, AgentEvent, Answer, Outbox, Prompt, PromptStatus, Reply};
use relay_mesh_sdk::{Activity, Error};
use serde_json::{Value, json};

use super::{Link, PromptState, Purpose};

impl Link {
    pub(super) fn act(&mut self, action: Action, out: &mut Outbox) {
        match action {
            // The command line names the session.
            Action::Begin(agent) => self.opened(agent.id, out),
            Action::Resume((session, _)) => self.opened(session, out),
            Action::Prompt((session, prompt)) => {
                if self.busy || self.begins.is_some() {
                    // It would join the running turn.
                    return out.refuse(Some(&session), &prompt.id, Error::Busy(0));
                }
                give(&prompt, out);
                self.begins = Some(prompt.id);
            }
            Action::Steer((session, prompt)) => {
                if !self.busy {
                    return out.refuse(Some(&session), &prompt.id, Error::Busy(0));
                }
                // Without a priority: it is shown after the tool that runs. `now` would cut an answer short, and a
                // tool that runs then cannot be interrupted any more.
                give(&prompt, out);
            }
            Action::Interrupt(_) => self.interrupt(out),
            Action::Answer((session, reply)) => answer(&session, reply, out),
            Action::Account((session, prompts)) => {
                // One that is given again is taken once, so nothing is lost by saying that nobody knows.
                for prompt in prompts.iter().filter(|prompt| !self.prompts.iter().any(|(id, _)| *id == prompt.id)) {
                    out.say(&session, AgentEvent::Prompt((prompt.id.clone(), PromptStatus::Unknown)));
                }
            }
            Action::End(session) => {
                self.interrupt(out);
                out.say(&session, AgentEvent::Ended);
            }
        }
    }

    /// What waits is withdrawn first, as otherwise it would begin the next turn at once.
    fn interrupt(&mut self, out: &mut Outbox) {
        if !self.busy {
            return;
        }
        let waiting = self.prompts.iter().filter(|(_, state)| *state == PromptState::Queued);
        for prompt in waiting.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.control(json!({"subtype": "cancel_async_message", "message_uuid": prompt}), Purpose::Nothing, out);
        }
        self.control(json!({"subtype": "interrupt"}), Purpose::Nothing, out);
    }

    fn opened(&mut self, session: String, out: &mut Outbox) {
        self.session.clone_from(&session);
        out.say(&session, AgentEvent::Opened(session.clone()));
        out.say(&session, AgentEvent::Activity(Activity::Idle));
    }
}

fn give(prompt: &Prompt, out: &mut Outbox) {
    out.send(&json!({
        "type": "user",
        "message": {"role": "user", "content": prompt.text},
        "parent_tool_use_id": null,
        "uuid": prompt.id,
    }));
}

/// What is kept of a question is the tool's input, which an approval repeats.
fn answer(session: &str, reply: Reply, out: &mut Outbox) {
    let input: Value = reply.kept.as_deref().and_then(|kept| serde_json::from_str(kept).ok()).unwrap_or_default();
    let decision = match reply.answer {
        Answer::Allow | Answer::AllowForSession => json!({"behavior": "allow", "updatedInput": input}),
        Answer::Refuse(why) => json!({"behavior": "deny", "message": why}),
        Answer::Stop => json!({"behavior": "deny", "message": "the user stopped the turn", "interrupt": true}),
        Answer::Choose(_) | Answer::Fill(_) => {
            let unfit = Error::Unsupported("this question takes no such answer".to_owned());
            return out.refuse(Some(session), &reply.question, unfit);
        }
    };
    let response = json!({"subtype": "success", "request_id": reply.question, "response": decision});
    out.send(&json!({"type": "control_response", "response": response}));
    out.say(session, AgentEvent::Activity(Activity::Busy));
}
