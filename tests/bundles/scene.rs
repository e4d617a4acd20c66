//! What the tests of the bundle stand on: packing it, adding it to a client, and what came of a session.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::{ClaudeCode, Codex, Program, Script, Stage, Terminal, presence_of, search_path, wait_for};

/// The target for which a binary is packed that is none of a release.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };
/// How Claude Code names a tool of the plugin's server, and the permission to run all of them.
pub(crate) const PLUGIN_TOOLS: &str = "mcp__plugin_relay-mesh_relay-mesh";
pub(crate) const ID: &str = "relay-mesh@relay-mesh";

pub(crate) fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// Packs the bundle.
pub(crate) fn pack(stage: &Stage, out: &Path, variables: &[(&str, &str)], mask: &str) {
    let packer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/pack.py");
    let cache = stage.home.join(".cache").display().to_string();
    Program::new("sh")
        .args(["-c", &format!("umask {mask}; exec \"$@\""), "packed", "python3"])
        .arg(packer)
        .args(["--only", "bundles", "--target", TARGET, "--binary"])
        .arg(stage.binary())
        .arg("--out")
        .arg(out)
        .envs([("SOURCE_DATE_EPOCH", "1795699023"), ("XDG_CACHE_HOME", cache.as_str())])
        .envs(variables.iter().copied())
        .env("PATH", search_path())
        .succeed();
}

/// The marketplace, as a user has it after unpacking.
pub(crate) fn unpacked(stage: &Stage) -> PathBuf {
    let (out, folder) = (stage.folder.join("packed"), stage.folder.join("relay-mesh-plugins"));
    pack(stage, &out, &[], "022");
    let bundle = out.join(format!("relay-mesh-plugins-{}.zip", env!("CARGO_PKG_VERSION")));
    Program::new("python3").args(["-m", "zipfile", "-e"]).arg(bundle).arg(&folder).succeed();
    folder
}

/// Each hook of a settings file: its event, matcher, what runs before the program, arguments, and what else is said of
/// it.
pub(crate) fn lines_of(settings: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(settings).expect("JSON");
    let mut lines = Vec::new();
    for (event, groups) in settings["hooks"].as_object().expect("hooks") {
        for group in groups.as_array().expect("groups") {
            let mut hook = group["hooks"][0].clone();
            let line = hook["command"].as_str().expect("a command").to_owned();
            let (before, arguments) = match hook["args"].as_array() {
                Some(words) => {
                    let words: Vec<&str> = words.iter().map(|word| word.as_str().expect("text")).collect();
                    let ours = words.iter().position(|word| *word == "hook").expect("it runs a hook");
                    let before = if ours == 0 { String::new() } else { format!("{line} -c '{}'", words[1]) };
                    (before, words[ours..].join(" "))
                }
                None => {
                    let program = "\"${RELAY_MESH_BIN:-relay-mesh}\" ";
                    let (before, arguments) = line.split_once(program).expect("it runs the program by its name");
                    (before.trim_end().to_owned(), arguments.to_owned())
                }
            };
            let further = hook.as_object_mut().expect("a hook");
            further.retain(|key, _| key != "command" && key != "args");
            lines.push(format!("{event} {} {before} {arguments} | {}", group["matcher"], json!(further)));
        }
    }
    lines
}

pub(crate) fn joining(name: &str, tools: &str) -> Script {
    Script::joining(&format!("{tools}__register_agent"), name)
}

/// Adds the plugin as docs/plugins-of-harnesses.md says it, and allows its tools.
pub(crate) fn add_to_claude_code(client: &ClaudeCode<'_>, stage: &Stage, bundle: &Path) {
    let settings = stage.home.join(".claude/settings.json");
    let mut allowed: Value = match std::fs::read_to_string(&settings) {
        Ok(text) => serde_json::from_str(&text).expect("JSON"),
        Err(_) => json!({}),
    };
    allowed["permissions"]["allow"] = json!([PLUGIN_TOOLS]);
    std::fs::write(&settings, allowed.to_string()).expect("the home is writable");
    claude(client, stage, &["plugin", "marketplace", "add", &bundle.display().to_string()]);
    claude(client, stage, &["plugin", "install", ID]);
}

pub(crate) fn claude(client: &ClaudeCode<'_>, stage: &Stage, arguments: &[&str]) -> String {
    let environment = client.environment().iter().map(|(name, value)| (name, value));
    Program::new(ClaudeCode::program_path()).args(arguments).envs(environment).within(&stage.project).succeed()
}

pub(crate) fn add_to_codex(codex: &Codex<'_>, bundle: &Path) {
    for arguments in [&["plugin", "marketplace", "add", &bundle.display().to_string()][..], &["plugin", "add", ID]] {
        let outcome = codex.run(arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
}

/// Waits until the session has said this and is idle again.
pub(crate) fn says(terminal: &Terminal, words: &str) {
    terminal.wait_for(&format!("● {words}"));
    terminal.wait_until_gone("esc to interrupt");
}

pub(crate) fn project_of_alice(stage: &Stage) -> String {
    let all: Value = serde_json::from_str(&stage.relay_ok(&["agents", "--json"])).expect("JSON");
    all["agents"][0]["project"].as_str().expect("a project").to_owned()
}

/// Waits until the mesh knows that the turn is over, which the screen shows earlier.
pub(crate) fn is_idle(stage: &Stage) {
    wait_for("the turn is over", || presence_of(stage, "alice").filter(|presence| presence == "idle"));
}

/// What the event log has of turns.
pub(crate) fn turns(stage: &Stage) -> Vec<String> {
    let following = [stage.binary().to_str().expect("text"), "events", "--topics", "turns", "--cursor", "start"];
    let told = Program::new("timeout").arg("2").args(following).envs(stage.environment()).run().stdout;
    let events = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut names: Vec<_> = events.map(|event| event["event"].as_str().unwrap_or_default().to_owned()).collect();
    names.retain(|name| name.starts_with("turn-"));
    names
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
