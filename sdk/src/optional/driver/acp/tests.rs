//! One table: what is done and received, and what is sent and said of it.

use super::*;
use crate::optional::driver::{Answer, Reply};
use crate::testing::agent;
use crate::testing::conversation::words;

const ACP: Acp = Acp { name: "acp" };

/// A connection as the host has it: all that is kept between two calls is its memory.
struct Conversation {
    memory: Option<String>,
    kept: Option<String>,
}

impl Conversation {
    /// With a session `s` that has begun.
    fn begun() -> Conversation {
        let mut conversation = Conversation { memory: None, kept: None };
        let greeting = ACP.connect().expect("a greeting");
        conversation.memory = greeting.memory;
        conversation
            .check(r#"{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#, "ready");
        conversation.act(Action::Begin(agent()), r#""method":"session/new""#);
        conversation.check(r#"{"id":2,"result":{"sessionId":"s"}}"#, "opened idle");
        conversation
    }

    fn told(&mut self, exchange: Exchange) -> String {
        self.memory = exchange.memory;
        let mut told = exchange.frames;
        for event in exchange.events {
            if let AgentEvent::Asks(question) = &event.event {
                self.kept.clone_from(&question.kept);
            }
            told.push(words(&event.event));
        }
        told.join(" ")
    }

    fn check(&mut self, frame: &str, expected: &str) {
        let exchange = ACP.receive(self.memory.as_deref(), &[frame.to_owned()]).expect("received");
        let told = self.told(exchange);
        assert!(told.contains(expected), "{frame}: {told}");
        assert!(!expected.is_empty() || told.is_empty(), "{frame}: {told}");
    }

    fn act(&mut self, action: Action, expected: &str) {
        let shown = format!("{action:?}");
        let exchange = ACP.act(self.memory.as_deref(), action).expect("done");
        let told = self.told(exchange);
        assert!(told.contains(expected), "{shown}: {told}");
    }

    fn prompt(&mut self, id: &str, expected: &str) {
        self.act(Action::Prompt(("s".to_owned(), prompt(id))), expected);
    }

    fn says(&mut self, update: &str, expected: &str) {
        let frame = r#"{"method":"session/update","params":{"sessionId":"s","update":U}}"#.replace('U', update);
        self.check(&frame, expected);
    }

    fn asks(&mut self, call: &str, expected: &str) {
        let options = r#"[{"optionId":"o","name":"Allow","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]"#;
        let frame = format!(
            r#"{{"id":"p1","method":"session/request_permission","params":{{"sessionId":"s","toolCall":{call},"options":{options}}}}}"#
        );
        self.check(&frame, expected);
    }

    fn answer(&mut self, answer: Answer, expected: &str) {
        let reply = Reply { question: r#""p1""#.to_owned(), kept: self.kept.clone(), answer };
        self.act(Action::Answer(("s".to_owned(), reply)), expected);
    }
}

fn prompt(id: &str) -> Prompt {
    Prompt { id: id.to_owned(), text: "do it".to_owned(), by_user: true, context: None }
}

const CHUNK: &str = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}"#;
const ENDED: &str = r#"{"id":3,"result":{"stopReason":"end_turn"}}"#;

#[test]
fn a_turn_is_shown_once_the_agent_says_anything_and_ends_with_its_answer() {
    let mut conversation = Conversation::begun();
    conversation.prompt("p", r#""method":"session/prompt""#);
    conversation.says(r#"{"sessionUpdate":"available_commands_update"}"#, "");
    conversation.says(CHUNK, "p shown piece done");
    conversation.says(CHUNK, "piece done");
    conversation.check(ENDED, "p answered completed idle");
    conversation.check(ENDED, "");
    // OpenCode and others have been seen to say the last of a turn after its end.
    conversation.says(CHUNK, "");
}

#[test]
fn a_prompt_that_was_answered_is_done_also_if_the_model_said_nothing() {
    let mut conversation = Conversation::begun();
    conversation.prompt("p", "busy");
    conversation.check(r#"{"id":3,"result":{"stopReason":"cancelled"}}"#, "p answered interrupted");
    conversation.prompt("q", "busy");
    conversation.check(r#"{"id":4,"error":{"code":429,"message":"slow down"}}"#, "q answered failed");
}

#[test]
fn a_second_prompt_is_never_sent_while_one_runs() {
    let mut conversation = Conversation::begun();
    conversation.prompt("p", "busy");
    conversation.prompt("q", "refused q Error::Busy(0)");
    conversation.act(Action::Steer(("s".to_owned(), prompt("q"))), "refused q Error::Unsupported");
    conversation.check(ENDED, "p answered");
    conversation.prompt("q", r#""id":4"#);
}

#[test]
fn a_command_is_shown_from_its_raw_input_and_asked_once() {
    let mut conversation = Conversation::begun();
    conversation.prompt("p", "busy");
    let call = r#"{"toolCallId":"t","title":"List files","kind":"execute","rawInput":{"command":"rm -rf x"}}"#;
    // A model that asks for something got the prompt.
    conversation.asks(call, r#"p shown needs-input asks Operation::Command("rm -rf x")"#);
    conversation
        .answer(Answer::AllowForSession, r#""id":"p1","result":{"outcome":{"outcome":"selected","optionId":"o"}}"#);
    conversation.answer(Answer::Allow, "no request waits for this answer any more");
    conversation.asks(r#"{"title":"rm -rf x"}"#, r#"Operation::Other("rm -rf x")"#);
    conversation.answer(Answer::Fill("{}".to_owned()), "it does not offer this answer");
    conversation.answer(Answer::Refuse("no".to_owned()), r#""optionId":"n""#);
    conversation.asks(r#"{"kind":"edit","locations":[{"path":"/a"}],"rawInput":{}}"#, r#"Operation::Files(["/a"])"#);
    conversation.answer(Answer::Stop, r#""method":"session/cancel""#);
}

#[test]
fn an_interrupted_turn_leaves_no_question_open() {
    let mut conversation = Conversation::begun();
    conversation.act(Action::Interrupt("s".to_owned()), "");
    conversation.prompt("p", "busy");
    conversation.asks(r#"{"title":"x"}"#, "asks");
    conversation.act(Action::Interrupt("s".to_owned()), r#"{"outcome":"cancelled"}}} settled"#);
    conversation.answer(Answer::Allow, "no request waits");
    conversation.check(r#"{"id":3,"result":{"stopReason":"cancelled"}}"#, "p answered interrupted");
}

#[test]
fn what_a_loaded_session_repeats_is_not_news_also_after_its_answer() {
    let mut conversation = Conversation::begun();
    conversation.act(Action::Resume(("s".to_owned(), agent())), r#""method":"session/load""#);
    conversation.says(CHUNK, "");
    conversation.check(r#"{"id":3,"result":null}"#, "_relay-mesh/quiet");
    conversation.says(CHUNK, "");
    conversation.check(r#"{"id":4,"error":{"code":-32601,"message":"no such method"}}"#, "_relay-mesh/quiet");
    conversation.check(r#"{"id":5,"error":{"code":-32601,"message":"no such method"}}"#, "opened idle");
    conversation.act(Action::Account(("s".to_owned(), vec![prompt("p")])), "p unknown");
}

#[test]
fn a_tool_call_begins_once_its_input_is_whole() {
    let mut conversation = Conversation::begun();
    conversation.prompt("p", "busy");
    let begins = r#"item Some(Operation::Command("ls")) None"#;
    conversation.says(
        r#"{"sessionUpdate":"tool_call","toolCallId":"a","title":"bash","status":"pending","rawInput":{}}"#,
        "p shown",
    );
    let input =
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"in_progress","rawInput":{"command":"ls"}}"#;
    conversation.says(input, begins);
    conversation.says(input, "");
    conversation
        .says(r#"{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}"#, "item None Some(true)");
    let announced = r#"{"sessionUpdate":"tool_call","toolCallId":"b","title":"run","rawInput":{"command":"ls"}}"#;
    conversation.says(announced, "");
    // A request for permission may say less than what came before it.
    conversation.asks(r#"{"toolCallId":"b"}"#, r#"asks Operation::Command("ls")"#);
    conversation.says(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"failed"}"#,
        r#"item Some(Operation::Command("ls")) None item None Some(false)"#,
    );
    let large = format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"c","status":"pending","rawInput":{{"command":"{}"}}}}"#,
        "x".repeat(3_000)
    );
    conversation.says(&large, "item Some(Operation::Command(");
}

#[test]
fn failures_are_told_and_requests_that_nobody_knows_are_refused() {
    let mut conversation = Conversation::begun();
    conversation.prompt("p", "busy");
    conversation.check(r#"{"id":9,"method":"fs/read_text_file","params":{}}"#, r#""code":-32601"#);
    conversation.check(r#"{"id":8,"method":"session/request_permission","params":{"sessionId":"other"}}"#, "cancelled");
    conversation
        .check(r#"{"id":3,"error":{"code":-32000,"message":"no login"}}"#, "failed Failure::NotSignedIn no login");
    let greeting = ACP.connect().expect("a greeting");
    let mut other = Conversation { memory: greeting.memory, kept: None };
    other.check(r#"{"id":1,"result":{"protocolVersion":2}}"#, "speaks version 2 of the Agent Client Protocol");
}

#[test]
fn an_agent_without_extensions_gets_no_server() {
    let ours = place(&agent());
    assert_eq!(ours.pointer("/mcpServers/0/args/0"), Some(&json!("mcp")));
    let alone = Agent { extensions: crate::launch::Extensions::None, ..agent() };
    assert_eq!(place(&alone)["mcpServers"], json!([]));
}
