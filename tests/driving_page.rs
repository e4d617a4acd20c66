//! docs/driving.md, line by line: two agents of different harnesses that review each other's work in worktrees, with a
//! question that is answered from another terminal. With the real Codex and Claude Code, and a scripted model.

use serde_json::{Value, json};
use test_support::{
    Model, ModelAnswer, PageBlock, Program, Script, Stage, environment_to_start, isolated, page_blocks, wait_or_show,
};

/// The part about two agents.
const TWO: &str = "Two agents that review each other";

/// The lines for a shell of a part, which its heading names; of the first one nothing does.
fn lines(part: &str) -> Vec<String> {
    let blocks: Vec<PageBlock> =
        page_blocks("docs/driving.md").into_iter().filter(|block| block.kind == "sh").collect();
    let others: Vec<_> = blocks.iter().filter(|block| ![TWO, ""].contains(&block.section.as_str())).collect();
    assert!(others.is_empty(), "no test runs {others:?}");
    blocks.into_iter().filter(|block| block.section == part).flat_map(|block| block.lines).collect()
}

fn environment(stage: &Stage, model: &Model) -> Vec<(String, String)> {
    let mut environment = environment_to_start("codex", stage, model);
    environment.extend(environment_to_start("claude-code", stage, model));
    environment
}

/// Runs a line of the page in the project, and returns what it prints.
fn run_line(stage: &Stage, environment: &[(String, String)], line: &str) -> String {
    let variables = environment.iter().map(|(name, value)| (name, value));
    let outcome = Program::new("sh").args(["-ec", line]).envs(variables).within(&stage.project).run();
    assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
    outcome.stdout
}

/// Two models in one: which it is, is told by what it is told.
fn model() -> Model {
    let runs = |command: &str, further: Value| {
        let mut input = json!({"cmd": command});
        if let (Some(input), Some(further)) = (input.as_object_mut(), further.as_object()) {
            input.extend(further.clone());
        }
        ModelAnswer::Call { tool: "exec_command".to_owned(), input }
    };
    let says = |words: &str| ModelAnswer::Say(words.to_owned());
    Model::start(Script::new().otherwise(move |news| {
        let is_told = |words: &str| news.contains(words);
        if is_told("being dismissed") {
            says("The greeting is written and reviewed.")
        } else if is_told("It greets nobody by name") {
            let escalates = json!({"sandbox_permissions": "require_escalated", "justification": "to commit"});
            runs("git add greet.py && git -c user.name=b -c user.email=b@b commit -qm greet", escalates)
        } else if is_told("Please review greet.py") {
            says("It greets nobody by name.")
        } else if is_told("Please review test_greet.py") {
            says("The test is good.")
        } else if is_told("have checker review") {
            says("It goes to checker.\n->relay:checker Please review greet.py: print('hello')")
        } else if is_told("have builder review") {
            says("It goes to builder.\n->relay:builder <<<\nPlease review test_greet.py:\nimport greet\n>>>")
        } else if is_told("write greet.py") {
            runs("echo \"print('hello')\" > greet.py", json!({}))
        } else if is_told("write test_greet.py") {
            let input = json!({"file_path": "test_greet.py", "content": "import greet\n"});
            ModelAnswer::Call { tool: "Write".to_owned(), input }
        } else {
            says("It is done.")
        }
    }))
}

#[test]
fn the_first_lines_of_the_page_start_two_agents_and_show_them() {
    isolated(|| {
        let model = model();
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let environment = environment(&stage, &model);
        let run = |line: &str| run_line(&stage, &environment, line);
        let told: Vec<String> = lines("").iter().map(|line| run(line)).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[2].contains("tester") && told[2].contains("fixer"), "{told:?}");
        for agent in ["tester", "fixer"] {
            let transcript = || run(&format!("relay-mesh spawn show {agent}"));
            wait_or_show(agent, || transcript().contains("turn ends").then_some(()), transcript);
            run(&format!("relay-mesh dismiss {agent}"));
        }
    });
}

#[test]
fn two_agents_review_each_other_as_the_page_says() {
    isolated(|| {
        let model = model();
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let environment = environment(&stage, &model);
        let run = |line: &str| run_line(&stage, &environment, line);
        let transcript = |of: &str| run(&format!("relay-mesh spawn show {of}"));
        let both = || format!("{}\n\n{}", transcript("builder"), transcript("checker"));
        let has = |of: &str, words: &str| {
            wait_or_show(words, || transcript(of).contains(words).then_some(()), both);
        };
        let mut printed = Vec::new();
        for line in lines(TWO) {
            // What a user sees before they type it.
            match line.as_str() {
                line if line.starts_with("relay-mesh steer builder") => {
                    has("builder", "turn ends");
                    has("checker", "turn ends");
                }
                "relay-mesh asks" => has("builder", "asks for"),
                line if line.starts_with("relay-mesh steer checker") => has("builder", "is told: allow"),
                "relay-mesh spawn show builder" => has("builder", "Please review test_greet.py"),
                line if line.contains("attach") => has("checker", "The test is good."),
                _ => {}
            }
            printed.push((line.clone(), run(&line)));
        }
        let of = |part: &str| printed.iter().find(|(line, _)| line.contains(part)).map(|(_, text)| text.as_str());
        assert!(
            of("spawn list").is_some_and(|text| text.contains("builder") && text.contains("checker")),
            "{printed:?}"
        );
        assert!(of("relay-mesh asks").is_some_and(|text| text.contains("commit -qm greet")), "{printed:?}");
        assert!(of("attach").is_some_and(|text| text.contains("you: that will do")), "{printed:?}");
        assert!(of("--summary").is_some_and(|text| text.contains("written and reviewed")), "{printed:?}");
        let branches = of("--all").expect("the list");
        let branch = branches.lines().nth(1).expect("the builder's branch");
        let log = stage.git(&["log", "--format=%s", "-1", branch]);
        assert!(log.contains("greet"), "what was committed is on its branch: {log}");
    });
}
