//! The pictures of the docs, of the real program and of real clients. `make pictures` makes them anew; the one of the
//! terminal view is compared each time, so that it stays true.

#[path = "page/browser.rs"]
mod browser;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{Client, Host, Model, Program, Script, Stage, Terminal, id_of, isolated, variable};

use browser::{browser, tests};

/// Set, the pictures are written.
const WRITE: &str = "RELAY_PICTURES_WRITE";
/// How often the recording looks at the terminals.
const LOOK: Duration = Duration::from_millis(200);

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn picture(name: &str) -> PathBuf {
    tests().join("../docs/pictures").join(name)
}

/// Six agents in the middle of their work: one asks its user, mail is in every state.
fn scene() -> Stage {
    let stage = stage();
    for (agent, task) in [
        ("alice", "fixes the build"),
        ("bob", "parse names at the edge"),
        ("carol", "reviews the store"),
        ("dave", "moves the staging database"),
        ("erin", "writes the release notes"),
    ] {
        stage.relay_ok(&["register", agent, "--task", task]);
    }
    let send = |from: &str, to: &str, text: &str, thread: &str| {
        stage.relay_ok(&["send", to, text, "--from", from, "--thread", thread]);
    };
    send("dave", "alice,bob", "The staging database has moved to port 5433. Please change your settings.", "database");
    stage.relay_ok(&["read", "--agent", "alice"]);
    send("alice", "dave", "Done here, the tests pass again.", "database");
    stage.relay_ok(&["read", "--agent", "dave"]);
    send("carol", "alice,bob,dave", "the build is red since 9ae31f7: expected `AgentName`, found `String`", "build");
    let fetched = stage.relay_ok(&["read", "--agent", "bob", "--json"]);
    let ids: Vec<&str> = fetched.lines().filter_map(|line| line.split("\"id\":\"").nth(1)?.split('"').next()).collect();
    stage.relay_ok(&[&["ack", "--agent", "bob"][..], &ids].concat());
    send("bob", "carol", "That was me. I will parse it at the edge and push in ten minutes.", "build");
    stage.relay_ok(&["read", "--agent", "carol"]);
    send("bob", "carol,dave", "Pushed. Green here.", "build");
    stage.relay_ok(&[
        "ask",
        "The migration needs the staging database for an hour. Now?",
        "--from",
        "alice",
        "--choices",
        "yes,no",
    ]);
    stage
}

/// Has what was on terminals drawn.
fn drawn(what: &Value) -> String {
    let python = tests().join(".venv/bin/python");
    Program::new(python).arg(tests().join("pictures/svg.py")).input(what.to_string()).succeed()
}

/// The words of a picture, without what differs each time: times, ids, the machine.
fn words(svg: &str) -> Vec<String> {
    let texts = svg.split("<text ").skip(1).filter_map(|text| text.split_once('>')?.1.split_once("</text>"));
    let words = texts.flat_map(|(text, _)| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words.filter(|word| word.chars().all(|letter| letter.is_alphabetic() || "…:.,`".contains(letter))).collect()
}

#[test]
fn the_terminal_view_still_shows_what_its_picture_shows() {
    let stage = scene();
    let mut environment = stage.environment();
    environment.retain(|(name, _)| name != "TERM");
    environment.push(("TERM".to_owned(), "xterm-256color".to_owned()));
    let line = [stage.binary().display().to_string(), "ui".to_owned(), "--color".to_owned(), "always".to_owned()];
    let terminal = Terminal::start(&stage.folder, &stage.project, &environment, &line);
    terminal.resize(120, 26);
    terminal.wait_for("1 needs you");
    terminal.press("Tab");
    terminal.press("Enter");
    terminal.wait_for("Pushed. Green here.");
    terminal.wait_for("carol: stored");
    let pane = json!({
        "title": "relay-mesh ui", "left": 0, "top": 0, "columns": 120, "lines": 26,
        "frames": [[0, terminal.painted()]],
    });
    let svg =
        drawn(&json!({"title": "relay-mesh ui in a terminal: agents, a conversation, delivery", "panes": [pane]}));
    if variable(WRITE).is_some() {
        fs::write(picture("view.svg"), svg).expect("the picture is written");
        return;
    }
    let kept = fs::read_to_string(picture("view.svg")).expect("there is a picture");
    assert_eq!(words(&kept), words(&svg), "`make pictures` makes it anew");
}

#[test]
#[ignore = "writes pictures: `make pictures`"]
fn the_page_of_the_server() {
    let stage = scene();
    let host = Host::start(&stage);
    let found: Value = serde_json::from_str(&stage.relay_ok(&["thread", "build", "--json"])).expect("JSON");
    let first = found["messages"][0]["id"].as_str().expect("an id");
    for (file, width, scheme, path) in [
        ("page.png", "1280", "light", format!("/ui/messages/{first}")),
        ("lanes.png", "1280", "dark", "/ui/lanes".to_owned()),
        ("phone.png", "390", "light", "/ui/asks".to_owned()),
    ] {
        let picture = picture(file);
        browser(&stage, host.port, "screenshot").arg(&picture).args([width, scheme, &path]).succeed();
        let size = fs::metadata(picture).expect("a picture").len();
        assert!((10_000..400_000).contains(&size), "{file} has {size} bytes");
    }
}

/// A pane of the recording: what was on it, and when.
struct Pane<'a> {
    terminal: &'a Terminal,
    frames: Vec<(f64, String)>,
}

impl Pane<'_> {
    fn look(&mut self, at: f64) {
        let screen = self.terminal.painted();
        if self.frames.last().is_none_or(|(_, last)| *last != screen) {
            self.frames.push((at, screen));
        }
    }
}

#[test]
#[ignore = "writes pictures: `make demo-recording`"]
fn a_recording_of_claude_code_and_codex_who_talk() {
    isolated(|| {
        let stage = stage();
        let (asker, asked) = (Client::ClaudeCode, Client::Codex);
        [asker, asked].iter().for_each(|client| client.install(&stage));
        let joins = |client: Client, name: &str| {
            let tool = client.tool("register_agent");
            Script::new().call("Join the mesh", &tool, json!({"name": name})).say(name, &format!("I am {name} now."))
        };
        let question = "Which port does the staging database use?";
        let answer = "5433, since this morning.";
        let alice = Model::start(
            joins(asker, "alice")
                .call("Ask bob", &asker.tool("send_message"), json!({"to": "bob", "body": question}))
                .say("stored for", "I have asked bob.")
                .say(answer, "It is 5433. I will change the settings."),
        );
        let bob = Model::start(
            joins(asked, "bob")
                .call_with(
                    question,
                    &asked.tool("send_message"),
                    move |news| json!({"to": "alice", "body": answer, "reply_to": id_of(news, question)}),
                )
                .say("stored for", "I have told alice: 5433."),
        );
        let (claude, codex) = (asker.open(&stage, &alice), asked.open(&stage, &bob));
        let view = [stage.binary().display().to_string(), "ui".to_owned(), "--color".to_owned(), "always".to_owned()];
        let mut environment = stage.environment();
        environment.retain(|(name, _)| name != "TERM");
        environment.push(("TERM".to_owned(), "xterm-256color".to_owned()));
        let view = Terminal::start(&stage.folder, &stage.project, &environment, &view);
        claude.terminal.resize(78, 24);
        codex.terminal.resize(78, 24);
        view.resize(159, 15);
        codex.terminal.type_line("Join the mesh as bob.");
        codex.says("I am bob now.");
        let mut panes =
            [&claude.terminal, &codex.terminal, &view].map(|terminal| Pane { terminal, frames: Vec::new() });
        let began = Instant::now();
        let mut record = |until: &dyn Fn() -> bool| {
            let mut after = 0;
            loop {
                panes.iter_mut().for_each(|pane| pane.look(began.elapsed().as_secs_f64()));
                // What has come is seen for a moment.
                after += usize::from(until());
                if after > 6 {
                    return;
                }
                assert!(began.elapsed() < Duration::from_secs(120), "it takes too long");
                std::thread::sleep(LOOK);
            }
        };
        let shows = |terminal: &Terminal, text: &str| terminal.screen().contains(text);
        claude.terminal.write("Join the mesh as alice.");
        record(&|| shows(&claude.terminal, "Join the mesh as alice."));
        claude.terminal.press("Enter");
        record(&|| shows(&claude.terminal, "I am alice now."));
        claude.terminal.write("Ask bob which port the staging database uses.");
        record(&|| shows(&claude.terminal, "Ask bob which port"));
        claude.terminal.press("Enter");
        record(&|| shows(&claude.terminal, "It is 5433."));
        let seconds = (began.elapsed().as_secs_f64() + 2.0).ceil();
        let [claude, codex, view] = panes;
        let pane = |pane: Pane<'_>, title: &str, (left, top): (u32, u32), (columns, lines): (u32, u32)| json!({"title": title, "left": left, "top": top, "columns": columns, "lines": lines, "frames": pane.frames});
        let svg = drawn(&json!({
            "title": "Claude Code asks Codex through relay-mesh; Codex is idle, wakes and answers; relay-mesh ui shows it",
            "seconds": seconds,
            "panes": [
                pane(claude, "alice: Claude Code", (0, 0), (78, 24)),
                pane(codex, "bob: Codex, idle", (81, 0), (78, 24)),
                pane(view, "relay-mesh ui", (0, 26), (159, 15)),
            ],
        }));
        assert!(svg.len() < 1_500_000, "the recording has {} bytes", svg.len());
        fs::write(picture("two-agents.svg"), svg).expect("the recording is written");
    });
}
