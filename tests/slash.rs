//! The harness's own commands, which one agent orders for another's session, with the real OpenCode and the real Codex:
//! commands of a sender whom the user has allowed run once, and other senders are told what is missing. Only the model
//! is scripted.

use serde_json::{Value, json};
use test_support::{
    Codex, Host, Model, OpenCode, Program, Script, Stage, isolated, session_of, wait_for, wait_or_show,
};

/// A project's own command, as users write them.
const GREET: &str = "---\ndescription: Greets somebody\n---\nGreet $ARGUMENTS kindly.\n";

#[test]
fn opencode_runs_what_the_person_has_allowed_and_tells_everybody_else_what_it_takes() {
    isolated(|| {
        let stage = with_opencode();
        let model = Model::start(joining().say("Greet the world kindly.", "Good morning, world."));
        let server = OpenCode::new(&stage, &model).serve();
        let session = server.session();
        server.say(&session, "plan", "Join as alice.");
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&session));

        let id = asked(&stage, &["cmd", "alice", "/greet", "the", "world", "--from", "bob"]);
        let waits = wait_for("whoever would run it says why it waits", || text(&command(&stage, &id), "waits"));
        assert!(waits.contains("`relay-mesh cmd allow bob /greet --to alice`"), "{waits}");
        let told = stage.run(&["cmd", "alice", "/greet", "you", "--from", "bob", "--ttl", "1s", "--wait"]);
        assert_eq!(told.code, Some(7), "{told:?}");
        assert!(told.stderr.contains("cmd allow bob /greet --to alice"), "{told:?}");
        assert_eq!(model.times_told("kindly"), 0, "nothing happens for a stranger");

        let allowed = stage.relay_ok(&["cmd", "allow", "bob", "/greet", "--to", "alice"]);
        assert!(allowed.contains("bob may run /greet in the session of alice"), "{allowed}");
        let ended = ended(&stage, &id);
        assert_eq!((&ended["status"], &ended["by"]), (&"done".into(), &"connector".into()), "{ended}");
        assert_eq!(ended["result"], "Good morning, world.");
        let heard = model.wait_for_news("Greet");
        assert!(heard.news().contains("kindly."), "{}", heard.news());
        assert_eq!(heard.body["model"], "two", "as whom the session spoke last");
        assert_eq!(model.times_told("kindly"), 1, "once");

        // A command that is no longer allowed does not run, and arguments are not interpreted.
        let smuggled = ["x !`touch smuggled`", "@/etc/hostname", "ä@/etc/hostname", "$ARGUMENTS"];
        for argument in smuggled {
            let id = asked(&stage, &["cmd", "alice", "/greet", argument, "--from", "bob"]);
            let ended = self::ended(&stage, &id);
            let why = text(&ended, "result").unwrap_or_default();
            assert!(ended["status"] == "failed" && why.contains("would not take as text"), "{ended}");
        }
        let id = asked(&stage, &["cmd", "alice", "/greet", "a\n/compact", "--from", "bob"]);
        let waits = wait_for("it is left to others", || text(&command(&stage, &id), "waits"));
        assert!(waits.contains("a line break"), "{waits}");
        assert!(!stage.project.join("smuggled").exists(), "nothing was run");
        stage.relay_ok(&["cmd", "disallow", "bob"]);
        let id = asked(&stage, &["cmd", "alice", "/greet", "the moon", "--from", "bob"]);
        wait_for("it waits for the person", || text(&command(&stage, &id), "waits"));
        assert_eq!(model.times_told("kindly"), 1, "nothing more was asked");
    });
}

#[test]
fn opencode_runs_a_command_over_http_where_no_connector_answers() {
    isolated(|| {
        let stage = with_opencode();
        stage.relay_ok(&["cmd", "allow", "bob"]);
        let model = Model::start(joining().say("Greet the world kindly.", "Good morning, world."));
        let server = OpenCode::new(&stage, &model).serve();
        let session = server.session();
        server.say(&session, "build", "Join as alice.");
        OpenCode::disconnect(&stage);
        let _host = Host::start(&stage);
        let id = asked(&stage, &["cmd", "alice", "/nothing", "--from", "bob"]);
        waits_because(&stage, &id, "has no command /nothing");
        let id = asked(&stage, &["cmd", "alice", "/greet", "the", "world", "--from", "bob"]);
        let ended = ended(&stage, &id);
        assert_eq!((&ended["status"], &ended["by"]), (&"done".into(), &"command".into()), "{ended}");
        assert_eq!(ended["result"], "Good morning, world.");
        assert_eq!(model.times_told("kindly"), 1, "once");
    });
}

#[test]
fn opencode_compacts_an_idle_session_in_a_terminal() {
    isolated(|| {
        let stage = with_opencode();
        stage.relay_ok(&["cmd", "allow", "bob", "/compact"]);
        let model = Model::start(joining());
        let terminal = OpenCode::new(&stage, &model).open(&[]);
        terminal.type_line("Join as alice.");
        terminal.wait_for("I am alice.");
        terminal.wait_until_gone("esc interrupt");
        let outcome = stage.run(&["cmd", "alice", "/compact", "--from", "bob", "--wait", "--timeout", "50s", "--json"]);
        let ended: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
        assert_eq!((&ended["status"], &ended["by"]), (&"done".into(), &"connector".into()), "{ended}");
        terminal.wait_for("They talked about the mesh.");
    });
}

#[test]
fn codex_compacts_and_reviews_for_a_sender_whom_the_person_has_allowed() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["install", "codex", "--project", &stage.project.display().to_string(), "--yes"]);
        stage.relay_ok(&["register", "bob"]);
        let script = Script::new()
            .call("Join as alice", &Codex::tool("register_agent"), json!({"name": "alice"}))
            .say("\"name\":\"alice\"", "I am alice.")
            .say("the parser", "Nothing is wrong with the parser.");
        let model = Model::start(script);
        let codex = Codex::new(&stage, &model);
        let terminal = codex.open();
        terminal.type_line("Join as alice.");
        Codex::says(&terminal, "I am alice.");
        let waits = stage.run(&["cmd", "alice", "/compact", "--from", "bob", "--ttl", "1s", "--wait"]);
        assert!(waits.stderr.contains("cmd allow bob /compact --to alice"), "{waits:?}");
        stage.relay_ok(&["cmd", "allow", "bob"]);
        for (line, means) in
            [(vec!["/review", "the parser"], "review/start"), (vec!["/compact"], "thread/compact/start")]
        {
            let words: Vec<&str> = ["cmd", "alice"].into_iter().chain(line).chain(["--from", "bob"]).collect();
            let ended = ended(&stage, &asked(&stage, &words));
            assert_eq!((&ended["status"], &ended["by"]), (&"done".into(), &means.into()), "{ended}");
        }
        let id = asked(&stage, &["cmd", "alice", "/model", "x", "--from", "bob"]);
        waits_because(&stage, &id, "runs /model only from its own terminal");
    });
}

/// OpenCode's connector and its adapter each check a peer's words before they are typed. The adapter's own test uses
/// the same table.
#[test]
fn the_connector_takes_a_peers_words_as_its_adapter_does() {
    let plugin = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/opencode");
    let table = std::fs::read_to_string(plugin.join("src/arguments.json")).expect("the table is there");
    let table: Vec<Value> = serde_json::from_str(&table).expect("a table");
    let rows = table.iter().map(|row| &row["words"]).collect::<Vec<_>>();
    let typed = Program::new("node")
        .args(["--eval", TYPED, "--"])
        .arg(plugin.join("assets/connector.ts"))
        .arg(json!(rows).to_string())
        .succeed();
    let typed: Vec<Value> = serde_json::from_str(&typed).expect("JSON");
    assert_eq!(typed.len(), table.len());
    for (row, typed) in table.iter().zip(typed) {
        match row["refused"].as_str() {
            None => assert_eq!((&typed["line"], &typed["refused"]), (&row["line"], &Value::Null), "{row}"),
            Some(what) => {
                let why = typed["refused"].as_str().unwrap_or_default();
                assert!(why.contains(&format!("holds {what}")), "{row}: {typed}");
            }
        }
    }
}

/// Runs the connector's function that checks a peer's words, with its types stripped.
const TYPED: &str = r"
    const [file, rows] = process.argv.slice(1)
    const whole = require('fs').readFileSync(file, 'utf8')
    const [source] = /^function typed\([^]*?^}$/m.exec(whole)
    const plain = source.replace(/: string\[\]|: \{ line: string; refused\?: string \}/g, '')
    const typed = new Function(plain + '; return typed')()
    console.log(JSON.stringify(JSON.parse(rows).map((words) => typed(words))))
";

/// Alice joins when her user asks her to, and answers.
fn joining() -> Script {
    Script::new()
        .call("Join as alice", "relay-mesh_register_agent", json!({"name": "alice"}))
        .say("you are `alice`", "I am alice.")
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// A stage with the mesh, the project's own command, and a sender.
fn with_opencode() -> Stage {
    let stage = stage();
    let own = stage.project.join(".opencode/command");
    std::fs::create_dir_all(&own).expect("the project is writable");
    std::fs::write(own.join("greet.md"), GREET).expect("the project is writable");
    stage.relay_ok(&["install", "opencode", "--project", &stage.project.display().to_string(), "--yes"]);
    stage.relay_ok(&["register", "bob"]);
    stage
}

/// Orders a command and returns its id.
fn asked(stage: &Stage, words: &[&str]) -> String {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let asked: Value = serde_json::from_str(&stage.relay_ok(&words)).expect("--json writes JSON");
    text(&asked, "id").expect("a command has an id")
}

/// A command's JSON.
fn command(stage: &Stage, id: &str) -> Value {
    let all: Value =
        serde_json::from_str(&stage.relay_ok(&["cmd", "list", "--all", "--json"])).expect("--json writes JSON");
    let found = all["commands"].as_array().into_iter().flatten().find(|one| one["id"] == id);
    found.cloned().unwrap_or_else(|| panic!("{id} is not among {all}"))
}

/// Waits until a command waits for a reason with these words.
fn waits_because(stage: &Stage, id: &str, words: &str) {
    let waits = || text(&command(stage, id), "waits").filter(|waits| waits.contains(words));
    wait_or_show(&format!("it waits, because it {words}"), waits, || command(stage, id).to_string());
}

/// Waits until a command has ended.
fn ended(stage: &Stage, id: &str) -> Value {
    wait_for("the command has ended", || {
        let command = command(stage, id);
        (command["status"] != "pending" && command["status"] != "running").then_some(command)
    })
}

fn text(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().map(str::to_owned)
}
