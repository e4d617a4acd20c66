//! The page of the server in a real Chromium: signing in, what is live, coming back after the server was killed, writing,
//! answering, hostile texts, the keyboard, and that axe finds nothing. What a browser does stands in tests/page/.

#[path = "page/browser.rs"]
mod browser;
#[path = "ui/five.rs"]
mod scene;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::ChildStdout;

use serde_json::{Value, json};
use test_support::{Deployment, Host, HttpClient, Program, Running, Stage, isolated, wait_for};

use browser::{browser, tests};

/// Five agents who have talked, of whom one waits for its user; one has read its mail.
fn five() -> Stage {
    let stage = scene::five();
    stage.relay_ok(&["read", "--agent", "carol"]);
    stage
}

/// A browser that does one thing and says whether the page did what it should.
struct Browser {
    process: Running,
    output: BufReader<ChildStdout>,
    log: PathBuf,
}

impl Browser {
    fn start(stage: &Stage, port: u16, check: &str, needs: &[String]) -> Browser {
        let log = stage.folder.join("browser.log");
        let mut process = browser(stage, port, check).args(needs).start(&log);
        let output = BufReader::new(process.child.stdout.take().expect("a pipe"));
        Browser { process, output, log }
    }

    /// Waits until the page is where something has to happen outside.
    fn waits(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), "waiting", "{}", self.said());
    }

    fn go_on(&mut self) {
        let input = self.process.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "on").expect("it reads");
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn passes(mut self) {
        let code = self.process.ended();
        assert_eq!(code, Some(0), "{}", self.said());
    }
}

/// Has a browser do something at once.
fn check(stage: &Stage, host: &Host, name: &str, needs: &Value) {
    Browser::start(stage, host.port, name, &[needs.to_string()]).passes();
}

#[test]
fn a_browser_signs_in_by_a_code_and_out_again() {
    isolated(|| {
        let stage = five();
        let host = Host::start(&stage);
        check(&stage, &host, "sign_in", &json!({}));
    });
}

#[test]
fn a_message_is_on_the_page_without_loading_it_again() {
    isolated(|| {
        let stage = five();
        let host = Host::start(&stage);
        let text = "It listens at 5433 now";
        let needs = json!({"thread": "database", "text": text});
        let mut browser = Browser::start(&stage, host.port, "live", &[needs.to_string()]);
        browser.waits();
        stage.relay_ok(&["send", "carol", text, "--from", "bob", "--thread", "database"]);
        browser.passes();
    });
}

#[test]
fn a_message_from_another_machine_is_on_the_page_and_one_from_the_page_gets_there() {
    isolated(|| {
        let place = Deployment::on_one_server(env!("CARGO_BIN_EXE_relay-mesh"));
        scene::talk(&place.stage);
        let other = place.another_machine();
        other.relay_ok(&["register", "frank"]);
        let host = Host::start(&place.stage);
        let text = "It listens at 5433 now";
        let needs = json!({"thread": "database", "text": text});
        let mut browser = Browser::start(&place.stage, host.port, "live", &[needs.to_string()]);
        browser.waits();
        other.relay_ok(&["send", "carol", text, "--from", "frank", "--thread", "database"]);
        browser.passes();
        let found = place.json(&["thread", "database"]);
        let of_frank = found["messages"].as_array().expect("messages").iter().find(|one| one["from"] == "frank");
        let message = of_frank.expect("it is in the conversation")["id"].clone();
        check(&place.stage, &host, "reply", &json!({"message": message, "from": "frank", "text": "Thank you, Frank"}));
        let mail = other.relay_ok(&["read", "--agent", "frank", "--peek"]);
        assert!(mail.contains("Thank you, Frank"), "{mail}");
    });
}

#[test]
fn a_page_comes_back_after_the_server_was_killed_and_has_missed_nothing() {
    isolated(|| {
        let stage = five();
        let mut host = Host::start(&stage);
        let needs = json!({"thread": "database", "before": "Where is it now?", "after": "sent while it was down"});
        let mut browser = Browser::start(&stage, host.port, "reconnect", &[needs.to_string()]);
        browser.waits();
        host.process.kill();
        browser.go_on();
        browser.waits();
        stage.relay_ok(&["send", "carol", "sent while it was down", "--from", "bob", "--thread", "database"]);
        let listen = format!("127.0.0.1:{}", host.port);
        let _server = stage.relay(&["serve", "--http", &listen]).start(&stage.folder.join("again.log"));
        wait_for("the server answers again", || {
            HttpClient::new(host.port, None).get("/healthz").filter(|answer| answer.status == 200)
        });
        browser.go_on();
        browser.passes();
    });
}

#[test]
fn the_user_writes_on_the_page_and_what_is_typed_stays_while_mail_comes_in() {
    isolated(|| {
        let stage = five();
        let host = Host::start(&stage);
        let outside = "and another one comes in";
        let needs =
            json!({"thread": "database", "to": ["bob", "dave"], "text": "Please tell Erin too", "outside": outside});
        let mut browser = Browser::start(&stage, host.port, "compose", &[needs.to_string()]);
        browser.waits();
        stage.relay_ok(&["send", "carol", outside, "--from", "bob", "--thread", "database"]);
        browser.passes();
        for agent in ["bob", "dave"] {
            let mail = stage.relay_ok(&["read", "--agent", agent, "--peek"]);
            assert!(mail.contains("Please tell Erin too"), "{agent}: {mail}");
            assert!(mail.contains("shell"), "it is from the user: {mail}");
        }
        assert!(stage.relay_ok(&["thread", "database"]).contains("Please tell Erin too"), "it is in the conversation");
    });
}

#[test]
fn what_the_user_writes_about_a_message_answers_it() {
    isolated(|| {
        let stage = five();
        let host = Host::start(&stage);
        let thread =
            || -> Value { serde_json::from_str(&stage.relay_ok(&["thread", "database", "--json"])).expect("JSON") };
        let first = thread()["messages"][0]["id"].clone();
        check(&stage, &host, "reply", &json!({"message": first, "from": "bob", "text": "Thank you for telling"}));
        let last = thread()["messages"].as_array().expect("messages").last().expect("one").clone();
        assert_eq!((&last["reply_to"], last["body"].as_str()), (&first, Some("Thank you for telling")));
        assert_eq!(last["recipients"][0]["to"], "bob");
    });
}

#[test]
fn the_user_answers_and_consents_on_the_page() {
    isolated(|| {
        let stage = five();
        stage.relay_ok(&["ask", "May I delete the branch?", "--from", "dave", "--choices", "yes,no"]);
        let host = Host::start(&stage);
        let words = json!({"agent": "alice", "question": "Which port", "words": "port 8080"});
        check(&stage, &host, "answer", &words);
        let mail = stage.relay_ok(&["read", "--agent", "alice", "--peek"]);
        assert!(mail.contains("port 8080"), "{mail}");
        check(&stage, &host, "answer", &json!({"agent": "dave", "question": "delete the branch", "button": "yes"}));
        let mail = stage.relay_ok(&["read", "--agent", "dave", "--peek"]);
        assert!(mail.contains("yes"), "{mail}");
        let asks = stage.relay_ok(&["asks", "--all"]);
        assert!(!asks.contains("open"), "{asks}");
    });
}

#[test]
fn what_agents_write_is_text_on_the_page() {
    isolated(|| {
        let stage = five();
        let script =
            "<script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'><b id=made-of-text>bold</b>";
        stage.relay_ok(&["send", "bob", script, "--from", "carol", "--thread", "<i>evil</i>", "--subject", script]);
        for text in ["\u{1b}[2J\u{1b}]0;title\u{7}ansi", "\u{202e}turned around\u{2066}", "javascript:alert(1)"] {
            stage.relay_ok(&["send", "bob", text, "--from", "carol", "--thread", "<i>evil</i>"]);
        }
        let long = stage.relay(&["send", "bob", "-", "--from", "carol", "--thread", "<i>evil</i>"]);
        long.input("0".repeat(250_000)).succeed();
        stage.relay_ok(&["ask", script, "--from", "carol"]);
        let host = Host::start(&stage);
        let needs = json!({
            "thread": "<i>evil</i>",
            "texts": ["<b id=made-of-text>bold</b>", "\\u{1b}[2J", "\\u{202e}turned around"],
            "paths": ["/ui/agents/carol"],
            "words": "evil",
        });
        check(&stage, &host, "hostile", &needs);
    });
}

#[test]
fn axe_finds_nothing_on_any_address_in_light_and_dark_wide_and_narrow() {
    isolated(|| {
        let stage = five();
        let host = Host::start(&stage);
        let found = stage.relay_ok(&["thread", "database", "--json"]);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let message = found["messages"][0]["id"].as_str().expect("an id");
        let needs = json!({"thread": "database", "agent": "alice", "message": message, "words": "staging"});
        check(&stage, &host, "axe", &needs);
    });
}

#[test]
fn everything_is_reached_by_the_keyboard() {
    isolated(|| {
        let stage = five();
        let host = Host::start(&stage);
        let outside = "one more for the list";
        let needs = json!({"thread": "database", "words": "staging", "outside": outside});
        let mut browser = Browser::start(&stage, host.port, "keyboard", &[needs.to_string()]);
        browser.waits();
        stage.relay_ok(&["send", "erin", outside, "--from", "dave", "--thread", "third"]);
        browser.passes();
    });
}

#[test]
fn the_lanes_are_laid_out_the_same_each_time() {
    Program::new("node").arg("--test").arg(tests().join("page/lanes.test.mjs")).succeed();
}

#[test]
fn the_page_is_for_its_user_alone() {
    let stage = five();
    let alone = stage.run(&["ui", "--web"]);
    assert_eq!(alone.code, Some(1), "{}", alone.stderr);
    assert!(alone.stderr.contains("no server is running"), "{}", alone.stderr);
    assert!(alone.stderr.contains("relay-mesh up"), "{}", alone.stderr);
    let host = Host::start(&stage);
    let of_agent = stage.relay(&["ui", "--web", "--no-open"]).env("RELAY_RUN", "01JD8Z3K5V0000000000000000").run();
    assert_eq!(of_agent.code, Some(4), "{}{}", of_agent.stdout, of_agent.stderr);
    let client = HttpClient::new(host.port, None);
    let lanes = client.get("/ui/data/lanes").expect("an answer");
    assert_eq!(lanes.status, 401);
    let mut foreign = HttpClient::new(host.port, None);
    foreign.header("origin", Some("http://evil.example"));
    for path in ["/ui/", "/ui/data/lanes"] {
        assert_eq!(foreign.get(path).expect("an answer").status, 403, "{path}");
    }
    // The token of agents is no key to the page.
    let of_agents = HttpClient::new(host.port, Some(&host.token));
    assert_eq!(of_agents.get("/ui/data/lanes").expect("an answer").status, 401);
}
