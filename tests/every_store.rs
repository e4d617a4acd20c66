//! What the fault runs found, once more on each store: files, one server, a cluster of three. Each of these stalled,
//! lost its order or stopped the commands of others on at least one of them.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::thread;
use std::time::Duration;

use serde_json::json;
use test_support::{Deployment, Stage, StdioClient, bodies, wait_for};

test_support::on_every_store! { env!("CARGO_BIN_EXE_relay-mesh");
    acknowledging_five_times_the_mail_costs_five_times,
    a_session_is_served_at_the_same_cost_beside_thousands_that_ended,
    receipts_that_are_gone_stall_nobody,
    what_is_damaged_costs_itself_alone,
    an_inbox_that_lost_its_newest_messages_shows_nothing_again,
    a_lost_race_reaches_nobody,
    mail_is_listed_in_the_order_in_which_it_came_whatever_the_clocks_said,
    a_repository_whose_folder_is_renamed_keeps_its_reservations,
    a_full_store_says_so_and_its_mail_can_be_read,
}

fn registered(client: &mut StdioClient, name: &str) {
    let answer = client.call("register_agent", json!({ "name": name }));
    assert_eq!(answer.structured["name"], name, "{answer:?}");
}

fn alice_and_bob(stage: &Stage) {
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
}

/// Bob has read six messages of alice's.
fn six_messages_are_read(stage: &Stage) {
    alice_and_bob(stage);
    for number in 0..6 {
        stage.relay_ok(&["send", "bob", &number.to_string(), "--from", "alice"]);
    }
    stage.relay_ok(&["read", "--agent", "bob", "--unread", "--mark-read"]);
}

/// Processor time of a process, in ticks of ten milliseconds.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum()
}

/// 24.1. What a client and its servers work for so many acknowledgements in calls of fifty.
fn work_of_acknowledging(place: &Deployment, client: &mut StdioClient, messages: usize) -> u64 {
    let mut bob = place.session("bob.log");
    registered(&mut bob, "bob");
    for number in 0..messages {
        let sent = client.call("send_message", json!({ "to": "bob", "body": number.to_string() }));
        assert!(!sent.failed, "{sent:?}");
    }
    let before = ticks(bob.server.child.id());
    let mut acknowledged = 0;
    while acknowledged < messages {
        let fetched = bob.call("fetch_messages", json!({ "limit": 50, "acknowledge": true }));
        let got = bodies(&fetched.structured).len();
        assert!(got > 0, "{acknowledged} of {messages}: {fetched:?}");
        acknowledged += got;
    }
    let worked = ticks(bob.server.child.id()) - before;
    bob.close();
    worked
}

fn acknowledging_five_times_the_mail_costs_five_times(place: &mut Deployment) {
    let mut alice = place.session("alice.log");
    registered(&mut alice, "alice");
    let few = work_of_acknowledging(place, &mut alice, 200).max(2);
    let many = work_of_acknowledging(place, &mut alice, 1_000);
    // Work by the square would be 25 times; a tick more or less is noise.
    assert!(many < 10 * few, "200 messages took {few} ticks, 1,000 took {many}");
}

/// 24.2. A delivery pass looks at the sessions that live, however many are on record.
fn a_session_is_served_at_the_same_cost_beside_thousands_that_ended(place: &mut Deployment) {
    const SENDS: usize = 40;
    const ENDED: usize = 3_000;
    let mut over = place.session("over.log");
    registered(&mut over, "gone");
    let records = place.stage.data.join("sessions/generic");
    let record = fs::read_dir(&records).expect("a folder").flatten().map(|entry| entry.path());
    let record = record.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "json"));
    let record = record.expect("a session's record");
    over.close();
    let text = fs::read_to_string(&record).expect("a record");
    let id = record.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();

    let mut bob = place.session("bob.log");
    registered(&mut bob, "bob");
    place.stage.relay_ok(&["register", "alice"]);
    let mut work = |what: &str| {
        let before = ticks(bob.server.child.id());
        for number in 0..SENDS {
            place.stage.relay_ok(&["send", "bob", &format!("{what} {number}"), "--from", "alice"]);
        }
        let mut got = 0;
        while got < SENDS {
            got += bodies(&bob.call("fetch_messages", json!({ "acknowledge": true })).structured).len();
        }
        ticks(bob.server.child.id()) - before
    };
    let alone = work("alone").max(2);
    for number in 0..ENDED {
        let other = format!("{number:032x}");
        fs::write(records.join(format!("{other}.json")), text.replace(&id, &other)).expect("the folder is writable");
    }
    // The first to list them puts those that ended aside.
    work("once");
    let beside = work("beside");
    assert!(beside < 3 * alone, "{SENDS} messages took {alone} ticks, and {beside} beside {ENDED} ended sessions");
}

/// 24.4. A cursor whose log is gone is worth nothing, and no loop waits for what cannot come.
fn receipts_that_are_gone_stall_nobody(place: &mut Deployment) {
    let stage = &place.stage;
    six_messages_are_read(stage);
    match place.servers.first() {
        None => fs::remove_file(stage.data.join("agents/bob/receipts.jsonl")).expect("it was there"),
        Some(server) => {
            let filter = json!({ "filter": "relay.*.agents.bob.receipts" });
            let purged = server.request("$JS.API.STREAM.PURGE.RELAY_MESSAGES", &filter);
            assert!(purged["purged"].as_u64() > Some(0), "{purged}");
        }
    }
    stage.relay_ok(&["send", "bob", "after", "--from", "alice"]);
    let unread = bodies(&place.json(&["read", "--agent", "bob", "--unread", "--peek"]));
    assert_eq!(unread.last().map(String::as_str), Some("after"));
    for command in [&["status"][..], &["agents"], &["gc"], &["read", "--agent", "bob", "--unread", "--mark-read"]] {
        stage.relay_ok(command);
    }
    stage.relay_ok(&["send", "bob", "the last", "--from", "alice"]);
    assert_eq!(bodies(&place.json(&["read", "--agent", "bob", "--unread", "--mark-read"])), ["the last"]);
}

/// 24.5. Damage costs itself alone. The doctor names it and sets it aside.
fn what_is_damaged_costs_itself_alone(place: &mut Deployment) {
    let stage = &place.stage;
    for agent in ["alice", "bob", "carol"] {
        stage.relay_ok(&["register", agent]);
    }
    let other = (!place.servers.is_empty()).then(|| place.another_machine());
    place.damage("agents/carol/meta");
    if place.servers.is_empty() {
        fs::write(stage.data.join("agents/carol/heartbeat.json"), "{ torn").expect("the folder is writable");
    }
    let commands: &[&[&str]] = &[
        &["agents"],
        &["status"],
        &["gc"],
        &["log"],
        &["send", "bob", "hello", "--from", "alice"],
        &["read", "--agent", "bob", "--unread"],
    ];
    let all_work = |stage: &Stage| {
        for command in commands {
            let outcome = stage.run(command);
            assert_eq!(outcome.code, Some(0), "{command:?}: {outcome:?}");
        }
    };
    all_work(stage);
    let doctor = stage.run(&["doctor", "--store"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("agents/carol/meta"), "{doctor:?}");
    if let Some(other) = other {
        // Another machine is not stopped by it.
        for command in [&["register", "erin"][..], &["agents"], &["status"], &["gc"], &["log"]] {
            let outcome = other.run(command);
            assert_eq!(outcome.code, Some(0), "{command:?}: {outcome:?}");
        }
    }
    stage.run(&["doctor", "--store", "--fix"]);
    let mended = stage.run(&["doctor", "--store"]);
    assert_eq!(mended.code, Some(0), "{mended:?}");
    all_work(stage);
}

/// 24.7. What was acknowledged stays so when the newest messages are gone.
fn an_inbox_that_lost_its_newest_messages_shows_nothing_again(place: &mut Deployment) {
    let stage = &place.stage;
    six_messages_are_read(stage);
    for _ in 0..2 {
        match place.servers.first() {
            None => {
                let inbox = stage.data.join("agents/bob/inbox.jsonl");
                let text = fs::read_to_string(&inbox).expect("an inbox");
                let before_last = text.trim_end().rfind('\n').expect("several lines") + 1;
                let file = OpenOptions::new().write(true).open(&inbox).expect("it is ours");
                file.set_len(before_last as u64).expect("it is ours");
            }
            Some(server) => {
                let newest = json!({ "last_by_subj": "relay.*.agents.bob.inbox" });
                let found = wait_for("the newest message", || {
                    let found = server.request("$JS.API.STREAM.MSG.GET.RELAY_MESSAGES", &newest);
                    found["message"]["seq"].as_u64()
                });
                let deleted = server.request("$JS.API.STREAM.MSG.DELETE.RELAY_MESSAGES", &json!({ "seq": found }));
                assert_eq!(deleted["success"], true, "{deleted}");
            }
        }
    }
    let unread = || bodies(&place.json(&["read", "--agent", "bob", "--unread", "--peek"]));
    assert_eq!(unread(), [""; 0]);
    stage.relay_ok(&["send", "bob", "new", "--from", "alice"]);
    assert_eq!(unread(), ["new"]);
}

/// 24.6. Who loses a race tries again, and says nothing of it.
fn a_lost_race_reaches_nobody(place: &mut Deployment) {
    let stage = &place.stage;
    let mut bob = place.session("bob.log");
    registered(&mut bob, "bob");
    for agent in ["alice", "carol", "dave"] {
        stage.relay_ok(&["register", agent]);
    }
    for number in 0..30 {
        stage.relay_ok(&["send", "bob", &number.to_string(), "--from", "alice"]);
        let fetched = bob.call("fetch_messages", json!({ "acknowledge": true }));
        assert!(!fetched.failed, "fetch {number}: {fetched:?}");
    }
    thread::scope(|scope| {
        for agent in ["alice", "carol", "dave"] {
            scope.spawn(move || {
                for number in 0..15 {
                    let reserved = stage.run(&["reserve", "src/**", "--from", agent]);
                    assert!(matches!(reserved.code, Some(0 | 6)), "{agent}, {number}: {reserved:?}");
                    let released = stage.run(&["release", "--all", "--from", agent]);
                    assert!(matches!(released.code, Some(0 | 3)), "{agent}, {number}: {released:?}");
                }
            });
        }
    });
    assert_eq!(stage.held(), [""; 0]);
}

/// 24.11. The log's order is the order, not the senders' clocks.
fn mail_is_listed_in_the_order_in_which_it_came_whatever_the_clocks_said(place: &mut Deployment) {
    let stage = &place.stage;
    alice_and_bob(stage);
    for (body, wrong_by) in [("one", "7200"), ("two", "-7200"), ("three", "3600"), ("four", "0")] {
        stage.relay(&["send", "bob", body, "--from", "alice"]).env("RELAY_TEST_CLOCK_WRONG_BY", wrong_by).succeed();
    }
    assert_eq!(bodies(&place.json(&["read", "--agent", "bob", "--peek"])), ["one", "two", "three", "four"]);
}

/// 24.12. A folder that was renamed is the same repository.
fn a_repository_whose_folder_is_renamed_keeps_its_reservations(place: &mut Deployment) {
    let stage = &place.stage;
    alice_and_bob(stage);
    let (before, after) = (stage.home.join("before"), stage.home.join("after"));
    fs::create_dir(&before).expect("the home is writable");
    test_support::Program::new("git").args(["init", "-q"]).within(&before).succeed();
    stage.relay(&["reserve", "src/**", "--from", "alice"]).within(&before).succeed();
    fs::rename(&before, &after).expect("renamed");
    let refused = stage.relay(&["reserve", "src/a.rs", "--from", "bob"]).within(&after).run();
    assert_eq!(refused.code, Some(6), "{refused:?}");
    let shown = stage.relay_ok(&["reservations"]);
    assert!(shown.contains("after") && !shown.contains("before"), "{shown}");
}

/// 24.12. What is full refuses what is new, and what it has can be read.
fn a_full_store_says_so_and_its_mail_can_be_read(place: &mut Deployment) {
    let stage = &place.stage;
    if place.servers.is_empty() {
        return on_a_full_disk(stage);
    }
    alice_and_bob(stage);
    stage.relay_ok(&["send", "bob", "before", "--from", "alice"]);
    let server = &place.servers[0];
    let may_hold = |bytes: i64| {
        let info = server.request("$JS.API.STREAM.INFO.RELAY_MESSAGES", &json!({}));
        let mut config = info["config"].clone();
        config["max_bytes"] = json!(bytes);
        let answer = server.request("$JS.API.STREAM.UPDATE.RELAY_MESSAGES", &config);
        assert!(answer["error"].is_null(), "{answer}");
        info["state"]["bytes"].as_i64().expect("bytes")
    };
    let held = may_hold(-1);
    may_hold(held + 100);
    let refused = stage.run(&["send", "bob", &"z".repeat(1_000), "--from", "alice"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("hint: the stream or the account is full"), "{refused:?}");
    assert_eq!(bodies(&place.json(&["read", "--agent", "bob", "--unread"])), ["before"]);
    may_hold(-1);
    stage.relay_ok(&["send", "bob", "after", "--from", "alice"]);
    assert_eq!(
        bodies(&place.json(&["read", "--agent", "bob", "--unread", "--peek"])).last().map(String::as_str),
        Some("after")
    );
}

fn on_a_full_disk(stage: &Stage) {
    const SCRIPT: &str = r#"set -u
mkdir -p "$DATA" && mount -t tmpfs -o size=1m tmpfs "$DATA" && chmod 700 "$DATA" || exit 99
"$RELAY" register alice && "$RELAY" register bob && "$RELAY" send bob before --from alice || exit 98
dd if=/dev/zero of="$DATA/filler" bs=4k 2> "$HOME/dd.log"
"$RELAY" send bob "$(head -c 9000 /dev/zero | tr '\0' z)" --from alice; echo "send: $?"
"$RELAY" read --agent bob --unread --json; echo "read: $?"
rm "$DATA/filler"
"$RELAY" send bob after --from alice; echo "send: $?"
"$RELAY" read --agent bob --unread --peek --json; echo "read: $?"
"#;
    let outcome = test_support::Program::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT])
        .envs(stage.environment())
        .env("DATA", &stage.data)
        .env("RELAY", stage.binary())
        .within(&stage.project)
        .run();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let ended: Vec<&str> =
        outcome.stdout.lines().filter(|line| line.starts_with("send: ") || line.starts_with("read: ")).collect();
    assert_eq!(ended, ["send: 5", "read: 0", "send: 0", "read: 0"], "{outcome:?}");
    assert!(outcome.stderr.contains("No space left on device"), "{}", outcome.stderr);
    let told: Vec<&str> = outcome.stdout.lines().filter(|line| line.starts_with('{')).collect();
    let told = |at: usize| bodies(&serde_json::from_str(told[at]).expect("JSON"));
    assert_eq!((told(0), told(1).last().cloned()), (vec!["before".to_owned()], Some("after".to_owned())));
}

/// 24.12. A command that a killed process had taken ends as failed: it is neither lost nor done twice. 24.9. Mail that a
/// killed process was about to show waits again, also if that process believed that it was tomorrow.
#[test]
fn what_a_killed_process_had_taken_comes_back_on_every_store() {
    let binary = env!("CARGO_BIN_EXE_relay-mesh");
    let places =
        [Deployment::on_files(binary), Deployment::on_one_server(binary), Deployment::on_three_servers(binary)];
    let with = |place: &Deployment, status: &str| -> BTreeSet<String> {
        let all = place.json(&["cmd", "list", "--all"])["commands"].as_array().cloned().unwrap_or_default();
        let such = all.iter().filter(|one| one["status"] == status);
        such.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
    };
    let mut lost = Vec::new();
    for place in &places {
        for agent in ["alice", "ci"] {
            place.stage.relay_ok(&["register", agent]);
        }
        let sends = if place.servers.is_empty() { "fdatasync" } else { "writev" };
        for call in [sends, "write"] {
            for nth in 1..24 {
                place.stage.relay_ok(&["cmd", "ci", "/test", &nth.to_string(), "--from", "alice"]);
                if place.stage.run_killed_at(call, nth, ["cmd", "take", "ci"]).code.is_some() {
                    break;
                }
            }
        }
        let unshown: BTreeSet<String> =
            [sends, "write"].into_iter().flat_map(|call| mail_of_killed_readers(&place.stage, call)).collect();
        assert!(!unshown.is_empty());
        let waiting = with(place, "pending");
        while place.stage.run(&["cmd", "take", "ci"]).code == Some(0) {}
        assert_eq!(with(place, "pending").len(), 0);
        let running: BTreeSet<String> = with(place, "running").difference(&waiting).cloned().collect();
        lost.push((waiting, running, unshown));
    }
    // Each was handed a minute for its way to the taker.
    std::thread::sleep(Duration::from_secs(61));
    for (place, (taken_later, killed, unshown)) in places.iter().zip(lost) {
        let failed = with(place, "failed");
        assert!(!failed.is_empty() && failed.is_subset(&killed), "failed {failed:?}, killed {killed:?}");
        assert!(with(place, "running").is_superset(&taken_later), "what reached its taker is its taker's");
        let unread = bodies(&place.json(&["read", "--agent", "ci", "--unread", "--last", "100", "--mark-read"]));
        assert!(unshown.is_subset(&unread.iter().cloned().collect()), "{unshown:?} of {unread:?}");
    }
}

/// Readers that take it for tomorrow are killed at one call after the other, each with a message more. Returns what none
/// of them printed.
fn mail_of_killed_readers(stage: &Stage, call: &str) -> BTreeSet<String> {
    let mut unshown = BTreeSet::new();
    for nth in 1..16 {
        let body = format!("mail {call} {nth}");
        stage.relay_ok(&["send", "ci", &body, "--from", "alice"]);
        unshown.insert(body);
        let read = ["read", "--agent", "ci", "--unread", "--mark-read", "--last", "100", "--json"];
        let reader = stage.run_killed_with(call, nth, read, [("RELAY_TEST_CLOCK_WRONG_BY", "86400")]);
        if let Ok(printed) = serde_json::from_str(&reader.stdout) {
            for body in bodies(&printed) {
                unshown.remove(&body);
            }
        }
        if reader.code.is_some() {
            break;
        }
    }
    unshown
}
