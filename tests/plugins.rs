//! Adapters that a user installs: requests in plain words, permission once per version, updating, disabling and
//! removing, by the real binary.

use std::io::Write as _;

use serde_json::{Value, json};
use test_support::components::{self, component, manifest, ship};
use test_support::{Outcome, Program, Stage, Terminal, isolated};

/// Everything that the polite adapter asks to say in answers to hooks.
const SAYS: &str = "answers.context,answers.refuse,answers.stop,answers.own-words";
/// The same for the hostile one, which reports in them to its tests.
const REPORTS: &str = "answers.context,answers.own-words";

/// Replaces what differs between builds.
const FILTERS: &[(&str, &str)] = &[(r"digest [0-9a-f]{16}", "digest [DIGEST]"), (r"\d+ KB", "[SIZE] KB")];

/// Compares an outcome with the snapshot of that name.
macro_rules! check {
    ($stage:expr, $name:literal, $outcome:expr) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.add_filter(&$stage.folder.display().to_string().replace('.', r"\."), "[STAGE]");
        for (pattern, word) in FILTERS {
            settings.add_filter(pattern, *word);
        }
        settings.bind(|| insta::assert_snapshot!($name, told(&$outcome)));
    }};
}

#[test]
fn what_an_adapter_may_do_is_said_before_it_is_given() {
    let stage = stage();
    let path = hostile(&stage);
    check!(stage, "plugin-install-without-consent", run(&stage, &["plugin", "install", "--allow-unsigned", &path]));
    check!(
        stage,
        "plugin-install-names-nothing",
        run(&stage, &["plugin", "install", "--allow-unsigned", &path, "--yes"])
    );
    let stray = ["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "roots.other"];
    check!(stage, "plugin-install-names-too-much", run(&stage, &stray));
    assert_eq!(installed(&stage), json!([]), "nothing was installed");
    let named =
        ["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "roots.config", "--grant", "notices"];
    check!(stage, "plugin-install", run(&stage, &named));
    assert_eq!(given(&stage, "hostile"), ["roots.config", "notices", "state"]);
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    let stage = stage();
    let path = hostile(&stage);
    let mut environment = stage.environment();
    environment.push(("XDG_CACHE_HOME".to_owned(), cache()));
    environment.push(("TERM".to_owned(), "xterm".to_owned()));
    let ask = |answer: &str, end: &str| {
        // One terminal each, so that no earlier question is on the screen.
        let shell = Terminal::start(&stage.folder, &stage.project, &environment, &["sh".to_owned()]);
        shell.type_line(&format!("relay-mesh plugin install {path} --allow-unsigned"));
        shell.wait_for("give it all of this? [y/N, or the names of those to give]");
        let screen = shell.screen();
        for line in ["read files under ~/.hostile", "run the program `sh -c 'cat; echo $0' {word}`"] {
            assert!(screen.contains(line), "{screen}");
        }
        shell.type_line(answer);
        shell.wait_for(end);
    };
    ask("n", "Nothing was installed.");
    assert_eq!(installed(&stage), json!([]));
    ask("notices roots.config", "is installed.");
    assert_eq!(given(&stage, "hostile"), ["roots.config", "notices", "state"]);
    json_of(&stage, &["plugin", "remove", "hostile"], 0);
    ask("y", "is installed.");
    assert_eq!(given(&stage, "hostile").len(), 12, "all that it asks for");
}

#[test]
fn an_installed_adapter_answers_hooks_and_goes_with_all_it_left() {
    let stage = stage();
    let path = polite(&stage, "0.1.0", "");
    json_of(&stage, &["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", SAYS], 0);
    let hook = || hook(&stage, "polite", "s1");
    assert!(hook().stdout.starts_with("Stop "), "{}", hook().stderr);
    let listed = installed(&stage);
    assert_eq!((&listed[0]["name"], &listed[0]["source"]), (&json!("polite"), &json!("installed")), "{listed}");

    let again = json_of(&stage, &["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", SAYS], 0);
    assert_eq!(again["outcome"], "unchanged");
    let disabled = json_of(&stage, &["plugin", "disable", "polite"], 0);
    assert_eq!((&disabled["state"], &disabled["changed"]), (&json!("disabled"), &json!(true)));
    assert_eq!(json_of(&stage, &["plugin", "disable", "polite"], 0)["changed"], false);
    assert!(hook().stderr.contains("no adapter is named `polite`"), "{}", hook().stderr);
    assert_eq!(installed(&stage)[0]["state"], "disabled");
    json_of(&stage, &["plugin", "enable", "polite"], 0);
    assert!(hook().stdout.starts_with("Stop "));

    json_of(&stage, &["plugin", "remove", "polite"], 0);
    assert!(hook().stderr.contains("no adapter is named `polite`"));
    assert_eq!(installed(&stage), json!([]));
    let left: Vec<_> = stage.tree(&stage.data.join("plugins")).into_keys().collect();
    assert_eq!(left, [stage.data.join("plugins/.lock")], "its component and its consents are gone");
    assert_eq!(run(&stage, &["plugin", "remove", "polite"]).code, Some(3));
}

#[test]
fn what_an_adapter_noted_goes_with_it() {
    let stage = stage();
    json_of(&stage, &["plugin", "install", "--allow-unsigned", &hostile(&stage), "--yes", "--grant", REPORTS], 0);
    let told = hook(&stage, "hostile", "answer:state key value").stdout;
    assert!(told.contains("true false Some(\"value\")"), "{told}");
    hook(&stage, "hostile", "answer:trap");
    let notes = || {
        let files = stage.tree(&stage.data.join("adapters"));
        files.into_keys().filter(|file| file.extension().is_some_and(|extension| extension == "json")).count()
    };
    assert_eq!(notes(), 2, "its note, and how it fared");
    json_of(&stage, &["plugin", "remove", "hostile"], 0);
    assert_eq!(notes(), 0);
}

#[test]
fn grants_are_given_and_taken_and_count_at_once() {
    let stage = stage();
    std::fs::create_dir_all(stage.home.join(".hostile")).expect("the home is writable");
    std::fs::write(stage.home.join(".hostile/notes"), "read me").expect("the home is writable");
    json_of(
        &stage,
        &["plugin", "install", "--allow-unsigned", &hostile(&stage), "--yes", "--grant", "notices", "--grant", REPORTS],
        0,
    );
    let read = || {
        let outcome = hook(&stage, "hostile", "answer:file config notes");
        format!("{}{}", outcome.stdout, outcome.stderr)
    };
    assert!(read().contains("relay-mesh plugin grant hostile roots.config"), "{}", read());
    let granted = json_of(&stage, &["plugin", "grant", "hostile", "roots.config"], 0);
    assert_eq!(
        granted["grants"][0],
        json!({"name": "roots.config", "allows": "read files under ~/.hostile", "given": true})
    );
    assert_eq!(read(), "read me");
    json_of(&stage, &["plugin", "revoke", "hostile", "roots.config"], 0);
    assert!(read().contains("has no grant `roots.config`"), "{}", read());
    for (words, code, expected) in [
        (&["grant", "hostile", "roots.other"][..], 2, "does not ask for `roots.other`"),
        (&["revoke", "hostile", "roots.config"], 3, "has no grant `roots.config`"),
        (&["grant", "generic", "notices"], 4, "the adapter `generic` is built in"),
        (&["disable", "generic"], 4, "was not installed by"),
        (&["grant", "nobody", "notices"], 3, "no adapter is named `nobody`"),
        (&["enable", "../hostile"], 3, "no adapter is installed by the name"),
    ] {
        let outcome = run(&stage, &[&["plugin"], words].concat());
        assert_eq!(outcome.code, Some(code), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected) && outcome.stderr.contains("hint:"), "{words:?}: {}", outcome.stderr);
    }
}

const ROOT: &str = "[grants.roots.config]\npath = \"~/.polite\"\naccess = \"edit\"\n";

#[test]
fn an_update_keeps_what_it_may_and_asks_for_what_is_more() {
    let stage = stage();
    let first = format!("[grants]\nnotices = true\n{ROOT}");
    json_of(
        &stage,
        &[
            "plugin",
            "install",
            "--allow-unsigned",
            &polite(&stage, "1.0.0", &first),
            "--yes",
            "--grant",
            "roots.config",
        ],
        0,
    );
    let update = |path: &str, flags: &[&str], code| {
        json_of(&stage, &[&["plugin", "update", "--allow-unsigned", "polite", path], flags].concat(), code)
    };
    // The same requests in a later version: the user is not asked, and denied grants stay denied.
    let same = update(&polite(&stage, "1.1.0", &first), &[], 0);
    assert_eq!((&same["outcome"], &same["before"]), (&json!("updated"), &json!("1.0.0")));
    assert_eq!(given(&stage, "polite"), ["roots.config", "state"]);
    for (version, wider) in [
        ("1.2.0", ROOT.replace("~/.polite", "~/.polite-too")),
        ("1.2.0", format!("{ROOT}links = \"home\"\n")),
        ("1.2.0", format!("{ROOT}[grants.programs]\nrun = [\"sh\", \"{{x}}\"]\n")),
        ("1.2.0", format!("[grants]\nenvironment = [\"HOME\"]\n{ROOT}")),
    ] {
        let path = polite(&stage, version, &wider);
        let refused = update(&path, &[], 4);
        assert!(
            refused["error"].as_str().is_some_and(|error| error.contains("without a terminal no user can agree")),
            "{refused}"
        );
        assert_eq!(given(&stage, "polite"), ["roots.config", "state"], "{wider}");
        assert_eq!(installed(&stage)[0]["version"], "1.1.0", "{wider}");
    }
    let more = format!("{ROOT}[grants.programs]\nrun = [\"sh\", \"{{x}}\"]\n");
    let path = polite(&stage, "1.2.0", &more);
    assert_eq!(update(&path, &["--yes", "--grant", "programs.run"], 0)["version"], "1.2.0");
    assert_eq!(given(&stage, "polite"), ["roots.config", "programs.run", "state"]);
    // A downgrade needs a flag.
    let older = polite(&stage, "1.1.9", ROOT);
    let refused = update(&older, &[], 4);
    assert!(refused["hint"].as_str().is_some_and(|hint| hint.contains("--allow-downgrade")), "{refused}");
    assert_eq!(update(&older, &["--allow-downgrade"], 0)["outcome"], "updated");
    assert_eq!(given(&stage, "polite"), ["roots.config", "state"], "what it no longer asks for is gone");
    let other = ship(&stage.folder.join("other"), "hostile", &built("hostile"), &manifest("hostile"));
    let refused = update(&other.display().to_string(), &[], 2);
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("is the adapter `hostile`")), "{refused}");
}

#[test]
fn an_adapter_that_set_a_harness_up_is_taken_out_first() {
    let stage = stage();
    let path = polite(&stage, "1.0.0", ROOT);
    json_of(&stage, &["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "roots.config"], 0);
    std::fs::create_dir_all(stage.home.join(".polite")).expect("the home is writable");
    let set_up = run(&stage, &["install", "polite", "--user", "--yes"]);
    assert_eq!(set_up.code, Some(0), "{}", set_up.stderr);
    let files = stage.tree(&stage.home.join(".polite"));
    assert_eq!(files.len(), 1, "{files:?}");
    let refused = run(&stage, &["plugin", "remove", "polite"]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    let name = files.keys().next().and_then(|file| file.file_name()).expect("a file").to_string_lossy().into_owned();
    for words in [&*format!("~/.polite/{name}"), "relay-mesh uninstall polite --user", "--anyway"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    let removed = json_of(&stage, &["plugin", "remove", "polite", "--anyway"], 0);
    assert_eq!(removed["leftovers"], json!([format!("~/.polite/{name}")]));
    assert_eq!(stage.tree(&stage.home.join(".polite")), files, "what it set up is left as it was");
}

#[test]
fn what_an_adapter_knew_goes_with_it() {
    let stage = stage();
    let path = polite(&stage, "1.0.0", ROOT);
    json_of(&stage, &["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"], 0);
    for session in ["s1", "s2"] {
        assert_eq!(hook(&stage, "polite", session).code, Some(0));
    }
    let sessions = || stage.tree(&stage.data.join("sessions")).values().filter(|bytes| holds_polite(bytes)).count();
    assert_eq!(sessions(), 2);
    let removed = json_of(&stage, &["plugin", "remove", "polite"], 0);
    assert_eq!(removed["sessions"], 2, "{removed}");
    assert_eq!(sessions(), 0, "they have ended");
    // A built-in adapter goes on with the sessions of what replaced it.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/generic");
    json_of(&stage, &["plugin", "install", "--allow-unsigned", folder, "--yes", "--grant", "replaces-built-in"], 0);
    assert_eq!(json_of(&stage, &["plugin", "remove", "generic"], 0)["sessions"], 0);
}

fn holds_polite(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains("\"harness\":\"polite\"")
}

#[test]
fn the_names_of_built_in_adapters_are_not_taken_silently() {
    let stage = stage();
    let named = |from: &str, to: &str| {
        let text = manifest("polite").replace(from, to);
        ship(&stage.folder.join("claims"), "claims", &built("polite"), &text).display().to_string()
    };
    let path = named("title =", "aliases = [\"claude\"]\ntitle =");
    let refused = run(&stage, &["plugin", "install", "--allow-unsigned", &path, "--yes"]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(refused.stderr.contains("belongs to the built-in adapter `claude-code`"), "{}", refused.stderr);
    let takes =
        ["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "replaces-built-in", "--grant", SAYS];
    let shown = run(&stage, &takes);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("answer to the name `claude`, in place of"), "{}", shown.stdout);
    assert!(hook(&stage, "claude", "s1").stdout.starts_with("Stop "), "the alias is its own now");
    assert!(!hook(&stage, "claude-code", "{}").stdout.starts_with("Stop "), "the name is not");
    json_of(&stage, &["plugin", "revoke", "polite", "replaces-built-in"], 0);
    assert!(!hook(&stage, "claude", "s1").stdout.starts_with("Stop "), "and no longer");
    let told = run(&stage, &["plugin", "list"]).stdout;
    assert!(told.contains("relay-mesh plugin grant polite replaces-built-in"), "{told}");
}

#[test]
fn what_is_built_in_can_be_installed_over_itself() {
    let stage = stage();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/generic");
    let refused = run(&stage, &["plugin", "install", "--allow-unsigned", folder, "--yes", "--grant", "state"]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert_eq!(installed(&stage), json!([]));
    let arguments = ["plugin", "install", "--allow-unsigned", folder, "--yes", "--grant", "replaces-built-in"];
    json_of(&stage, &arguments, 0);
    let listed = installed(&stage);
    assert_eq!((&listed[0]["name"], &listed[0]["source"]), (&json!("generic"), &json!("installed")), "{listed}");
    json_of(&stage, &["plugin", "remove", "generic"], 0);
    assert_eq!(installed(&stage), json!([]), "the built-in one answers again");
}

#[test]
fn of_installs_at_once_one_is_done_and_nothing_is_half() {
    let stage = stage();
    let paths: Vec<String> = (0..4).map(|number| polite(&stage, &format!("1.0.{number}"), "")).collect();
    // Compiled beforehand, so that the installs run at the same time, not the compilations.
    json_of(&self::stage(), &["plugin", "install", "--allow-unsigned", &paths[0], "--yes", "--grant", "state"], 0);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let stage = &stage;
        let at_once = paths.iter().map(|path| {
            scope.spawn(move || run(stage, &["plugin", "install", "--allow-unsigned", path, "--yes", "--grant", SAYS]))
        });
        let threads: Vec<_> = at_once.collect();
        threads.into_iter().map(|thread| thread.join().expect("it ran")).collect()
    });
    let done = outcomes.iter().filter(|outcome| outcome.code == Some(0)).count();
    assert_eq!(done, 1, "{outcomes:?}");
    for refused in outcomes.iter().filter(|outcome| outcome.code != Some(0)) {
        assert_eq!(refused.code, Some(4), "{}", refused.stderr);
        let told = ["was changed by another command meanwhile", "is installed already"];
        assert!(told.iter().any(|words| refused.stderr.contains(words)), "{}", refused.stderr);
    }
    let verified = run(&stage, &["plugin", "verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    assert_eq!(installed(&stage).as_array().map(Vec::len), Some(1));
}

#[test]
fn of_updates_at_once_one_is_whole_and_the_others_say_why_not() {
    let stage = stage();
    let at = |version: &str| polite(&stage, version, "");
    json_of(&stage, &["plugin", "install", "--allow-unsigned", &at("1.0.0"), "--yes", "--grant", "state"], 0);
    for round in 1..4 {
        let versions = ["1", "2", "3"].map(|patch| format!("1.{round}.{patch}"));
        let paths: Vec<String> = versions.iter().map(|version| at(version)).collect();
        let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
            let stage = &stage;
            let at_once = paths
                .iter()
                .map(|path| scope.spawn(move || run(stage, &["plugin", "update", "polite", path, "--allow-unsigned"])));
            let threads: Vec<_> = at_once.collect();
            threads.into_iter().map(|thread| thread.join().expect("it ran")).collect()
        });
        // A later version may follow an earlier one, and not the other way round.
        assert!(outcomes.iter().any(|outcome| outcome.code == Some(0)), "{outcomes:?}");
        for refused in outcomes.iter().filter(|outcome| outcome.code != Some(0)) {
            assert_eq!(refused.code, Some(4), "{}", refused.stderr);
            let told = ["was changed by another command meanwhile", "is installed in version"];
            assert!(told.iter().any(|words| refused.stderr.contains(words)), "{}", refused.stderr);
        }
        let verified = run(&stage, &["plugin", "verify"]);
        assert_eq!(verified.code, Some(0), "{}", verified.stdout);
        let now = installed(&stage)[0]["version"].clone();
        assert!(versions.iter().any(|version| now == *version), "{now}: {versions:?}");
        let folders = std::fs::read_dir(stage.data.join("plugins/polite")).expect("its folder").count();
        assert_eq!(folders, 1, "no files of another version are left");
    }
}

#[test]
fn an_update_on_a_full_disk_leaves_the_version_that_is_there() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["register", "bob"]);
        let plugins = stage.data.join("plugins");
        std::fs::create_dir_all(&plugins).expect("the data folder is writable");
        let size = format!("size={},mode=0700", 2 * built("polite").len() + 256 * 1024);
        Program::new("mount").args(["-t", "tmpfs", "-o", &size, "disk"]).arg(&plugins).succeed();
        let first = polite(&stage, "1.0.0", "");
        json_of(&stage, &["plugin", "install", "--allow-unsigned", &first, "--yes", "--grant", SAYS], 0);
        let filler = plugins.join("filler");
        let mut file = std::fs::File::create(&filler).expect("the disk has room for a name");
        // Fills the disk until a write fails.
        while file.write_all(&[0; 4096]).is_ok() {}
        drop(file);
        let before = stage.tree(&plugins);
        let later = polite(&stage, "1.1.0", "");
        let update = ["plugin", "update", "polite", &later, "--allow-unsigned"];
        let full = run(&stage, &update);
        assert_eq!(full.code, Some(5), "{full:?}");
        for words in ["o space left on device", "\nhint: make room on the disk and run it again"] {
            assert!(full.stderr.contains(words), "{words}: {full:?}");
        }
        assert!(stage.tree(&plugins) == before, "nothing was changed, and nothing half-written is left");
        let verified = run(&stage, &["plugin", "verify"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        assert!(hook(&stage, "polite", "s1").stdout.starts_with("Stop "), "the earlier version goes on");
        std::fs::remove_file(&filler).expect("the filler can be taken away");
        assert_eq!(json_of(&stage, &update, 0)["version"], "1.1.0");
    });
}

#[test]
fn what_was_changed_behind_our_back_shows_everywhere() {
    let stage = stage();
    json_of(
        &stage,
        &["plugin", "install", "--allow-unsigned", &polite(&stage, "1.0.0", ""), "--yes", "--grant", "state"],
        0,
    );
    let whole = run(&stage, &["plugin", "verify"]);
    assert!(whole.stdout.contains("is what was installed, and it was loaded"), "{}", whole.stdout);
    let files = stage.tree(&stage.data.join("plugins"));
    let component = files.keys().find(|file| file.ends_with("polite.wasm")).expect("its component").clone();
    std::fs::write(&component, built("hostile")).expect("the data folder is writable");
    let expected = "its component is not the one that was installed";
    for (arguments, code) in [
        (&["plugin", "verify"][..], 1),
        (&["plugin", "list"], 0),
        (&["harnesses"], 0),
        (&["doctor"], 1),
        (&["plugin", "inspect", "polite"], 1),
    ] {
        let outcome = run(&stage, arguments);
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(told.contains(expected), "{arguments:?}: {told}");
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {told}");
    }
    assert!(hook(&stage, "polite", "s1").stderr.contains("no adapter is named `polite`"));
    json_of(
        &stage,
        &["plugin", "install", "--allow-unsigned", &polite(&stage, "1.0.0", ""), "--yes", "--grant", "state"],
        0,
    );
    assert_eq!(run(&stage, &["plugin", "verify"]).code, Some(0), "installing it again mends it");
}

/// A folder with the hostile adapter in it.
fn hostile(stage: &Stage) -> String {
    let folder = stage.folder.join("packages/hostile");
    ship(&folder, "hostile", &built("hostile"), &manifest("hostile")).display().to_string()
}

/// A folder with this version of the polite adapter and these requests.
fn polite(stage: &Stage, version: &str, asks: &str) -> String {
    let text = manifest("polite").replace("0.1.0", version) + asks;
    let folder = stage.folder.join(format!("packages/polite-{version}-{}", asks.len()));
    components::ship(&folder, "polite", &built("polite"), &text).display().to_string()
}

fn built(name: &str) -> Vec<u8> {
    component(env!("CARGO_TARGET_TMPDIR"), name)
}

/// Calls the Stop hook, or the one that the payload of the hostile adapter names.
fn hook(stage: &Stage, adapter: &str, words: &str) -> Outcome {
    let name = if words.contains(':') { words } else { "Stop" };
    stage.relay(&["hook", adapter, name]).env("XDG_CACHE_HOME", cache()).input(words).run()
}

/// Everything in `plugin list` that is not built in.
fn installed(stage: &Stage) -> Value {
    let listed = json_of(stage, &["plugin", "list"], 0);
    let all = listed["adapters"].as_array().expect("adapters").iter();
    Value::Array(all.filter(|adapter| adapter["source"] != "built-in").cloned().collect())
}

/// The grants that an adapter has.
fn given(stage: &Stage, name: &str) -> Vec<String> {
    let shown = json_of(stage, &["plugin", "inspect", name], 0);
    let grants = shown["grants"].as_array().expect("grants").iter();
    grants
        .filter(|grant| grant["given"] == true)
        .filter_map(|grant| grant["name"].as_str().map(str::to_owned))
        .collect()
}

/// A command's JSON: from standard output, or from standard error if it failed.
fn json_of(stage: &Stage, arguments: &[&str], code: i32) -> Value {
    let outcome = run(stage, &[arguments, &["--json"]].concat());
    assert_eq!(outcome.code, Some(code), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
    let text = if outcome.stdout.is_empty() { &outcome.stderr } else { &outcome.stdout };
    let last = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    relay(stage, arguments).run()
}

fn relay(stage: &Stage, arguments: &[&str]) -> Program {
    stage.relay(arguments).env("XDG_CACHE_HOME", cache())
}

/// Shared, so that adapters are compiled once for all tests, as for all projects of a user.
fn cache() -> String {
    format!("{}/cache", env!("CARGO_TARGET_TMPDIR"))
}

fn told(outcome: &Outcome) -> String {
    let code = outcome.code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string());
    format!("{}── {code} ──\n{}", outcome.stdout, outcome.stderr)
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
