//! A harness that is started elsewhere in the repository for which it is set up: in a subfolder, or in a linked worktree.
//! What the doctor says there is what the real client does.

use serde_json::json;
use test_support::{Client, Codex, Model, Script, Stage, isolated, session_of};

/// What of the setup is under version control, and so in a linked worktree too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Committed {
    WhatBelongsToATeam,
    Nothing,
}

#[test]
fn claude_code_works_where_the_doctor_says_so() {
    isolated(|| {
        tried(Client::ClaudeCode, Committed::WhatBelongsToATeam, "main/sub/deep", Some("set up for the project in"));
        tried(Client::ClaudeCode, Committed::WhatBelongsToATeam, "linked", Some("set up for the project in"));
        tried(Client::ClaudeCode, Committed::WhatBelongsToATeam, "linked/sub/deep", Some("set up for the project in"));
        tried(Client::ClaudeCode, Committed::Nothing, "main/sub/deep", Some("set up for the project in"));
        tried(Client::ClaudeCode, Committed::Nothing, "linked", None);
    });
}

#[test]
fn codex_works_where_the_doctor_says_so() {
    isolated(|| {
        tried(Client::Codex, Committed::Nothing, "main/sub/deep", Some("set up for the project in"));
        tried(Client::Codex, Committed::WhatBelongsToATeam, "linked/sub/deep", Some("set up for the project in"));
        tried(Client::Codex, Committed::Nothing, "linked", None);
    });
}

#[test]
fn opencode_works_where_the_doctor_says_so() {
    isolated(|| {
        tried(Client::OpenCode, Committed::Nothing, "main/sub/deep", Some("set up for the project in"));
        tried(Client::OpenCode, Committed::WhatBelongsToATeam, "linked/sub/deep", Some("set up for the project in"));
        tried(Client::OpenCode, Committed::Nothing, "linked", None);
    });
}

/// Starts the client in a folder of the repository, and asks the doctor there. `says` is nothing where it cannot work.
#[track_caller]
fn tried(client: Client, committed: Committed, place: &str, says: Option<&str>) {
    let mut stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    client.install(&stage);
    std::fs::write(stage.project.join(".gitignore"), ".claude/settings.local.json\n").expect("the stage is writable");
    if committed == Committed::WhatBelongsToATeam {
        stage.git(&["add", "."]);
        stage.git(&["commit", "-q", "-m", "The mesh"]);
    }
    let script = Script::new()
        .call("Join the mesh", &client.tool("register_agent"), json!({"name": "alice"}))
        .say("alice", "I am alice.");
    let model = Model::start(script);
    if client == Client::Codex {
        // Its user trusts the repository, and not each folder of it.
        Codex::new(&stage, &model);
    }
    let linked = stage.home.join("linked");
    stage.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    let main = std::mem::take(&mut stage.project);
    stage.project = match place.split_once('/') {
        Some(("main", below)) => main.join(below),
        Some((_, below)) => linked.join(below),
        None => linked,
    };
    std::fs::create_dir_all(&stage.project).expect("the stage is writable");

    let run = client.ask(&stage, &model, "Join the mesh as alice.", None);
    let joined = session_of(&stage, "alice").is_some();
    let hooked = model.heard()[0].place_of("Register once with register_agent").is_some();

    let examined = stage.run(&["doctor", client.name()]);
    let told = &examined.stdout;
    match says {
        Some(says) => {
            assert!(joined && hooked, "{place}: the real client works there: {:?}", run.outcome);
            assert_eq!(examined.code, Some(0), "{place}: {told}");
            assert!(told.contains(says), "{place}: {told}");
            assert!(!told.contains("broken"), "{place}: {told}");
        }
        None => {
            assert!(!joined, "{place}: the real client does not work there");
            let is_told = examined.code == Some(1) || told.contains("not set up for the project");
            assert!(is_told, "{place}: {told}");
        }
    }
}
