//! What the fault runs found stranded: mail of a session that ended, and live sessions whose store came back empty. The
//! real binary, on files, on one server and on a cluster of three.

use std::fs;

use serde_json::json;
use test_support::{Deployment, StdioClient, bodies, wait_for};

const BINARY: &str = env!("CARGO_BIN_EXE_relay-mesh");

fn registered(client: &mut StdioClient, name: &str) -> String {
    let answer = client.call("register_agent", json!({ "name": name }));
    assert!(!answer.failed, "{answer:?}");
    answer.structured["name"].as_str().expect("a name").to_owned()
}

/// A session ends while mail waits for it. One verb takes that mail, and each dead end on the way names the verb.
fn mail_of_an_ended_session(place: &Deployment) {
    let stage = &place.stage;
    let mut first = place.session("first.log");
    assert_eq!(registered(&mut first, "alice"), "alice");
    let alive = stage.run(&["adopt", "alice"]);
    assert_eq!(alive.code, Some(4), "{alive:?}");
    assert!(alive.stderr.contains("hint: close its session first"), "{alive:?}");
    first.server.kill();
    stage.relay_ok(&["send", "alice", "one"]);
    stage.relay_ok(&["send", "alice", "two"]);

    let mut next = place.session("next.log");
    // Another program in that project: the same one would be given the name back.
    let answer = next.call("register_agent", json!({ "name": "alice", "program": "another" }));
    assert_eq!(answer.structured["name"], "alice-2", "{answer:?}");
    assert!(
        answer.text.contains("2 messages wait for it") && answer.text.contains("relay-mesh adopt alice"),
        "{answer:?}"
    );
    let read = stage.run(&["read", "--agent", "alice", "--mark-read"]);
    assert_eq!(read.code, Some(4), "{read:?}");
    assert!(read.stderr.contains("`relay-mesh adopt alice` takes its name and its mail"), "{read:?}");
    let shell = stage.run(&["register", "alice"]);
    assert!(shell.stdout.contains("registered alice-3"), "{shell:?}");
    assert!(shell.stderr.contains("alice is offline and 2 messages wait for it"), "{shell:?}");

    let adopted = place.json(&["adopt", "alice"]);
    assert_eq!((&adopted["name"], &adopted["waiting"]), (&json!("alice"), &json!(2)), "{adopted}");
    assert_eq!(bodies(&place.json(&["read", "--agent", "alice", "--last", "1", "--mark-read"])), ["two"]);
    assert_eq!(registered(&mut next, "alice"), "alice", "the session that got another name changes to it");
    let fetched = next.call("fetch_messages", json!({ "acknowledge": true }));
    assert_eq!(bodies(&fetched.structured), ["one"]);
    let refused = stage.run(&["read", "--agent", "alice", "--mark-read"]);
    assert_eq!(refused.code, Some(4), "it is a session's again: {refused:?}");
}

#[test]
fn mail_of_an_ended_session_is_taken_by_one_verb_on_files() {
    mail_of_an_ended_session(&Deployment::on_files(BINARY));
}

#[test]
fn mail_of_an_ended_session_is_taken_by_one_verb_on_a_server() {
    mail_of_an_ended_session(&Deployment::on_one_server(BINARY));
}

#[test]
fn mail_of_an_ended_session_is_taken_by_one_verb_on_a_cluster() {
    mail_of_an_ended_session(&Deployment::on_three_servers(BINARY));
}

/// The servers come back without what they held, while sessions live.
fn a_store_that_comes_back_empty(mut place: Deployment) {
    let mut alice = place.session("alice.log");
    assert_eq!(registered(&mut alice, "alice"), "alice");
    place.stage.relay_ok(&["register", "bob"]);
    place.stage.relay_ok(&["send", "alice", "before"]);
    assert_eq!(bodies(&alice.call("fetch_messages", json!({})).structured), ["before"]);
    // Servers that come back with what they held are the same store.
    for server in &mut place.servers {
        server.restart();
    }
    wait_for("the servers are back", || (place.stage.run(&["doctor", "--store"]).code == Some(0)).then_some(()));

    for server in &mut place.servers {
        server.lose_data();
    }
    for server in &mut place.servers {
        server.restart();
    }
    let doctor = wait_for("the doctor names the other store", || {
        let doctor = place.stage.run(&["doctor", "--store"]);
        doctor.stdout.contains("is another store than before").then_some(doctor)
    });
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    // The live session registered again by itself, and so did the command line's agent.
    let agents = wait_for("the agents are back", || {
        let agents = place.stage.run(&["agents"]).stdout;
        (agents.contains("alice") && agents.contains("bob")).then_some(agents)
    });
    assert!(!agents.contains("alice-2"), "{agents}");
    wait_for("alice is written to", || {
        let sent = place.stage.run(&["send", "alice", "after", "--from", "bob"]);
        sent.stdout.contains("stored for alice").then_some(())
    });
    let fetched = alice.call("fetch_messages", json!({ "wait_seconds": 20, "acknowledge": true }));
    assert_eq!(bodies(&fetched.structured), ["after"], "{fetched:?}");
    assert_eq!(registered(&mut alice, "alice"), "alice", "it is alice as before");
    let mut other = place.session("other.log");
    assert_eq!(registered(&mut other, "alice"), "alice-2", "no two sessions are one agent");
    assert_eq!(place.stage.run(&["doctor", "--store", "--fix"]).code, Some(1));
    let after = place.stage.run(&["doctor", "--store"]);
    assert_eq!(after.code, Some(0), "it was seen: {after:?}");
}

#[test]
fn a_server_that_comes_back_empty_is_told_and_live_sessions_register_again() {
    a_store_that_comes_back_empty(Deployment::on_one_server(BINARY));
}

#[test]
fn a_cluster_that_comes_back_empty_is_told_and_live_sessions_register_again() {
    a_store_that_comes_back_empty(Deployment::on_three_servers(BINARY));
}

#[test]
fn an_agents_record_that_is_deleted_makes_no_two_sessions_one_agent() {
    let place = Deployment::on_files(BINARY);
    let mut first = place.session("first.log");
    assert_eq!(registered(&mut first, "alice"), "alice");
    let lose = || fs::remove_file(place.stage.data.join("agents/alice/meta.json")).expect("it was there");
    lose();
    assert_eq!(registered(&mut first, "alice"), "alice", "a live session registers again");
    lose();
    let mut second = place.session("second.log");
    assert_eq!(registered(&mut second, "alice"), "alice-2", "alice's session lives");
    place.stage.relay_ok(&["send", "alice", "for the first"]);
    assert_eq!(bodies(&second.call("fetch_messages", json!({})).structured), [""; 0]);
    assert_eq!(bodies(&first.call("fetch_messages", json!({})).structured), ["for the first"]);
}

#[test]
fn a_data_folder_that_is_deleted_under_a_live_session_is_made_again() {
    let place = Deployment::on_files(BINARY);
    let mut first = place.session("first.log");
    assert_eq!(registered(&mut first, "alice"), "alice");
    fs::remove_dir_all(&place.stage.data).expect("it was there");
    assert_eq!(registered(&mut first, "alice"), "alice");
    place.stage.relay_ok(&["send", "alice", "hello"]);
    assert_eq!(bodies(&first.call("fetch_messages", json!({ "wait_seconds": 20 })).structured), ["hello"]);
}

#[test]
fn a_machine_whose_name_file_is_deleted_knows_its_agents() {
    let place = Deployment::on_one_server(BINARY);
    place.stage.relay_ok(&["register", "alice"]);
    let mut session = place.session("session.log");
    assert_eq!(registered(&mut session, "bob"), "bob");
    fs::remove_file(place.stage.data.join("machine")).expect("it was there");
    place.stage.relay_ok(&["send", "bob", "hello", "--from", "alice"]);
    let agents = place.json(&["agents"]);
    let machines: std::collections::BTreeSet<&str> =
        agents["agents"].as_array().expect("agents").iter().filter_map(|agent| agent["machine"].as_str()).collect();
    assert_eq!(machines.len(), 1, "{agents}");
    assert_eq!(bodies(&session.call("fetch_messages", json!({})).structured), ["hello"]);
}

/// 17.23: what is damaged costs itself alone.
#[test]
fn a_session_record_that_is_a_folder_and_a_damaged_hint_stop_nothing() {
    let place = Deployment::on_files(BINARY);
    let stage = &place.stage;
    let mut session = place.session("session.log");
    assert_eq!(registered(&mut session, "alice"), "alice");
    stage.relay_ok(&["register", "bob"]);
    stage.relay_ok(&["send", "bob", "one"]);
    let records = stage.data.join("sessions/generic");
    let record = fs::read_dir(&records).expect("a folder").flatten().map(|entry| entry.path());
    let record =
        record.filter(|path| path.extension().is_some_and(|ending| ending == "json")).last().expect("a record");
    fs::remove_file(&record).expect("it was there");
    fs::create_dir(&record).expect("made");
    fs::create_dir_all(stage.data.join("work")).expect("made");
    fs::write(stage.data.join("work/bob.json"), "{ torn").expect("written");
    for arguments in
        [&["agents"][..], &["status"], &["gc"], &["read", "--agent", "bob", "--unread"], &["send", "bob", "two"]]
    {
        let outcome = stage.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
    }
    let doctor = stage.run(&["doctor", "--store"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("is a folder") && doctor.stdout.contains("work/bob.json is damaged"), "{doctor:?}");
    stage.run(&["doctor", "--store", "--fix"]);
    assert_eq!(stage.run(&["doctor", "--store"]).code, Some(0));
}

#[test]
fn a_cluster_without_a_majority_lets_a_send_say_that_it_waits_for_an_election() {
    let mut place = Deployment::on_three_servers(BINARY);
    for agent in ["alice", "bob"] {
        place.stage.relay_ok(&["register", agent]);
    }
    for server in place.servers.iter_mut().take(2) {
        server.kill();
    }
    let sent = place.stage.run(&["send", "bob", "hello", "--from", "alice"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.stdout.contains("queued for bob"), "{sent:?}");
    assert!(sent.stdout.contains("until the servers have elected a leader"), "{sent:?}");
    for server in place.servers.iter_mut().take(2) {
        server.restart();
    }
    wait_for("bob has it", || {
        place.stage.run(&["send", "alice", "and back", "--from", "alice"]);
        let read = place.stage.run(&["read", "--agent", "bob", "--peek"]);
        read.stdout.contains("hello").then_some(())
    });
}
