//! Conversations with the real Gemini CLI, recorded.

use relay_mesh_sdk::optional::driver::{Action, Agent, Answer, Extensions, Prompt, Reply};
use relay_mesh_sdk::testing::{agent, converse};

use crate::GeminiCli;

const SESSION: &str = "5d20a1b2-0000-4000-8000-00000000000b";

fn prompt(number: u32, text: &str) -> Action {
    let id = format!("5d20a1b2-0000-4000-8000-00000000000{number}");
    Action::Prompt((SESSION.to_owned(), Prompt { id, text: text.to_owned(), by_user: true, context: None }))
}

fn alone() -> Agent {
    Agent { extensions: Extensions::None, ..agent() }
}

fn check(recorded: &str, actions: Vec<Action>, expected: &str) {
    let said = converse::<GeminiCli>("acp", recorded, actions).expect("a conversation");
    assert_eq!(said.join(", "), expected);
}

#[test]
fn two_turns_are_told_as_they_went() {
    let refusal = Reply { question: String::new(), kept: None, answer: Answer::Refuse("no".to_owned()) };
    let actions = vec![
        Action::Begin(alone()),
        prompt(1, "Say hello"),
        prompt(2, "Run it"),
        Action::Answer((SESSION.to_owned(), refusal)),
    ];
    check(
        include_str!("../../fixtures/driver/0.61.0-conversation.json"),
        actions,
        "ready, opened, idle, turn, busy, 1 shown, piece Hello., 1 answered, completed, idle, turn, busy, 2 shown, needs-input, \
         asks Operation::Other(\"echo made > /home/u/app/made.txt\"), busy, piece Done., 2 answered, completed, idle",
    );
}

#[test]
fn what_it_repeats_after_it_has_loaded_a_session_is_not_said_again() {
    let actions = vec![Action::Resume((SESSION.to_owned(), alone())), prompt(3, "And again")];
    let told = "ready, opened, idle, turn, busy, 3 shown, piece I go on., 3 answered, completed, idle";
    check(include_str!("../../fixtures/driver/0.61.0-continued.json"), actions, told);
}
