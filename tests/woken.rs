//! What the user of each harness sees of mail that their agent gets, in a terminal of 80 columns: who wrote, and about
//! what. The clients are the real ones; only the model is scripted.

use serde_json::json;
use test_support::{AppServer, ClaudeCode, Codex, Gemini, Model, OpenCode, Script, Stage, isolated, send_with};

const SUBJECT: &str = "the build is red";
/// As the notice of the host spells it.
const TOLD: &str = "mail from shell: \u{201c}the build is red\u{201d}";

#[test]
fn a_user_of_claude_code_sees_who_woke_their_session() {
    isolated(|| {
        let stage = installed("claude-code");
        let model =
            Model::start(Script::joining("mcp__relay-mesh__register_agent", "alice").say("Mind the gap", "I mind it."));
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Join the mesh as alice.");
        terminal.wait_for("● I am alice.");
        terminal.wait_until_gone("esc to interrupt");
        terminal.narrow();
        write(&stage);
        terminal.wait_for("● I mind it.");
        terminal.wait_for(TOLD);
        assert!(model.heard().iter().all(|heard| heard.place_of("mail from shell").is_none()), "for the user alone");
    });
}

#[test]
fn a_user_of_codex_sees_who_woke_their_thread() {
    isolated(|| {
        let stage = installed("codex");
        let model = Model::start(Codex::joining("alice").say("Mind the gap", "I mind it."));
        let terminal = Codex::new(&stage, &model).app_server(AppServer::Embedded).joined("alice");
        terminal.narrow();
        write(&stage);
        terminal.wait_for("• I mind it.");
        terminal.wait_for(TOLD);
    });
}

/// The terminal shows nothing of a turn that the shared app server begins with mail, and nothing of what the hook at its
/// end answers.
#[test]
fn a_user_of_codex_sees_with_the_next_hook_who_woke_a_thread_of_the_shared_app_server() {
    isolated(|| {
        let stage = installed("codex");
        let script = Codex::joining("alice")
            .call("Mind the gap", &Codex::tool("list_agents"), json!({}))
            .say("alice", "I mind it.")
            .say("Mind the step", "I mind that too.");
        let model = Model::start(script.say("Go on", "I go on."));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        terminal.narrow();
        write(&stage);
        terminal.wait_for("• I mind it.");
        terminal.wait_for(TOLD);
        codex.is_idle("alice");
        send_with(&stage, "alice", "Mind the step.", &["--subject", "a step"]);
        terminal.wait_for("• I mind that too.");
        codex.is_idle("alice");
        terminal.type_line("Go on.");
        terminal.wait_for("mail from shell: \u{201c}a step\u{201d}");
        assert!(model.heard().iter().all(|heard| heard.place_of("mail from shell").is_none()), "for the user alone");
    });
}

/// The message itself is a prompt on the screen.
#[test]
fn a_user_of_opencode_sees_the_message_that_woke_their_session() {
    isolated(|| {
        let stage = installed("opencode");
        let model =
            Model::start(Script::joining("relay-mesh_register_agent", "alice").say("Mind the gap", "I mind it."));
        let terminal = OpenCode::new(&stage, &model).open(&[]);
        terminal.type_line("Join the mesh as alice.");
        terminal.wait_for("I am alice.");
        terminal.wait_until_gone("esc interrupt");
        terminal.narrow();
        write(&stage);
        terminal.wait_for("I mind it.");
        terminal.wait_for("from=\"shell\"");
        terminal.wait_for(&format!("subject=\"{SUBJECT}\""));
    });
}

/// Gemini CLI is not woken while it is idle.
#[test]
fn a_user_of_gemini_cli_sees_who_wrote_what_their_agent_is_told() {
    isolated(|| {
        let stage = installed("gemini-cli");
        let model =
            Model::start(Script::joining(&Gemini::tool("register_agent"), "alice").say("Mind the gap", "I mind it."));
        let terminal = Gemini::new(&stage, &model).open();
        Gemini::prompt(&terminal, "Join the mesh as alice.");
        Gemini::says(&terminal, "I am alice.");
        terminal.narrow();
        write(&stage);
        Gemini::prompt(&terminal, "Go on.");
        terminal.wait_for(TOLD);
        terminal.wait_for("✦ I mind it.");
    });
}

fn write(stage: &Stage) {
    send_with(stage, "alice", "Mind the gap.", &["--subject", SUBJECT]);
}

fn installed(harness: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["install", harness, "--project", &stage.project_path(), "--yes"]);
    stage
}
