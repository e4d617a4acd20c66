//! The Agent Client Protocol, version 1 (<https://agentclientprotocol.com>), as [`Driver`](super::Driver) needs it: for
//! harnesses that have nothing better.
//!
//! What it cannot do is not hidden. A prompt has no id and no receipt: it counts as shown once the agent has answered
//! with anything, and after a break nobody can say what became of it. A running turn takes no further text, and a
//! second prompt would cancel the first in some harnesses, so none is sent before the turn has ended.

mod calls;
mod permission;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use calls::Calls;

use super::rpc::{Frame, Requests, RpcError, notify, refuse};
use super::{
    Abilities, Action, Agent, AgentEvent, Connection, Exchange, Failure, Launch, Memory as _, Outbox, Prompt,
    PromptStatus, SessionEvent, TurnEnd,
};
use crate::optional::runner::reading::{short, text};
use crate::{Activity, Error};

/// The version of the protocol that this speaks.
const VERSION: u64 = 1;
/// The code with which an agent says that its user has to sign in.
const SIGN_IN: i64 = -32_000;

/// How a harness speaks the protocol.
#[derive(Clone, Copy, Debug)]
pub struct Acp {
    /// The connection's name, which receipts and listings show.
    pub name: &'static str,
}

/// What an adapter knows of a connection.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Link {
    requests: Requests<Purpose>,
    /// How a session is continued; none if the agent cannot do that.
    continues: Option<Continues>,
    sessions: BTreeMap<String, Session>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Continues {
    /// By `session/resume`.
    Resume,
    /// By `session/load`, which repeats all that was said.
    Load,
}

#[derive(Debug, Serialize, Deserialize)]
enum Purpose {
    Initialize,
    Begin,
    Continue(String),
    /// Whether a session that was loaded has repeated all.
    Quiet(String),
    Prompt(String),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Session {
    /// What comes now was said before this connection.
    repeats: bool,
    /// Something was repeated since it was last asked.
    heard: bool,
    turn: Option<Turn>,
    /// The tool calls of the running turn.
    calls: Calls,
    /// The requests for permission that wait for an answer.
    asked: Vec<Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Turn {
    /// The prompt that began it. The turn has its id.
    prompt: String,
    shown: bool,
}

impl Acp {
    /// A connection over the program that `launch` starts.
    pub fn connection(&self, launch: Launch) -> Connection {
        Connection {
            name: self.name.to_owned(),
            start: launch,
            abilities: Abilities::INTERRUPT | Abilities::ASK | Abilities::RESUME,
            proves: PromptStatus::Shown,
        }
    }

    /// The first frame: what we are, and that we offer the agent neither files nor terminals.
    pub fn connect(&self) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::default(), Outbox::default());
        let params = json!({
            "protocolVersion": VERSION,
            "clientInfo": {"name": "relay-mesh", "title": "relay-mesh", "version": env!("CARGO_PKG_VERSION")},
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        });
        link.requests.ask(&mut out, "initialize", params, Purpose::Initialize);
        out.exchange(&link)
    }

    /// The frames of an action.
    pub fn act(&self, memory: Option<&str>, action: Action) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::remembered(memory)?, Outbox::default());
        link.act(action, &mut out);
        out.exchange(&link)
    }

    /// What frames mean.
    pub fn receive(&self, memory: Option<&str>, frames: &[String]) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::remembered(memory)?, Outbox::default());
        for frame in frames {
            match link.requests.read(frame) {
                Frame::Response { purpose, result } => link.answered(purpose, result, &mut out),
                Frame::Notification { method, params } if method == "session/update" => link.update(&params, &mut out),
                Frame::Request { id, method, params } if method == "session/request_permission" => {
                    link.permission(&id, &params, &mut out);
                }
                Frame::Request { id, method, .. } => refuse(&mut out, &id, &method),
                Frame::Notification { .. } | Frame::Nothing => {}
            }
        }
        out.exchange(&link)
    }
}

impl Link {
    fn act(&mut self, action: Action, out: &mut Outbox) {
        match action {
            Action::Begin(agent) => {
                self.requests.ask(out, "session/new", place(&agent), Purpose::Begin);
            }
            Action::Resume((session, agent)) => self.resume(session, &agent, out),
            Action::Prompt((session, prompt)) => self.prompt(&session, &prompt, out),
            Action::Steer((session, prompt)) => {
                let none = Error::Unsupported("a running turn of this harness takes no further text".to_owned());
                out.refuse(Some(&session), &prompt.id, none);
            }
            Action::Interrupt(session) => self.interrupt(&session, out),
            Action::Answer((session, reply)) => self.answer(&session, reply, out),
            Action::Account((session, prompts)) => {
                let running = self.sessions.get(&session).and_then(|session| session.turn.as_ref());
                for prompt in prompts.iter().filter(|prompt| running.is_none_or(|turn| turn.prompt != prompt.id)) {
                    out.say(&session, AgentEvent::Prompt((prompt.id.clone(), PromptStatus::Unknown)));
                }
            }
            Action::End(session) => {
                self.interrupt(&session, out);
                self.sessions.remove(&session);
                out.say(&session, AgentEvent::Ended);
            }
        }
    }

    fn resume(&mut self, session: String, agent: &Agent, out: &mut Outbox) {
        let Some(continues) = self.continues else {
            let cannot = Error::Unsupported("this harness cannot continue a session".to_owned());
            return out.refuse(Some(&session), &session, cannot);
        };
        let mut params = place(agent);
        params["sessionId"] = json!(session);
        let (method, repeats) = match continues {
            Continues::Resume => ("session/resume", false),
            Continues::Load => ("session/load", true),
        };
        self.sessions.insert(session.clone(), Session { repeats, ..Session::default() });
        self.requests.ask(out, method, params, Purpose::Continue(session));
    }

    fn prompt(&mut self, session: &str, prompt: &Prompt, out: &mut Outbox) {
        let state = self.sessions.entry(session.to_owned()).or_default();
        if state.turn.is_some() {
            return out.refuse(Some(session), &prompt.id, Error::Busy(0));
        }
        state.turn = Some(Turn { prompt: prompt.id.clone(), shown: false });
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": prompt.text}]});
        self.requests.ask(out, "session/prompt", params, Purpose::Prompt(session.to_owned()));
        out.say(session, AgentEvent::TurnStarted(prompt.id.clone()));
        out.say(session, AgentEvent::Activity(Activity::Busy));
    }

    /// Some agents wait for the answers to what they asked before they end a cancelled turn.
    fn interrupt(&mut self, session: &str, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        if state.turn.is_none() {
            return;
        }
        notify(out, "session/cancel", &json!({"sessionId": session}));
        for id in std::mem::take(&mut state.asked) {
            permission::cancel(&id, out);
            out.say(session, AgentEvent::Settled(id.to_string()));
        }
    }

    fn answered(&mut self, purpose: Purpose, result: Result<Value, RpcError>, out: &mut Outbox) {
        match (purpose, result) {
            (Purpose::Initialize, Ok(greeting)) => self.greeted(&greeting, out),
            (Purpose::Initialize, Err(error)) => out.refuse(None, "connect", error.into()),
            (Purpose::Begin, Ok(begun)) => {
                let session = text(&begun, "/sessionId").to_owned();
                if session.is_empty() {
                    return out.refuse(None, "begin", Error::Failed("it began a session without an id".to_owned()));
                }
                self.opened(session, out);
            }
            (Purpose::Begin, Err(error)) => out.refuse(None, "begin", error.into()),
            // Some agents go on to repeat after they have answered.
            (Purpose::Continue(session), Ok(_)) => match self.sessions.get(&session) {
                Some(state) if state.repeats => self.ask_whether_quiet(session, out),
                Some(_) | None => self.opened(session, out),
            },
            // No agent knows the request, and each answers it.
            (Purpose::Quiet(session), _) => match self.sessions.get(&session) {
                Some(state) if state.heard => self.ask_whether_quiet(session, out),
                Some(_) => self.opened(session, out),
                None => {}
            },
            (Purpose::Continue(session), Err(error)) => {
                self.sessions.remove(&session);
                out.refuse(Some(&session), &session, error.into());
            }
            (Purpose::Prompt(session), result) => self.turn_ended(&session, result, out),
        }
    }

    /// Asks something without an effect: if nothing was repeated until its answer, nothing more is.
    fn ask_whether_quiet(&mut self, session: String, out: &mut Outbox) {
        self.sessions.entry(session.clone()).or_default().heard = false;
        self.requests.ask(out, "_relay-mesh/quiet", json!({"sessionId": session}), Purpose::Quiet(session));
    }

    fn greeted(&mut self, greeting: &Value, out: &mut Outbox) {
        let version = greeting["protocolVersion"].as_u64();
        if version != Some(VERSION) {
            let spoken = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
            let why = format!("it speaks version {spoken} of the Agent Client Protocol, and relay-mesh {VERSION}");
            return out.refuse(None, "connect", Error::Unsupported(why));
        }
        let able = &greeting["agentCapabilities"];
        self.continues = match (able.pointer("/sessionCapabilities/resume"), able["loadSession"].as_bool()) {
            (Some(resume), _) if !resume.is_null() => Some(Continues::Resume),
            (_, Some(true)) => Some(Continues::Load),
            (_, Some(false) | None) => None,
        };
        out.note(AgentEvent::Ready);
    }

    fn opened(&mut self, session: String, out: &mut Outbox) {
        out.say(&session, AgentEvent::Opened(session.clone()));
        out.say(&session, AgentEvent::Activity(Activity::Idle));
        self.sessions.entry(session).or_default().repeats = false;
    }

    fn turn_ended(&mut self, session: &str, result: Result<Value, RpcError>, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        let Some(turn) = state.turn.take() else { return };
        state.calls = Calls::default();
        for id in std::mem::take(&mut state.asked) {
            out.say(session, AgentEvent::Settled(id.to_string()));
        }
        let end = match &result {
            Ok(answer) => match text(answer, "/stopReason") {
                "cancelled" => TurnEnd::Interrupted,
                "end_turn" => TurnEnd::Completed,
                "max_tokens" => failed(Failure::ContextFull, "the answer was cut by its length"),
                "max_turn_requests" => failed(Failure::Other, "it asked its model as often as it may in one turn"),
                "refusal" => failed(Failure::Other, "the model refused to go on"),
                other => failed(Failure::Other, &format!("it stopped with `{other}`")),
            },
            Err(error) => TurnEnd::Failed((failure(error), error.message.clone())),
        };
        // However it answered, it is done with the prompt: given again, that would only be stopped or fail again.
        out.say(session, AgentEvent::Prompt((turn.prompt.clone(), PromptStatus::Answered)));
        out.say(session, AgentEvent::TurnEnded((turn.prompt, end)));
        out.say(session, AgentEvent::Activity(Activity::Idle));
    }

    fn update(&mut self, params: &Value, out: &mut Outbox) {
        let (session, update) = (text(params, "/sessionId"), &params["update"]);
        let Some(state) = self.sessions.get_mut(session) else { return };
        if state.repeats {
            state.heard = true;
            return;
        }
        // Some agents say the last of a turn after they have answered its prompt. Nothing would end a turn of that.
        if state.turn.is_none() {
            return;
        }
        let said = match text(update, "/sessionUpdate") {
            "agent_message_chunk" => vec![AgentEvent::Piece(text(update, "/content/text").to_owned())],
            "tool_call" | "tool_call_update" => state.calls.update(update),
            "agent_thought_chunk" | "plan" => Vec::new(),
            // What is said at any time: modes, commands, the session's title.
            _ => return,
        };
        state.is_shown(session, out);
        out.events.extend(said.into_iter().map(|event| SessionEvent { session: Some(session.to_owned()), event }));
    }
}

impl Session {
    /// Only a model that got the prompt says, thinks, does or asks anything.
    fn is_shown(&mut self, session: &str, out: &mut Outbox) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.shown) {
            turn.shown = true;
            out.say(session, AgentEvent::Prompt((turn.prompt.clone(), PromptStatus::Shown)));
        }
    }
}

/// Where a session works, and how it reaches our tools.
fn place(agent: &Agent) -> Value {
    let ours = &agent.installation;
    let servers = match (agent.extensions, ours.server.split_first()) {
        (super::Extensions::None, _) | (_, None) => json!([]),
        (super::Extensions::Mesh | super::Extensions::All, Some((command, arguments))) => {
            let variable = |(name, value): &(String, String)| json!({"name": name, "value": value});
            let environment: Vec<Value> = ours.environment.iter().map(variable).collect();
            json!([{"name": ours.server_name, "command": command, "args": arguments, "env": environment}])
        }
    };
    json!({"cwd": agent.folder, "mcpServers": servers})
}

fn failed(failure: Failure, why: &str) -> TurnEnd {
    TurnEnd::Failed((failure, why.to_owned()))
}

fn failure(error: &RpcError) -> Failure {
    match error.code {
        SIGN_IN => Failure::NotSignedIn,
        429 => Failure::OutOfQuota,
        _ => Failure::Other,
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Error {
        // Many agents say "Internal error", and only here what it was.
        let details = text(&error.data, "/details");
        let why = if details.is_empty() { error.message } else { format!("{}: {}", error.message, short(details)) };
        match error.code {
            SIGN_IN => Error::Denied(format!("sign in to it first: {why}")),
            _ => Error::Failed(why),
        }
    }
}
