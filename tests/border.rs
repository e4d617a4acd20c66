//! What an adapter can do that the user granted nothing for: the real binary, with adapters that reach for more.

use serde_json::{Value, json};
use test_support::components::{component, manifest, ship};
use test_support::{Host, Outcome, Program, Stage, wait_for};

#[path = "hostile/burden.rs"]
mod burden;

/// The polite adapter is certain of each session that it is asked about.
#[test]
fn an_adapter_becomes_no_session_of_another_harness() {
    let stage = stage();
    let path =
        polite(&stage, &manifest("polite").replace("\"polite-client\"", "\"polite-client\", \"claude-code\", \"*\""));
    let asked = run(&stage, &["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    for line in [
        "clients.claude-code  take the calls of the MCP client `claude-code` for those of its own sessions, though it \
         belongs to the built-in adapter `claude-code`",
        "clients.*            take every MCP client's calls for those of its own sessions, though nothing shows that \
         they are",
    ] {
        assert!(asked.stdout.contains(line), "{}", asked.stdout);
    }
    let host = Host::start(&stage);
    assert_ne!(harness_of(&stage, &host, "claude-code", "alice"), "polite");
    assert_eq!(harness_of(&stage, &host, "another", "bob"), "generic");
    assert_eq!(harness_of(&stage, &host, "polite-client", "carol"), "polite");
    // With the grant it is asked about clients that no other adapter knows.
    assert_eq!(run(&stage, &["plugin", "grant", "polite", "clients.*"]).code, Some(0));
    assert_eq!(harness_of(&stage, &host, "another", "dora"), "polite");
}

#[test]
fn what_an_installed_adapter_matches_stays_its_own() {
    let stage = stage();
    let first = polite(&stage, &manifest("polite"));
    assert_eq!(
        run(&stage, &["plugin", "install", "--allow-unsigned", &first, "--yes", "--grant", "state"]).code,
        Some(0)
    );
    let text = manifest("hostile").replace("\"hostile-client\"", "\"polite-client\"");
    let second = ship(&stage.folder.join("hostile"), "hostile", &built("hostile"), &text).display().to_string();
    let asked = run(&stage, &["plugin", "install", "--allow-unsigned", &second, "--yes", "--grant", "state"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    let words = "though it belongs to the installed adapter `polite`";
    assert!(asked.stdout.contains(words), "{}", asked.stdout);
    let host = Host::start(&stage);
    assert_eq!(harness_of(&stage, &host, "polite-client", "alice"), "polite");
    // A later version of the first one does not lose it to the second one.
    let later = polite(&stage, &manifest("polite").replace("0.1.0", "0.2.0"));
    let updated = run(&stage, &["plugin", "update", "--allow-unsigned", "polite", &later]);
    assert_eq!(updated.code, Some(0), "{}", updated.stderr);
    assert!(!updated.stdout.contains("clients.polite-client"), "{}", updated.stdout);
    assert_eq!(harness_of(&stage, &host, "polite-client", "bob"), "polite");
    assert_eq!(run(&stage, &["plugin", "grant", "hostile", "clients.polite-client"]).code, Some(0));
    assert_eq!(harness_of(&stage, &host, "polite-client", "carol"), "polite", "the owner goes first");
}

/// A user is asked by the manifest alone: what is a burden to compile costs nothing before they agree, and then ends at
/// its limits, here those of the shell.
#[test]
fn nothing_is_compiled_before_the_user_agrees_and_then_within_limits() {
    let stage = stage();
    let cache = stage.folder.join("cache-of-its-own");
    let path = burdensome(&stage);
    let run = |arguments: &[&str]| {
        let limited = ["-c", "ulimit -t 2; exec \"$0\" \"$@\""];
        let binary = stage.binary().display().to_string();
        let line = [&limited[..], &[binary.as_str()], arguments].concat();
        let program = Program::new("sh").args(line).envs(stage.environment()).within(&stage.project);
        program.env("XDG_CACHE_HOME", &cache).run()
    };
    let inspected = run(&["plugin", "inspect", &path]);
    assert_eq!(inspected.code, Some(0), "{}", inspected.stderr);
    assert!(inspected.stdout.contains("not compiled yet"), "{}", inspected.stdout);
    let unasked = run(&["plugin", "install", "--allow-unsigned", &path]);
    assert_eq!(unasked.code, Some(4), "{}", unasked.stderr);
    assert!(unasked.stdout.contains("it asks to be able to"), "{}", unasked.stdout);
    let compiled = || std::fs::read_dir(cache.join("relay-mesh/adapters")).map_or(0, Iterator::count);
    assert_eq!(compiled(), 0, "nothing was begun");
    let refused = run(&["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for words in ["is no adapter", "compiling it takes more than", "hint: "] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert_eq!(compiled(), 0, "nothing is left");
    assert!(!stage.data.join("plugins/polite.json").exists());
}

/// Who is tried out ends with the command that tries it; what a hook needs is compiled although the hook is killed.
#[test]
fn who_compiles_ends_with_an_install_and_outlives_a_hook() {
    let stage = stage();
    let cache = stage.folder.join("cache-of-its-own");
    let compiles = || compilers(&cache.display().to_string());
    let start =
        |arguments: &[&str]| stage.relay(arguments).env("XDG_CACHE_HOME", &cache).start(&stage.folder.join("log"));
    let path = burdensome(&stage);
    let mut install = start(&["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"]);
    wait_for("it is being compiled", || (compiles() == 1).then_some(()));
    install.kill();
    wait_for("it is not compiled any more", || (compiles() == 0).then_some(()));
    let mut hook = start(&["hook", "claude-code", "Stop"]);
    drop(hook.child.stdin.take());
    let kept = |what: &str| {
        let files = std::fs::read_dir(cache.join("relay-mesh/adapters")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == what)).count()
    };
    // One that is killed before it has handed the component over leaves the work to the next hook.
    wait_for("its adapter is being compiled", || (kept("failure") + kept("cwasm") == 1).then_some(()));
    hook.kill();
    wait_for("it is there for the next hook", || (kept("cwasm") == 1).then_some(()));
    wait_for("nobody compiles any more", || (compiles() == 0).then_some(()));
}

/// A hook whose time is up ends what its adapter started: in its group, in a session of its own, and without a parent.
#[test]
fn what_a_hook_started_ends_when_its_time_is_up() {
    let stage = stage();
    let hook = hook_with_programs(&stage);
    let outcome = hook.input("session").run();
    assert!(outcome.stderr.contains("took longer than 5 s and was given up"), "{outcome:?}");
    assert!(stage.home.join("started").exists(), "it was started: {outcome:?}");
    let left = || in_home_of(&stage);
    // A killed process may still wait for whoever adopted it.
    wait_for("nothing of it is left", || (left() == 0).then_some(()));
}

/// A hook that is killed cannot end what it has started: the next command does it.
#[test]
fn what_a_killed_hook_has_started_is_ended_by_the_next_command() {
    let stage = stage();
    let hook = hook_with_programs(&stage);
    let mut hook = hook.start(&stage.folder.join("hook.log"));
    std::io::Write::write_all(hook.child.stdin.as_mut().expect("a pipe"), b"session").expect("it reads");
    drop(hook.child.stdin.take());
    wait_for("the program has started", || stage.home.join("started").exists().then_some(()));
    hook.child.kill().expect("it is killed");
    hook.child.wait().expect("it has ended");
    let left = || in_home_of(&stage);
    assert!(left() > 0, "what it had started goes on");
    run(&stage, &["agents"]);
    wait_for("nothing of it is left", || (left() == 0).then_some(()));
    let noted = std::fs::read_dir(stage.data.join("programs")).expect("they were noted").count();
    assert_eq!(noted, 0, "and nothing is noted any more");
}

/// A hook whose adapter starts programs: in its group, in a session of its own, and without a parent.
fn hook_with_programs(stage: &Stage) -> Program {
    let started = "sleep 40 & setsid sleep 40 & (setsid sleep 40 >/dev/null 2>&1 &); touch started; wait";
    let text = manifest("hostile").replace("cat; echo $0", started);
    let path = ship(&stage.folder.join("hostile"), "hostile", &built("hostile"), &text).display().to_string();
    let grants = "state,programs.echo,answers.context,answers.own-words";
    let installed = run(stage, &["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", grants]);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let cache = format!("{}/cache", env!("CARGO_TARGET_TMPDIR"));
    stage.relay(&["hook", "hostile", "answer:program echo word"]).env("XDG_CACHE_HOME", cache)
}

/// How many processes work in the stage's home.
fn in_home_of(stage: &Stage) -> usize {
    let home = stage.home.canonicalize().expect("a home");
    let all = std::fs::read_dir("/proc").expect("a list").flatten().map(|entry| entry.path());
    all.filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == home)).count()
}

/// How many processes compile into this cache.
fn compilers(cache: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("a list").flatten();
    let words = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words
        .filter(|words| {
            let words = String::from_utf8_lossy(words);
            words.contains("compile-component") && words.contains(cache)
        })
        .count()
}

/// A folder with a component that takes minutes to compile, under the manifest of the polite adapter.
fn burdensome(stage: &Stage) -> String {
    let folder = stage.folder.join("burden");
    ship(&folder, "polite", &burden::component(800, 800), &manifest("polite")).display().to_string()
}

/// The harness to which the server counts an agent of this client.
fn harness_of(stage: &Stage, host: &Host, client: &str, agent: &str) -> String {
    let call = json!({"name": "register_agent", "arguments": {"name": agent}, "_meta": {"session": agent}});
    let answer = host.client(client).request("tools/call", &call);
    assert_ne!(answer["isError"], true, "{answer}");
    let agents: Value = serde_json::from_str(&run(stage, &["agents", "--json"]).stdout).expect("JSON");
    let all = agents["agents"].as_array().expect("agents");
    let found = all.iter().find(|found| found["name"] == agent).unwrap_or_else(|| panic!("{agent}: {agents}"));
    found["harness"].as_str().expect("a harness").to_owned()
}

/// A folder with the polite adapter under this manifest.
fn polite(stage: &Stage, text: &str) -> String {
    let folder = stage.folder.join(format!("polite-{}", text.len()));
    ship(&folder, "polite", &built("polite"), text).display().to_string()
}

fn built(name: &str) -> Vec<u8> {
    component(env!("CARGO_TARGET_TMPDIR"), name)
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    // Shared, so that adapters are compiled once for all tests, as for all projects of a user.
    let cache = format!("{}/cache", env!("CARGO_TARGET_TMPDIR"));
    stage.relay(arguments).env("XDG_CACHE_HOME", cache).run()
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
