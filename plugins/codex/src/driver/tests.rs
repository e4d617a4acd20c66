//! A conversation with the real app server, recorded, and what a broken connection leaves.

use relay_mesh_sdk::optional::driver::{Action, Agent, Answer, Driver as _, Extensions, Prompt, Reach, Reply};
use relay_mesh_sdk::testing::{Fakes, agent, converse};
use serde_json::Value;

use crate::Codex;

const THREAD: &str = "01a2104c-0000-7000-8000-000000000001";

fn prompt(number: u32, text: &str) -> Prompt {
    Prompt {
        id: format!("5d20a1b2-0000-4000-8000-00000000000{number}"),
        text: text.to_owned(),
        by_user: true,
        context: None,
    }
}

fn alone() -> Agent {
    Agent { extensions: Extensions::None, ..agent() }
}

#[test]
fn a_recorded_conversation_is_told_as_it_went() {
    let _host = Fakes::default().root("config").root("project").start();
    let thread = || THREAD.to_owned();
    let refusal = Reply { question: String::new(), kept: None, answer: Answer::Refuse("no".to_owned()) };
    let actions = vec![
        Action::Begin(alone()),
        Action::Prompt((thread(), prompt(1, "say hello"))),
        Action::Prompt((thread(), prompt(2, "run it"))),
        Action::Answer((thread(), refusal)),
        Action::Prompt((thread(), prompt(3, "sleep"))),
        Action::Steer((thread(), prompt(4, "quicker"))),
        Action::Interrupt(thread()),
        Action::Account((thread(), vec![prompt(3, "sleep"), prompt(4, "quicker")])),
        Action::End(thread()),
    ];
    let recorded = include_str!("../../fixtures/driver/0.169.0-conversation.json");
    let said = converse::<Codex>("app-server", recorded, actions).expect("a conversation");
    let expected = [
        "ready",
        "opened",
        "idle",
        "1 accepted",
        "turn",
        "busy",
        "1 shown",
        "piece Hello.",
        "said Hello.",
        "used 6+4 3",
        "1 answered",
        "completed",
        "idle",
        "2 accepted",
        "turn",
        "busy",
        "2 shown",
        "item Some(Operation::Command(\"/bin/bash -lc 'echo hi > /etc/nothing'\")) None",
        "needs-input",
        "asks Operation::Command(\"/bin/bash -lc 'echo hi > /etc/nothing'\")",
        "settled",
        "busy",
        "item Some(Operation::Command(\"/bin/bash -lc 'echo hi > /etc/nothing'\")) Some(false)",
        "used 6+4 3",
        "piece Done.",
        "said Done.",
        "used 6+4 3",
        "2 answered",
        "completed",
        "idle",
        "3 accepted",
        "turn",
        "busy",
        "3 shown",
        "item Some(Operation::Command(\"/bin/bash -lc 'sleep 30'\")) None",
        "4 accepted",
        "used 6+4 3",
        "3 answered",
        "interrupted",
        "idle",
        "item Some(Operation::Command(\"/bin/bash -lc 'sleep 30'\")) Some(false)",
        "3 answered",
        "4 lost",
        "ended",
    ];
    let said: Vec<&str> = said.iter().map(String::as_str).filter(|said| !said.starts_with("note")).collect();
    assert_eq!(said, expected);
}

#[test]
fn a_thread_takes_no_wider_reach_than_the_agent_has() {
    let _host = Fakes::default()
        .file("config", "config.toml", "[mcp_servers.theirs]\ncommand = \"x\"\n")
        .root("project")
        .start();
    let parameters = |agent: &Agent| super::thread::parameters(agent).expect("parameters");
    let looking = parameters(&agent());
    assert_eq!(
        (&looking["sandbox"], &looking["approvalPolicy"]),
        (&Value::from("read-only"), &Value::from("on-request"))
    );
    assert_eq!(looking["config"]["mcp_servers.theirs.enabled"], Value::from(false));
    assert_eq!(looking["config"]["mcp_servers.relay-mesh"]["command"], Value::from("/opt/bin/relay-mesh"));
    let editing = parameters(&Agent { reach: Reach::Edit, ..alone() });
    assert_eq!(editing["config"]["sandbox_workspace_write"]["network_access"], Value::from(false));
    let open = parameters(&Agent { reach: Reach::Unguarded, ..alone() });
    assert_eq!(
        (&open["sandbox"], &open["approvalPolicy"]),
        (&Value::from("danger-full-access"), &Value::from("never"))
    );
    let all = Agent { extensions: Extensions::All, ..agent() };
    assert!(Codex::connections(&all, None).is_err());
}

#[test]
fn what_is_not_our_thread_is_not_answered_for() {
    let _host = Fakes::default().root("config").root("project").start();
    let begun = Codex::connect("app-server").expect("a greeting");
    let frames = [
        r#"{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"other","command":"x"}}"#,
        r#"{"id":8,"method":"account/chatgptAuthTokens/refresh","params":{}}"#,
        r#"{"method":"turn/started","params":{"threadId":"other","turn":{"id":"t"}}}"#,
        "no JSON",
    ];
    let frames: Vec<String> = frames.into_iter().map(str::to_owned).collect();
    let exchange = Codex::receive(begun.memory.as_deref(), &frames).expect("received");
    assert!(exchange.events.is_empty(), "{:?}", exchange.events);
    assert!(
        exchange.frames.len() == 2 && exchange.frames.iter().all(|frame| frame.contains("-32601")),
        "{:?}",
        exchange.frames
    );
}

#[test]
fn a_prompt_is_lost_only_if_no_page_of_turns_holds_it() {
    let _host = Fakes::default().start();
    let check = |memory: &Option<String>, frame: &str, expected: &str| {
        let exchange = Codex::receive(memory.as_deref(), &[frame.to_owned()]).expect("received");
        let told = format!("{:?} {:?}", exchange.frames, exchange.events);
        assert!(told.contains(expected), "{frame}: {told}");
        exchange.memory
    };
    let asked = vec![prompt(1, "x"), prompt(2, "y")];
    let account = Codex::act(None, Action::Account((THREAD.to_owned(), asked))).expect("done");
    let first = r#"{"id":1,"result":{"data":[{"status":"inProgress","items":[{"clientId":"5d20a1b2-0000-4000-8000-000000000001"}]}],"nextCursor":"older"}}"#;
    let memory = check(&account.memory, first, "PromptStatus::Shown");
    check(&account.memory, first, r#"\"cursor\":\"older\""#);
    check(&memory, r#"{"id":2,"result":{"data":[],"nextCursor":null}}"#, "PromptStatus::Lost");
    check(&memory, r#"{"id":2,"error":{"code":-32600,"message":"thread not found"}}"#, "PromptStatus::Unknown");
}

#[test]
fn a_second_prompt_waits_until_the_first_is_answered() {
    let _host = Fakes::default().start();
    let act = |memory: &Option<String>| {
        Codex::act(memory.as_deref(), Action::Prompt((THREAD.to_owned(), prompt(1, "x")))).expect("done")
    };
    let first = act(&None);
    let second = act(&first.memory);
    assert_eq!((first.frames.len(), second.frames.len()), (1, 0));
    assert!(format!("{:?}", second.events).contains("Busy"), "{:?}", second.events);
}

#[test]
fn d2_a_codex_that_does_not_tell_prompts_apart_is_refused() {
    let check = |user_agent: &str, expected: &str| {
        let begun = Codex::connect("app-server").expect("a greeting");
        let answer = format!(r#"{{"id":1,"result":{{"userAgent":"{user_agent}"}}}}"#);
        let told = Codex::receive(begun.memory.as_deref(), &[answer]).expect("an answer");
        let told = format!("{:?}", told.events);
        assert!(told.contains(expected), "{user_agent}: {told}");
    };
    check("relay-mesh/0.135.9 (Debian 12.0.0; x86_64) unknown", "Codex 0.135.9 does not tell which prompt");
    check("relay-mesh/0.104.0", "Codex 0.104.0 does not tell");
    for new in ["relay-mesh/0.136.0 (Debian)", "relay-mesh/1.0.0", "relay-mesh/0.170.0-alpha.1", "relay-mesh", ""] {
        check(new, "Ready");
    }
}
