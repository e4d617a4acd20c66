//! A conversation with the real Claude Code, recorded.

use relay_mesh_sdk::optional::driver::{Action, Agent, Answer, Approvals, Driver as _, Extensions, Prompt, Reply};
use relay_mesh_sdk::testing::{Fakes, agent, converse};

use crate::ClaudeCode;

const SESSION: &str = "5d20a1b2-0000-4000-8000-00000000000a";

fn prompt(number: u32, text: &str) -> Prompt {
    Prompt {
        id: format!("5d20a1b2-0000-4000-8000-00000000000{number}"),
        text: text.to_owned(),
        by_user: true,
        context: None,
    }
}

fn reply(answer: Answer) -> Action {
    Action::Answer((SESSION.to_owned(), Reply { question: String::new(), kept: None, answer }))
}

#[test]
fn a_recorded_conversation_is_told_as_it_went() {
    let session = || SESSION.to_owned();
    let actions = vec![
        Action::Begin(Agent { id: session(), ..agent() }),
        Action::Prompt((session(), prompt(1, "say hello"))),
        Action::Prompt((session(), prompt(2, "run it"))),
        reply(Answer::Refuse("not now".to_owned())),
        Action::Prompt((session(), prompt(3, "count"))),
        Action::Steer((session(), prompt(4, "faster"))),
        Action::Prompt((session(), prompt(5, "sleep"))),
        reply(Answer::Allow),
        Action::Steer((session(), prompt(6, "faster"))),
        Action::Interrupt(session()),
        Action::Account((session(), vec![prompt(9, "never given")])),
        Action::End(session()),
    ];
    let recorded = include_str!("../../fixtures/driver/2.1.329-conversation.json");
    let said = converse::<ClaudeCode>("stream-json", recorded, actions).expect("a conversation");
    let expected = [
        "ready",
        "opened",
        "idle",
        "1 accepted",
        "turn",
        "busy",
        "1 shown",
        "said Hello.",
        "used 10+0 3",
        "completed",
        "idle",
        "1 answered",
        "2 accepted",
        "turn",
        "busy",
        "2 shown",
        "item Some(Operation::Command(\"touch /home/u/app/x\")) None",
        "needs-input",
        "asks Operation::Command(\"touch /home/u/app/x\")",
        "busy",
        "item None Some(false)",
        "said Done.",
        "used 20+0 6",
        "completed",
        "idle",
        "2 answered",
        "3 accepted",
        "turn",
        "busy",
        "3 shown",
        "item Some(Operation::Command(\"sleep 3\")) None",
        "4 accepted",
        "item None Some(true)",
        "4 shown",
        "said Counted.",
        "4 answered",
        "used 20+0 6",
        "completed",
        "idle",
        "3 answered",
        "5 accepted",
        "turn",
        "busy",
        "5 shown",
        "item Some(Operation::Command(\"tail -f /dev/null\")) None",
        "needs-input",
        "asks Operation::Command(\"tail -f /dev/null\")",
        "busy",
        "6 accepted",
        "6 lost",
        "item None Some(false)",
        "used 10+0 3",
        "interrupted",
        "idle",
        "5 answered",
        "9 unknown",
        "ended",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_prompt_joins_no_running_turn_unless_it_steers() {
    let act = |memory: &Option<String>, action| ClaudeCode::act(memory.as_deref(), action).expect("done");
    let begun = act(&None, Action::Begin(agent()));
    let init = r#"{"type":"system","subtype":"init","uuid":"t"}"#.to_owned();
    let steer = act(&begun.memory, Action::Steer((SESSION.to_owned(), prompt(1, "x"))));
    assert!(steer.frames.is_empty() && format!("{:?}", steer.events).contains("Busy"), "{steer:?}");
    let busy = ClaudeCode::receive(begun.memory.as_deref(), &[init]).expect("received");
    let refused = act(&busy.memory, Action::Prompt((SESSION.to_owned(), prompt(1, "x"))));
    assert!(refused.frames.is_empty() && format!("{:?}", refused.events).contains("Busy"), "{refused:?}");
    let steered = act(&busy.memory, Action::Steer((SESSION.to_owned(), prompt(1, "x"))));
    assert!(steered.frames.len() == 1 && !steered.frames[0].contains("priority"), "{:?}", steered.frames);
}

#[test]
fn a_second_prompt_waits_until_the_first_has_its_turn_or_gets_none() {
    let act = |memory: &Option<String>, action| ClaudeCode::act(memory.as_deref(), action).expect("done");
    let prompted = |memory: &Option<String>| act(memory, Action::Prompt((SESSION.to_owned(), prompt(1, "x"))));
    let given = prompted(&act(&None, Action::Begin(agent())).memory);
    assert_eq!((given.frames.len(), prompted(&given.memory).frames.len()), (1, 0));
    // Taken before, so nothing comes of it.
    let taken = format!(r#"{{"type":"command_lifecycle","command_uuid":"{}","state":"completed"}}"#, prompt(1, "x").id);
    let taken = ClaudeCode::receive(given.memory.as_deref(), &[taken]).expect("received");
    assert_eq!(prompted(&taken.memory).frames.len(), 1);
}

#[test]
fn a_request_that_failed_showed_nothing() {
    let frames = [
        r#"{"type":"command_lifecycle","command_uuid":"p","state":"started"}"#,
        r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error: 529"}]}}"#,
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: 529"}"#,
    ];
    let received = ClaudeCode::receive(None, &frames.map(str::to_owned)).expect("received");
    let told = format!("{:?}", received.events);
    assert!(told.contains("Failure::Overloaded") && !told.contains("Shown") && !told.contains("Said"), "{told}");
}

#[test]
fn the_command_line_has_a_runs_guards_and_asks_only_if_somebody_answers() {
    let _host = Fakes::default().root("config").root("project").start();
    let options = |agent: &Agent| {
        let connection = ClaudeCode::connections(agent, None).expect("a connection").remove(0);
        assert_eq!(connection.start.run, "stream-json");
        connection.start.choices.into_iter().map(|choice| choice.name).collect::<Vec<_>>()
    };
    let asked = options(&agent());
    assert!(asked.contains(&"looking".to_owned()) && !asked.contains(&"unasked".to_owned()), "{asked:?}");
    let unasked = options(&Agent { approvals: Approvals::Refuse, ..agent() });
    assert!(unasked.contains(&"unasked".to_owned()), "{unasked:?}");
    assert!(ClaudeCode::connections(&Agent { extensions: Extensions::All, ..agent() }, None).is_err());
}
