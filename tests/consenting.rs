//! What only the user may agree to: an agent's shell is refused, by its variables and by the processes above it. And what
//! the user reads before they agree to an adapter.

use serde_json::{Value, json};
use test_support::components::{component, manifest, ship};
use test_support::{ClaudeCode, Model, Outcome, Script, Stage, isolated};

#[test]
fn no_shell_of_a_harness_consents_for_its_user() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let polite = package(&stage, "polite", |text| text);
        let later = package(&stage, "polite", |text| text.replace("0.1.0", "0.2.0"));
        let hostile = package(&stage, "hostile", |text| text);
        // Outside of a harness a script needs no grant and no terminal.
        for line in [
            &["plugin", "install", "--allow-unsigned", &polite, "--yes", "--grant", "state"][..],
            &["plugin", "disable", "polite"],
        ] {
            assert_eq!(run(&stage, line).code, Some(0), "{line:?}");
        }
        stage.relay_ok(&["install", "claude-code", "--project", &stage.project_path(), "--yes"]);
        let before = kept(&stage);
        let deeds = [
            format!("plugin install {hostile} --allow-unsigned --yes --grant notices"),
            format!("plugin update polite {later} --allow-unsigned --yes --grant answers.stop"),
            "plugin grant polite answers.stop".to_owned(),
            "plugin enable polite".to_owned(),
            "cmd allow bob".to_owned(),
        ];
        let mut lines = Vec::new();
        for (number, deed) in deeds.iter().enumerate() {
            // By the variables of the harness, and without any of them by the processes above.
            let line = format!("{} {deed}", stage.binary().display());
            let bare = format!("env -i PATH=\"$PATH\" HOME=\"$HOME\" RELAY_DIR='{}' {line}", stage.data.display());
            lines
                .push(format!("{line} >/dev/null; echo first-{number} $?; {bare} >/dev/null; echo second-{number} $?"));
        }
        let input = json!({"command": lines.join("; "), "description": "Consent"});
        let model = Model::start(Script::new().call("Set it up", "Bash", input));
        let asked = ClaudeCode::new(&stage, &model).ask("Set it up.", &[]);
        let told = model.heard().iter().map(test_support::Heard::news).collect::<Vec<_>>().join("\n");
        for (number, deed) in deeds.iter().enumerate() {
            for which in ["first", "second"] {
                assert!(told.contains(&format!("{which}-{number} 4")), "{deed}: {told}: {:?}", asked.outcome);
            }
        }
        assert_eq!(told.matches("this shell belongs to an agent").count(), 2 * deeds.len(), "{told}");
        assert_eq!(kept(&stage), before, "nothing was agreed to");
    });
}

/// What the user has agreed to.
fn kept(stage: &Stage) -> (Value, Value) {
    let json = |arguments: &[&str]| serde_json::from_str::<Value>(&run(stage, arguments).stdout).expect("JSON");
    let listed = json(&["plugin", "list", "--json"]);
    let others = listed["adapters"].as_array().expect("adapters").iter().filter(|one| one["source"] != "built-in");
    let others = others.map(|one| json!([one["name"], one["version"], one["state"], one["grants"]])).collect();
    (others, json(&["cmd", "allowed", "--json"]))
}

#[test]
fn the_question_says_where_folders_and_sockets_lead_and_which_names_are_taken() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let asks = "\n[grants.roots.config]\npath = \"${TOAD_HOME:-~/.toad}\"\n[grants.roots.linked]\npath = \"~/.linked\"\n\
        [grants.roots.plain]\npath = \"~/.plain\"\n\
        [grants.endpoints]\nrpc = { unix = \"${TOAD_HOME:-~/.toad}/{name}.sock\", framing = \"lines\" }\n";
    let path = package(&stage, "polite", |text| text.replace("title =", "aliases = [\"toad\"]\ntitle =") + asks);
    std::fs::create_dir_all(stage.home.join("dotfiles/linked")).expect("the home is writable");
    std::os::unix::fs::symlink("dotfiles/linked", stage.home.join(".linked")).expect("a link");
    let ask = |home: Option<&str>| {
        let asked = stage.relay(&["plugin", "install", "--allow-unsigned", &path]).env("XDG_CACHE_HOME", cache());
        match home {
            Some(home) => asked.env("TOAD_HOME", home).run(),
            None => asked.run(),
        }
    };
    let home = stage.home.canonicalize().expect("a home").display().to_string();
    let elsewhere = stage.home.join("elsewhere").display().to_string();
    for (set, toad) in [(None, format!("{home}/.toad")), (Some(elsewhere.as_str()), format!("{home}/elsewhere"))] {
        let asked = ask(set);
        assert_eq!(asked.code, Some(4), "{}", asked.stderr);
        let lines: Vec<&str> = asked.stdout.lines().map(str::trim).collect();
        let below = |grant: &str| {
            let at =
                lines.iter().position(|line| line.starts_with(grant)).unwrap_or_else(|| panic!("{}", asked.stdout));
            lines.get(at + 1).copied().unwrap_or_default().to_owned()
        };
        assert_eq!(below("roots.config"), format!("now {toad}"), "{}", asked.stdout);
        assert_eq!(below("roots.linked"), format!("now {home}/dotfiles/linked"), "{}", asked.stdout);
        assert!(!below("roots.plain").starts_with("now "), "{}", asked.stdout);
        assert_eq!(below("endpoints.rpc"), format!("now {toad}/{{name}}.sock"), "{}", asked.stdout);
        assert!(lines.contains(&"it also answers to the name `toad`"), "{}", asked.stdout);
    }
    // What is the whole home today is refused, whatever it was meant to be.
    let whole = package(&stage, "polite", |text| text + "\n[grants.roots.config]\npath = \"${HOME:-~/.toad}\"\n");
    let refused = run(&stage, &["plugin", "install", "--allow-unsigned", &whole]);
    assert!(
        refused.stderr.contains("asks for ${HOME:-~/.toad}") && refused.stderr.contains("whole home"),
        "{refused:?}"
    );
}

/// A package with another manifest, in a folder of its own.
fn package(stage: &Stage, name: &str, change: impl Fn(String) -> String) -> String {
    let text = change(manifest(name));
    let folder = stage.folder.join(format!("packages/{name}-{}", text.len() + usize::from(text.contains("0.2.0"))));
    ship(&folder, name, &component(env!("CARGO_TARGET_TMPDIR"), name), &text).display().to_string()
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    stage.relay(arguments).env("XDG_CACHE_HOME", cache()).run()
}

fn cache() -> String {
    format!("{}/cache", env!("CARGO_TARGET_TMPDIR"))
}
