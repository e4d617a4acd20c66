//! Logins beyond passwords: an operator's JWT in a `.creds` file, one that expires and one that is revoked while its
//! machine is connected, and the NKeys of the configuration that `relay-mesh nats-auth` prints. Real servers; the test
//! signs what an operator's tool would.

#[path = "hosts/machines.rs"]
mod machines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use async_nats::ConnectOptions;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use test_support::{NatsServer, Outcome, Stage, StdioClient, now, wait_for};

use machines::Figures;

/// Seconds since 1970, `later` seconds from now.
fn seconds(later: u64) -> u64 {
    now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() + later
}

/// A JWT as NATS expects it: signed by `signer`, about `subject`.
fn jwt(signer: &KeyPair, subject: &str, name: &str, further: &Value) -> String {
    let mut claims =
        json!({ "iat": seconds(0), "iss": signer.public_key(), "sub": subject, "name": name, "jti": name });
    for (field, value) in further.as_object().expect("an object") {
        claims[field] = value.clone();
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&json!({ "typ": "JWT", "alg": "ed25519-nkey" })), part(&claims));
    let signature = signer.sign(signed.as_bytes()).expect("a pair with its seed signs");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// An operator with their own server and the mesh's account.
struct Operator {
    server: NatsServer,
    key: KeyPair,
    account: KeyPair,
    /// The login of the system account, which updates the server's accounts.
    system: String,
    folder: tempfile::TempDir,
}

impl Operator {
    fn new() -> Operator {
        let (key, account, system) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
        let folder = tempfile::tempdir().expect("a folder");
        let own = json!({ "nats": { "type": "operator", "version": 2, "system_account": system.public_key() } });
        let configuration = format!(
            "jetstream {{}}\noperator: \"{}\"\nsystem_account: {}\n\
             resolver {{ type: full, dir: \"{}\", interval: \"2m\" }}\n\
             resolver_preload {{ {}: \"{}\", {}: \"{}\" }}\n",
            jwt(&key, &key.public_key(), "operator", &own),
            system.public_key(),
            folder.path().join("accounts").display(),
            system.public_key(),
            jwt(&key, &system.public_key(), "system", &of_account(Reach::Nothing, &json!({}))),
            account.public_key(),
            jwt(&key, &account.public_key(), "mesh", &of_account(Reach::Streams, &json!({}))),
        );
        let server = NatsServer::configured(&configuration, &[]);
        let system = credentials(&system, &KeyPair::new_user(), None);
        Operator { server, key, account, system, folder }
    }

    /// A file with the login of a user of the mesh's account.
    fn file(&self, name: &str, user: &KeyPair, ends: Option<u64>) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, credentials(&self.account, user, ends)).expect("the folder is writable");
        file
    }

    /// Revokes a user's login.
    async fn revoke(&self, user: &KeyPair) {
        let revoked = json!({ user.public_key(): seconds(1) });
        let claims = jwt(&self.key, &self.account.public_key(), "mesh", &of_account(Reach::Streams, &revoked));
        let options = ConnectOptions::with_credentials(&self.system).expect("a login");
        let client = options.connect(self.server.url()).await.expect("the system's account is let in");
        let answer = client.request("$SYS.REQ.CLAIMS.UPDATE", claims.into()).await.expect("the server answers");
        let answer: Value = serde_json::from_slice(&answer.payload).expect("JSON");
        assert_eq!(answer["data"]["code"], 200, "{answer}");
    }

    /// A machine with a command-line agent that logs in by a file.
    fn machine(&self, file: &Path) -> Stage {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        stage.configure(&format!("store = '{}'\n[nats]\ncredentials = '{}'\n", self.server.url(), file.display()));
        stage
    }
}

#[derive(Clone, Copy)]
enum Reach {
    Nothing,
    Streams,
}

fn of_account(reach: Reach, revoked: &Value) -> Value {
    let mut limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
    });
    match reach {
        Reach::Nothing => {}
        Reach::Streams => {
            for limit in ["mem_storage", "disk_storage", "streams", "consumer"] {
                limits[limit] = json!(-1);
            }
        }
    }
    json!({ "nats": { "type": "account", "version": 2, "limits": limits, "revocations": revoked } })
}

/// The text of a `.creds` file.
fn credentials(account: &KeyPair, user: &KeyPair, ends: Option<u64>) -> String {
    let mut further = json!({ "nats": { "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 } });
    if let Some(ends) = ends {
        further["exp"] = json!(ends);
    }
    let (jwt, seed) = (jwt(account, &user.public_key(), "user", &further), user.seed().expect("a seed"));
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         ************************* IMPORTANT *************************\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

fn session(stage: &Stage) -> StdioClient {
    let process = stage.relay(&["mcp"]).start(&stage.folder.join("carol.log"));
    let mut client = StdioClient::connected(process, "a-plain-client");
    let registered = client.call("register_agent", json!({ "name": "carol" }));
    assert!(!registered.failed, "{registered:?}");
    client
}

/// Sends and returns the status.
fn send(client: &mut StdioClient, text: &str) -> String {
    let answer = client.call("send_message", json!({ "to": "bob", "body": text }));
    answer.structured["recipients"][0]["status"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// How often each text is in bob's inbox.
fn texts(stage: &Stage) -> BTreeMap<String, usize> {
    let mail: Value =
        serde_json::from_str(&stage.relay_ok(&["read", "--agent", "bob", "--peek", "--last", "1000", "--json"]))
            .expect("JSON");
    let mut texts = BTreeMap::new();
    for message in mail["messages"].as_array().into_iter().flatten() {
        *texts.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    texts
}

/// Sends as a machine whose login ends, until its messages are queued there, and then until it is let in again:
/// everything arrives, and nothing twice.
fn check_that_nothing_is_lost(client: &mut StdioClient, other: &Stage, renew: impl FnOnce()) {
    let mut acknowledged = BTreeMap::new();
    let mut number = 0;
    let mut until = |wanted: &str, client: &mut StdioClient| {
        wait_for(wanted, || {
            number += 1;
            let text = format!("message {number}");
            let status = send(client, &text);
            acknowledged.insert(text, 1);
            (status == wanted).then_some(())
        });
    };
    until("stored", client);
    until("queued", client);
    renew();
    until("stored", client);
    wait_for("everything is there", || (texts(other).len() >= acknowledged.len()).then_some(()));
    assert_eq!(texts(other), acknowledged, "nothing is lost, nothing is there twice");
}

fn refused(outcome: &Outcome, words: &str, hint: &str) {
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert!(outcome.stderr.contains(words), "`{words}` in {}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: ") && outcome.stderr.contains(hint), "`{hint}` in {}", outcome.stderr);
}

#[test]
fn a_login_by_jwt_works_and_one_that_has_ended_says_when() {
    let operator = Operator::new();
    let user = KeyPair::new_user();
    let stage = operator.machine(&operator.file("good.creds", &user, Some(seconds(3_600))));
    let examined = stage.relay_ok(&["doctor", "--store"]);
    assert!(examined.contains("were kept, read back and removed"), "{examined}");
    stage.relay_ok(&["register", "bob"]);
    stage.relay_ok(&["send", "bob", "By a JWT."]);
    assert_eq!(texts(&stage).len(), 1);
    let shown = [stage.relay_ok(&["config"]), examined].concat();
    assert!(!shown.contains(&user.seed().expect("a seed")), "the seed is shown: {shown}");

    let ended = operator.machine(&operator.file("ended.creds", &user, Some(1_700_000_000)));
    refused(
        &ended.run(&["agents"]),
        "ended.creds` holds until 2023-11-14 22:13:20 UTC",
        "ask whoever issued it for a new one",
    );
    let examined = ended.run(&["doctor", "--store"]);
    assert!(examined.stdout.contains("holds until 2023-11-14 22:13:20 UTC"), "{examined:?}");
    assert!(examined.stdout.contains("whether they have expired"), "{examined:?}");
    let stranger = KeyPair::new_account();
    let strange = operator.folder.path().join("strange.creds");
    std::fs::write(&strange, credentials(&stranger, &user, None)).expect("written");
    refused(&operator.machine(&strange).run(&["agents"]), "could not connect to", "refused this login");
    let cut = operator.folder.path().join("cut.creds");
    std::fs::write(&cut, "-----BEGIN NATS USER JWT-----\n").expect("written");
    refused(&operator.machine(&cut).run(&["agents"]), "it has no JWT or no seed", "inspect the file");
    let missing = operator.machine(Path::new("/nowhere/at/all.creds")).run(&["agents"]);
    assert!(missing.code == Some(5) && missing.stderr.contains("/nowhere/at/all.creds"), "{missing:?}");
}

#[test]
fn a_login_that_ends_while_connected_costs_nothing_and_a_renewed_file_counts_at_once() {
    let operator = Operator::new();
    let other = operator.machine(&operator.file("other.creds", &KeyPair::new_user(), None));
    other.relay_ok(&["register", "bob"]);
    let user = KeyPair::new_user();
    let stage = operator.machine(&operator.file("short.creds", &user, Some(seconds(8))));
    let mut client = session(&stage);
    check_that_nothing_is_lost(&mut client, &other, || {
        refused(&stage.run(&["status", "--agents"]), "short.creds` holds until", "ask whoever issued it for a new one");
        operator.file("short.creds", &user, None);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_revoked_while_connected_costs_nothing() {
    let operator = Operator::new();
    let other = operator.machine(&operator.file("other.creds", &KeyPair::new_user(), None));
    other.relay_ok(&["register", "bob"]);
    let user = KeyPair::new_user();
    let stage = operator.machine(&operator.file("own.creds", &user, None));
    let mut client = session(&stage);
    let mut figures = Figures::default();
    let mut number = 0;
    let mut sent = |client: &mut StdioClient| {
        number += 1;
        let text = format!("message {number}");
        let status = send(client, &text);
        figures.note(text, Some(&status));
        status
    };
    for _ in 0..20 {
        assert_eq!(sent(&mut client), "stored");
    }
    operator.revoke(&user).await;
    wait_for("what is sent is kept", || (sent(&mut client) == "queued").then_some(()));
    for _ in 0..20 {
        assert_eq!(sent(&mut client), "queued");
    }
    refused(&stage.run(&["agents"]), "could not connect to", "refused this login");
    operator.file("own.creds", &KeyPair::new_user(), None);
    wait_for("it is let in again", || (sent(&mut client) == "stored").then_some(()));
    wait_for("nothing is missing", || (texts(&other).len() >= figures.sent).then_some(()));
    figures.check("a login that is revoked while connected", &texts(&other));
}

#[test]
fn machines_log_in_by_the_nkeys_of_the_printed_configuration() {
    let machines: Vec<(Stage, String, KeyPair)> = ["alice", "bob"]
        .map(|_| {
            let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
            let told: Value = serde_json::from_str(&stage.relay_ok(&["nats-auth", "--json"])).expect("JSON");
            (stage, told["machine"].as_str().expect("a name").to_owned(), KeyPair::new_user())
        })
        .into();
    let words: Vec<String> = machines.iter().map(|(_, name, key)| format!("{name}={}", key.public_key())).collect();
    let arguments: Vec<&str> = ["nats-auth", "--json"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let told: Value = serde_json::from_str(&machines[0].0.relay_ok(&arguments)).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let variable = text(&told["operator_password"]);
    let server =
        NatsServer::configured(&text(&told["configuration"]), &[(variable.as_str(), "secret-of-the-operator")]);
    let operator = machines[0].0.home.join("operator");
    std::fs::write(&operator, "secret-of-the-operator").expect("written");
    let making = machines[0].0.relay(&["doctor", "--store", &server.url()]).env("RELAY_NATS_USER", "relay-operator");
    making.env("RELAY_NATS_PASSWORD", &operator).succeed();
    let settings = |stage: &Stage, key: &KeyPair| {
        let file = stage.home.join("seed");
        std::fs::write(&file, format!("{}\n", key.seed().expect("a seed"))).expect("written");
        stage.configure(&format!(
            "store = '{}'\n[nats]\nnkey = '{}'\ndomain = 'relay'\n",
            server.url(),
            file.display()
        ));
    };
    for ((stage, _, key), agent) in machines.iter().zip(["alice", "bob"]) {
        settings(stage, key);
        stage.relay_ok(&["register", agent]);
    }
    let [(here, ..), (there, _, key_of_there)] = machines.as_slice() else { panic!("there are two") };
    here.relay_ok(&["send", "bob", "By an NKey.", "--from", "alice"]);
    assert!(there.relay_ok(&["read", "--agent", "bob"]).contains("By an NKey."));
    // With another machine's key it logs in to that machine's account, where it may not write under its own name.
    settings(here, key_of_there);
    let stranger = here.run(&["send", "bob", "Under a wrong name.", "--from", "alice"]);
    refused(&stranger, "no stream takes what", "see `[nats]` in `relay-mesh config`");
    assert!(!there.relay_ok(&["read", "--agent", "bob"]).contains("wrong name"), "{stranger:?}");
    settings(here, &KeyPair::new_user());
    refused(&here.run(&["agents"]), "could not connect to", "refused this login");
}
