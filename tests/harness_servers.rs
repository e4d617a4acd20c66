//! `relay-mesh up --with`: the server of the real OpenCode, started for its user without being configured, and ended with
//! everything that it started.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{HttpClient, Model, OpenCode, Outcome, Program, Script, Stage, isolated, wait_for};

const REGISTER: &str = "relay-mesh_register_agent";
/// Where OpenCode's users look for its server.
const PORT: u16 = 4096;

/// Whether a server runs in the stage's data folder.
fn runs(stage: &Stage) -> bool {
    let status: Value = serde_json::from_str(&stage.relay_ok(&["status", "--json"])).expect("JSON");
    status["server"]["running"] == true
}

#[test]
fn two_that_start_the_server_at_once_have_one_between_them() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let up = || stage.relay(&["up"]).env("RELAY_HTTP", "127.0.0.1:0").run();
    let both = std::thread::scope(|scope| {
        let both = [scope.spawn(up), scope.spawn(up)];
        both.map(|one| one.join().expect("it ends"))
    });
    for one in &both {
        assert_eq!(one.code, Some(0), "{both:?}");
        assert!(!one.stderr.contains("error"), "the other one's log is not shown: {both:?}");
    }
    let processes: Vec<&str> = both.iter().filter_map(|one| one.stdout.trim().rsplit(' ').next()).collect();
    assert_eq!(processes[0], processes[1], "{both:?}");
    stage.relay_ok(&["down"]);
}

#[test]
fn what_keeps_the_server_from_starting_is_told_once_and_nothing_is_left_running() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for (arguments, code, words) in [
        (&["up", "--with", "nope"][..], 3, "error: no adapter is named `nope`"),
        (
            &["up", "--http", "0.0.0.0:7499"],
            2,
            "error: the server did not come up: 0.0.0.0:7499 can be reached from other machines",
        ),
    ] {
        let refused = stage.run(arguments);
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
        let once = |word: &str| refused.stderr.matches(word).count() == 1;
        assert!(once("error:") && once("hint:") && !refused.stderr.contains("; hint"), "{refused:?}");
        assert!(!runs(&stage), "{arguments:?}");
    }
}

#[test]
fn what_to_do_next_is_told_for_the_folder_that_was_named() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let other = stage.folder.join("other").display().to_string();
    let up = stage.relay(&["up", "--dir", &other]).env("RELAY_HTTP", "127.0.0.1:0").run();
    assert_eq!(up.code, Some(0), "{up:?}");
    assert!(up.stderr.contains(&format!("next: `relay-mesh --dir {other} down` stops the server")), "{up:?}");
    let again = stage.run(&["serve", "--dir", &other, "--http", "127.0.0.1:0"]);
    assert!(again.stderr.contains(&format!("hint: stop it by `relay-mesh --dir {other} down`")), "{again:?}");
    stage.relay_ok(&["--dir", &other, "down"]);
}

#[test]
fn it_finds_opencode_and_down_ends_what_it_started() {
    isolated(|| {
        let place = OpenCodeStage::new(
            Script::new().call("Join the mesh", REGISTER, json!({"name": "alice"})).say("alice", "I am alice."),
        );
        place.has_opencode();
        let stage = &place.stage;
        let project = stage.project_path();
        stage.relay_ok(&["install", "opencode", "--project", &project, "--yes"]);
        let up = place.up("auto");
        let line = of_opencode(&up);
        assert_eq!((&line["outcome"], &line["url"]), (&json!("started"), &json!("http://127.0.0.1:4096")), "{up}");
        let attach = line["attach"].as_str().expect("it says how to work in it").to_owned();
        assert!(attach.ends_with("opencode attach http://127.0.0.1:4096"), "{attach}");
        let pid = line["pid"].as_u64().expect("a process");

        // It lets in who knows its password, which is in its environment alone.
        let told = format!(
            "printf %s {}",
            attach.split_once('=').expect("a variable").1.rsplit_once(" opencode").expect("a line").0
        );
        let password = Program::new("sh").args(["-c", &told]).succeed();
        assert_eq!(password.len(), 64, "{attach}: {password}");
        // Without it nothing is told. In a room without a network OpenCode takes its time to say so.
        let ask =
            format!("import urllib.request; urllib.request.urlopen('http://127.0.0.1:{PORT}/session', timeout=3)");
        let refused = Program::new("python3").args(["-c", &ask]).run();
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let files = stage.tree(&stage.data);
        let holds = |bytes: &[u8]| bytes.windows(64).any(|piece| piece == password.as_bytes());
        assert!(!files.values().any(|bytes| holds(bytes)), "no file holds the password");
        let client = place.client(&password);
        let session: Value = serde_json::from_str(&client.post("/session", "{}").body).expect("JSON");
        let id = session["id"].as_str().expect("a session");
        let say = json!({"parts": [{"type": "text", "text": "Join the mesh as alice."}]});
        assert_eq!(client.post(&format!("/session/{id}/message"), &say.to_string()).status, 200);
        assert_eq!(test_support::session_of(stage, "alice").as_deref(), Some(id), "it is in the mesh");

        let again = place.up("opencode");
        assert_eq!((&of_opencode(&again)["outcome"], &of_opencode(&again)["pid"]), (&json!("running"), &json!(pid)));
        let status = stage.relay_ok(&["status"]);
        assert!(status.contains(&format!("OpenCode serves http://127.0.0.1:4096, process {pid}")), "{status}");
        let doctor = stage.run(&["doctor", "opencode", "--project", &project]).stdout;
        assert!(
            doctor.contains(&format!(
                "its server, which relay-mesh started, listens at http://127.0.0.1:4096, process {pid}"
            )),
            "{doctor}"
        );
        assert!(doctor.contains("the OpenCode on port 4096 answers"), "{doctor}");

        let down = stage.relay_ok(&["down"]);
        assert!(down.contains(&format!("stopped the server of OpenCode, process {pid}")), "{down}");
        assert_eq!(everything_of(stage), Vec::<String>::new());
        assert!(!stage.relay_ok(&["status"]).contains("OpenCode serves"));
        assert!(!stage.run(&["doctor", "opencode"]).stdout.contains("its server"));
    });
}

#[test]
fn whichever_process_is_killed_nothing_is_left_and_the_next_up_begins_anew() {
    isolated(|| {
        let place = OpenCodeStage::new(Script::new());
        place.has_opencode();
        let mut before = 0;
        for victims in [["serve-harness"].as_slice(), &["guard-run"], &["serve-harness", "guard-run"]] {
            let up = place.up("auto");
            let pid = of_opencode(&up)["pid"].as_u64().expect("a process");
            assert_ne!(pid, before, "{up}");
            before = pid;
            let found: Vec<String> = victims.iter().flat_map(|word| processes(word)).collect();
            assert_eq!(found.len(), victims.len(), "{victims:?}: {found:?}");
            Program::new("kill").arg("-KILL").args(&found).succeed();
            wait_for("nothing of it is left", || everything_of(&place.stage).is_empty().then_some(()));
            assert!(!place.stage.relay_ok(&["status"]).contains("OpenCode serves"));
        }
        let doctor = place.stage.run(&["doctor", "opencode"]).stdout;
        assert!(doctor.contains("the server of OpenCode, which relay-mesh had started, was killed"), "{doctor}");

        // Killed while it starts, before anybody knows of it.
        let log = place.stage.folder.join("half-way.log");
        let mut half = place.relay(&["serve-harness", "opencode"]).start(&log);
        wait_for("it starts", || (!processes("become").is_empty() || !opencodes().is_empty()).then_some(()));
        half.kill();
        wait_for("nothing of it is left", || everything_of(&place.stage).is_empty().then_some(()));

        // What belongs to a data folder ends with it.
        assert_eq!(of_opencode(&place.up("auto"))["outcome"], "started");
        place.stage.relay_ok(&["down"]);
        assert_eq!(of_opencode(&place.up("auto"))["outcome"], "started");
        std::fs::remove_dir_all(place.stage.data.join("harness-servers")).expect("removed");
        wait_for("nothing of it is left", || everything_of(&place.stage).is_empty().then_some(()));
        place.stage.relay_ok(&["down"]);
    });
}

#[test]
fn two_at_once_start_one_and_none_is_started_beside_another() {
    isolated(|| {
        let place = OpenCodeStage::new(Script::new());
        place.has_opencode();
        // One relay-mesh server, so that only what is asked here is at once.
        place.relay(&["up", "--quiet"]).succeed();
        let both: Vec<Value> = std::thread::scope(|scope| {
            let each = [0, 1].map(|_| scope.spawn(|| place.up("auto")));
            each.map(|one| one.join().expect("it came up")).into()
        });
        assert_eq!(of_opencode(&both[0])["pid"], of_opencode(&both[1])["pid"], "{both:?}");
        assert_eq!(opencodes().len(), 1);
        place.stage.relay_ok(&["down"]);

        let model = Model::start(Script::new());
        let users = OpenCode::new(&place.stage, &model).serve();
        let line = place.up("auto");
        assert_eq!(of_opencode(&line)["outcome"], "elsewhere", "{line}");
        assert_eq!(of_opencode(&line)["pid"].as_u64(), Some(users.process.child.id().into()));
        assert_eq!(opencodes().len(), 1);
        place.stage.relay_ok(&["down"]);
        assert_eq!(opencodes().len(), 1, "it is its user's");
    });
}

#[test]
fn what_is_not_here_is_not_started_and_a_taken_port_is_said() {
    isolated(|| {
        let place = OpenCodeStage::new(Script::new());
        let up = place.up("auto");
        assert_eq!(of_opencode(&up)["outcome"], "not-here", "{up}");
        let named = place.run("opencode");
        assert_eq!(named.code, Some(1), "{named:?}");
        assert!(named.stdout.contains(r#""outcome":"not-here""#), "{named:?}");
        let unknown = place.run("toad");
        assert_eq!(unknown.code, Some(3), "{unknown:?}");
        assert!(unknown.stderr.contains("no adapter is named `toad`"), "{unknown:?}");

        // A program of that name that is not OpenCode.
        place.stage.program(
            "opencode",
            "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 1.18.33\necho 'bad luck' >&2\nexit 3\n",
        );
        let failed = place.run("auto");
        assert_eq!(failed.code, Some(1), "{failed:?}");
        assert!(failed.stdout.contains("OpenCode ended with 3 bad luck"), "{failed:?}");
        assert!(!place.stage.relay_ok(&["status"]).contains("OpenCode serves"));

        place.has_opencode();
        let _other = TcpListener::bind(("127.0.0.1", PORT)).expect("it is free");
        let up = place.up("auto");
        let line = of_opencode(&up);
        assert_eq!((&line["outcome"], &line["not_at"]), (&json!("started"), &json!(PORT)), "{up}");
        assert_ne!(line["url"], "http://127.0.0.1:4096");
        place.stage.relay_ok(&["down"]);

        // The name by which earlier instructions call it.
        let up = place.relay(&["mesh-up", "--json", "--quiet"]).succeed();
        let up: Value = serde_json::from_str(&up).expect("JSON");
        assert_eq!(of_opencode(&up)["outcome"], "started", "{up}");
        place.relay(&["mesh-down"]).succeed();
        assert_eq!(everything_of(&place.stage), Vec::<String>::new());
    });
}

/// A stage with the variables of a user who has set OpenCode up for a scripted model.
struct OpenCodeStage {
    stage: Arc<Stage>,
    environment: Vec<(String, String)>,
    _model: Model,
}

impl OpenCodeStage {
    fn new(script: Script) -> OpenCodeStage {
        let stage = Arc::new(Stage::new(env!("CARGO_BIN_EXE_relay-mesh")));
        let model = Model::start(script);
        let mut environment = OpenCode::new(&stage, &model).environment().to_vec();
        environment.push(("RELAY_HTTP".to_owned(), "127.0.0.1:0".to_owned()));
        OpenCodeStage { stage, environment, _model: model }
    }

    /// Puts the real client among the user's programs.
    fn has_opencode(&self) {
        let link = self.stage.programs().join("opencode");
        std::fs::create_dir_all(self.stage.programs()).expect("the home is writable");
        let _there = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(OpenCode::program_path(), link).expect("the home is writable");
    }

    fn relay(&self, arguments: &[&str]) -> Program {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        self.stage.relay(arguments).envs(environment)
    }

    fn run(&self, with: &str) -> Outcome {
        self.relay(&["up", "--with", with, "--json", "--quiet"]).run()
    }

    fn up(&self, with: &str) -> Value {
        let told = self.relay(&["up", "--with", with, "--json", "--quiet"]).succeed();
        serde_json::from_str(&told).expect("JSON")
    }

    fn client(&self, password: &str) -> HttpClient {
        let mut client = HttpClient::new(PORT, None);
        let login = Program::new("python3")
            .args(["-c", "import base64, sys; print(base64.b64encode(sys.stdin.buffer.read()).decode(), end='')"]);
        let login = login.input(format!("opencode:{password}")).succeed();
        client.header("authorization", Some(&format!("Basic {login}")));
        client
    }
}

fn of_opencode(up: &Value) -> &Value {
    let all = up["with"].as_array().expect("it says what it did for each harness");
    all.iter().find(|line| line["harness"] == "opencode").unwrap_or_else(|| panic!("{up}"))
}

/// The processes whose command line has a word.
fn processes(word: &str) -> Vec<String> {
    found(|words| words.iter().any(|found| found == word))
}

fn opencodes() -> Vec<String> {
    found(|words| words.len() > 1 && Path::new(&words[0]).ends_with("opencode") && words[1] == "serve")
}

/// Everything that a server of a harness consists of and starts. The relay-mesh server is none of it.
fn everything_of(stage: &Stage) -> Vec<String> {
    let ours = stage.binary().display().to_string();
    found(|words| {
        let is_ours = words[0] == ours || words[0].ends_with("/exe");
        let is_server = words.get(1).is_some_and(|word| word == "serve" || word == "up") && is_ours;
        (is_ours && !is_server) || Path::new(&words[0]).ends_with("opencode")
    })
}

fn found(fits: impl Fn(&[String]) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let fits = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
        !line.is_empty() && fits(&words)
    };
    pids.filter(fits).map(|pid| pid.to_string()).collect()
}
