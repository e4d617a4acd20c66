//! A program that is replaced by another build while it runs: its sessions go on, and both talk with each other. If
//! `RELAY_MESH_OLDER` names a build of an earlier version, that one and this one replace each other; otherwise a copy of
//! this one does. `upgrade` says how it was installed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::{Deployment, Program, StdioClient, variable};

/// The variable that names a build of an earlier version.
const OLDER: &str = "RELAY_MESH_OLDER";

test_support::on_every_store! { env!("CARGO_BIN_EXE_relay-mesh"); what_runs_goes_on_while_its_program_is_replaced }

fn what_runs_goes_on_while_its_program_is_replaced(place: &mut Deployment) {
    for (round, [first, next]) in replacements(place).into_iter().enumerate() {
        let [alice, bob, carol] = ["alice", "bob", "carol"].map(|name| format!("{name}-{round}"));
        goes_on(&Machine::with(place, &first), &next, [&alice, &bob, &carol]);
    }
}

/// Which program is there first, and which takes its place. Users go both ways: to a later version, and back.
fn replacements(place: &Deployment) -> Vec<[PathBuf; 2]> {
    let own = place.stage.binary().to_owned();
    if let Some(older) = variable(OLDER) {
        let older = std::fs::canonicalize(&older).unwrap_or_else(|error| panic!("{OLDER} is `{older}`: {error}"));
        return vec![[older.clone(), own.clone()], [own, older]];
    }
    // The same build, with other bytes behind its last section.
    let later = place.stage.folder.join("a-later-one");
    std::fs::copy(&own, &later).expect("it can be copied");
    append(&later, b"a later one");
    vec![[own, later]]
}

/// A program runs sessions and a server; then another one has its path.
fn goes_on(machine: &Machine<'_>, next: &Path, [alice, bob, carol]: [&str; 3]) {
    let mut session = StdioClient::connected(machine.run(&["mcp"]).start(&machine.log("session")), "a-plain-client");
    assert_eq!(session.call("register_agent", json!({"name": alice})).structured["name"], alice);
    machine.run(&["register", bob]).succeed();
    machine.run(&["send", alice, "from the first one", "--from", bob]).succeed();
    machine.run(&["up", "--http", "127.0.0.1:0", "--quiet"]).succeed();
    machine.replace_program(next);

    // The next one sends and reads what the first one has.
    machine.run(&["send", alice, "from the next one", "--from", bob]).succeed();
    let listed = machine.run(&["agents"]).succeed();
    assert!(listed.contains(alice), "{listed}");
    let fetched = session.call("fetch_messages", json!({"acknowledge": true})).structured;
    assert_eq!(bodies(&fetched), ["from the first one", "from the next one"]);
    let sent = session.call("send_message", json!({"to": bob, "body": "the session goes on"}));
    assert!(!sent.failed, "{sent:?}");
    let read = machine.json(&["read", "--agent", bob, "--unread"]);
    assert_eq!(bodies(&read), ["the session goes on"]);

    // A second session, of the next program, in the same mesh.
    let mut second = StdioClient::connected(machine.run(&["mcp"]).start(&machine.log("second")), "a-plain-client");
    assert_eq!(second.call("register_agent", json!({"name": carol})).structured["name"], carol);
    second.call("send_message", json!({"to": alice, "body": "hello"}));
    assert_eq!(bodies(&session.call("fetch_messages", json!({})).structured), ["hello"]);

    // The server of before is found, and ended, by the program that took its place.
    machine.run(&["down"]).succeed();
    assert_eq!(session.close(), Some(0));
    assert_eq!(second.close(), Some(0));
}

#[test]
fn the_command_that_upgrades_is_told() {
    let place = Deployment::on_files(env!("CARGO_BIN_EXE_relay-mesh"));
    let machine = Machine::with(&place, place.stage.binary());
    let told = machine.json(&["upgrade"]);
    let folder = machine.program.parent().expect("a folder").display().to_string();
    assert_eq!(told["channel"], "archive");
    assert_eq!(told["program"], machine.program.display().to_string());
    assert_eq!(told["command"], format!("RELAY_MESH_BIN={folder} sh install.sh"));
    let text = machine.run(&["upgrade"]).succeed();
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.starts_with(&format!("relay-mesh {version}, from an archive or install.sh: ")), "{text}");
    assert!(text.contains(&format!("\nTo upgrade, run `RELAY_MESH_BIN={folder} sh install.sh`")), "{text}");
    // It opens no mesh, so it also works where that is damaged or of a later version.
    assert!(!place.stage.data.exists(), "nothing was made");
}

/// A machine with a copy of the program, which a test may replace.
struct Machine<'a> {
    place: &'a Deployment,
    program: PathBuf,
}

impl Machine<'_> {
    fn with<'a>(place: &'a Deployment, first: &Path) -> Machine<'a> {
        let program = place.stage.folder.join("bin/relay-mesh");
        std::fs::create_dir_all(program.parent().expect("a folder")).expect("the stage is writable");
        let machine = Machine { place, program };
        machine.replace_program(first);
        machine
    }

    fn run(&self, words: &[&str]) -> Program {
        let stage = &self.place.stage;
        Program::new(&self.program).args(words).envs(stage.environment()).within(&stage.project)
    }

    fn json(&self, words: &[&str]) -> Value {
        let printed = self.run(&[words, &["--json"]].concat()).succeed();
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.place.stage.folder.join(format!("{name}.log"))
    }

    /// As package managers do it: another file is moved to the path.
    fn replace_program(&self, next: &Path) {
        let unfinished = self.program.with_file_name(".relay-mesh-next");
        std::fs::copy(next, &unfinished).expect("it can be copied");
        std::fs::rename(&unfinished, &self.program).expect("it can be moved");
    }
}

fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("it is ours");
    file.write_all(bytes).expect("there is room");
}

fn bodies(list: &Value) -> Vec<&str> {
    let messages = list["messages"].as_array().or(list.as_array()).expect("a list of messages");
    messages.iter().filter_map(|message| message["body"].as_str()).collect()
}
