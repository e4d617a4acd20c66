//! Codex agents on one app server, with the real client and a scripted model: each is itself, leaves alone, and goes on when
//! the server is killed; their user joins one in Codex's own terminal; a server that refuses half of what it is asked loses
//! and repeats nothing.

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use test_support::{
    Codex, ModelAnswer, Script, Spawning, Terminal, Victim, isolated, presence_of, send_with, unread, wait_or_show,
};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::Message;

/// Each says what it was asked for the last time, and tells alice if it is asked to.
fn model() -> Script {
    let runs = |command: &str| {
        let input = json!({"cmd": command, "yield_time_ms": 200_000});
        ModelAnswer::Call { tool: "exec_command".to_owned(), input }
    };
    Script::new().otherwise(move |news| match news {
        news if news.contains("Sleep long") => runs("tail -f /dev/null"),
        news if news.contains("Write where you are") => runs("echo $RELAY_OUTBOX > outbox-$RELAY_SPAWN"),
        news if news.contains("Tell alice") => {
            ModelAnswer::Call { tool: Codex::tool("send_message"), input: json!({"to": "alice", "body": "It is me."}) }
        }
        _ => ModelAnswer::Say("Done.".to_owned()),
    })
}

fn scene(script: Script) -> Spawning {
    Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", script)
}

/// The app servers of the agents.
fn servers(scene: &Spawning) -> Vec<String> {
    scene.ours().into_iter().filter(|line| line.contains("app-server")).collect()
}

fn is_idle(scene: &Spawning, name: &str) {
    let idle = || (presence_of(&scene.stage, name).as_deref() == Some("idle")).then_some(());
    wait_or_show(&format!("{name} is idle"), idle, || scene.told());
}

#[test]
fn d1_d3_agents_share_a_program_and_stay_themselves() {
    isolated(|| {
        let scene = scene(model());
        scene.stage.relay_ok(&["register", "alice"]);
        let names = ["ann", "ben", "cai"];
        for name in names {
            let spawned = scene.spawn(name, &["Tell alice", "--wait", "--reach", "work"]);
            assert_eq!(spawned["connection"], "shared-app-server", "{spawned}");
        }
        assert_eq!(servers(&scene).len(), 1, "{:?}", scene.ours());
        let mail = unread(&scene.stage, "alice");
        for name in names {
            let of = mail.iter().filter(|mail| mail.contains(&format!("\"from\":\"{name}\"")));
            assert!(of.clone().count() == 1 && of.clone().all(|mail| mail.contains("It is me.")), "{name}: {mail:?}");
        }
        // Each thread has its own model and folder, whatever those of the others are.
        std::fs::create_dir(scene.stage.project.join("below")).expect("a folder");
        scene.spawn("dee", &["Say hello", "--wait", "--model", "another-model", "--cwd", "below"]);
        let heard = scene.model.heard().into_iter().rfind(|heard| heard.scripted).expect("a request");
        assert_eq!(heard.body["model"], "another-model");
        assert!(heard.everything().contains(&format!("{}/below", scene.stage.project_path())), "{}", heard.body);
        assert_eq!(servers(&scene).len(), 1, "{:?}", scene.ours());
        scene.ok(&["dismiss", "dee"]);
        // Its commands have its own variables, and not those of who started the program.
        for name in names {
            scene.ok(&["steer", name, "--next", "Write where you are"]);
            let own = scene.record(name);
            let mark = own["mark"].as_str().unwrap_or_default().to_owned();
            let written = scene.stage.project.join(format!("outbox-{mark}"));
            let text = || std::fs::read_to_string(&written).ok().filter(|text| text.ends_with('\n'));
            let outbox = wait_or_show(&format!("{name} writes {}", written.display()), text, || scene.told());
            let id = own["id"].as_str().unwrap_or_default();
            assert!(!id.is_empty() && outbox.contains(id), "{name}: {outbox} {own}");
            is_idle(&scene, name);
        }

        // One leaves in the middle of a command, and nobody else notices.
        scene.ok(&["steer", "ben", "--next", "Sleep long"]);
        let sleeps = || scene.ours().iter().any(|line| line.contains("tail -f /dev/null"));
        wait_or_show("the command runs", || sleeps().then_some(()), || scene.told());
        let before = servers(&scene);
        scene.ok(&["dismiss", "ben"]);
        assert!(!sleeps(), "{:?}", scene.ours());
        assert_eq!(servers(&scene), before);
        let id = send_with(&scene.stage, "ann", "are you there", &["--from", "alice"]);
        let answered = || (scene.status(&id) == "acknowledged").then_some(());
        wait_or_show("ann answers", answered, || scene.told());

        // The program is killed: one other carries both.
        is_idle(&scene, "ann");
        let ids = ["ann", "cai"].map(|name| send_with(&scene.stage, name, "one more", &["--from", "alice"]));
        scene.kill(Victim::Harness);
        for id in &ids {
            let answered = || (scene.status(id) == "acknowledged").then_some(());
            wait_or_show("it goes on", answered, || format!("{} {:?}", scene.told(), scene.ours()));
        }
        assert!(servers(&scene).len() == 1 && servers(&scene) != before, "{:?}", scene.ours());
        scene.ok(&["dismiss", "ann"]);
        scene.ok(&["dismiss", "cai"]);
        scene.nothing_is_left();
        let left: Vec<_> = std::fs::read_dir(scene.stage.data.join("links")).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn its_user_joins_in_the_harness_own_terminal() {
    isolated(|| {
        let scene = scene(model());
        scene.spawn("helper", &["Say hello", "--wait", "--reach", "work"]);
        is_idle(&scene, "helper");
        let attach = |further: &[&str]| {
            let program = scene.stage.binary().display().to_string();
            let words = [&["attach", "helper"], further].concat();
            let line: Vec<String> = std::iter::once(program).chain(words.iter().map(|w| (*w).to_owned())).collect();
            Terminal::start(&scene.stage.folder, &scene.stage.project, &scene.environment(), &line)
        };
        let terminal = attach(&[]);
        terminal.wait_for("• Done.");
        terminal.type_line("I am here myself");
        scene.model.wait_for_news("I am here myself");
        let told = || scene.told().contains("its user typed").then_some(());
        wait_or_show("the driver hears that its user speaks", told, || scene.told());
        terminal.close();
        // The agent goes on, also when nobody can find its socket any more.
        is_idle(&scene, "helper");
        let socket = scene.record("helper")["socket"].as_str().expect("a socket").to_owned();
        let target = std::fs::canonicalize(&socket).expect("where Codex has it");
        std::fs::remove_file(target).expect("it is ours");
        std::fs::remove_file(&socket).expect("it is ours");
        scene.ok(&["steer", "helper", "--next", "go on"]);
        scene.model.wait_for_news("go on");
        is_idle(&scene, "helper");
        let lines = attach(&["--lines"]);
        lines.wait_for("go on");
        lines.close();
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}

#[test]
fn a_codex_that_listens_nowhere_is_driven_over_its_pipes() {
    isolated(|| {
        let scene = scene(model());
        let programs = scene.stage.programs();
        let real = std::fs::canonicalize(programs.join("codex")).expect("the client is installed");
        let older = format!(
            "#!/bin/sh\ncase \"$*\" in *--listen*) echo \"error: unexpected argument '--listen' found\" >&2; exit 2;; \
             esac\nexec '{}' \"$@\"\n",
            real.display()
        );
        std::fs::remove_file(programs.join("codex")).expect("a link of the stage");
        scene.stage.program("codex", &older);
        let spawned = scene.spawn("helper", &["Say hello", "--wait"]);
        assert_eq!(spawned["connection"], "app-server", "{spawned} {}", scene.told());
        // It says why there is no terminal to join.
        let attached = scene.relay(&["attach", "helper"]);
        assert_eq!(attached.code, Some(0), "{attached:?}");
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}

/// Asks a server as fast as a socket takes it.
async fn flood(socket: &str, requests: usize) -> (usize, usize) {
    let target = std::fs::canonicalize(socket).expect("where Codex has it");
    let stream = UnixStream::connect(target).await.expect("it listens");
    let (mut stream, _) = tokio_tungstenite::client_async("ws://localhost/", stream).await.expect("greeted");
    let greeting =
        json!({"id": "i", "method": "initialize", "params": {"clientInfo": {"name": "flood", "version": "1"}}});
    stream.send(Message::text(greeting.to_string())).await.expect("sent");
    let (mut input, mut output) = stream.split();
    let (mut answered, mut refused) = (0, 0);
    let asks = async {
        for number in 0..requests {
            let asked = json!({"id": number, "method": "thread/list", "params": {}});
            if input.send(Message::text(asked.to_string())).await.is_err() {
                return;
            }
        }
    };
    let hears = async {
        while answered + refused < requests {
            // Some get no answer at all.
            let next = tokio::time::timeout(std::time::Duration::from_secs(2), output.next()).await;
            let Ok(Some(Ok(Message::Text(text)))) = next else { return };
            let told: Value = serde_json::from_str(&text).expect("JSON");
            match told["error"]["code"].as_i64() {
                Some(-32_001) => refused += 1,
                _ => answered += 1,
            }
        }
    };
    tokio::join!(asks, hears);
    (answered, refused)
}

#[test]
fn d8_an_overloaded_server_loses_and_repeats_nothing() {
    isolated(|| {
        let scene = scene(model());
        scene.spawn("helper", &["Say hello", "--wait"]);
        scene.stage.relay_ok(&["register", "alice"]);
        let socket = scene.record("helper")["socket"].as_str().expect("a socket").to_owned();
        let done = std::sync::atomic::AtomicBool::new(false);
        let (id, refused) = std::thread::scope(|threads| {
            let flooding = threads.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                let mut refused = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    refused += runtime.block_on(flood(&socket, 3_000)).1;
                }
                refused
            });
            let id = send_with(&scene.stage, "helper", "a task", &["--from", "alice"]);
            let answered = || (scene.status(&id) == "acknowledged").then_some(());
            wait_or_show("it is answered", answered, || scene.told());
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            (id, flooding.join().expect("it floods"))
        });
        assert!(refused > 0, "the server was not overloaded");
        let heard = scene.model.heard();
        let everything = heard.last().expect("it was asked").everything();
        let times = |id: String| everything.matches(&id).count();
        assert_eq!(times(format!("id=\\\"{id}\\\"")) + times(format!("id=\"{id}\"")), 1, "{everything}");
        scene.ok(&["dismiss", "helper"]);
        scene.nothing_is_left();
    });
}
