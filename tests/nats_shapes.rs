//! Servers as docs/nats.md describes them, under the configuration that `relay-mesh nats-auth` prints: a cluster of
//! three of which one dies, and a hub with a leaf node on each machine, whose cable is unplugged.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_support::{Machine, NatsServer, Stage, StdioClient, isolated, wait_for};

const OPERATOR: &str = "secret-of-the-operator";

/// The configuration for some machines, with the variables that it uses.
struct Printed {
    configuration: String,
    variables: Vec<(String, String)>,
}

impl Printed {
    fn by(stage: &Stage, machines: &[&str]) -> Printed {
        let told = json_of(stage, &[&["nats-auth"], machines].concat());
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let mut variables = vec![(text(&told["operator_password"]), OPERATOR.to_owned())];
        for machine in told["machines"].as_array().expect("machines") {
            variables.push((text(&machine["password_variable"]), password(&text(&machine["machine"]))));
        }
        Printed { configuration: text(&told["configuration"]), variables }
    }

    fn variables(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

fn password(machine: &str) -> String {
    format!("secret-of-{machine}")
}

fn json_of(stage: &Stage, arguments: &[&str]) -> Value {
    serde_json::from_str(&stage.relay_ok(&[arguments, &["--json"]].concat())).expect("JSON")
}

/// A machine's name.
fn name_of(stage: &Stage) -> String {
    json_of(stage, &["nats-auth"])["machine"].as_str().expect("a name").to_owned()
}

/// The operator creates the streams.
fn make_streams(stage: &Stage, url: &str, settings: &str) {
    let file = stage.home.join("operator");
    std::fs::write(&file, OPERATOR).expect("the home is writable");
    let login = format!("user = 'relay-operator'\npassword = '{}'\n", file.display());
    stage.configure(&format!("store = '{url}'\n[nats]\n{login}{settings}"));
    // Servers that have just started must elect a leader first.
    wait_for("the streams are made", || (stage.run(&["doctor", "--store"]).code == Some(0)).then_some(()));
}

fn session(stage: &Stage, name: &str) -> StdioClient {
    let process = stage.relay(&["mcp"]).start(&stage.folder.join(format!("{name}.log")));
    let mut client = StdioClient::connected(process, "a-plain-client");
    let registered = client.call("register_agent", json!({ "name": name }));
    assert!(!registered.failed, "{registered:?}");
    client
}

/// Sends and returns the status; none if refused.
fn send(client: &mut StdioClient, to: &str, text: &str) -> Option<String> {
    let answer = client.call("send_message", json!({ "to": to, "body": text }));
    answer.structured["recipients"][0]["status"].as_str().map(str::to_owned)
}

/// How often each text is in an agent's inbox.
fn texts(mail: &str) -> BTreeMap<String, usize> {
    let mail: Value = serde_json::from_str(mail).expect("JSON");
    let mut texts = BTreeMap::new();
    for message in mail["messages"].as_array().into_iter().flatten() {
        *texts.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    texts
}

const PEEK: [&str; 7] = ["read", "--agent", "bob", "--peek", "--last", "100000", "--json"];

#[test]
fn machines_with_accounts_of_their_own_go_on_when_a_server_of_three_dies() {
    let stages = [(); 2].map(|()| Stage::new(env!("CARGO_BIN_EXE_relay-mesh")));
    let names = [name_of(&stages[0]), name_of(&stages[1])];
    let printed = Printed::by(&stages[0], &[&names[0], &names[1]]);
    let mut servers = NatsServer::configured_cluster(&printed.configuration, &printed.variables(), 3);
    let urls: Vec<String> = servers.iter().map(NatsServer::url).collect();
    let urls = urls.join(",");
    make_streams(&stages[0], &urls, "replicas = 3\n");
    for ((stage, name), agent) in stages.iter().zip(&names).zip(["alice", "bob"]) {
        let file = stage.home.join("password");
        std::fs::write(&file, password(name)).expect("the home is writable");
        stage.configure(&format!(
            "store = '{urls}'\n[nats]\nuser = '{name}'\npassword = '{}'\ndomain = 'relay'\n",
            file.display()
        ));
        stage.relay_ok(&["register", agent]);
    }
    let [here, there] = &stages;
    let examined = here.relay_ok(&["doctor", "--store"]);
    assert!(examined.contains("on 3 servers"), "{examined}");
    let mut carol = session(here, "carol");
    let mut acknowledged = BTreeMap::new();
    for number in 0..30 {
        if number == 10 {
            servers[0].kill();
        }
        if number == 20 {
            servers[0].restart();
            servers[1].kill();
        }
        let text = format!("message {number}");
        let status = send(&mut carol, "bob", &text);
        assert!(status.is_some(), "{text} was neither stored nor kept");
        acknowledged.insert(text, 1);
    }
    wait_for("everything is there", || {
        let outcome = there.run(&PEEK);
        (outcome.code == Some(0) && texts(&outcome.stdout).len() >= acknowledged.len()).then_some(())
    });
    assert_eq!(texts(&there.relay_ok(&PEEK)), acknowledged, "nothing is lost, nothing is there twice");
    let refused = there.run(&["send", "bob", "It is me.", "--from", "alice"]);
    assert!(refused.stderr.contains("lives on the machine"), "{refused:?}");
}

/// A machine with its own leaf node.
struct Leaf {
    machine: Machine,
    name: String,
    _server: NatsServer,
}

impl Leaf {
    /// Starts the server and sets up the machine.
    fn start(machine: Machine, name: &str, hub: u16, own: &str) -> Leaf {
        let remote = format!("nats://{name}:{}@{}", password(name), machine.at(hub));
        let configuration = format!("{own}\nleafnodes {{ reconnect: 1, remotes: [{{ url: \"{remote}\" }}] }}\n");
        let server = machine.within(|| NatsServer::configured(&configuration, &[]));
        machine.stage.configure(&format!("store = '{}'\n[nats]\ndomain = 'relay'\n", server.url()));
        Leaf { machine, name: name.to_owned(), _server: server }
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.machine.within(|| self.machine.stage.relay_ok(arguments))
    }

    fn run(&self, arguments: &[&str]) -> test_support::Outcome {
        self.machine.within(|| self.machine.stage.run(arguments))
    }
}

#[test]
fn machines_with_a_leaf_node_each_talk_by_the_hub_and_a_link_that_is_cut_costs_nothing() {
    isolated(|| {
        let machines = [1, 2].map(|number| Machine::new(number, env!("CARGO_BIN_EXE_relay-mesh")));
        let names = [name_of(&machines[0].stage), name_of(&machines[1].stage)];
        let operator = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let printed = Printed::by(&operator, &[&names[0], &names[1]]);
        let port = NatsServer::free_port();
        let configuration = format!("{}\nleafnodes {{ listen: \"0.0.0.0:{port}\" }}\n", printed.configuration);
        let hub = NatsServer::configured(&configuration, &printed.variables());
        make_streams(&operator, &hub.url(), "");
        // One stores nothing itself, the other has its own streams in its own domain.
        let own = ["", "jetstream { domain: laptop }"];
        let mut leaves = machines
            .into_iter()
            .zip(&names)
            .zip(own)
            .map(|((machine, name), own)| Leaf::start(machine, name, port, own));
        let (here, there) = (leaves.next().expect("two"), leaves.next().expect("two"));
        for (leaf, agent) in [(&here, "alice"), (&there, "bob")] {
            wait_for("the leaf node has reached its hub", || {
                (leaf.run(&["register", agent]).code == Some(0)).then_some(())
            });
            let examined = leaf.ok(&["doctor", "--store"]);
            assert!(examined.contains("were kept, read back and removed"), "{}: {examined}", leaf.name);
        }
        here.ok(&["send", "bob", "Over two leaf nodes.", "--from", "alice"]);
        let read = there.ok(&["read", "--agent", "bob"]);
        assert!(read.contains("Over two leaf nodes."), "{read}");
        let refused = there.run(&["send", "bob", "It is me.", "--from", "alice"]);
        assert!(refused.stderr.contains(&here.name), "what a machine may not do it may not do here: {refused:?}");

        // An agent waits on the other machine while this one's cable is unplugged.
        let mut carol = here.machine.within(|| session(&here.machine.stage, "carol"));
        let mut acknowledged: BTreeMap<String, usize> = [("Over two leaf nodes.".to_owned(), 1)].into();
        let mut number = 0;
        let mut until = |wanted: &str, carol: &mut StdioClient| {
            wait_for(wanted, || {
                number += 1;
                let text = format!("message {number}");
                let status = send(carol, "bob", &text);
                assert!(status.is_some(), "{text} was neither stored nor kept");
                acknowledged.insert(text, 1);
                (status.as_deref() == Some(wanted)).then_some(())
            });
        };
        until("stored", &mut carol);
        here.machine.unplug();
        until("queued", &mut carol);
        let status = here.run(&["status"]);
        assert_eq!(status.code, Some(5), "{status:?}");
        assert!(status.stdout.contains("the servers cannot be reached"), "{}", status.stdout);
        here.machine.plug_in();
        until("stored", &mut carol);
        wait_for("everything is there", || (texts(&there.ok(&PEEK)).len() >= acknowledged.len()).then_some(()));
        assert_eq!(texts(&there.ok(&PEEK)), acknowledged, "nothing is lost, nothing is there twice");
    });
}
