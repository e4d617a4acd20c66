//! A repository in which an agent has reserved the sources, and commits in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::programs::{Outcome, Program};
use crate::stage::Stage;

/// A stage on which alice has reserved `src/**` exclusively, and bob has joined too.
pub fn alice_holds_the_sources(binary: &str) -> Stage {
    let stage = Stage::new(binary);
    fs::create_dir(stage.project.join("src")).expect("the project is writable");
    stage.relay_ok(&["register", "alice"]);
    stage.relay_ok(&["register", "bob"]);
    stage.relay_ok(&["reserve", "src", "--from", "alice", "--reason", "new grammar"]);
    stage
}

/// Writes a file of the project.
pub fn write(stage: &Stage, path: &str, text: &str) {
    let path = stage.project.join(path);
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the project is writable");
    fs::write(path, text).expect("the project is writable");
}

/// Commits everything in a working copy, as the user or as a command-line agent.
pub fn commit_in(stage: &Stage, folder: &Path, agent: Option<&str>) -> Outcome {
    commit_with(stage, folder, agent, &[])
}

/// As `commit_in`, with further folders on PATH.
pub fn commit_with(stage: &Stage, folder: &Path, agent: Option<&str>, programs: &[PathBuf]) -> Outcome {
    let mut environment = stage.environment();
    for (_, value) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
        let further: Vec<String> = programs.iter().map(|folder| format!("{}:", folder.display())).collect();
        *value = format!("{}{value}", further.concat());
    }
    environment.extend(agent.map(|agent| ("RELAY_AGENT".to_owned(), agent.to_owned())));
    let git = || Program::new("git").envs(environment.iter().map(|(name, value)| (name, value))).within(folder);
    git().args(["add", "--all"]).succeed();
    git().args(["-c", "user.name=A Person", "-c", "user.email=person@example.org", "commit", "-q", "-m", "More"]).run()
}

/// The path of the project's own git hook.
pub fn hook(stage: &Stage) -> PathBuf {
    stage.project.join(".git/hooks/pre-commit")
}
