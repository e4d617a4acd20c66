//! What the real Codex does, as everybody else sees it: a session that asks its user something waits for them, and a run
//! that has ended is not here. Only the model is scripted.

use std::time::Duration;

use serde_json::json;
use test_support::{Client, Codex, DeliveryHistory, Model, Stage, isolated, presence_of, send, wait_for};

#[test]
fn codex_that_asks_its_user_waits_for_them_and_for_nobody_else() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        Client::Codex.install(&stage);
        let outside =
            json!({"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "Why not?"});
        let script = Codex::joining("alice")
            .call("Make it", "exec_command", outside)
            .say("Wall time", "I made it.")
            .say("While you were asked", "I read it.");
        let model = Model::start(script);
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        terminal.type_line("Make it.");
        terminal.wait_for("Would you like to run");
        wait_for("everybody sees that it asks", || {
            (presence_of(&stage, "alice").as_deref() == Some("needs-input")).then_some(())
        });
        let id = send(&stage, "alice", "While you were asked.");
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(model.times_told("While you were asked"), 0, "{}", terminal.screen());
        assert!(terminal.screen().contains("Would you like to run"), "nobody has answered in the user's place");
        assert!(!stage.project.join("made").exists(), "nothing was approved");
        terminal.press("Enter");
        wait_for("it was approved", || stage.project.join("made").exists().then_some(()));
        DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(model.times_told("While you were asked"), 1, "shown once");
    });
}

#[test]
fn a_run_of_codex_that_has_ended_is_not_here() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        Client::Codex.install(&stage);
        let model = Model::start(Codex::joining("alice"));
        let run = Codex::new(&stage, &model).ask("Join the mesh as alice.", &[]);
        assert_eq!(run.result, "I am alice.", "{:?}", run.outcome);
        wait_for("alice is not here", || {
            matches!(presence_of(&stage, "alice").as_deref(), Some("away" | "offline")).then_some(())
        });
    });
}
