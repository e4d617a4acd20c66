//! The author's guide, followed literally: every shell block of docs/adapters.md runs in an empty folder, in order, and
//! the result is a tested and installed adapter. The same in another language, from its template to the conformance
//! kit.

use std::path::{Path, PathBuf};

use test_support::{Outcome, Program, Stage, page_blocks, search_path};

#[test]
fn the_guide_ends_with_an_adapter_that_is_tested_and_installed() {
    let stage = stage();
    let target = stage.build_folder().join("components");
    // The build is kept under the name that the guide uses. The sdk is the one that `plugin new` writes.
    let author = Author::new(&stage).with("CARGO_TARGET_DIR", &target.display().to_string());
    let script = shell_blocks("docs/adapters.md").replace("cd toad\n", "cd toad; ln -s \"$CARGO_TARGET_DIR\" target\n");
    // One shell, because the guide changes folders.
    let outcome = author.run(&["sh", "-eu", "-c", &script]);
    let told = format!("{}\n{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code, Some(0), "{told}");
    assert!(outcome.stdout.contains("\npassed: "), "the kit agrees: {told}");
    let inspected = stage.relay_ok(&["plugin", "inspect", "toad"]);
    assert!(inspected.contains("roots.config"), "{inspected}");
    let listed = stage.relay_ok(&["plugin", "list"]);
    assert!(listed.lines().any(|line| line.starts_with("toad ") && line.contains("installed")), "{listed}");
    let settings = stage.folder.join("work/a-project/.toad/settings.json");
    let settings = std::fs::read_to_string(&settings).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
    assert!(settings.contains("hook toad turn-end"), "its harness is set up: {settings}");
}

#[test]
fn the_sdk_that_a_new_repository_gets_is_the_one_that_would_be_published() {
    let stage = stage();
    let author = Author::new(&stage);
    succeeded(&author.run(&[&stage.binary().display().to_string(), "plugin", "new", "toad"]));
    let (published, vendored) = (stage.published_sdk(), author.folder.join("toad/sdk"));
    let files = stage.tree(&vendored);
    assert!(files.len() > 40, "{files:?}");
    for file in files.keys().filter(|file| file.is_file() && !file.ends_with("Cargo.toml")) {
        let name = file.strip_prefix(&vendored).expect("below it");
        let read = |folder: &Path| std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name:?}: {error}"));
        assert_eq!(read(&vendored), read(&published), "{name:?}");
    }
}

#[test]
fn the_same_adapter_in_python_passes_the_kit_and_is_installed() {
    let python = tool(".venv/bin/python").display().to_string();
    passes_and_installs("python", |author| succeeded(&author.run(&[&python, "build.py"])));
}

#[test]
fn the_same_adapter_in_javascript_passes_the_kit_and_is_installed() {
    tool("node_modules/componentize-qjs");
    passes_and_installs("js", |author| {
        let modules = author.folder.join("node_modules");
        std::os::unix::fs::symlink(root().join("tests/node_modules"), modules)
            .expect("a link in place of `npm install`");
        succeeded(&author.run(&["npm", "run", "build"]))
    });
}

#[test]
fn the_tools_that_templates_pin_are_those_that_are_tested() {
    let template = read("host/relay-mesh/templates/python/requirements.txt");
    let tested = read("tests/requirements.txt");
    for pin in template.lines() {
        assert!(tested.lines().any(|line| line == pin), "tests/requirements.txt does not have {pin}");
    }
    let dependencies = |path: &str, key: &str| {
        let package: serde_json::Value = serde_json::from_str(&read(path)).expect("JSON");
        package[key].as_object().expect("dependencies").clone()
    };
    let tested = dependencies("tests/package.json", "dependencies");
    for (tool, version) in dependencies("host/relay-mesh/templates/js/package.json", "devDependencies") {
        assert_eq!(tested.get(&tool), Some(&version), "tests/package.json has another {tool}");
    }
}

/// From a language's template to an installed adapter that answers a hook of its harness.
fn passes_and_installs(language: &str, build: impl FnOnce(&Author<'_>) -> String) {
    let stage = stage();
    let author = Author::new(&stage);
    let relay = stage.binary().display().to_string();
    succeeded(&author.run(&[&relay, "plugin", "new", "toad", "--lang", language]));
    let author = author.within("toad");
    build(&author);
    let report = succeeded(&author.run(&[&relay, "plugin", "test", "adapter.wasm", "--fixtures", "fixtures"]));
    assert!(report.contains("\npassed: "), "{report}");

    let grants = [
        "roots.config",
        "roots.project",
        "environment.TOAD_SESSION",
        "programs.version",
        "answers.context",
        "answers.refuse",
    ];
    let consent = grants.into_iter().flat_map(|grant| ["--grant", grant]);
    let install: Vec<&str> = [&*relay, "plugin", "install", "--allow-unsigned", "adapter.wasm", "--yes"]
        .into_iter()
        .chain(consent)
        .collect();
    succeeded(&author.run(&install));
    // As its harness would run it, with the compiled code from the install.
    let hook = r#"printf '{"session":"s1","cwd":"/home/u/app","source":"new"}' | "$0" hook toad session-start"#;
    let answer = author.run(&["sh", "-c", hook, &relay]);
    let answer: serde_json::Value =
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    assert!(answer["context"].as_str().is_some_and(|text| text.contains("register_agent")), "{answer}");
}

/// A tool installed by tests/setup.
fn tool(path: &str) -> PathBuf {
    let tool = root().join("tests").join(path);
    assert!(tool.exists(), "there is no {}; run `tests/setup` first", tool.display());
    tool
}

/// The author of an adapter, in an empty folder.
struct Author<'a> {
    stage: &'a Stage,
    folder: PathBuf,
    further: Vec<(String, String)>,
}

impl<'a> Author<'a> {
    fn new(stage: &'a Stage) -> Author<'a> {
        let folder = stage.folder.join("work");
        std::fs::create_dir_all(&folder).expect("the stage is writable");
        Author { stage, folder, further: Vec::new() }
    }

    fn with(mut self, name: &str, value: &str) -> Author<'a> {
        self.further.push((name.to_owned(), value.to_owned()));
        self
    }

    fn within(mut self, folder: &str) -> Author<'a> {
        self.folder = self.folder.join(folder);
        self
    }

    /// Runs a program as the author: with this machine's Rust, without a network, and with the stage's home and
    /// relay-mesh.
    fn run(&self, words: &[&str]) -> Outcome {
        let environment = self.stage.environment();
        let own = environment.iter().filter(|(name, _)| name != "HOME" && name != "PATH");
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let searched = format!("{}:{}", path.unwrap_or_default(), search_path().to_string_lossy());
        Program::new(words[0])
            .args(&words[1..])
            .environment_of_this_process()
            .envs(own.map(|(name, value)| (name, value)))
            .env("PATH", searched)
            .env("CARGO_NET_OFFLINE", "true")
            .envs(self.further.iter().map(|(name, value)| (name, value)))
            .within(&self.folder)
            .run()
    }
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn succeeded(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(0), "{}\n{}", outcome.stdout, outcome.stderr);
    outcome.stdout.clone()
}

/// The shell blocks of a page, in order.
fn shell_blocks(path: &str) -> String {
    let blocks = page_blocks(path).into_iter().filter(|block| block.kind == "sh");
    blocks.map(|block| block.lines.join("\n") + "\n").collect()
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}
