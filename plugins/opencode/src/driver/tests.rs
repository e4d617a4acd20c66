//! Conversations with the real OpenCode, recorded.

use relay_mesh_sdk::optional::driver::{Action, Agent, Extensions, Prompt};
use relay_mesh_sdk::testing::{agent, converse};

use crate::OpenCode;

const SESSION: &str = "ses_1";

fn prompt(number: u32, text: &str) -> Action {
    let id = format!("5d20a1b2-0000-4000-8000-00000000000{number}");
    Action::Prompt((SESSION.to_owned(), Prompt { id, text: text.to_owned(), by_user: true, context: None }))
}

fn alone() -> Agent {
    Agent { extensions: Extensions::None, ..agent() }
}

fn check(recorded: &str, actions: Vec<Action>, expected: &str) {
    let said = converse::<OpenCode>("acp", recorded, actions).expect("a conversation");
    assert_eq!(said.join(", "), expected);
}

#[test]
fn two_turns_are_told_as_they_went() {
    let actions = vec![Action::Begin(alone()), prompt(1, "Say hello"), prompt(2, "Run it")];
    check(
        include_str!("../../fixtures/driver/1.18.33-conversation.json"),
        actions,
        "ready, opened, idle, turn, busy, 1 shown, piece Hello., 1 answered, completed, idle, turn, busy, 2 shown, \
         item Some(Operation::Command(\"echo made > /home/u/app/made.txt\")) None, item None Some(true), piece Done., \
         2 answered, completed, idle",
    );
}

#[test]
fn a_resumed_session_goes_on() {
    let actions = vec![Action::Resume((SESSION.to_owned(), alone())), prompt(3, "And again")];
    let told = "ready, opened, idle, turn, busy, 3 shown, piece I go on., 3 answered, completed, idle";
    check(include_str!("../../fixtures/driver/1.18.33-continued.json"), actions, told);
}
