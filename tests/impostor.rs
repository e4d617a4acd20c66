//! Something else listens where a server of ours is expected, as another user of the machine may: no client of ours shows it
//! the token.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use test_support::{Host, Model, OpenCode, Script, Stage, isolated, wait_for};

/// Answers everything as a server of ours would that proves nothing, and keeps what it is sent.
struct Impostor {
    port: u16,
    heard: Arc<Mutex<String>>,
}

impl Impostor {
    fn listen(port: u16) -> Impostor {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
        let heard = Arc::new(Mutex::new(String::new()));
        let keeps = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keeps = Arc::clone(&keeps);
                std::thread::spawn(move || answer(stream, &keeps));
            }
        });
        Impostor { port, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().expect("unpoisoned").clone()
    }
}

fn answer(mut stream: TcpStream, heard: &Mutex<String>) {
    // A client may send the rest only once it has an answer, or nothing at all.
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a socket");
    let mut bytes = [0; 65_536];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        let is_whole = text.contains("\r\n\r\n");
        heard.lock().expect("unpoisoned").push_str(&text);
        if is_whole {
            break;
        }
    }
    let body = json!({"name": "relay-mesh", "version": "0.1.0", "status": "ok", "proof": "00".repeat(32)}).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    // Whoever has left hears nothing.
    let _gone = stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
}

/// A stage whose server has run, so that there is a token, and has given its port to something else.
fn stage() -> (Stage, String, Impostor) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let mut host = Host::start(&stage);
    let (port, token) = (host.port, host.token.clone());
    host.process.child.kill().expect("it runs");
    host.process.child.wait().expect("it ends");
    stage.configure(&format!("[http]\nlisten = \"127.0.0.1:{port}\"\n"));
    (stage, token, Impostor::listen(port))
}

#[test]
fn no_command_of_ours_shows_the_token_to_what_listens_in_the_servers_place() {
    isolated(|| {
        let (stage, token, impostor) = stage();
        let at = format!("127.0.0.1:{}", impostor.port);
        for arguments in [
            &["status"][..],
            &["doctor"],
            &["token"],
            &["token", "--at", &at],
            &["up"],
            &["serve", "--http", &at],
            &["register", "alice"],
            &["send", "alice", "hello"],
            &["agents"],
            &["wake", "mail", "--to", "alice"],
            &["install", "claude-code", "--project", &stage.project_path(), "--yes", "--transport", "http"],
            &["doctor", "claude-code"],
            &["down"],
        ] {
            let outcome = stage.run(arguments);
            assert!(!outcome.stdout.contains(&token), "{arguments:?}: {outcome:?}");
            assert!(!impostor.heard().contains(&token), "{arguments:?}: {}", impostor.heard());
        }
        assert!(impostor.heard().contains("GET /identity/"), "it was asked: {}", impostor.heard());
    });
}

#[test]
fn opencodes_connector_shows_the_token_to_nobody_who_does_not_prove_to_know_it() {
    isolated(|| {
        let (stage, token, impostor) = stage();
        let url = format!("http://127.0.0.1:{}/mcp", impostor.port);
        let install = ["install", "opencode", "--project", &stage.project_path(), "--yes", "--http-url", &url];
        stage.relay_ok(&install);
        let model = Model::start(Script::new().say("Good morning.", "Good morning to you."));
        let run = OpenCode::new(&stage, &model).ask("Good morning.", &[]);
        assert_eq!(run.result, "Good morning to you.", "{:?}", run.outcome);
        wait_for("the connector asks for a proof", || impostor.heard().contains("GET /identity/").then_some(()));
        wait_for("the client calls", || impostor.heard().contains("POST /mcp").then_some(()));
        assert!(!impostor.heard().contains(&token), "{}", impostor.heard());
    });
}
