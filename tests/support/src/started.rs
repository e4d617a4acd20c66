//! The environment in which relay-mesh itself starts a harness: for a run, and for an agent that is driven.

use std::path::Path;

use crate::{ClaudeCode, Codex, Gemini, Model, OpenCode, Stage};

/// What a harness that relay-mesh starts needs on a stage whose model is scripted: its program on the path, its settings,
/// and these variables.
pub fn environment_to_start(harness: &str, stage: &Stage, model: &Model) -> Vec<(String, String)> {
    match harness {
        "claude-code" => {
            put_on_path(stage, "claude", &ClaudeCode::program_path());
            ClaudeCode::new(stage, model).environment().to_vec()
        }
        "codex" => {
            let mut environment = Codex::new(stage, model).environment().to_vec();
            // The scripted provider's key has a name that no user's has.
            let settings = stage.home.join(".codex/config.toml");
            let text = std::fs::read_to_string(&settings).expect("its settings");
            std::fs::write(&settings, text.replace("SCRIPTED_KEY", "OPENAI_API_KEY")).expect("writable");
            environment.push(("OPENAI_API_KEY".to_owned(), "opens-nothing".to_owned()));
            environment
        }
        "opencode" => {
            put_on_path(stage, "opencode", &OpenCode::program_path());
            OpenCode::new(stage, model).environment().to_vec()
        }
        _ => Gemini::new(stage, model).environment().to_vec(),
    }
}

fn put_on_path(stage: &Stage, name: &str, program: &Path) {
    std::fs::create_dir_all(stage.programs()).expect("the home is writable");
    let link = stage.programs().join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(program, link).expect("the home is writable");
    }
}
