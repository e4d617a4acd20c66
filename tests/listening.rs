//! A connector listens: lines out, receipts in, and leases returned when it ends. The server starts in the background
//! and stops again.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

use serde_json::{Value, json};
use test_support::{Program, Running, Stage, StdioClient, isolated};

/// A connector driven by the test.
struct Connector {
    running: Running,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Connector {
    fn start(stage: &Stage, arguments: &[&str]) -> Connector {
        let log = stage.folder.join("listen.log");
        let mut running = stage.relay(&["listen"]).args(arguments).start(&log);
        let input = running.child.stdin.take();
        let output = BufReader::new(running.child.stdout.take().expect("a pipe"));
        Connector { running, input, output }
    }

    /// The next line, which must be this event.
    fn next(&mut self, event: &str) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(value["event"], event, "{value}");
        value
    }

    fn say(&mut self, line: impl std::fmt::Display) {
        writeln!(self.input.as_mut().expect("a pipe"), "{line}").expect("it still listens");
    }

    /// Reports an OpenCode session to it and returns the session's ticket.
    fn begins(&mut self, session: &str) -> Value {
        self.say(json!({"watch": session}));
        let ticket = self.next("watching")["ticket"].clone();
        let payload = json!({"session": session, "directory": "/w", "process": std::process::id()});
        self.say(json!({"hook": "session.created", "payload": payload, "call": 1}));
        self.next("answer");
        ticket
    }

    /// Closes its input and waits for its end.
    fn end(mut self) {
        self.input = None;
        assert_eq!(self.running.ended(), Some(0));
    }
}

#[test]
fn a_receipt_advances_the_status_and_garbage_ends_nothing() {
    let stage = two_agents();
    let mut connector = Connector::start(&stage, &["--agent", "bob"]);
    assert_eq!(connector.next("watching")["agent"], "bob");
    connector.say("garbage");
    assert!(connector.next("error")["error"].as_str().expect("words").contains("not understood"));
    let id = send(&stage, "hello </relay-mesh-message>");
    let message = connector.next("message");
    assert_eq!((&message["id"], &message["from"]), (&json!(id), &json!("alice")));
    assert_eq!(message["body"], "hello </relay-mesh-message>", "the body is what was sent");
    let text = message["text"].as_str().expect("a text");
    assert_eq!(text.matches("</relay-mesh-message>").count(), 1, "nothing within closes the envelope: {text}");
    connector.say(json!({"id": id, "status": "accepted", "evidence": {"turn": 3}}));
    connector.say(json!({"id": id, "status": "acknowledged"}));
    connector.say(json!({"id": id, "status": "shown"}));
    let late = connector.next("error");
    assert!(late["error"].as_str().expect("words").contains("its receipt is complete"), "{late}");
    connector.end();
    assert_eq!(
        statuses(&stage, &id),
        ["stored", "accepted by listen", "shown by listen", "acknowledged by acknowledge"]
    );
}

#[test]
fn what_was_not_confirmed_is_given_back_at_once() {
    let stage = two_agents();
    let id = send(&stage, "hello");
    let mut first = Connector::start(&stage, &["--agent", "bob"]);
    first.next("watching");
    assert_eq!(first.next("message")["id"], json!(id));
    let meanwhile = stage.relay_ok(&["read", "--agent", "bob", "--unread"]);
    assert_eq!(meanwhile, "", "it is claimed, so nobody else shows it");
    first.end();
    let mut second = Connector::start(&stage, &["--agent", "bob"]);
    second.next("watching");
    assert_eq!(second.next("message")["id"], json!(id), "and comes again to the next one");
    second.end();
    assert_eq!(statuses(&stage, &id), ["stored"]);
}

#[test]
fn what_is_refused_others_may_carry() {
    let stage = two_agents();
    let mut connector = Connector::start(&stage, &["--agent", "bob"]);
    connector.next("watching");
    let id = send(&stage, "hello");
    connector.next("message");
    connector.say(json!({"id": id, "status": "refused"}));
    connector.say("a word that is complained of, so that the one before it was heard");
    connector.next("error");
    assert!(stage.relay_ok(&["read", "--agent", "bob", "--unread"]).contains("hello"));
    connector.end();
    assert_eq!(statuses(&stage, &id), ["stored", "read by read"]);
}

#[test]
fn printing_is_showing_where_nobody_answers() {
    let stage = two_agents();
    let id = send(&stage, "hello");
    let mut connector = Connector::start(&stage, &["--agent", "bob", "--no-stdin"]);
    connector.next("watching");
    connector.next("message");
    let again = send(&stage, "again");
    assert_eq!(connector.next("message")["id"], json!(again));
    assert_eq!(connector.running.stop(), Some(0), "a signal ends it in order");
    assert_eq!(statuses(&stage, &id), ["stored", "shown by listen"]);
}

#[test]
fn sessions_are_watched_and_no_longer_watched_by_line() {
    let stage = two_agents();
    let mut connector = Connector::start(&stage, &["--harness", "claude-code"]);
    connector.say(json!({"watch": "ses_1"}));
    let watching = connector.next("watching");
    assert_eq!((&watching["session"], watching.get("agent")), (&json!("ses_1"), None));
    assert_eq!(watching["ticket"]["session"]["id"], "ses_1", "the connector can prove that it knows the session");
    connector.say(json!({"unwatch": "ses_1"}));
    connector.say(json!({"watch": "ses_1"}));
    connector.next("watching");
    connector.end();
    let unknown = stage.run(&["listen", "--harness", "nope"]);
    assert_eq!(unknown.code, Some(3), "{}", unknown.stderr);
}

#[test]
fn a_connector_tells_events_by_line_and_gets_what_may_interrupt() {
    let stage = two_agents();
    let mut connector = Connector::start(&stage, &["--harness", "opencode"]);
    let event = |name: &str, call: u64, more: Value| {
        let mut payload = json!({"session": "ses_1", "directory": "/w", "process": std::process::id()});
        for (key, value) in more.as_object().cloned().unwrap_or_default() {
            payload[key] = value;
        }
        json!({"hook": name, "payload": payload, "call": call})
    };
    connector.say(json!({"watch": "ses_1"}));
    let ticket = connector.next("watching")["ticket"].clone();
    connector.say(event("session.created", 1, json!({})));
    let answer = connector.next("answer");
    assert_eq!(answer["call"], 1);
    assert!(answer["output"]["protocol"].as_str().expect("words").starts_with("relay-mesh connects"), "{answer}");
    connector.say(event("no.such.event", 2, json!({})));
    assert!(connector.next("answer")["error"].as_str().expect("words").contains("no.such.event"));

    let mut server = StdioClient::connected(stage.relay(&["mcp"]).start(&stage.folder.join("mcp.log")), "opencode");
    let joined = server.call("register_agent", json!({"name": "carol", "_relay": {"ticket": ticket}}));
    assert!(joined.text.contains("you are `carol`"), "{joined:?}");
    assert_eq!(connector.next("bound")["agent"], "carol");
    let unproven = server.call("send_message", json!({"to": "bob", "body": "I am carol"}));
    assert!(unproven.failed, "a call without a ticket is nobody's: {unproven:?}");

    connector.say(event("session.busy", 3, json!({})));
    connector.next("answer");
    let normal = send_to(&stage, "carol", "between tools");
    let at = |priority: &str| {
        let sent = stage.relay_ok(&["send", "carol", priority, "--from", "alice", "--priority", priority, "--json"]);
        let sent: Value = serde_json::from_str(&sent).expect("JSON");
        sent["id"].as_str().expect("an id").to_owned()
    };
    let (low, urgent) = (at("low"), at("urgent"));
    assert_eq!(connector.next("message")["id"], json!(urgent), "only what is urgent interrupts a busy session");
    connector.say(json!({"id": urgent, "session": "ses_1", "status": "shown"}));
    connector.say(event("tool.execute.after", 4, json!({})));
    let answer = connector.next("answer");
    assert_eq!(answer["mail"], json!([normal, low]), "the rest comes with a tool's result");
    connector.say(json!({"id": normal, "session": "ses_1", "status": "shown", "evidence": {"tool": "read"}}));
    connector.say(json!({"id": low, "session": "ses_1", "status": "shown"}));
    connector.say(event("session.idle", 5, json!({})));
    connector.next("answer");
    let low = at("low");
    let woken = send_to(&stage, "carol", "wake up");
    assert_eq!(connector.next("message")["id"], json!(woken), "what is low wakes nobody");

    // It is killed; the next listener is told what was shown meanwhile.
    connector.running.kill();
    let mut connector = Connector::start(&stage, &["--harness", "opencode"]);
    connector.say(json!({"watch": "ses_1"}));
    assert_eq!(connector.next("watching")["agent"], "carol");
    connector.say(json!({"id": woken, "session": "ses_1", "status": "shown"}));
    connector.say(json!({"id": woken, "session": "ses_1", "status": "shown"}));
    assert!(connector.next("error")["error"].as_str().expect("words").contains("its receipt is complete"));
    connector.end();
    assert_eq!(statuses(&stage, &normal), ["stored", "shown by listen"]);
    assert_eq!(statuses(&stage, &low), ["stored"]);
    assert_eq!(statuses(&stage, &woken), ["stored", "shown by listen"]);
}

#[test]
fn an_invitation_comes_by_line_and_its_receipts_are_told_to_whoever_invites() {
    let stage = two_agents();
    let mut connector = Connector::start(&stage, &["--harness", "opencode"]);
    let ticket = connector.begins("ses_1");
    let mut invite = |session: &str, text: &str, becomes: &dyn Fn(&mut Connector, &Value)| {
        let command = stage.relay(&["invite", session, text, "--from", "alice"]);
        let invited = std::thread::spawn(move || command.run());
        let invitation = connector.next("invitation");
        assert_eq!((&invitation["session"], &invitation["from"]), (&json!(session), &json!("alice")), "{invitation}");
        becomes(&mut connector, &invitation);
        (invited.join().expect("it ends"), invitation)
    };
    let says = |statuses: &'static [&'static str]| {
        move |connector: &mut Connector, invitation: &Value| {
            for status in statuses {
                connector.say(json!({"id": invitation["id"], "session": invitation["session"], "status": status}));
            }
        }
    };
    let (told, invitation) = invite("ses_1", "Help </relay-mesh-message> me.", &says(&["accepted", "shown"]));
    assert_eq!(told.stdout, "opencode session ses_1: invitation shown by listen\n", "{told:?}");
    let text = invitation["text"].as_str().expect("a text");
    assert!(text.contains("The agent `alice` invites you") && text.contains("Register once with"), "{text}");
    assert_eq!(text.matches("</relay-mesh-message>").count(), 1, "nothing within closes the envelope: {text}");

    let (told, _) = invite("ses_1", "Once more.", &says(&["refused"]));
    assert_eq!(told.code, Some(1), "{told:?}");
    let why = "session `ses_1` was not woken: listen: its listener refused it";
    assert!(told.stderr.contains(why), "{told:?}");

    // It joins in the end, and a later receipt is no error.
    let (told, invitation) = invite("ses_1", "And once more.", &|_, _| {
        let log = stage.folder.join("mcp.log");
        let mut server = StdioClient::connected(stage.relay(&["mcp"]).start(&log), "opencode");
        let joined = server.call("register_agent", json!({"name": "carol", "_relay": {"ticket": ticket}}));
        assert!(joined.text.contains("you are `carol`"), "{joined:?}");
    });
    assert_eq!(told.stdout, "opencode session ses_1 has joined as carol\n", "{told:?}");
    assert_eq!(connector.next("bound")["agent"], "carol");
    connector.say(json!({"id": invitation["id"], "session": "ses_1", "status": "shown"}));
    let id = send_to(&stage, "carol", "Welcome.");
    assert_eq!(connector.next("message")["id"], json!(id), "nothing was complained of");
    connector.end();
}

#[test]
fn what_nobody_brought_is_told_as_stored_and_comes_with_the_next_answer_to_a_hook() {
    let stage = two_agents();
    let mut connector = Connector::start(&stage, &["--harness", "opencode"]);
    connector.begins("ses_1");
    connector.say(json!({"hook": "session.busy", "payload": {"session": "ses_1"}, "call": 2}));
    connector.next("answer");
    let told = stage.relay_ok(&["invite", "ses_1", "--json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((&told["route"], &told["status"]), (&json!("listen"), &json!("stored")), "{told}");
    assert!(told["lapses"].as_str().is_some_and(|at| at.ends_with('Z')), "{told}");
    let another = stage.run(&["invite", "ses_1", "--from", "bob"]);
    assert!(another.code == Some(4) && another.stderr.contains("has an invitation from `shell`"), "{another:?}");
    let event = json!({"hook": "tool.execute.after", "payload": {"session": "ses_1"}, "call": 3});
    connector.say(&event);
    let answer = connector.next("answer");
    assert!(answer["output"]["mail"].as_str().expect("text").contains("invites you to join"), "{answer}");
    connector.say(json!({"id": answer["mail"][0], "session": "ses_1", "status": "refused"}));
    connector.say(&event);
    let again = connector.next("answer");
    assert_eq!(again["mail"], answer["mail"], "the tool's result had no place for it");
    connector.say(json!({"id": again["mail"][0], "session": "ses_1", "status": "shown"}));
    connector.say(&event);
    assert_eq!(connector.next("answer").get("mail"), None, "it was shown");

    // Killed, it listens no more, and no lease remains.
    connector.running.kill();
    let refused = stage.run(&["invite", "ses_1"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("no way to wake session `ses_1`"), "{refused:?}");
    assert!(refused.stderr.contains("hint: "), "{refused:?}");
    let examine = || stage.run(&["doctor", "opencode"]).stdout;
    let deserted = "no connector listens any more for the OpenCode session ses_1";
    let (_, fix) = examine().split_once(deserted).map(|(_, after)| ((), after.to_owned())).expect("the doctor says so");
    assert!(fix.lines().nth(1).is_some_and(|line| line.contains("fix: start OpenCode again")), "{fix}");
    let mut another = Connector::start(&stage, &["--harness", "opencode"]);
    another.begins("ses_1");
    assert!(!examine().contains(deserted), "another has begun");
    another.end();
}

#[test]
fn a_connector_runs_the_commands_that_it_names_for_whom_the_person_has_allowed() {
    let stage = two_agents();
    let mut connector = Connector::start(&stage, &["--harness", "opencode"]);
    let event = |name: &str| {
        let payload = json!({"session": "ses_1", "directory": "/w", "process": std::process::id()});
        json!({"hook": name, "payload": payload})
    };
    connector.say(json!({"watch": "ses_1"}));
    let ticket = connector.next("watching")["ticket"].clone();
    connector.say(event("session.created"));
    connector.next("answer");
    connector.say(json!({"watch": "ses_1", "commands": ["review"]}));
    let mut server = StdioClient::connected(stage.relay(&["mcp"]).start(&stage.folder.join("mcp.log")), "opencode");
    server.call("register_agent", json!({"name": "carol", "_relay": {"ticket": ticket}}));
    connector.next("bound");
    connector.say(event("session.idle"));
    connector.next("answer");

    let ask = |words: &[&str]| {
        let words: Vec<&str> =
            ["cmd", "carol"].iter().chain(words).chain(&["--from", "alice", "--json"]).copied().collect();
        let asked: Value = serde_json::from_str(&stage.relay_ok(&words)).expect("JSON");
        asked["id"].as_str().expect("an id").to_owned()
    };
    let of = |id: &str| {
        let all: Value = serde_json::from_str(&stage.relay_ok(&["cmd", "list", "--all", "--json"])).expect("JSON");
        all["commands"].as_array().into_iter().flatten().find(|one| one["id"] == id).cloned().expect("it is listed")
    };
    let state = |id: &str, expected: &str| {
        test_support::wait_for(expected, || (of(id)["status"] == expected).then_some(()));
    };
    let review = ask(&["/review", "src", "two words"]);
    let deploy = ask(&["/deploy"]);
    let waits = test_support::wait_for("it waits", || of(&review)["waits"].as_str().map(str::to_owned));
    assert!(waits.contains("cmd allow alice /review --to carol"), "{waits}");
    // This test's own process is the session's, and no shell below it consents. One that nobody is above does.
    let below_nobody = format!("(sleep 3; '{}' cmd allow alice) >/dev/null 2>&1 &", stage.binary().display());
    Program::new("sh").args(["-c", &below_nobody]).envs(stage.environment()).within(&stage.project).succeed();
    let asked = connector.next("command");
    assert_eq!(
        (&asked["id"], &asked["session"], &asked["from"], &asked["command"], &asked["arguments"]),
        (&json!(review), &json!("ses_1"), &json!("alice"), &json!("/review"), &json!(["src", "two words"]))
    );
    connector.say(json!({"command": review, "ended": "failed", "result": "3 remarks", "evidence": {"turn": 7}}));
    state(&review, "failed");
    assert_eq!((&of(&review)["result"], &of(&review)["evidence"]), (&json!("3 remarks"), &json!({"turn": 7})));
    assert!(of(&deploy)["waits"].as_str().expect("words").contains("its session has no command /deploy"));

    // A command that was not begun comes again; one that was begun and not finished has an unknown result.
    let again = ask(&["/review"]);
    assert_eq!(connector.next("command")["id"], json!(again));
    connector.say(json!({"command": again, "ended": "refused"}));
    assert_eq!(connector.next("command")["id"], json!(again));
    connector.say(json!({"command": deploy, "ended": "done"}));
    assert!(connector.next("error")["error"].as_str().expect("words").contains("no command with that id"));
    connector.end();
    state(&again, "unknown");
}

#[test]
fn a_terminal_follows_the_mail_as_it_comes() {
    let stage = two_agents();
    let id = send(&stage, "first");
    let mut reader = stage.relay(&["read", "--agent", "bob", "--tail", "--json"]).start(&stage.folder.join("tail.log"));
    let mut output = BufReader::new(reader.child.stdout.take().expect("a pipe"));
    let mut bodies = || {
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let mail: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        mail["messages"][0]["body"].as_str().expect("a body").to_owned()
    };
    assert_eq!(bodies(), "first");
    send(&stage, "second");
    assert_eq!(bodies(), "second");
    assert_eq!(reader.stop(), Some(0));
    assert_eq!(statuses(&stage, &id), ["stored", "read by read"]);
}

#[test]
fn the_host_comes_up_once_and_goes_down() {
    isolated(|| {
        let stage = two_agents();
        let up = |arguments: &[&str]| -> Value {
            let line = stage.relay(&["up", "--json", "--quiet"]).args(arguments).succeed();
            serde_json::from_str(&line).expect("JSON")
        };
        let first = up(&[]);
        assert_eq!((&first["outcome"], &first["url"]), (&json!("started"), &json!("http://127.0.0.1:7423/mcp")));
        let second = up(&[]);
        assert_eq!((&second["outcome"], &second["pid"]), (&json!("running"), &first["pid"]));
        let token = std::fs::read_to_string(stage.data.join("http.token")).expect("a token");
        assert_eq!(token.trim().len(), 64);

        let third = stage.run(&["serve", "--http", "127.0.0.1:7500"]);
        assert!(third.code == Some(1) && third.stderr.contains("a server runs already"), "{}", third.stderr);
        let elsewhere = stage.run(&["serve", "--dir", "elsewhere"]);
        assert!(elsewhere.code == Some(1) && elsewhere.stderr.contains("port 7423"), "{}", elsewhere.stderr);

        let down = |expected: &str| assert!(stage.relay_ok(&["down"]).contains(expected));
        down("stopped the server");
        down("no server runs");
        let pid = first["pid"].to_string();
        // A zombie has no `exe` link.
        assert!(!std::path::Path::new("/proc").join(pid).join("exe").exists(), "its process is gone");
        assert_eq!(up(&[])["outcome"], "started", "and it can be started again");
        down("stopped the server");
        assert_eq!(std::fs::read_to_string(stage.data.join("http.token")).expect("a token"), token, "the token stays");
    });
}

fn two_agents() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for name in ["alice", "bob"] {
        stage.relay_ok(&["register", name]);
    }
    stage
}

/// Sends bob a message from alice and returns its id.
fn send(stage: &Stage, body: &str) -> String {
    send_to(stage, "bob", body)
}

fn send_to(stage: &Stage, to: &str, body: &str) -> String {
    let sent = stage.relay_ok(&["send", to, body, "--from", "alice", "--json"]);
    let sent: Value = serde_json::from_str(&sent).expect("JSON");
    sent["id"].as_str().expect("an id").to_owned()
}

/// The statuses that a message reached, each with its route.
fn statuses(stage: &Stage, id: &str) -> Vec<String> {
    let history: Value = serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("JSON");
    let steps = history["recipients"][0]["history"].as_array().expect("history").iter();
    let shown = |step: &Value| match step["route"].as_str() {
        Some(route) => format!("{} by {route}", step["status"].as_str().expect("a status")),
        None => step["status"].as_str().expect("a status").to_owned(),
    };
    steps.map(shown).collect()
}
