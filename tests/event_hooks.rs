//! Event hooks with the real program, and with the real Codex: what is refused, commands, messages, channels, webhooks,
//! what is killed in between, and the uses that people make of them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use test_support::{
    Codex, Deployment, Host, Model, Outcome, Running, Script, Spawning, Stage, bodies, isolated, send_with, unread,
    wait_for, wait_or_show,
};

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    stage
}

fn json_of(stage: &Stage, words: &[&str]) -> Value {
    serde_json::from_str(stage.relay_ok(&[words, &["--json"]].concat()).trim()).expect("JSON")
}

/// Adds a hook. Returns its id.
fn on(stage: &Stage, words: &[&str]) -> String {
    json_of(stage, &[&["on"], words].concat())["id"].as_str().expect("an id").to_owned()
}

/// What became of a hook's events: the status and the result of each.
fn log(stage: &Stage, id: &str) -> Vec<(String, String)> {
    let all = json_of(stage, &["on", "log", id]);
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    all["invocations"].as_array().expect("a list").iter().map(|one| (text(one, "status"), text(one, "told"))).collect()
}

fn wait_for_log(stage: &Stage, id: &str, status: &str, told: &str) -> String {
    let found = || log(stage, id).into_iter().find(|one| one.0 == status && one.1.contains(told)).map(|one| one.1);
    wait_or_show(&format!("{id} is {status}: {told}"), found, || {
        format!("{:?}\n{}", log(stage, id), std::fs::read_to_string(stage.folder.join("serve.log")).unwrap_or_default())
    })
}

fn check(outcome: &Outcome, code: i32, expected: &str) {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert!(outcome.stderr.contains(expected), "{expected}: {outcome:?}");
}

/// The head and the body of a request.
type Request = (String, Vec<u8>);

/// A server for webhooks that answers as it is told to, one request after the other.
struct Webhook {
    url: String,
    heard: Arc<Mutex<Vec<Request>>>,
}

impl Webhook {
    /// The last answer is given again and again. `hang` is none.
    fn answering(answers: &'static [&'static str]) -> Webhook {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook?a=b", listener.local_addr().expect("an address"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.expect("a client");
                let request = request(&mut stream);
                kept.lock().expect("nothing panics here").push(request);
                match answers[number.min(answers.len() - 1)] {
                    "hang" => open.push(stream),
                    answer => {
                        let head = format!("HTTP/1.1 {answer}\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
                        stream.write_all(head.as_bytes()).expect("it reads");
                    }
                }
            }
        });
        Webhook { url, heard }
    }

    fn heard(&self) -> Vec<Request> {
        self.heard.lock().expect("nothing panics here").clone()
    }
}

/// Reads a request.
fn request(stream: &mut TcpStream) -> Request {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part).expect("it writes");
        bytes.extend(&part[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length: usize = header(&head, "content-length").parse().expect("a length");
        if bytes.len() >= end + 4 + length {
            return (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end + 4..].to_vec());
        }
    }
}

fn header(head: &str, name: &str) -> String {
    let line = head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
    line.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// The signature that a recipient computes.
fn signed(secret: &str, head: &str, body: &[u8]) -> String {
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).expect("a key");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
    mac.update(format!("{}.{}.", header(head, "webhook-id"), header(head, "webhook-timestamp")).as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[test]
fn what_is_no_hook_is_refused_and_only_the_user_makes_one() {
    let stage = stage();
    for (words, code, expected) in [
        (vec!["on", "turn-over", "--notify"], 2, "the events are turn-started, turn-completed"),
        (vec!["on"], 2, "EVENT"),
        (vec!["on", "ended"], 2, "the hook does nothing"),
        (vec!["on", "ended", "--notify", "--tell", "alice"], 2, "a hook does one thing, and this one has two"),
        (vec!["on", "ended", "--post", "http://example.org/x"], 2, "in the clear"),
        (vec!["on", "ended", "--post", "example.org"], 2, "is no URL"),
        (vec!["on", "ended", "--match", "[a", "--notify"], 2, "is no pattern"),
        (vec!["on", "ended", "--tell", "No Body"], 2, "is no agent and no channel"),
        (vec!["on", "ended", "--tell", "#no body"], 2, "is no agent and no channel"),
        (vec!["on", "ended", "--run", " "], 2, "the command is empty"),
        (vec!["on", "ended", "--run", "true", "--timeout", "0"], 2, "more than zero"),
        (vec!["on", "ended", "--harness", "toad", "--notify"], 3, "toad"),
        (vec!["on", "remove", "nothing"], 3, "`nothing` is no hook of yours"),
        (vec!["on", "test", "nothing"], 3, "`nothing` is no hook of yours"),
        (vec!["on", "--import", "nowhere.yaml"], 3, "cannot be read"),
    ] {
        check(&stage.run(&words), code, expected);
    }
    for (text, expected) in [
        ("hooks:\n  codex:\n    on_turn_over: []\n", "line 3"),
        ("hooks:\n  codex:\n    on_turn_complete:\n      - shout: it\n", "line 4"),
        ("hooks:\n  codex:\n    on_turn_complete:\n      - relay: a\n        command: b\n", "line 4"),
        ("hooks:\n  toad:\n    on_turn_complete:\n      - relay: a\n", "toad"),
    ] {
        std::fs::write(stage.project.join("wrong.yaml"), text).expect("written");
        let outcome = stage.run(&["on", "--import", "wrong.yaml"]);
        assert!(outcome.code != Some(0) && outcome.stderr.contains(expected), "{text}: {outcome:?}");
    }
    // Below a harness, and below a driven agent, nobody is the user.
    for (variable, value) in [
        ("CODEX_THREAD_ID", "01a21262-0000-7000-8000-000000000001"),
        ("RELAY_SPAWN", "01M896SYEDWG214KKT8B0ME5QD"),
        ("RELAY_RUN", "01M896SYEDWG214KKT8B0ME5QD"),
    ] {
        for words in [["on", "ended", "--notify"], ["on", "remove", "x"], ["on", "test", "x"]] {
            let outcome = stage.relay(&words).env(variable, value).run();
            check(&outcome, 4, "an agent cannot");
        }
    }
    assert_eq!(json_of(&stage, &["on", "list"])["hooks"], json!([]), "nothing half-made");

    let webhook = json_of(&stage, &["on", "ended", "--post", "https://example.org/x"]);
    assert!(webhook["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{webhook}");
    let listed = json_of(&stage, &["on", "list"]);
    assert!(listed["hooks"][0]["secret"].is_null(), "it is shown once: {listed}");
    // A project brings no hooks.
    std::fs::write(stage.project.join(".relay-mesh.toml"), "[[hook]]\nid = \"x\"\n").expect("written");
    assert_eq!(
        json_of(&stage, &["on", "list"])["hooks"].as_array().map(Vec::len),
        Some(1),
        "it is no setting of a project"
    );
    std::fs::remove_file(stage.project.join(".relay-mesh.toml")).expect("removed");

    let id = on(&stage, &["file-changed", "--run", "cat; echo $RELAY_FILE; echo problem >&2; exit 3"]);
    let tried = stage.run(&["on", "test", &id]);
    check(&tried, 1, "exit 3: {\"type\":\"file-changed\"");
    assert!(tried.stderr.contains("problem"), "{tried:?}");
    let told = on(&stage, &["message", "--tell", "alice"]);
    stage.relay_ok(&["on", "test", &told]);
    assert!(unread(&stage, "alice")[0].contains("sent a message"));
    stage.relay_ok(&["on", "remove", &id]);
    assert_eq!(json_of(&stage, &["on", "list"])["hooks"].as_array().map(Vec::len), Some(2));
}

#[test]
fn events_are_carried_out_by_whatever_lives_next_and_a_kill_starts_no_command_twice() {
    isolated(|| {
        let stage = stage();
        let flaky = Webhook::answering(&["500 no", "200 ok"]);
        let elsewhere = Webhook::answering(&["302 there"]);
        let hangs = Webhook::answering(&["hang"]);
        let post = |webhook: &Webhook| json_of(&stage, &["on", "message", "--agent", "bob", "--post", &webhook.url]);
        let (flaky_hook, elsewhere_hook, hanging_hook) = (post(&flaky), post(&elsewhere), post(&hangs));
        let id = |hook: &Value| hook["id"].as_str().expect("an id").to_owned();
        let out = stage.folder.join("out");
        let command = format!("echo started >> {0}; sleep 300", out.display());
        let long = on(&stage, &["message", "--match", "alice", "--run", &command]);
        let endless = on(
            &stage,
            &["message", "--match", "shell", "--timeout", "1", "--run", "sleep 301 & setsid sleep 302 & sleep 303"],
        );
        send_with(&stage, "bob", "nobody carries hooks out yet", &["--from", "alice"]);
        stage.relay_ok(&["send", "bob", "from the shell"]);
        assert!(log(&stage, &long).is_empty());

        let mut host = Host::start(&stage);
        wait_for("its command runs", || std::fs::read_to_string(&out).ok().filter(|text| text.contains("started")));
        // A webhook that hangs holds up no other hook.
        wait_for_log(&stage, &endless, "failed", "more than 1 s");
        wait_for_log(&stage, &id(&elsewhere_hook), "failed", "redirects are not followed");
        let both_done = || log(&stage, &id(&flaky_hook)).iter().filter(|(status, _)| status == "done").count() == 2;
        wait_for("what failed is tried again", || both_done().then_some(()));
        let heard = flaky.heard();
        let (head, body) = &heard[0];
        assert_eq!(header(head, "webhook-signature"), signed(flaky_hook["secret"].as_str().expect("one"), head, body));
        let again = heard[1..].iter().find(|(again, _)| header(again, "webhook-id") == header(head, "webhook-id"));
        let (again, same) = again.expect("with the same id");
        assert_eq!((same, heard.len()), (body, 3), "and the same body");
        assert_ne!(header(again, "webhook-timestamp"), header(head, "webhook-timestamp"), "signed anew");
        let event: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!((&event["type"], &event["data"]["to"]), (&json!("message"), &json!(["bob"])));
        assert_eq!(elsewhere.heard().iter().filter(|(head, _)| head.contains("/elsewhere")).count(), 0);
        assert!(log(&stage, &id(&hanging_hook)).iter().all(|(status, _)| status == "waiting" || status == "retrying"));

        let sleeps = || -> usize {
            ["sleep 300", "sleep 301", "sleep 302", "sleep 303"].iter().map(|words| processes_with(words)).sum()
        };
        wait_for("only the command that may go on sleeps", || (sleeps() == 1).then_some(()));
        host.process.kill();
        wait_for("its command is ended by its guard", || (sleeps() == 0).then_some(()));
        // The next process tells that it may not have finished, and does not start it again.
        send_with(&stage, "bob", "while nobody lives", &["--from", "alice"]);
        let _host = Host::start(&stage);
        wait_for_log(&stage, &long, "unfinished", "perhaps it has not finished");
        wait_for("the second event's command", || {
            (std::fs::read_to_string(&out).expect("there").matches("started").count() == 2).then_some(())
        });
        assert_eq!(log(&stage, &long).len(), 2, "one for each event");
    });
}

/// How many processes here have these words.
fn processes_with(words: &str) -> usize {
    let matches = |process: std::fs::DirEntry| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim() == words
    };
    std::fs::read_dir("/proc")
        .expect("a list")
        .flatten()
        .filter(|process| process.path().is_dir())
        .map(matches)
        .filter(|is| *is)
        .count()
}

#[test]
fn channels_are_joined_listed_and_written_to() {
    let stage = stage();
    check(&stage.run(&["send", "#audit", "hello"]), 3, "no agent has joined `#audit`");
    check(&stage.run(&["send", "#Au dit", "hello"]), 2, "is no channel");
    check(&stage.run(&["channel", "join", "A_B", "--agent", "alice"]), 2, "is no channel");
    check(&stage.run(&["channel", "join", "audit"]), 2, "for which agent");
    assert_eq!(stage.relay_ok(&["channel", "leave", "audit", "--agent", "alice"]), "alice was not in #audit\n");
    stage.relay_ok(&["channel", "join", "audit", "--agent", "alice"]);
    let mut client = test_support::StdioClient::connected(
        stage.relay(&["mcp", "--tools", "channels"]).start(&stage.folder.join("mcp.log")),
        "x",
    );
    client.call("register_agent", json!({"name": "carol"}));
    let joined = client.call("channels", json!({"join": ["#audit", "build"]}));
    assert!(joined.text.contains("#audit: alice, carol") && joined.text.contains("#build: carol"), "{joined:?}");
    let sent = json_of(&stage, &["send", "#audit,bob", "hello all"]);
    let to: Vec<&str> =
        sent["recipients"].as_array().expect("a list").iter().filter_map(|one| one["to"].as_str()).collect();
    assert_eq!(to, ["alice", "carol", "bob"]);
    let told = client.call("send_message", json!({"to": "#audit", "body": "from carol"}));
    assert!(!told.failed, "{told:?}");
    assert_eq!(unread(&stage, "alice").len(), 2);
    client.call("channels", json!({"leave": "#audit"}));
    let listed = json_of(&stage, &["channel", "list"]);
    assert_eq!(
        listed["channels"],
        json!([{"name": "#audit", "members": ["alice"]}, {"name": "#build", "members": ["carol"]}])
    );
}

#[test]
fn machines_share_channels_and_each_carries_out_its_own_hooks() {
    let place = Deployment::on_one_server(env!("CARGO_BIN_EXE_relay-mesh"));
    let (here, there) = (&place.stage, place.another_machine());
    for (stage, agent) in [(here, "alice"), (&there, "bob")] {
        stage.relay_ok(&["register", agent]);
        stage.relay_ok(&["channel", "join", "audit", "--agent", agent]);
    }
    let channels = json!([{"name": "#audit", "members": ["alice", "bob"]}]);
    assert_eq!(json_of(here, &["channel", "list"])["channels"], channels);
    let (ours, theirs) = (on(here, &["message", "--run", "cat"]), on(&there, &["message", "--run", "cat"]));
    let _hosts = (Host::start(here), Host::start(&there));
    send_with(here, "#audit", "hello", &["--from", "alice"]);
    wait_for_log(&there, &theirs, "done", "\"to\":[\"bob\"]");
    assert!(unread(&there, "bob")[0].contains("hello"));
    assert!(log(here, &ours).is_empty(), "a message is its recipients' machine's to act on");
    // A third machine says of that one what it likes. The server lets it do so under its own name.
    let lint = on(&there, &["file-changed", "--run", "cat"]);
    let machine = std::fs::read_to_string(there.data.join("machine")).expect("it has a name");
    let at = u64::try_from(SystemTime::UNIX_EPOCH.elapsed().expect("a time").as_millis()).expect("a number");
    let lies = [
        json!({"event": "file-changed", "at": at, "machine": machine.trim(), "agent": "bob", "folder": "/tmp", "path": "x"}),
        json!({"event": "sent", "at": at, "id": "01JD8Z3K5V0000000000000000", "from": "boss", "to": ["bob"]}),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = async_nats::connect(place.servers[0].url()).await.expect("connected");
        for lie in lies {
            client.publish("relay.eve.global", lie.to_string().into()).await.expect("sent");
        }
        client.flush().await.expect("the server has them");
    });
    send_with(here, "#audit", "again", &["--from", "alice"]);
    let both =
        || Some(log(&there, &theirs)).filter(|all| all.iter().filter(|(status, _)| status == "done").count() >= 2);
    let both = wait_for("the next message to be acted on", both);
    assert!(both.len() == 2 && both.iter().all(|(_, told)| told.contains("\"from\":\"alice\"")), "{both:?}");
    assert_eq!(log(&there, &lint), [], "what an agent of a machine does, that machine says");
}

/// Somebody who observes what an agent says: what they have seen.
fn observer(stage: &Stage) -> (Arc<Mutex<String>>, Running) {
    let words = ["events", "--topics", "deltas", "--agent", "helper"];
    let mut observer = stage.relay(&words).start(&stage.folder.join("observer.log"));
    let (mut output, seen) = (observer.child.stdout.take().expect("a pipe"), Arc::new(Mutex::new(String::new())));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = output.read(&mut part) {
            kept.lock().expect("nothing panics here").push_str(&String::from_utf8_lossy(&part[..read]));
        }
    });
    (seen, observer)
}

/// The hooks of an agent-relay.yaml: lint after a file change, an audit log of commands, a notice to the team at a turn's
/// end, an alert when input is needed; each with the real Codex.
const YAML: &str = r##"hooks:
  codex:
    on_turn_start:
      - command: "echo started >> turns.log"
    on_turn_complete:
      - command: "echo completed by ${agent} >> turns.log"
      - relay: "Alice"
      - notify: true
    on_item_start:
      - command: "echo item >> turns.log"
    on_file_change:
      - command: "printf '%s\\n' ${file} >> lint.log"
      - command: "printf '%s\\n' \"${file}\" >> lint.log"
    on_command_executed:
      - relay: "#audit"
    on_approval_needed:
      - webhook: "WEBHOOK"
"##;

#[test]
fn d7_d10_d11_an_imported_file_lints_audits_tells_and_alerts() {
    isolated(|| {
        let hostile = "\"; touch trap; \".txt";
        let patch = format!("*** Begin Patch\n*** Add File: {hostile}\n+hello\n*** End Patch\n");
        let escalates = json!({
            "cmd": "echo made", "sandbox_permissions": "require_escalated", "justification": "to make it",
        });
        let script = Script::new()
            .call("Write it", "apply_patch", Value::from(patch))
            .call("Run it", "exec_command", escalates)
            .say("", "It is done.");
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", script);
        scene.stage.relay_ok(&["register", "alice"]);
        scene.stage.relay_ok(&["channel", "join", "audit", "--agent", "alice"]);
        let webhook = Webhook::answering(&["200 ok"]);
        std::fs::write(scene.stage.project.join("agent-relay.yaml"), YAML.replace("WEBHOOK", &webhook.url))
            .expect("written");
        let imported = scene.ok(&["on", "--import", "agent-relay.yaml"]);
        assert_eq!(imported["hooks"].as_array().map(Vec::len), Some(9), "{imported}");

        let (observer, _observing) = observer(&scene.stage);
        let observed = || observer.lock().expect("nothing panics here").clone();
        scene.spawn("helper", &["--reach", "unguarded"]);
        wait_for("it observes", || observed().contains("subscribed").then_some(()));
        scene.ok(&["steer", "helper", "Write it", "--next"]);
        let text = |name: &str| std::fs::read_to_string(scene.stage.project.join(name)).unwrap_or_default();
        let shown = || format!("{}\n{}", scene.told(), scene.stage.relay_ok(&["on", "log"]));
        wait_or_show("it is linted", || (text("lint.log").lines().count() == 2).then_some(()), shown);
        assert!(text("lint.log").lines().all(|line| line.ends_with(hostile)), "{}", text("lint.log"));
        assert!(!scene.stage.project.join("trap").exists(), "a file's name runs nothing");
        wait_or_show(
            "the turn's end is told",
            || text("turns.log").contains("completed by helper").then_some(()),
            shown,
        );
        wait_or_show(
            "its words are seen",
            || {
                let text = observed();
                (text.contains("\"delta\"") && text.contains("done")).then_some(())
            },
            shown,
        );
        scene.ok(&["dismiss", "helper"]);

        scene.spawn("asker", &["Run it", "--reach", "work"]);
        wait_or_show("the alert comes", || (!webhook.heard().is_empty()).then_some(()), shown);
        let alert: Value = serde_json::from_slice(&webhook.heard()[0].1).expect("JSON");
        assert_eq!((&alert["type"], &alert["data"]["agent"]), (&json!("needs-input"), &json!("asker")));
        assert!(alert["data"]["text"].as_str().is_some_and(|text| text.contains("echo made")), "{alert}");
        let ask = scene.ok(&["asks"])["asks"][0]["id"].as_str().expect("an id").to_owned();
        check(&scene.relay(&["asks", "answer", &ask, "allow"]), 0, "");
        let mail = || bodies(&json_of(&scene.stage, &["read", "--agent", "alice", "--peek"]));
        let audited = || mail().into_iter().find(|body| body.contains("echo made"));
        let audit = wait_or_show("the command is in the audit log", audited, shown);
        assert!(audit.contains("asker: command-run"), "{audit}");
        wait_or_show(
            "the team is told of two turns",
            || (mail().iter().filter(|body| body.contains("turn-completed")).count() == 2).then_some(()),
            shown,
        );
        scene.ok(&["dismiss", "asker"]);
        let kinds = scene.stage.relay_ok(&["log", "--json"]);
        for kind in [
            "spawned",
            "turn-started",
            "item-started",
            "file-changed",
            "shell-command",
            "needs-input",
            "turn-completed",
            "ended",
        ] {
            assert!(kinds.contains(&format!("\"event\":\"{kind}\"")), "{kind}: {kinds}");
        }
        scene.nothing_is_left();
    });
}

#[test]
fn a_hook_that_wakes_its_own_agent_is_ended_by_the_loop_guard() {
    isolated(|| {
        let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", Script::new().say("", "Done."));
        scene.stage.configure("[loops]\nhops = 2\n");
        let id = on(&scene.stage, &["turn-completed", "--agent", "helper", "--tell", "helper"]);
        scene.spawn("helper", &["Say hello"]);
        let held = || log(&scene.stage, &id).into_iter().find(|(_, told)| told.contains("and held"));
        wait_or_show("the loop is held", held, || format!("{:?}\n{}", log(&scene.stage, &id), scene.told()));
        let turns = scene.stage.relay_ok(&["log", "--json", "--type", "turn-completed"]).lines().count();
        assert!((3..=5).contains(&turns), "{turns} turns: {:?}", log(&scene.stage, &id));
        assert_eq!(scene.ok(&["asks"])["asks"][0]["kind"], "held-loop", "its user decides");
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}

#[test]
fn a_session_that_nobody_drives_is_linted_too() {
    isolated(|| {
        let patch = "*** Begin Patch\n*** Add File: src/a.rs\n+fn a() {}\n*** End Patch\n";
        let script = Script::new().call("Write it", "apply_patch", Value::from(patch)).say("", "Done.");
        let stage = stage();
        let model = Model::start(script);
        let codex = Codex::new(&stage, &model);
        stage.relay_ok(&["install", "codex", "--project", &stage.project_path(), "--yes"]);
        let lint =
            on(&stage, &["file-changed", "--harness", "codex", "--match", "*.rs", "--run", "cat \"$RELAY_FILE\""]);
        let turn = on(&stage, &["turn-completed", "--harness", "codex", "--tell", "alice"]);
        let _host = Host::start(&stage);
        let ran = codex.ask("Write it.", &["--dangerously-bypass-approvals-and-sandbox"]);
        wait_or_show(
            "it is linted",
            || log(&stage, &lint).into_iter().find(|(status, told)| status == "done" && told.contains("fn a() {}")),
            || format!("{:?} {:?} {}", log(&stage, &lint), ran.outcome, stage.relay_ok(&["log"])),
        );
        wait_for_log(&stage, &turn, "done", "to alice");
    });
}
