//! Two machines, each in its own network, and a nats-server between them: the real Claude Code on one and the real
//! Codex on the other find each other, talk, and wake each other; and an agent on another machine runs one of
//! OpenCode's own commands once the user of OpenCode's machine has allowed it. Only the models are scripted.

#[path = "clients/pairs.rs"]
mod pairs;

use serde_json::{Value, json};
use test_support::{
    Client, DeliveryHistory, Machine, Model, NatsServer, OpenCode, Script, Seat, StdioClient, Transcript, agents,
    isolated, session_of, unread, wait_for,
};

use pairs::Pair;

#[test]
fn claude_code_on_one_machine_and_codex_on_another_talk_and_wake_each_other() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let places = [(1, Client::ClaudeCode), (2, Client::Codex)].map(|(number, client)| {
            let machine = Machine::new(number, env!("CARGO_BIN_EXE_relay-mesh"));
            machine.stage.configure(&format!("store = \"nats://{}\"\n", machine.at(server.port())));
            let model = machine.within(|| {
                client.install(&machine.stage);
                Model::start(pairs::part(client))
            });
            MachineWithClient { machine, client, model }
        });
        let seats = places.each_ref().map(MachineWithClient::open);
        for (place, seat) in places.iter().zip(&seats) {
            seat.terminal.type_line(&format!("Join the mesh as {}.", place.client.agent()));
            seat.settles(&place.model);
            assert!(session_of(&place.machine.stage, &place.client.agent()).is_some(), "it is bound to its session");
        }
        for place in &places {
            assert_eq!(agents(&place.machine.stage), ["claude-code-agent", "codex-agent"], "each machine knows both");
        }
        let mut rows = Vec::new();
        for (asker, asked) in [(0, 1), (1, 0)] {
            let pair = Pair { asker: places[asker].client, asked: places[asked].client };
            seats[asker].terminal.type_line(&pair.order());
            let woken = places[asked].model.wait_for_news(&pair.question());
            places[asker].model.wait_for_news(&pair.answer());
            seats[asker].settles(&places[asker].model);
            seats[asked].settles(&places[asked].model);
            let id = pair.id_of_the_question(&woken);
            let history = DeliveryHistory::up_to(&places[asker].machine.stage, &id, "acknowledged");
            let told = places[asked].model.times_told(&pair.question());
            let answered = places[asker].model.times_told(&pair.answer());
            rows.push(pair.row(&history, told + answered - 2));
            assert_eq!((told, answered), (1, 1), "{pair:?}: question and answer are shown once each");
        }
        let lost: Vec<String> =
            places.iter().flat_map(|place| unread(&place.machine.stage, &place.client.agent())).collect();
        let mut transcript = Transcript::new();
        transcript.step(
            "two machines",
            "each client asks the other one, which is idle",
            &pairs::table(&rows, lost.len()),
        );
        transcript.show();
        assert!(lost.is_empty(), "{lost:?}");
        for place in &places {
            let kept = place.machine.stage.data.join("agents");
            assert!(!kept.exists(), "what is shared lies on the server alone: {}", kept.display());
        }
    });
}

#[test]
fn a_command_from_another_machine_runs_where_the_person_of_its_own_machine_has_allowed_it() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let [hers, his] = [1, 2].map(|number| {
            let machine = Machine::new(number, env!("CARGO_BIN_EXE_relay-mesh"));
            machine.stage.configure(&format!("store = \"nats://{}\"\n", machine.at(server.port())));
            machine
        });
        let own = hers.stage.project.join(".opencode/command");
        std::fs::create_dir_all(&own).expect("the project is writable");
        std::fs::write(own.join("greet.md"), "---\ndescription: Greets\n---\nGreet $ARGUMENTS kindly.\n")
            .expect("the project is writable");
        ok(&hers, &["install", "opencode", "--project", &hers.stage.project_path(), "--yes"]);
        ok(&his, &["register", "bob"]);
        let script = Script::new()
            .call("Join as alice", "relay-mesh_register_agent", json!({"name": "alice"}))
            .say("you are `alice`", "I am alice.")
            .say("Greet the world kindly.", "Good morning, world.");
        let model = hers.within(|| Model::start(script));
        let (_opencode, session) = hers.within(|| {
            let opencode = OpenCode::new(&hers.stage, &model).serve();
            let session = opencode.session();
            opencode.say(&session, "build", "Join as alice.");
            (opencode, session)
        });
        assert_eq!(hers.within(|| session_of(&hers.stage, "alice")), Some(session));

        let asked = json_of(&his, &["cmd", "alice", "/greet", "the", "world", "--from", "bob"]);
        let id = asked["id"].as_str().expect("a command has an id");
        let waits = wait_for("his machine is told why it waits", || {
            command(&his, id)["waits"].as_str().filter(|why| why.contains("cmd allow")).map(str::to_owned)
        });
        assert!(waits.contains("`relay-mesh cmd allow bob /greet --to alice`"), "{waits}");
        // What he allows on his machine holds only for sessions there.
        ok(&his, &["cmd", "allow", "bob", "/greet", "--to", "alice"]);
        let another = json_of(&his, &["cmd", "alice", "/greet", "the", "moon", "--from", "bob", "--ttl", "3s"]);
        let another = another["id"].as_str().expect("a command has an id");
        wait_for("nobody has run it", || (command(&his, another)["status"] == "expired").then_some(()));
        assert_eq!(command(&his, id)["status"], "pending");
        assert_eq!(model.times_told("kindly"), 0, "nothing happens for a stranger");

        ok(&hers, &["cmd", "allow", "bob", "/greet", "--to", "alice"]);
        let ended = wait_for("it has ended, as his machine sees it", || {
            let command = command(&his, id);
            (command["status"] != "pending" && command["status"] != "running").then_some(command)
        });
        assert_eq!((&ended["status"], &ended["result"]), (&json!("done"), &json!("Good morning, world.")), "{ended}");
        assert_eq!(model.times_told("kindly"), 1, "once");
    });
}

/// A permission holds for the agents of the machine that it was given on.
#[test]
fn nobody_on_another_machine_starts_a_run() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let [hers, his] = [1, 2].map(|number| {
            let machine = Machine::new(number, env!("CARGO_BIN_EXE_relay-mesh"));
            machine.stage.configure(&format!("store = \"nats://{}\"\n", machine.at(server.port())));
            machine.stage.program("claude", "#!/bin/sh\ntouch started\n");
            machine
        });
        let run = json!({"harness": "claude", "task": "x", "cwd": hers.stage.project_path()});
        let runs = |machine: &Machine| json_of(machine, &["runs", "list"])["runs"].as_array().expect("a list").len();
        let client = |machine: &Machine| {
            let log = machine.stage.folder.join("mcp.log");
            machine.within(|| {
                let server = machine.stage.relay(&["mcp", "--tools", "runs"]).start(&log);
                StdioClient::connected(server, "a-client")
            })
        };
        let told = |client: &mut StdioClient, tool: &str, arguments: &Value| {
            client.request("tools/call", &json!({"name": tool, "arguments": arguments})).to_string()
        };
        ok(&hers, &["runs", "allow", "bob", "claude"]);
        let mut bob = client(&his);
        bob.call("register_agent", json!({"name": "bob"}));
        let refused = told(&mut bob, "start_run", &run);
        assert!(refused.contains("relay-mesh runs allow bob claude-code"), "her permission is none of his: {refused}");
        // And nobody on her machine becomes `bob` while he lives on his.
        let mut another = client(&hers);
        let taken = told(&mut another, "register_agent", &json!({"name": "bob"}));
        assert!(taken.contains("bob-2"), "{taken}");
        let refused = told(&mut another, "start_run", &run);
        assert!(refused.contains("has not allowed `bob-2`"), "{refused}");
        assert_eq!((runs(&hers), runs(&his)), (0, 0));
        for machine in [&hers, &his] {
            assert!(!machine.stage.project.join("started").exists(), "no harness was started");
        }
    });
}

fn ok(machine: &Machine, arguments: &[&str]) -> String {
    machine.within(|| machine.stage.relay_ok(arguments))
}

fn json_of(machine: &Machine, arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(machine, &[arguments, &["--json"]].concat())).expect("--json writes JSON")
}

/// A command's JSON on a machine.
fn command(machine: &Machine, id: &str) -> Value {
    let all = json_of(machine, &["cmd", "list", "--all"]);
    let found = all["commands"].as_array().into_iter().flatten().find(|one| one["id"] == id);
    found.cloned().unwrap_or_else(|| panic!("{id} is not among {all}"))
}

/// A machine and its user.
struct MachineWithClient {
    machine: Machine,
    client: Client,
    model: Model,
}

impl MachineWithClient {
    fn open(&self) -> Seat<'_> {
        self.machine.within(|| self.client.open(&self.machine.stage, &self.model))
    }
}
