//! What the app server says, as events.

use relay_mesh_sdk::optional::driver::rpc::{Frame, RpcError, notify};
use relay_mesh_sdk::optional::driver::{
    AgentEvent, Failure, Item, Operation, Outbox, PromptStatus, Tokens, TurnEnd, detail,
};
use relay_mesh_sdk::optional::runner::reading::{count, short, text};
use relay_mesh_sdk::{Activity, Error};
use serde_json::{Value, json};

use super::{Link, Purpose, Thread, refusal};

/// The most files of one change, and the most bytes of all that are remembered in a turn of one thread.
const MOST_FILES: usize = 32;
/// The first version that keeps the id of a prompt (`clientUserMessageId`). An older one takes each prompt, and nothing
/// ever shows that it did.
const TELLS_PROMPTS: (u32, u32) = (0, 136);
const MOST_REMEMBERED: usize = 8 * 1024;

impl Link {
    pub(super) fn receive(&mut self, frame: &str, out: &mut Outbox) {
        match self.requests.read(frame) {
            Frame::Response { purpose, result } => self.answered(purpose, result, out),
            Frame::Request { id, method, params } => self.asked(&id, &method, &params, out),
            Frame::Notification { method, params } => self.told(&method, &params, out),
            Frame::Nothing => {}
        }
    }

    fn answered(&mut self, purpose: Purpose, result: Result<Value, RpcError>, out: &mut Outbox) {
        match (purpose, result) {
            (Purpose::Initialize, Ok(server)) => match too_old(text(&server, "/userAgent")) {
                Some(version) => {
                    let (major, minor) = TELLS_PROMPTS;
                    let why = format!(
                        "Codex {version} does not tell which prompt a turn has taken; Codex {major}.{minor} and later do"
                    );
                    out.refuse(None, "connect", Error::Unsupported(why));
                }
                None => {
                    notify(out, "initialized", &json!({}));
                    out.note(AgentEvent::Ready);
                }
            },
            (Purpose::Initialize, Err(error)) => out.refuse(None, "connect", refusal(&error)),
            (Purpose::Begin, Ok(begun)) => match text(&begun, "/thread/id") {
                "" => out.refuse(None, "begin", Error::Failed("Codex began a thread without an id".to_owned())),
                id => self.opened(id, out),
            },
            (Purpose::Begin, Err(error)) => out.refuse(None, "begin", refusal(&error)),
            (Purpose::Resume(id), Ok(_)) => self.opened(&id, out),
            (Purpose::Resume(id), Err(error)) => out.refuse(Some(&id), &id, refusal(&error)),
            // The turn's own events say the rest.
            (Purpose::Prompt(id, prompt), Ok(_)) => {
                if !self.threads.get(&id).is_some_and(|thread| thread.shown.contains(&prompt)) {
                    out.say(&id, AgentEvent::Prompt((prompt, PromptStatus::Accepted)));
                }
            }
            (Purpose::Prompt(id, prompt), Err(error)) => {
                if let Some(thread) = self.threads.get_mut(&id) {
                    thread.is_given(&prompt);
                }
                out.refuse(Some(&id), &prompt, refusal(&error));
            }
            (Purpose::Account(id, asked), Ok(listed)) => self.accounted(&id, asked, &listed, out),
            (Purpose::Account(id, asked), Err(_)) => {
                for prompt in asked {
                    out.say(&id, AgentEvent::Prompt((prompt, PromptStatus::Unknown)));
                }
            }
            (Purpose::End(id), _) => {
                self.threads.remove(&id);
                out.say(&id, AgentEvent::Ended);
            }
            (Purpose::Interrupt(_) | Purpose::Nothing, _) => {}
        }
    }

    fn opened(&mut self, id: &str, out: &mut Outbox) {
        self.threads.insert(id.to_owned(), Thread::default());
        out.say(id, AgentEvent::Opened(id.to_owned()));
        out.say(id, AgentEvent::Activity(Activity::Idle));
    }

    fn told(&mut self, method: &str, params: &Value, out: &mut Outbox) {
        let id = text(params, "/threadId");
        // A subagent's thread is not ours to drive.
        let Some(thread) = self.threads.get_mut(id) else { return };
        match method {
            "turn/started" => {
                let turn = text(params, "/turn/id");
                thread.turn = Some(turn.to_owned());
                out.say(id, AgentEvent::TurnStarted(turn.to_owned()));
                out.say(id, AgentEvent::Activity(Activity::Busy));
            }
            "turn/completed" => {
                let ended = Thread { given: std::mem::take(&mut thread.given), ..Thread::default() };
                let ended = std::mem::replace(thread, ended);
                for prompt in ended.shown {
                    out.say(id, AgentEvent::Prompt((prompt, PromptStatus::Answered)));
                }
                let turn = text(params, "/turn/id").to_owned();
                out.say(id, AgentEvent::TurnEnded((turn, turn_end(&params["turn"]))));
                out.say(id, AgentEvent::Activity(Activity::Idle));
            }
            "item/started" => {
                thread.remember(&params["item"]);
                if let Some(item) = item(&params["item"], None) {
                    out.say(id, AgentEvent::Item(item));
                }
            }
            "item/completed" => thread.completed(id, &params["item"], out),
            "item/agentMessage/delta" => out.say(id, AgentEvent::Piece(text(params, "/delta").to_owned())),
            "turn/diff/updated" => out.say(id, AgentEvent::Diff(text(params, "/diff").to_owned())),
            "thread/tokenUsage/updated" => {
                let last = &params["tokenUsage"]["last"];
                let cached = count(last, "/cachedInputTokens");
                out.say(
                    id,
                    AgentEvent::Used(Tokens {
                        input: count(last, "/inputTokens").saturating_sub(cached),
                        cached_input: cached,
                        output: count(last, "/outputTokens"),
                    }),
                );
            }
            "serverRequest/resolved" => {
                out.say(id, AgentEvent::Settled(params["requestId"].to_string()));
                if thread.turn.is_some() {
                    out.say(id, AgentEvent::Activity(Activity::Busy));
                }
            }
            "thread/closed" => {
                self.threads.remove(id);
                out.say(id, AgentEvent::Ended);
            }
            "error" => {
                let again = if params["willRetry"].as_bool() == Some(true) { "; it tries again" } else { "" };
                out.say(id, AgentEvent::Note(format!("{}{again}", short(text(params, "/error/message")))));
            }
            _ => {}
        }
    }
}

impl Thread {
    fn remember(&mut self, item: &Value) {
        if text(item, "/type") != "fileChange" {
            return;
        }
        let size = |id: &str, files: &[String]| id.len() + files.iter().map(|file| file.len() + 4).sum::<usize>();
        let (id, files) = (text(item, "/id").to_owned(), paths(item));
        let known: usize = self.changes.iter().map(|(id, files)| size(id, files)).sum();
        if known + size(&id, &files) <= MOST_REMEMBERED {
            self.changes.insert(id, files);
        }
    }

    /// Whether a prompt is one of ours, which counts once.
    fn is_given(&mut self, prompt: &str) -> bool {
        let at = self.given.iter().position(|given| given == prompt);
        at.is_some_and(|at| {
            self.given.remove(at);
            true
        })
    }

    fn completed(&mut self, id: &str, item: &Value, out: &mut Outbox) {
        match text(item, "/type") {
            "userMessage" => match item["clientId"].as_str() {
                Some(prompt) if self.is_given(prompt) => {
                    self.shown.push(prompt.to_owned());
                    out.say(id, AgentEvent::Prompt((prompt.to_owned(), PromptStatus::Shown)));
                }
                Some(_) | None => out.say(id, AgentEvent::UserSpoke),
            },
            "agentMessage" => out.say(id, AgentEvent::Said(text(item, "/text").to_owned())),
            _ => {
                let succeeded = text(item, "/status") == "completed" && item["exitCode"].as_i64().unwrap_or(0) == 0;
                if let Some(item) = self::item(item, Some(succeeded)) {
                    out.say(id, AgentEvent::Item(item));
                }
            }
        }
    }
}

/// What an item of a turn does; none for what is no deed.
fn item(item: &Value, succeeded: Option<bool>) -> Option<Item> {
    let operation = match text(item, "/type") {
        "commandExecution" => Operation::Command(text(item, "/command").to_owned()),
        "fileChange" => Operation::Files(paths(item)),
        "mcpToolCall" => {
            let name = format!("{}.{}", text(item, "/server"), text(item, "/tool"));
            Operation::Tool((short(&name), item["arguments"].to_string()))
        }
        "webSearch" => Operation::Other(format!("search the web: {}", short(text(item, "/query")))),
        _ => return None,
    };
    let said = [text(item, "/aggregatedOutput"), text(item, "/error/message")].concat();
    Some(Item { id: text(item, "/id").to_owned(), operation: Some(operation), succeeded, detail: detail(&said) })
}

fn paths(item: &Value) -> Vec<String> {
    let changes = item["changes"].as_array().into_iter().flatten();
    changes.take(MOST_FILES).map(|change| text(change, "/path").to_owned()).collect()
}

/// The version of a server by its `CLIENT/VERSION …`, if prompts cannot be told apart with it. One that cannot be read is
/// taken for a new one.
fn too_old(user_agent: &str) -> Option<&str> {
    let version = user_agent.split_once('/')?.1.split(' ').next()?;
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    ((major, minor) < TELLS_PROMPTS).then_some(version)
}

fn turn_end(turn: &Value) -> TurnEnd {
    match text(turn, "/status") {
        "completed" => TurnEnd::Completed,
        "interrupted" => TurnEnd::Interrupted,
        _ => {
            let info = &turn["error"]["codexErrorInfo"];
            let failure = match info.as_str() {
                Some("serverOverloaded") => Failure::Overloaded,
                Some("usageLimitExceeded" | "rateLimitExceeded" | "sessionBudgetExceeded") => Failure::OutOfQuota,
                Some("unauthorized") => Failure::NotSignedIn,
                Some("contextWindowExceeded") => Failure::ContextFull,
                Some(_) | None => Failure::Other,
            };
            TurnEnd::Failed((failure, short(text(turn, "/error/message"))))
        }
    }
}
