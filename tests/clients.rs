//! The harnesses together, with real clients and scripted models: who sends, who is woken, and what the sender sees.
//! What one harness does alone is in its own test file.

#[path = "clients/pairs.rs"]
mod pairs;

use serde_json::json;
use test_support::{
    Ability, Client, DeliveryHistory, Model, Script, Stage, Transcript, isolated, observed, send, session_of, unread,
};

use pairs::Pair;

#[test]
fn every_pair_of_harnesses_talks_and_the_idle_one_is_woken() {
    isolated(|| {
        let stage = stage();
        Client::ALL.iter().for_each(|client| client.install(&stage));
        let models: Vec<Model> = Client::ALL.iter().map(|client| Model::start(pairs::part(*client))).collect();
        let seats: Vec<_> = Client::ALL.iter().zip(&models).map(|(client, model)| client.open(&stage, model)).collect();
        for (seat, model) in seats.iter().zip(&models) {
            seat.terminal.type_line(&format!("Join the mesh as {}.", seat.client.agent()));
            seat.settles(model);
            assert!(
                session_of(&stage, &seat.client.agent()).is_some(),
                "{} is bound to its session",
                seat.client.name()
            );
            let first = &model.heard()[0];
            let place = first.place_of("Register once with register_agent");
            observed(&stage, seat.client, Ability::Context, place.as_deref());
        }
        let mut talks = Vec::new();
        for (asker, asker_model) in seats.iter().zip(&models) {
            for (asked, asked_model) in seats.iter().zip(&models).filter(|(seat, _)| seat.client != asker.client) {
                let pair = Pair { asker: asker.client, asked: asked.client };
                asker.terminal.type_line(&pair.order());
                asked_model.wait_for_news(&pair.question());
                asker_model.wait_for_news(&pair.answer());
                asker.settles(asker_model);
                asked.settles(asked_model);
                talks.push(pair);
            }
        }
        let mut transcript = Transcript::new();
        let mut rows = Vec::new();
        for pair in talks {
            let model = |client: Client| {
                let at = Client::ALL.iter().position(|other| *other == client).expect("every client has a model");
                &models[at]
            };
            let asked = model(pair.asked);
            let woken = asked.wait_for_news(&pair.question());
            let history = DeliveryHistory::up_to(&stage, &pair.id_of_the_question(&woken), "acknowledged");
            let told = asked.times_told(&pair.question());
            let answered = model(pair.asker).times_told(&pair.answer());
            rows.push(pair.row(&history, told + answered - 2));
            assert_eq!((told, answered), (1, 1), "{pair:?}: question and answer are shown once each");
            observed(&stage, pair.asked, Ability::IdleWake, history.carried_by().as_deref());
            observed(&stage, pair.asked, Ability::Acknowledged, history.route("acknowledged").as_deref());
        }
        let lost: Vec<String> = Client::ALL.iter().flat_map(|client| unread(&stage, &client.agent())).collect();
        transcript.step("the clients", "each asks each other one, which is idle", &pairs::table(&rows, lost.len()));
        transcript.show();
        assert!(lost.is_empty(), "{lost:?}");
    });
}

#[test]
fn mail_for_a_closed_session_of_claude_code_is_shown_when_it_is_opened_again() {
    isolated(|| comes_back(Client::ClaudeCode));
}

#[test]
fn mail_for_a_closed_session_of_codex_is_shown_when_it_is_opened_again() {
    isolated(|| comes_back(Client::Codex));
}

#[test]
fn mail_for_a_closed_session_of_opencode_is_shown_when_it_is_opened_again() {
    isolated(|| comes_back(Client::OpenCode));
}

/// Mail is sent while the agent is offline, and waits for it under its name.
fn comes_back(client: Client) {
    let stage = stage();
    client.install(&stage);
    let model = Model::start(
        Script::new()
            .call("Join the mesh", &client.tool("register_agent"), json!({"name": "alice"}))
            .say("alice", "I am here.")
            .say("While you were away", "I have read it."),
    );
    let mut seat = client.open(&stage, &model);
    seat.terminal.type_line("Join the mesh as alice.");
    seat.says("I am here.");
    let session = session_of(&stage, "alice").expect("alice is bound to her session");
    seat.terminal.close();
    let id = send(&stage, "alice", "While you were away");
    // Codex's terminal may take a moment to end, and until then the mail is for whoever sits there.
    if client != Client::Codex {
        assert_eq!(unread(&stage, "alice").len(), 1, "it waits");
    }
    seat.reopen(&session);
    seat.reads_its_mail();
    model.wait_for_news("While you were away");
    seat.settles(&model);
    DeliveryHistory::up_to(&stage, &id, "shown");
    assert_eq!(model.times_told("While you were away"), 1, "shown once");
    assert_eq!(session_of(&stage, "alice"), Some(session), "under the same name");
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
