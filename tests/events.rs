//! The events of the mesh, as a script follows them: at the server's Unix socket, and without a server. Each event once
//! and in order, from any cursor on. A faulty follower does not affect the others or the server.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use serde_json::{Value, json};
use test_support::{Deployment, Host, PATIENCE, Running, Stage, StdioClient, wait_for};

/// One connection to the socket.
struct Follower {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Follower {
    fn connect(stage: &Stage) -> Follower {
        let stream = UnixStream::connect(stage.data.join("events.sock")).expect("a host listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
        let lines = BufReader::new(stream.try_clone().expect("a handle is there"));
        Follower { stream, lines }
    }

    /// Connects, subscribes, and waits for the confirmation.
    fn of(stage: &Stage, wanted: Value) -> Follower {
        let mut follower = Follower::connect(stage);
        follower.write(&wanted.to_string());
        assert_eq!(follower.next()["event"], "subscribed", "{wanted}");
        follower
    }

    fn write(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).expect("the host reads");
    }

    /// The next line; null at the end.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        match self.lines.read_line(&mut line).expect("the host writes") {
            0 => Value::Null,
            _ => serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")),
        }
    }

    /// The lines up to this one, in short.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let line = self.next();
            assert_ne!(line, Value::Null, "the host ended this before {last}: {told:?}");
            told.push(in_short(&line));
            if told.last().is_some_and(|told| told == last) {
                return told;
            }
        }
    }
}

/// A line as a short text.
fn in_short(line: &Value) -> String {
    let word = |field: &str| line[field].as_str().unwrap_or_default();
    match word("event") {
        "message" => format!("mail {} to {}", word("body"), word("to")),
        "reserved" => format!("{} reserved {}", word("agent"), line["patterns"][0].as_str().unwrap_or_default()),
        "command-done" => format!("command {}", word("ended")),
        "registered" => format!("registered {}", word("agent")),
        "agent-offline" | "agent-online" => format!("{} {}", word("agent"), word("event")),
        "error" | "cut" => format!("{}: {}", word("event"), word("error")),
        other => other.to_owned(),
    }
}

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    stage
}

/// Causes an event of every kind.
fn something_happens(stage: &Stage, number: usize) {
    stage.relay_ok(&["send", "bob", &format!("message {number}"), "--from", "alice"]);
    stage.relay_ok(&["reserve", &format!("src/{number}"), "--from", "alice"]);
    stage.relay_ok(&["send", "alice", "not for bob", "--from", "bob"]);
    let id = stage.relay_ok(&["cmd", "bob", "/test", "--json"]);
    let id: Value = serde_json::from_str(&id).expect("JSON");
    stage.relay_ok(&["cmd", "take", "bob"]);
    stage.relay_ok(&["cmd", "done", id["id"].as_str().expect("an id"), "fine", "--from", "bob"]);
}

#[test]
fn a_follower_is_told_each_event_once_and_goes_on_where_it_was() {
    let stage = stage();
    let host = Host::start(&stage);
    let mode = std::fs::metadata(stage.data.join("events.sock")).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else may connect");
    let everything = json!({"subscribe": ["inbox", "reservations", "commands", "agents"], "agent": "bob"});
    let mut bob = Follower::of(&stage, everything.clone());
    let mut reserving = Follower::of(&stage, json!({"subscribe": ["reservations"]}));
    something_happens(&stage, 1);
    stage.relay_ok(&["register", "carol"]);
    let mut told = bob.until("registered carol");
    // Mail and the other events are in two logs: each is in its own order.
    told.sort();
    let expected = [
        "alice reserved src/1",
        "command done",
        "command-taken",
        "commanded",
        "mail message 1 to bob",
        "registered carol",
    ];
    assert_eq!(told, expected);
    let reserved = reserving.next();
    assert_eq!(in_short(&reserved), "alice reserved src/1", "it is told nothing else");
    assert_eq!(unread(&stage), 1, "following is looking: the message still waits");

    // A follower that returns with its last cursor gets the events it missed.
    stage.relay_ok(&["send", "bob", "the last before", "--from", "alice"]);
    let last = bob.next();
    assert_eq!(in_short(&last), "mail the last before to bob");
    let shown = last["text"].as_str().expect("what a model may be shown");
    assert!(shown.starts_with("<relay-mesh-message id=") && shown.ends_with("</relay-mesh-message>"), "{shown}");
    drop(bob);
    something_happens(&stage, 2);
    let mut again = everything;
    again["cursor"] = last["cursor"].clone();
    let mut bob = Follower::of(&stage, again.clone());
    stage.relay_ok(&["register", "dora"]);
    let mut told = bob.until("registered dora");
    told.sort();
    let expected = [
        "alice reserved src/2",
        "command done",
        "command-taken",
        "commanded",
        "mail message 2 to bob",
        "registered dora",
    ];
    assert_eq!(told, expected);

    let from_there = json!({"subscribe": ["reservations"], "cursor": reserved["cursor"]});
    assert_eq!(
        in_short(&Follower::of(&stage, from_there).next()),
        "alice reserved src/2",
        "each line says where it ends"
    );

    // The same without a server.
    drop(host);
    let cursor = again["cursor"].as_str().expect("a cursor");
    let mut alone =
        stage.relay(&["events", "--agent", "bob", "--cursor", cursor]).start(&stage.folder.join("events.log"));
    let mut told: Vec<String> = BufReader::new(alone.child.stdout.take().expect("a pipe"))
        .lines()
        .map(|line| in_short(&serde_json::from_str(&line.expect("a line")).expect("JSON")))
        .skip(1)
        .take(expected.len())
        .collect();
    told.sort();
    assert_eq!(told, expected);
    assert_eq!(alone.stop(), Some(0), "asked to stop, it stops in order");
}

#[test]
fn a_fall_and_a_return_are_told_once_however_many_look_and_whoever_is_killed() {
    let stage = stage();
    let mut host = Host::start(&stage);
    // Two more processes that keep running and watch.
    let beside: Vec<Running> = [&["events", "--subscribe", "agents"] as &[&str], &["log", "--follow"]]
        .into_iter()
        .map(|arguments| stage.relay(arguments).start(&stage.folder.join("beside.log")))
        .collect();
    let agents = json!({"subscribe": ["agents"]});
    let mut follower = Follower::of(&stage, agents.clone());
    let join = || {
        let mcp = stage.relay(&["mcp"]).start(&stage.folder.join("zed.log"));
        let mut zed = StdioClient::connected(mcp, "a-plain-client");
        let answer = zed.call("register_agent", json!({"name": "zed"}));
        assert_eq!(answer.structured["name"], "zed", "{answer:?}");
        zed
    };
    let mut zed = join();
    for round in 0..2 {
        stage.relay_ok(&["wait-for", "zed", "--until-stale", "--by-mail", "--from", "alice"]);
        zed.server.kill();
        follower.until("zed agent-offline");
        let mail = wait_for("alice has a message about it", || {
            Some(test_support::unread(&stage, "alice")).filter(|mail| !mail.is_empty())
        });
        assert!(mail.len() == 1 && mail[0].contains("zed is offline: its process no longer runs"), "{mail:?}");
        // A watching process is killed and another starts: it finds what was sent.
        host.process.kill();
        host = Host::start(&stage);
        follower = Follower::of(&stage, agents.clone());
        if round == 0 {
            zed = join();
            let told = follower.until("zed agent-online").join(", ");
            assert_eq!(told.matches("zed agent-online").count(), 1, "{told}");
        }
    }
    stage.relay_ok(&["register", "the-last"]);
    let told = follower.until("registered the-last");
    assert!(!told.iter().any(|told| told.contains("agent-offline")), "the host that came later: {told:?}");
    let log = stage.relay_ok(&["log", "--json", "--type", "agent-offline", "--type", "agent-online"]);
    let kinds: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&str> = kinds.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(kinds, ["agent-offline", "agent-online", "agent-offline"]);
    assert!(test_support::unread(&stage, "alice").is_empty(), "one message for each request");
    drop(beside);
}

/// The first lines of `relay-mesh events` with these arguments after that it has subscribed, each as JSON.
fn told(stage: &Stage, arguments: &[&str], environment: &[(&str, &str)], lines: usize) -> Vec<Value> {
    let command = stage.relay(&[&["events"], arguments].concat()).envs(environment.iter().copied());
    let mut running = command.start(&stage.folder.join("told.log"));
    let told = BufReader::new(running.child.stdout.take().expect("a pipe"))
        .lines()
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
        .skip(1)
        .take(lines)
        .collect();
    assert_eq!(running.stop(), Some(0), "asked to stop, it stops in order");
    told
}

fn words(line: &Value, fields: &[&str]) -> String {
    let word = |field: &&str| match &line[*field] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    fields.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_user_follows_all_messages_and_an_agent_its_own() {
    let stage = stage();
    stage.relay_ok(&["register", "carol"]);
    for (from, to, body) in [("alice", "bob", "one"), ("bob", "carol", "two"), ("carol", "alice,bob", "three")] {
        stage.relay_ok(&["send", to, body, "--from", from]);
    }
    let fields = ["topic", "event", "from", "recipients", "body"];
    let follow = |more: &[&str], environment: &[(&str, &str)], lines| -> Vec<String> {
        let arguments = [&["--topics", "messages", "--cursor", "start"], more].concat();
        told(&stage, &arguments, environment, lines).iter().map(|line| words(line, &fields)).collect()
    };
    let all = follow(&[], &[], 3);
    assert_eq!(
        all,
        [
            r#"messages message alice ["bob"] one"#,
            r#"messages message bob ["carol"] two"#,
            r#"messages message carol ["alice","bob"] three"#,
        ]
    );
    let of_alice = follow(&["--agent", "alice"], &[], 2);
    let own = [r#"messages message alice ["bob"] one"#, r#"messages message carol ["alice"] three"#];
    assert_eq!(of_alice, own, "one who got it knows of itself alone");
    // In an agent's own shell, without a word about it.
    let session = [("RELAY_OPENCODE_SESSION", "ses_1")];
    stage.relay(&["register", "dora"]).envs(session).succeed();
    stage.relay_ok(&["send", "dora", "for dora", "--from", "bob"]);
    assert_eq!(follow(&[], &session, 1), [r#"messages message bob ["dora"] for dora"#]);
    let nameless = stage.relay(&["events", "--topics", "messages"]).env("RELAY_OPENCODE_SESSION", "ses_2").run();
    assert_eq!(nameless.code, Some(4), "{nameless:?}");
}

#[test]
fn how_far_mail_gets_is_told_once_from_any_cursor() {
    let stage = stage();
    let sent = stage.relay_ok(&["send", "bob", "one", "--from", "alice"]);
    stage.relay_ok(&["read", "--agent", "bob", "--unread", "--mark-read"]);
    let follow =
        |cursor: &str, lines| told(&stage, &["--topics", "delivery", "--agent", "bob", "--cursor", cursor], &[], lines);
    let both = follow("start", 2);
    let fields = ["topic", "event", "id", "to", "route"];
    assert_eq!(words(&both[0], &fields[..4]), format!("delivery read {} bob", &sent[..26]));
    assert_eq!(both[0]["route"], "read");
    assert_eq!(both[1]["event"], "acknowledged", "{both:?}");
    let between = both[0]["cursor"].as_str().expect("a cursor");
    assert_eq!(follow(between, 1), both[1..], "each once");
    let beyond = stage.run(&["events", "--topics", "delivery", "--agent", "bob", "--cursor", "0-0-99999999"]);
    assert!(beyond.code == Some(2) && beyond.stderr.contains("beyond the end"), "{beyond:?}");
}

test_support::on_every_store! { env!("CARGO_BIN_EXE_relay-mesh");
    the_user_follows_how_far_all_mail_gets_and_an_agent_its_own,
    how_far_all_mail_gets_is_told_while_it_happens,
}

fn the_user_follows_how_far_all_mail_gets_and_an_agent_its_own(place: &mut Deployment) {
    let stage = &place.stage;
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    stage.relay_ok(&["register", "carol-2"]);
    stage.relay_ok(&["send", "bob,carol-2", "one", "--from", "alice"]);
    let read = |agent| stage.relay_ok(&["read", "--agent", agent, "--unread", "--mark-read"]);
    let follow = |cursor: &str, lines| told(stage, &["--topics", "delivery", "--cursor", cursor], &[], lines);
    let shown = |lines: &[Value]| lines.iter().map(|line| words(line, &["event", "to"])).collect::<Vec<_>>();
    read("bob");
    let of_bob = follow("start", 2);
    assert_eq!(shown(&of_bob), ["read bob", "acknowledged bob"]);
    read("carol-2");
    let all = follow("start", 4);
    assert_eq!(shown(&all), ["read bob", "acknowledged bob", "read carol-2", "acknowledged carol-2"]);
    // From any of them, each of the others once, those of an inbox that had none when the cursor was given too.
    for (sent, line) in all.iter().enumerate().take(3) {
        assert_eq!(follow(line["cursor"].as_str().expect("a cursor"), 3 - sent), all[sent + 1..]);
    }
    assert_eq!(follow(of_bob[1]["cursor"].as_str().expect("a cursor"), 2), all[2..]);
    // In an agent's own shell: its own.
    let session = [("RELAY_OPENCODE_SESSION", "ses_1")];
    stage.relay(&["register", "dora"]).envs(session).succeed();
    stage.relay_ok(&["send", "dora", "for dora", "--from", "bob"]);
    stage.relay(&["read", "--unread", "--mark-read"]).envs(session).succeed();
    let own = told(stage, &["--topics", "delivery", "--cursor", "start"], &session, 2);
    assert_eq!(shown(&own), ["read dora", "acknowledged dora"]);
    let last = all[3]["cursor"].as_str().expect("a cursor");
    let of_one = stage.run(&["events", "--topics", "delivery", "--agent", "bob", "--cursor", last]);
    assert!(of_one.code == Some(2) && of_one.stderr.contains("another subscription"), "{of_one:?}");
}

fn how_far_all_mail_gets_is_told_while_it_happens(place: &mut Deployment) {
    let stage = &place.stage;
    let command = stage.relay(&["events", "--topics", "delivery"]);
    let mut running = command.start(&stage.folder.join("live.log"));
    let mut lines = BufReader::new(running.child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON") };
    assert_eq!(next()["event"], "subscribed");
    for agent in ["alice", "bob", "late"] {
        stage.relay_ok(&["register", agent]);
        stage.relay_ok(&["send", agent, "hello"]);
        stage.relay_ok(&["read", "--agent", agent, "--unread", "--mark-read"]);
        let told = [next(), next()].map(|line| words(&line, &["event", "to"]));
        assert_eq!(told, [format!("read {agent}"), format!("acknowledged {agent}")]);
    }
    assert_eq!(running.stop(), Some(0));
}

#[test]
fn an_event_of_several_topics_is_a_line_of_each_and_the_last_moves_the_cursor() {
    let stage = stage();
    stage.relay_ok(&["ask", "Deploy?", "--from", "alice"]);
    let topics = ["--topics", "agents,asks,activity", "--cursor"];
    let from = |cursor: &str, lines| told(&stage, &[&topics[..], &[cursor]].concat(), &[], lines);
    // Both agents were registered before.
    let all = &from("start", 5)[2..];
    let shown: Vec<String> = all.iter().map(|line| words(line, &["topic", "event", "agent"])).collect();
    assert_eq!(shown, ["agents asked alice", "asks asked alice", "activity needs-input alice"]);
    assert_eq!(all[2]["because"], "needs-input");
    let again = from(all[0]["cursor"].as_str().expect("a cursor"), 3);
    assert_eq!(again, all, "the first line of an event is before it");
    let after = from(all[1]["cursor"].as_str().expect("a cursor"), 1);
    assert_eq!(after, all[2..], "and the last one after it");
}

#[test]
fn whatever_a_follower_says_it_is_told_what_is_wrong_and_nobody_else_notices() {
    let stage = stage();
    let _host = Host::start(&stage);
    let mut well_behaved = Follower::of(&stage, json!({"subscribe": ["reservations"]}));
    let check = |line: &str, expected: &str| {
        let mut follower = Follower::connect(&stage);
        follower.write(line);
        let told = in_short(&follower.next());
        assert!(told.contains(expected), "{line}: {told}");
        follower.write(r#"{"subscribe":["agents"]}"#);
        assert_eq!(follower.next()["event"], "subscribed", "after {line} it may ask for something else");
    };
    check("garbage", "error: a line was not understood");
    check("\u{0}\u{1b}[2J", "error: a line was not understood");
    check(r#"{"subscribe":["messages"]}"#, "`messages` wants an `agent`");
    check(r#"{"subscribe":[]}"#, "must name one or more of inbox, reservations, commands, turns, agents, deltas");
    check(r#"{"subscribe":["mail"]}"#, "`mail` cannot be followed");
    check(r#"{"subscribe":["inbox"]}"#, "wants an `agent`");
    check(r#"{"subscribe":["inbox"],"agent":"nobody"}"#, "no agent named `nobody`");
    check(r#"{"subscribe":["inbox"],"agent":"../bob"}"#, "is not a name");
    check(r#"{"subscribe":["agents"],"cursor":"x"}"#, "is not a cursor");
    check(&"x".repeat(1 << 20), "longer than is taken");
    let mut lost = Follower::connect(&stage);
    lost.write(r#"{"subscribe":["agents"],"cursor":"99999999999999-0"}"#);
    assert_eq!(in_short(&lost.next()), "cut: the cursor is beyond the end of the logs: it belongs to another mesh");

    // Followers that disconnect after half a line, after nothing, after a subscription.
    for half in ["{\"subscr", "", "{\"subscribe\":[\"agents\"]}\n"] {
        Follower::connect(&stage).stream.write_all(half.as_bytes()).expect("the host reads");
    }
    let mut babbling = Follower::connect(&stage);
    for _ in 0..16 {
        babbling.write("babble");
    }
    assert_eq!(babbling.until("cut: too many lines were not understood").len(), 17);
    assert_eq!(babbling.next(), Value::Null, "and the connection ends");
    let mut babbling = Follower::of(&stage, json!({"subscribe": ["agents"]}));
    for _ in 0..17 {
        babbling.write("babble");
    }
    let cut = (0..18).map(|_| babbling.next()).find(|line| line["event"] == "cut").expect("it is cut then, too");
    Follower::of(&stage, json!({"subscribe": ["agents"], "cursor": cut["cursor"].as_str().expect("where to go on")}));
    // A follower that closed its sending side still gets events.
    let mut listening = Follower::of(&stage, json!({"subscribe": ["reservations"]}));
    listening.stream.shutdown(std::net::Shutdown::Write).expect("a side is closed");
    assert_eq!(listening.next()["event"], "alive");
    stage.relay_ok(&["reserve", "after/it/all", "--from", "alice"]);
    for follower in [&mut well_behaved, &mut listening] {
        assert_eq!(follower.until("alice reserved after/it/all").len(), 1);
    }
}

#[test]
fn a_thousand_at_once_and_those_who_never_read_harm_nobody() {
    let stage = stage();
    let host = Host::start(&stage);
    let mut well_behaved = Follower::of(&stage, json!({"subscribe": ["reservations"]}));
    // They subscribe to everything and read nothing.
    let mut mute: Vec<Follower> = Vec::new();
    for _ in 0..50 {
        let mut follower = Follower::connect(&stage);
        follower.write(r#"{"subscribe":["inbox"],"agent":"bob","cursor":"start"}"#);
        mute.push(follower);
    }
    let message = "x".repeat(200 * 1024);
    for _ in 0..4 {
        stage.relay(&["send", "bob", "--stdin", "--from", "alice"]).input(message.clone()).succeed();
    }
    let crowd: Vec<Follower> = (0..950).map(|_| Follower::connect(&stage)).collect();
    let turned_away = crowd.into_iter().rev().map(|mut follower| in_short(&follower.next())).next();
    assert_eq!(turned_away.as_deref(), Some("cut: 256 follow already; end one of them, or use `relay-mesh events`"));
    stage.relay_ok(&["reserve", "src/through", "--from", "alice"]);
    assert_eq!(well_behaved.until("alice reserved src/through").len(), 1, "whoever was there is told in time");
    let mut client = host.client("zed");
    let answer = client.call("list_agents", json!({}));
    assert!(!answer.failed, "MCP is served as ever: {answer:?}");
    // One that begins to read gets everything, in whole lines.
    drop(mute.split_off(1));
    let mut late = mute.remove(0);
    wait_for("there is room again", || {
        let mut follower = Follower::connect(&stage);
        follower.write(r#"{"subscribe":["agents"]}"#);
        (follower.next()["event"] == "subscribed").then_some(())
    });
    assert_eq!(late.next()["event"], "subscribed");
    let mut messages = 0;
    while messages < 4 {
        let line = late.next();
        match line["event"].as_str() {
            Some("message") => messages += 1,
            // It may have been too late: then the last line says where to continue.
            Some("cut") => {
                let again = json!({"subscribe": ["inbox"], "agent": "bob", "cursor": line["cursor"]});
                late = Follower::of(&stage, again);
            }
            other => panic!("{other:?} after {messages} messages"),
        }
    }
    stage.relay_ok(&["send", "bob", "the fifth", "--from", "alice"]);
    assert_eq!(in_short(&late.next()), "mail the fifth to bob", "nothing is lost and nothing is told twice");
}

#[test]
fn a_socket_is_replaced_only_where_nobody_listens_at_it() {
    let stage = stage();
    let socket = stage.data.join("events.sock");
    let mut host = Host::start(&stage);
    host.process.kill();
    assert!(socket.exists(), "a host that is killed leaves it behind");
    let mut host = Host::start(&stage);
    Follower::of(&stage, json!({"subscribe": ["agents"]}));
    // A second server of the folder does not affect the first.
    let second = stage.run(&["serve", "--http", "127.0.0.1:0"]);
    assert!(second.code != Some(0) && second.stderr.contains("runs already"), "{}", second.stderr);
    Follower::of(&stage, json!({"subscribe": ["agents"]}));
    assert_eq!(host.process.stop(), Some(0));
    assert!(!socket.exists(), "a host that stops takes it along");

    let somebody = UnixListener::bind(&socket).expect("a socket");
    let host = Host::start(&stage);
    let log = std::fs::read_to_string(stage.folder.join("serve.log")).expect("a log");
    assert!(log.contains("another process listens at") && log.contains("end that process"), "{log}");
    let told: Value = serde_json::from_str(&stage.relay_ok(&["status", "--json"])).expect("JSON");
    assert_eq!((&told["server"]["running"], &told["server"]["events"]), (&true.into(), &Value::Null));
    drop((host, somebody));

    let deep = stage.folder.join("deep/".repeat(30));
    let mut process = stage
        .relay(&["serve", "--http", "127.0.0.1:0", "--dir", &deep.display().to_string()])
        .start(&stage.folder.join("deep.log"));
    let said = wait_for("the host says so", || {
        let log = std::fs::read_to_string(stage.folder.join("deep.log")).expect("a log");
        log.contains("next, in").then_some(log)
    });
    assert!(said.contains("and a socket's may have 107") && said.contains("a shorter path"), "{said}");
    assert_eq!(process.stop(), Some(0));
}

fn unread(stage: &Stage) -> usize {
    test_support::unread(stage, "bob").len()
}
