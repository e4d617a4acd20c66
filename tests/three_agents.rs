//! Three agents in one repository, as in docs/three-agents.md: every line of that page is run here by the real program
//! and the real Claude Code. Only the model is scripted.

use serde_json::json;
use test_support::{ClaudeCode, Model, ModelAnswer, Program, Script, Stage, Terminal, isolated, page_blocks, wait_for};

const PAGE: &str = "docs/three-agents.md";
const REGISTER: &str = "mcp__relay-mesh__register_agent";
const SEND: &str = "mcp__relay-mesh__send_message";

/// A line of the page.
#[derive(Debug)]
enum Step {
    /// A user types a command and sees this output.
    Runs { who: String, command: String, told: String },
    /// Carol's user types a prompt.
    Types(String),
    /// Carol's terminal shows her answer.
    Says(String),
    /// Carol's model receives this.
    Hears(String),
}

#[test]
fn the_page_is_what_happens() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        for folder in ["src/parser", "docs"] {
            std::fs::create_dir_all(stage.project.join(folder)).expect("the project is writable");
        }
        stage.relay_ok(&["install", "claude-code", "--project", &stage.project.display().to_string(), "--yes"]);
        let model = carol(&stage);
        let terminal = ClaudeCode::new(&stage, &model).open_with(&["--permission-mode", "acceptEdits"]);
        let steps = steps(PAGE);
        assert_eq!(steps.len(), 23, "{steps:?}");
        let mut last_id = String::new();
        for step in steps {
            perform(&stage, &terminal, &model, &step, &mut last_id);
        }
        model.wait_until_spoken();
        let written = std::fs::read_to_string(stage.project.join("src/parser/lexer.rs")).expect("it is written");
        assert_eq!(written, "fn lexer() {}\n");
    });
}

fn perform(stage: &Stage, terminal: &Terminal, model: &Model, step: &Step, last_id: &mut String) {
    match step {
        Step::Runs { who, command, told } => {
            let command = command.replace(&an_id(), last_id);
            let run = || {
                let environment = stage.environment();
                let outcome = Program::new("sh")
                    .args(["-c", &command])
                    .envs(environment.iter().map(|(name, value)| (name, value)))
                    .env("RELAY_AGENT", who)
                    .within(&stage.project)
                    .run();
                let mut said = outcome.stdout;
                if outcome.code != Some(0) {
                    said.push_str(&format!("{}[{}]\n", outcome.stderr, outcome.code.unwrap_or(-1)));
                }
                said
            };
            // A reservation of one second lapses soon, without an event.
            let said = match command.ends_with(" gc") {
                true => wait_for("something is over", || Some(run()).filter(|said| !said.starts_with("nothing"))),
                false => run(),
            };
            assert_eq!(same(&said), same(told), "{who}$ {command}\n{said}");
            if let Some(id) = said.split_whitespace().find(|word| is_id(word)) {
                id.clone_into(last_id);
            }
        }
        Step::Types(words) => terminal.type_line(words),
        Step::Says(words) => {
            terminal.wait_for(&format!("● {words}"));
            terminal.wait_until_gone("esc to interrupt");
        }
        Step::Hears(words) => wait_for(words, || {
            model.heard().iter().any(|heard| same(&heard.news()).contains(&same(words))).then_some(())
        }),
    }
}

/// Carol's scripted model.
fn carol(stage: &Stage) -> Model {
    let file = stage.project.join("src/parser/lexer.rs");
    let write = move |_: &str| ModelAnswer::Call {
        tool: "Write".to_owned(),
        input: json!({"file_path": file, "content": "fn lexer() {}\n"}),
    };
    let please = "I need src/parser/lexer.rs. Please release it when you can.";
    Model::start(
        Script::new()
            .call("Join the mesh", REGISTER, json!({"name": "carol"}))
            .say("\"carol\"", "I am carol.")
            .answer_with("Write a lexer", write.clone())
            .call("relay-mesh refused this edit", SEND, json!({"to": "alice", "body": please}))
            .say("stored", "Alice holds it; I have asked her.")
            .answer_with("src/parser is free now.", write)
            .say("created", "The lexer is written."),
    )
}

/// The steps of a page, from its `console` blocks.
fn steps(path: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page_blocks(path).iter().filter(|block| block.kind == "console") {
        // A block begins with a step and does not continue the previous block's output.
        let mut goes_on = false;
        for line in &block.lines {
            let typed = line.split_once("$ ").filter(|(who, _)| ["alice", "bob"].contains(who));
            goes_on = match (typed, line.split_at_checked(2)) {
                (Some((who, command)), _) => {
                    steps.push(Step::Runs { who: who.into(), command: command.into(), told: String::new() });
                    true
                }
                (None, Some(("| ", words))) => {
                    steps.push(Step::Hears(words.to_owned()));
                    false
                }
                (None, _) => match (line.strip_prefix("carol> "), line.strip_prefix("● "), steps.last_mut()) {
                    (Some(words), _, _) => {
                        steps.push(Step::Types(words.to_owned()));
                        false
                    }
                    (None, Some(words), _) => {
                        steps.push(Step::Says(words.to_owned()));
                        false
                    }
                    (None, None, Some(Step::Runs { told, .. })) if goes_on => {
                        told.push_str(&format!("{line}\n"));
                        true
                    }
                    (None, None, _) => panic!("nobody says `{line}`"),
                },
            };
        }
    }
    steps
}

/// A text without what differs between runs: ids, times, and minutes left.
fn same(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let word = |at: usize| match words[at].trim_end_matches([')', ',', ':', '.']) {
            word if is_id(word) => "ID".to_owned(),
            word if word.len() == 20 && word.ends_with('Z') && word.contains('T') => words[at].replace(word, "TIME"),
            _ if words.get(at + 1) == Some(&"min") => "MANY".to_owned(),
            _ => words[at].to_owned(),
        };
        (0..words.len()).map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn is_id(word: &str) -> bool {
    word.len() == 26
        && word.starts_with('0')
        && word.chars().all(|one| one.is_ascii_digit() || one.is_ascii_uppercase())
}

/// The page's placeholder for the latest id.
fn an_id() -> String {
    format!("01JD8Z3K5V{}", "0".repeat(16))
}
