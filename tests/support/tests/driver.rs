//! The driver and the pinned Claude Code alone, without relay-mesh: what the adapter builds upon is
//! still so in this version of the client.

use serde_json::json;
use test_support::{ClaudeCode, Model, Script, Stage, isolated};

#[test]
fn a_headless_run_asks_the_scripted_model_and_nobody_else() {
    isolated(|| {
        let stage = Stage::new("/nowhere/relay-mesh");
        let model = Model::start(
            Script::new()
                .call("Read the readme", "Read", json!({"file_path": stage.project.join("README.md")}))
                .say("# A project", "It says: a project."),
        );
        let run = ClaudeCode::new(&stage, &model).ask("Read the readme.", &[]);
        assert_eq!(run.result, "It says: a project.", "{:?}", run.outcome);
        model.wait_until_spoken();
    });
}

#[test]
fn an_idle_session_in_a_terminal_wakes_when_a_watched_file_changes() {
    isolated(|| {
        let stage = Stage::new("/nowhere/relay-mesh");
        let wake_file = stage.folder.join("wakes/one");
        std::fs::create_dir_all(wake_file.parent().expect("it has a folder")).expect("the stage is writable");
        let watch = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "watchPaths": [wake_file]}});
        let hooks = json!({"hooks": {
            "SessionStart": [{"hooks": [{"type": "command", "command": "echo", "args": [watch.to_string()]}]}],
            "FileChanged": [{"hooks": [{
                "type": "command", "command": "sh", "args": ["-c", "echo 'A message came.' >&2; exit 2"], "asyncRewake": true
            }]}],
        }});
        std::fs::create_dir_all(stage.project.join(".claude")).expect("the stage is writable");
        std::fs::write(stage.project.join(".claude/settings.json"), hooks.to_string()).expect("the stage is writable");

        let model =
            Model::start(Script::new().say("Good morning", "Good morning.").say("A message came.", "I saw it."));
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Good morning");
        terminal.wait_for("● Good morning.");
        std::fs::write(&wake_file, "ring\n").expect("the stage is writable");
        model.wait_for_news("A message came.");
        terminal.wait_for("● I saw it.");
    });
}
