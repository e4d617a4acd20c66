//! Cases for the operator of a mesh on servers: misconfigured servers, each with the diagnosis and fix; every login;
//! moving a mesh to servers and back; this machine's own server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use async_nats::jetstream::{self, stream};
use serde_json::{Value, json};
use test_support::{NatsServer, Outcome, Program, Stage, wait_for};

/// From the documentation of NATS: a key that protects nothing.
const NKEY: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// Runs the doctor on a server with these settings.
fn examined(stage: &Stage, url: &str, settings: &str) -> Outcome {
    stage.configure(&format!("store = '{url}'\n[nats]\n{settings}"));
    stage.run(&["doctor", "--store"])
}

/// A misconfigured server, and the doctor's diagnosis and fix.
fn check(case: &str, configuration: &str, settings: &str, wrong: &str, fix: &str) {
    let server = NatsServer::configured(configuration, &[]);
    let outcome = examined(&stage(), &server.url(), settings);
    refused(case, &outcome, wrong, fix);
}

fn refused(case: &str, outcome: &Outcome, wrong: &str, fix: &str) {
    let text = &outcome.stdout;
    assert_eq!(outcome.code, Some(1), "{case}: {outcome:?}");
    let mut lines = text.lines();
    let found = lines.find(|line| line.starts_with("broken") && line.contains(wrong));
    assert!(found.is_some(), "{case}: no line says `{wrong}`:\n{text}");
    assert!(lines.next().is_some_and(|line| line.contains(fix)), "{case}: no fix says `{fix}`:\n{text}");
}

#[test]
fn the_doctor_says_what_is_wrong_with_a_server_and_what_to_do() {
    check("no JetStream", "max_connections: 50", "", "runs without JetStream", "start it with `--jetstream`");
    let users = "jetstream {}\nauthorization { users: [{ user: bob, password: right }] }";
    check("no login", users, "", "could not connect to", "does not take this login");
    let may =
        "jetstream {}\nauthorization { users: [{ user: bob, password: right, permissions: { publish: [nothing] } }] }";
    let folder = tempfile::tempdir().expect("a folder");
    let (right, wrong) = (folder.path().join("right"), folder.path().join("wrong"));
    std::fs::write(&right, "right\n").expect("a file");
    std::fs::write(&wrong, "a-secret-that-nobody-sees").expect("a file");
    let login = |file: &Path| format!("user = 'bob'\npassword = '{}'\n", file.display());
    check("a wrong password", users, &login(&wrong), "authorization", "does not take this login");
    check("no permission", may, &login(&right), "Permissions Violation", "allow what `relay-mesh nats-auth` prints");
    check(
        "a payload below the longest text",
        "jetstream {}\nmax_payload: 65536",
        "",
        "takes messages of 65536 bytes",
        "set `max_payload: 327680`",
    );
    let full =
        "jetstream {}\naccounts { A { jetstream: { max_streams: 1 }, users: [{ user: bob, password: right }] } }";
    check("a quota", full, &login(&right), "maximum number of streams", "raise its limits");

    check("too many replicas", "jetstream {}", "replicas = 3", "replicas", "set `replicas` in [nats] to 1");
    check("a domain that is not there", "jetstream {}", "domain = 'away'", "unavailable", "set `domain` in [nats]");

    let stage = stage();
    let server = NatsServer::start();
    stage.relay(&["register", "bob"]).env("RELAY_STORE", server.url()).succeed();
    let away = stage.relay(&["send", "bob", "Later.", "--nats-option", "domain=away"]).env("RELAY_STORE", server.url());
    // As behind a leaf node that has lost its hub.
    assert!(away.succeed().contains(" queued for bob"));
    let nobody = examined(&stage, "nats://127.0.0.1:1", "");
    refused("nobody listens", &nobody, "could not connect to nats://127.0.0.1:1", "start nats-server");
    let unknown = examined(&stage, "nats://no-such-host.invalid", "");
    refused("no such host", &unknown, "could not connect to nats://no-such-host.invalid", "check the address");
    let missing = examined(&stage, "nats://127.0.0.1:1", "credentials = '/nowhere/at/all'");
    refused("no such file", &missing, "/nowhere/at/all", "see [nats] in `relay-mesh config`");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_knows_a_stream_that_is_somebody_elses_or_full_or_drops() {
    let server = NatsServer::start();
    let client = async_nats::connect(server.url()).await.expect("connected");
    let js = jetstream::new(client);
    let made = |name: &str, subject: &str| stream::Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        ..stream::Config::default()
    };
    js.create_stream(made("ONE_MESSAGES", "orders.>")).await.expect("a stream");
    let foreign = examined(&stage(), &server.url(), "prefix = 'ONE'");
    refused("foreign", &foreign, "it is for orders.> and not for one.*.>", "set `prefix` in [nats]");

    let small =
        stream::Config { max_messages: 1, discard: stream::DiscardPolicy::New, ..made("TWO_MESSAGES", "two.*.>") };
    js.create_stream(small).await.expect("a stream");
    js.publish("two.x.y", "{}".into()).await.expect("sent").await.expect("kept");
    let full = examined(&stage(), &server.url(), "prefix = 'TWO'");
    refused("full", &full, "and is full", "raise the stream's limits");

    let drops = stream::Config { max_messages: 1_000, ..made("SIX_MESSAGES", "six.*.>") };
    js.create_stream(drops).await.expect("a stream");
    let warned = examined(&stage(), &server.url(), "prefix = 'SIX'");
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert!(warned.stdout.contains("warning  servers: SIX_MESSAGES drops what is old"), "{}", warned.stdout);
    assert!(warned.stdout.contains("clock and the server's agree"), "{}", warned.stdout);
    let hasty = stage().relay(&["doctor", "--store", &server.url()]).env("RELAY_TEST_CLOCK_WRONG_BY", "7200").succeed();
    assert!(hasty.contains("warning  servers: this machine's clock is 2h ahead of the server's"), "{hasty}");
}

#[test]
fn a_flag_is_stronger_than_a_variable_and_that_than_the_file() {
    let server = NatsServer::configured("jetstream {}\nauthorization { user: bob, password: right }", &[]);
    let stage = stage();
    let (right, wrong) = (stage.home.join("right"), stage.home.join("wrong"));
    std::fs::write(&right, "right").expect("a file");
    std::fs::write(&wrong, "wrong").expect("a file");
    let (right, wrong) = (right.display().to_string(), wrong.display().to_string());
    let check = |file: &str, variable: Option<&str>, flag: Option<&str>, expected: i32| {
        stage.configure(&format!(
            "store = '{}'\n[nats]\nuser = 'bob'\npassword = '{file}'\nprefix = 'FILE'\n",
            server.url()
        ));
        let by_flag = flag.map(|file| format!("password={file}"));
        let flags = by_flag.iter().flat_map(|flag| ["--nats-option", "user=bob", "--nats-option", flag]);
        let mut command = stage.relay(&["agents"].into_iter().chain(flags).collect::<Vec<_>>());
        if let Some(file) = variable {
            command = command.env("RELAY_NATS_USER", "bob").env("RELAY_NATS_PASSWORD", file);
        }
        let outcome = command.run();
        assert_eq!(outcome.code, Some(expected), "{file} {variable:?} {flag:?}: {outcome:?}");
    };
    check(&right, None, None, 0);
    check(&wrong, None, None, 5);
    check(&wrong, Some(&right), None, 0);
    check(&right, Some(&wrong), None, 5);
    check(&wrong, Some(&wrong), Some(&right), 0);
    check(&right, Some(&right), Some(&wrong), 5);
    stage.relay(&["register", "alice", "--nats-option", "prefix=FLAG"]).env("RELAY_NATS_PREFIX", "NAMED").succeed();
    let listed = |more: &[&str]| stage.relay_ok(&[&["agents"], more].concat()).contains("alice");
    assert!(!listed(&[]) && listed(&["--nats-option", "prefix=FLAG"]), "two meshes on one server");
    let unknown = stage.run(&["agents", "--nats-option", "secret=x"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("unknown field `secret`, expected one of `credentials`"), "{}", unknown.stderr);
    let missing = stage.run(&["agents", "--nats-option", "ca=/nowhere/ca.pem"]);
    assert!(missing.stderr.contains("`/nowhere/ca.pem`, which `nats.ca` names, cannot be read"), "{}", missing.stderr);
    let half = stage.run(&["agents", "--nats-option", "certificate=/etc/hosts"]);
    assert!(half.stderr.contains("`nats.certificate` is set, but not `nats.key`"), "{}", half.stderr);
}

#[test]
fn a_stream_that_keeps_nothing_is_not_used_and_one_that_keeps_less_is_told() {
    let server = NatsServer::start();
    let made = |name: &str, more: &Value| {
        let mut config = json!({ "name": name, "storage": "file", "retention": "limits" });
        config.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let answer = server.request(&format!("$JS.API.STREAM.CREATE.{name}"), &config);
        assert!(answer["error"].is_null(), "{answer}");
    };
    let check_refused = |prefix: &str, name: &str, more: Value, why: &str, fix: &str| {
        made(name, &more);
        let stage = stage();
        let examined = examined(&stage, &server.url(), &format!("prefix = '{prefix}'"));
        refused(prefix, &examined, why, fix);
        let sent = stage.run(&["register", "alice"]);
        let sent = if sent.code == Some(0) { stage.run(&["send", "alice", "Hello."]) } else { sent };
        assert_eq!(sent.code, Some(5), "{prefix}: {sent:?}");
        assert!(sent.stderr.contains(why), "{prefix}: {}", sent.stderr);
        assert!(sent.stderr.contains("hint: ") && sent.stderr.contains("set `prefix` in [nats]"), "{}", sent.stderr);
    };
    let stays = "the stream would not keep messages";
    let on = |subject: &str, retention: &str| json!({ "subjects": [subject], "retention": retention });
    check_refused("INT", "INT_MESSAGES", on("int.*.>", "interest"), "its retention is `interest`", stays);
    check_refused("WQ", "WQ_MESSAGES", on("wq.*.>", "workqueue"), "its retention is `workqueue`", stays);
    check_refused("DUMB", "DUMB_MESSAGES", json!({ "subjects": ["dumb.*.>"], "no_ack": true }), "`no_ack`", stays);
    check_refused("MIRR", "MIRR_MESSAGES", json!({ "mirror": { "name": "SOURCE" } }), "a mirror of SOURCE", stays);
    let overlap = ("subjects overlap with an existing stream", "that name or those subjects");
    check_refused("OVER", "OTHERS", json!({ "subjects": ["over.>"] }), overlap.0, overlap.1);
    check_refused("KEYS", "MORE", json!({ "subjects": ["$KV.KEYS_MAP.x.>"] }), overlap.0, overlap.1);
    let check_told = |prefix: &str, name: &str, more: Value, words: &str| {
        made(name, &more);
        let told = examined(&stage(), &server.url(), &format!("prefix = '{prefix}'"));
        assert_eq!(told.code, Some(0), "{prefix}: {told:?}");
        assert!(told.stdout.contains(&format!("warning  servers: {name} {words}")), "{prefix}: {}", told.stdout);
        assert!(told.stdout.contains("were kept, read back and removed"), "{prefix}: {}", told.stdout);
    };
    let hour = 3_600_000_000_000_u64;
    check_told(
        "MEM",
        "MEM_MESSAGES",
        json!({ "subjects": ["mem.>"], "storage": "memory" }),
        "lies in the server's memory",
    );
    check_told(
        "HOUR",
        "HOUR_MESSAGES",
        json!({ "subjects": ["hour.>"], "max_age": hour }),
        "deletes everything after 1h",
    );
    check_told(
        "FIVE",
        "FIVE_MESSAGES",
        json!({ "subjects": ["five.>"], "max_msgs_per_subject": 5 }),
        "drops what is old",
    );
    let values = json!({ "subjects": ["$KV.DAY_MAP.>"], "max_msgs_per_subject": 1, "max_age": 24 * hour });
    check_told("DAY", "KV_DAY_MAP", values, "deletes everything after 1day");
    let blink = json!({ "subjects": ["blink.>"], "duplicate_window": 100_000_000 });
    check_told("BLINK", "BLINK_MESSAGES", blink, "knows a message that is sent again only for 100ms");
}

#[test]
fn the_doctor_knows_a_data_folder_with_bad_lines() {
    let stage = stage();
    stage.relay_ok(&["register", "bob"]);
    stage.relay_ok(&["send", "bob", "This one is whole."]);
    let whole = stage.relay_ok(&["doctor", "--store"]);
    assert!(whole.contains("and all are whole") && !whole.contains("servers"), "{whole}");
    let inbox = stage.data.join("agents/bob/inbox.jsonl");
    let text = std::fs::read_to_string(&inbox).expect("an inbox");
    std::fs::write(&inbox, format!("{{ torn\n{text}")).expect("an inbox");
    let torn = stage.relay_ok(&["doctor", "--store"]);
    assert!(torn.contains("agents/bob/inbox.jsonl has a line that is no JSON"), "{torn}");
    let all = stage.relay_ok(&["doctor", "--store", "--all", "--fix"]);
    assert!(all.contains("a line that is no JSON, line 1, and is read without it"), "it stays where it is: {all}");
    std::fs::write(&inbox, &text[..text.len() - 20]).expect("an inbox");
    let cut = stage.relay_ok(&["doctor", "--store"]);
    let length = text.trim_end().rsplit('\n').next().map_or(0, str::len) + 1 - 20;
    assert!(cut.contains(&format!("its last {length} bytes are torn")) && !cut.contains("and all are whole"), "{cut}");
    // The next append cuts the bytes off.
    stage.relay_ok(&["send", "bob", "This one is whole too."]);
    let mended = stage.relay_ok(&["doctor", "--store"]);
    assert!(mended.contains("and all are whole"), "{mended}");
    let unnamed = stage.run(&["agents", "--store"]);
    assert_eq!((unnamed.code, unnamed.stderr.contains("`--store` names no store")), (Some(2), true), "{unnamed:?}");
}

/// Runs openssl in a folder.
fn openssl(folder: &Path, arguments: &str) {
    Program::new("openssl").args(arguments.split(' ')).within(folder).succeed();
}

#[test]
fn every_way_to_log_in_works_and_no_secret_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    openssl(folder.path(), "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority");
    std::fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost").expect("a file");
    for name in ["server", "client"] {
        openssl(
            folder.path(),
            &format!("req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"),
        );
        let sign = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names";
        openssl(folder.path(), &format!("x509 -req -in {name}.csr -out {name}.pem {sign}"));
    }
    for (name, text) in [("password", "a-password-of-bob"), ("token", "a-token-of-bob"), ("seed", SEED)] {
        std::fs::write(folder.path().join(name), format!("{text}\n")).expect("a file");
    }
    let tls = format!("tls {{ cert_file: \"{}\", key_file: \"{}\"", at("server.pem"), at("server.key"));
    let both = format!("jetstream {{}}\n{tls}, ca_file: \"{}\", verify: true }}", at("ca.pem"));
    let mine = format!("ca = '{}'\ncertificate = '{}'\nkey = '{}'\n", at("ca.pem"), at("client.pem"), at("client.key"));
    let alone = format!("jetstream {{}}\n{tls} }}");
    for (case, configuration, settings) in [
        (
            "a password",
            "jetstream {}\nauthorization { user: bob, password: a-password-of-bob }".to_owned(),
            format!("user = 'bob'\npassword = '{}'", at("password")),
        ),
        (
            "a token",
            "jetstream {}\nauthorization { token: a-token-of-bob }".to_owned(),
            format!("token = '{}'", at("token")),
        ),
        (
            "an NKey",
            format!("jetstream {{}}\nauthorization {{ users: [{{ nkey: {NKEY} }}] }}"),
            format!("nkey = '{}'", at("seed")),
        ),
        ("TLS", alone.clone(), format!("ca = '{}'", at("ca.pem"))),
        ("TLS on both sides", both.clone(), mine),
        ("a domain", "jetstream { domain: hub }".to_owned(), "domain = 'hub'".to_owned()),
    ] {
        let server = NatsServer::configured(&configuration, &[]);
        let stage = stage();
        let well = examined(&stage, &server.url(), &settings);
        assert_eq!(well.code, Some(0), "{case}: {well:?}");
        assert!(well.stdout.contains("were kept, read back and removed"), "{case}: {}", well.stdout);
        stage.relay_ok(&["register", "bob"]);
        let shown = [stage.relay_ok(&["config"]), well.stdout, well.stderr].concat();
        for secret in ["a-password-of-bob", "a-token-of-bob", SEED] {
            assert!(!shown.contains(secret), "{case}: a secret is shown:\n{shown}");
        }
    }
    check("an authority that nobody knows", &alone, "", "certificate", "set `ca` in [nats] to the");
    let ca = format!("ca = '{}'", at("ca.pem"));
    check("no certificate of ours", &both, &ca, "could not connect", "`certificate` and `key`");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_spoilt_is_an_error_with_a_hint_and_costs_nothing_else() {
    let server = NatsServer::configured("jetstream {}\nmax_payload: 65536", &[]);
    let stage = stage();
    stage.configure(&format!("store = '{}'\n", server.url()));
    for name in ["bob", "carol"] {
        stage.relay_ok(&["register", name]);
    }
    stage.relay_ok(&["send", "bob", "This one is whole."]);
    let long = stage.relay(&["send", "bob", "--stdin"]).input("x".repeat(100_000)).run();
    assert_eq!(long.code, Some(5), "{long:?}");
    assert!(long.stderr.contains("hint: raise max_payload of the server"), "{}", long.stderr);

    let js = jetstream::new(async_nats::connect(server.url()).await.expect("connected"));
    let map = js.get_stream("KV_RELAY_MAP").await.expect("a bucket");
    let record = map.get_last_raw_message_by_subject("$KV.RELAY_MAP.*.agents.carol.meta").await.expect("a record");
    for spoilt in ["{ torn", r#"{"name":"carol","origin":"of-a-newer-version","machine":"h","registered":1,"bound":1}"#]
    {
        let sent = js.publish(record.subject.clone(), spoilt.into()).await.expect("sent");
        sent.await.expect("kept");
        let refused = stage.run(&["send", "carol", "Hello."]);
        assert_eq!(refused.code, Some(5), "{refused:?}");
        assert!(refused.stderr.contains("`agents/carol/meta` is damaged"), "{}", refused.stderr);
        assert!(refused.stderr.contains("hint: "), "{}", refused.stderr);
    }
    let read = stage.relay_ok(&["read", "--agent", "bob"]);
    assert!(read.contains("This one is whole.") && !read.contains("xxx"), "{read}");
}

#[test]
fn a_mesh_moves_to_servers_and_back_and_to_a_file() {
    let server = NatsServer::start();
    let there = stage();
    for name in ["alice", "bob"] {
        there.relay_ok(&["register", name]);
    }
    let sent: Value =
        serde_json::from_str(&there.relay_ok(&["send", "bob", "Read.", "--from", "alice", "--json"])).expect("JSON");
    there.relay_ok(&["read", "--agent", "bob"]);
    there.relay_ok(&["send", "bob", "Not read.", "--from", "alice"]);
    there.relay_ok(&["reserve", "src/**", "--from", "alice", "--repo", "."]);
    let (files, nats) = (format!("files:{}", there.data.display()), server.url());
    let moved = there.relay_ok(&["store", "copy", &files, &nats, "--json"]);
    let moved: Value = serde_json::from_str(&moved).expect("JSON");
    assert!(moved["entries"].as_u64() > Some(4) && moved["values"].as_u64() > Some(2), "{moved}");
    let again = there.relay_ok(&["store", "copy", &files, &nats]);
    assert!(again.starts_with("moved 0 lines of logs and 0 values;"), "{again}");

    let on_servers = |arguments: &[&str]| there.relay(arguments).env("RELAY_STORE", &nats).succeed();
    let history = on_servers(&["message", sent["id"].as_str().expect("an id"), "--agent", "alice"]);
    assert!(history.contains("read"), "receipts moved: {history}");
    assert!(on_servers(&["reservations"]).contains("src/**"));
    let unread = on_servers(&["read", "--agent", "bob", "--unread"]);
    assert!(unread.contains("Not read.") && !unread.contains("Read.\n\nNot"), "{unread}");

    // Back into a separate folder; and to a file and from it.
    let back = format!("files:{}", there.folder.join("back").display());
    there.relay_ok(&["store", "copy", &nats, &back]);
    let out = there.folder.join("mesh.jsonl").display().to_string();
    there.relay_ok(&["store", "export", "--out", &out, "--store", &back]);
    let clobbered = there.run(&["store", "export", "--out", &out]);
    assert!(clobbered.stderr.contains("name a file that is not there yet"), "{clobbered:?}");
    let from_file = format!("files:{}", there.folder.join("from-file").display());
    let imported = there.run(&["store", "import", &out, "--store", &from_file]);
    assert!(imported.code == Some(0) && !imported.stderr.contains("others could reach"), "{imported:?}");
    let exported = std::fs::read_to_string(&out).expect("the file");
    assert!(exported.contains("\"log\":\"agents/bob/receipts\"") && exported.contains("Not read."), "{exported}");
    assert_eq!(there.relay_ok(&["store", "export", "--store", &from_file]), exported, "nothing is lost or there twice");

    // A target that contains another mesh stays as it is.
    let other = stage();
    for name in ["zoe", "bob"] {
        other.relay_ok(&["register", name]);
    }
    other.relay_ok(&["send", "bob", "Of another mesh.", "--from", "zoe"]);
    let target = format!("files:{}", other.data.display());
    let refused = there.run(&["store", "copy", &files, &target]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("the target holds different data under"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--add"), "{}", refused.stderr);
}

/// It takes long to start, as after much mail: a second one on the same files would damage them.
#[test]
fn a_server_that_still_starts_is_not_started_twice_and_is_found_if_its_up_is_killed() {
    let stage = stage();
    let bin = stage.folder.join("bin");
    fs::create_dir_all(&bin).expect("the stage is writable");
    let server = bin.join("nats-server");
    fs::write(&server, "#!/bin/sh\nexec sleep 100000\n").expect("the stage is writable");
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).expect("the stage is writable");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let up = || stage.relay(&["up", "--nats"]).env("PATH", &path).env("RELAY_HTTP", "127.0.0.1:0");
    let mut first = up().start(&stage.folder.join("up.log"));
    let record = stage.data.join("nats/server.json");
    let noted: Value =
        wait_for("it is noted before it listens", || serde_json::from_str(&fs::read_to_string(&record).ok()?).ok());
    let second = up().run();
    assert!(second.stderr.contains("another `relay-mesh up --nats` is starting"), "{second:?}");
    first.kill();
    let down: Value = serde_json::from_str(&stage.relay_ok(&["down", "--json"])).expect("JSON");
    assert_eq!(down["server_pid"], noted["process"]["pid"]);
}

#[test]
fn a_server_of_ones_own_starts_is_found_again_and_stops() {
    let stage = stage();
    let none = stage.relay(&["up", "--nats"]).env("PATH", "/nowhere").run();
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(
        none.stderr.contains("no nats-server is installed") && none.stderr.contains("hint: get one"),
        "{}",
        none.stderr
    );

    let path = format!("{}:/usr/bin:/bin", NatsServer::folder().display());
    let up = |arguments: &[&str]| -> Value {
        let told = stage.relay(arguments).env("PATH", &path).env("RELAY_HTTP", "127.0.0.1:0").succeed();
        serde_json::from_str(&told).expect("JSON")
    };
    let first = up(&["up", "--nats", "--json"]);
    let url = first["server"]["url"].as_str().expect("an address").to_owned();
    let with = |arguments: &[&str]| stage.relay(arguments).env("RELAY_STORE", &url).run();
    assert_eq!(with(&["register", "bob"]).code, Some(0));
    assert_eq!(with(&["send", "bob", "By my own server."]).code, Some(0));
    let out = format!("files:{}", stage.folder.join("out").display());
    stage.relay_ok(&["store", "export", "--store", &url]);
    stage.relay_ok(&["store", "copy", &url, &out]);
    // Another folder does not have the server's token.
    let stranger = stage.relay(&["store", "copy", &url, &out]).env("RELAY_DIR", stage.folder.join("other")).run();
    assert!(stranger.stderr.contains("caused by: authorization violation"), "{}", stranger.stderr);
    assert!(!stranger.stderr.contains("ERROR"), "said once: {}", stranger.stderr);
    assert_eq!(up(&["up", "--nats", "--json"])["server"]["pid"], first["server"]["pid"], "it runs already");
    let down: Value = serde_json::from_str(&stage.relay_ok(&["down", "--json"])).expect("JSON");
    assert_eq!(down["server_pid"], first["server"]["pid"]);
    assert_eq!(with(&["read", "--agent", "bob"]).code, Some(5), "the server is gone");

    // A server on files does not serve a mesh on servers.
    let on_files = stage.relay(&["up"]).env("RELAY_HTTP", "127.0.0.1:0").run();
    assert_eq!(on_files.code, Some(0), "{on_files:?}");
    let another = stage.relay(&["up", "--nats"]).env("PATH", &path).env("RELAY_HTTP", "127.0.0.1:0").run();
    assert_eq!(another.code, Some(1), "{another:?}");
    assert!(another.stderr.contains("keeps its mesh at files:"), "{}", another.stderr);
    assert!(another.stderr.contains("hint: stop it by `relay-mesh down`"), "{}", another.stderr);
    stage.relay_ok(&["down"]);

    // A dead server's record is ignored, and the next server takes over its port and data.
    let second = up(&["up", "--nats", "--json"]);
    assert_ne!(second["server"]["pid"], first["server"]["pid"]);
    assert_eq!(second["server"]["url"], first["server"]["url"]);
    let read = with(&["read", "--agent", "bob"]);
    assert!(read.stdout.contains("By my own server."), "{read:?}");
    stage.relay_ok(&["down"]);
}
