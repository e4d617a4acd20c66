//! Tests of merging what several machines wrote.

use serde_json::{Value, json};
use store::Ownership as _;

use super::*;

/// Alice lives on `here`, bob on `there`; `evil` has an agent eve.
fn machines() -> Owners {
    [("alice", "here"), ("bob", "there"), ("eve", "evil")]
        .map(|(name, machine)| (keys::agents().child(name), machine.to_owned()))
        .into()
}

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

fn part(machine: &str, value: &Value) -> MachinePart {
    MachinePart { machine: machine.to_owned(), bytes: value.to_string().into_bytes() }
}

const FIRST: &str = "01JD8Z3K5V0000000000000001";
const SECOND: &str = "01JD8Z3K5V0000000000000002";

/// A reservation: its id, its owner, and the agent that took it over, with whether the owner was told.
type Reserved<'a> = (&'a str, &'a str, Option<(&'a str, bool)>);

/// Checks the merged reservations of a repository: each is the owner and the agent that took it over.
fn reserved(case: &str, parts: &[(&str, &[Reserved<'_>])], expected: &[&str]) {
    let parts: Vec<MachinePart> = parts
        .iter()
        .map(|(machine, reservations)| {
            let reservations: Vec<Value> = reservations
                .iter()
                .map(|(id, owner, taken)| {
                    let taken = taken.map(|(by, told)| json!({ "by": by, "at": 2, "told": told }));
                    let mut one = json!({
                        "id": id, "owner": owner, "pattern": "src/**", "mode": "exclusive", "granted": 1, "expires": 9,
                    });
                    if let Some(taken) = taken {
                        one["taken"] = taken;
                    }
                    one
                })
                .collect();
            part(machine, &json!({ "repository": "/r", "reservations": reservations }))
        })
        .collect();
    let at = key("reservations/r");
    let owners = AgentOwnership.owners_needed(&at, &parts);
    let known: Owners = machines().into_iter().filter(|(home, _)| owners.contains(home)).collect();
    let merged = AgentOwnership.merge(&at, &parts, &known).map(|bytes| serde_json::from_slice::<Ledger>(&bytes));
    let told: Vec<String> = merged
        .map(|ledger| ledger.expect("a ledger").reservations)
        .into_iter()
        .flatten()
        .map(|one| match one.taken {
            Some(taken) => format!("{} taken by {}{}", one.owner, taken.by, if taken.told { ", told" } else { "" }),
            None => one.owner.to_string(),
        })
        .collect();
    assert_eq!(told, expected, "{case}");
}

#[test]
fn a_reservation_is_what_its_owners_machine_says() {
    reserved(
        "each its own",
        &[("here", &[(FIRST, "alice", None)]), ("there", &[(SECOND, "bob", None)])],
        &["alice", "bob"],
    );
    reserved("what others repeat of it is not it", &[("here", &[(FIRST, "bob", None)])], &[]);
    reserved("nobody reserves as another", &[("evil", &[(FIRST, "alice", None)])], &[]);
    reserved(
        "nobody gives back as another",
        &[("here", &[(FIRST, "alice", None)]), ("evil", &[(SECOND, "eve", None)])],
        &["alice", "eve"],
    );
    reserved(
        "whoever takes one says so in their own name",
        &[("here", &[(FIRST, "alice", None)]), ("there", &[(FIRST, "alice", Some(("bob", false)))])],
        &["alice taken by bob"],
    );
    reserved(
        "and in nobody else's",
        &[("here", &[(FIRST, "alice", None)]), ("evil", &[(FIRST, "alice", Some(("bob", false)))])],
        &["alice"],
    );
    reserved(
        "taken it stays, whoever speaks last",
        &[("there", &[(FIRST, "alice", Some(("bob", false)))]), ("here", &[(FIRST, "alice", None)])],
        &["alice taken by bob"],
    );
    reserved(
        "any may have told",
        &[("there", &[(FIRST, "alice", Some(("bob", false)))]), ("here", &[(FIRST, "alice", Some(("bob", true)))])],
        &["alice taken by bob, told"],
    );
}

#[test]
fn what_one_machine_says_in_no_words_of_ours_costs_nothing_of_what_others_say() {
    let reservation = json!({
        "id": FIRST, "owner": "alice", "pattern": "src/**", "mode": "exclusive", "granted": 1, "expires": 9,
    });
    let command = json!({
        "id": FIRST, "from": "alice", "to": "bob", "command": "/build", "created": 1, "expires": 9,
        "stage": { "is": "pending" },
    });
    let ledger = json!({ "repository": "/r", "reservations": [reservation] });
    for (at, readable, words) in [("reservations/r", ledger, "\"owner\":\"alice\""), ("commands/c", command, "/build")]
    {
        let parts = [part("here", &readable), part("evil", &json!("nonsense"))];
        let merged = AgentOwnership.merge(&key(at), &parts, &machines()).expect("something counts");
        assert!(String::from_utf8_lossy(&merged).contains(words), "{at}");
        let nonsense = AgentOwnership.merge(&key(at), &parts[1..], &machines()).expect("it is told");
        assert_eq!(nonsense, b"\"nonsense\"", "{at}: where nothing can be read, whoever reads is told");
    }
}

/// Checks the merged command: sender, recipient, name and status.
fn commanded(case: &str, parts: &[(&str, &str, &str, &str, &str)], expected: Option<&str>) {
    let parts: Vec<MachinePart> = parts
        .iter()
        .map(|(machine, from, to, name, stage)| {
            let stage = match *stage {
                "pending" => json!({ "is": "pending" }),
                "done" => json!({ "is": "done", "at": 3, "ended": "succeeded", "result": "ok" }),
                other => json!({ "is": other, "at": 2 }),
            };
            part(
                machine,
                &json!({
                    "id": FIRST, "from": from, "to": to, "command": name, "created": 1, "expires": 9, "stage": stage,
                }),
            )
        })
        .collect();
    let merged = AgentOwnership.merge(&key("commands/c"), &parts, &machines());
    let told = merged.map(|bytes| {
        let Command { from, to, command, stage, .. } = serde_json::from_slice(&bytes).expect("a command");
        let stage = match stage {
            CommandStage::Pending { .. } => "pending",
            CommandStage::Running { .. } => "running",
            CommandStage::Done { .. } => "done",
        };
        format!("{from} to {to}: {command} {stage}")
    });
    assert_eq!(told.as_deref(), expected, "{case}");
}

#[test]
fn a_command_is_its_askers_and_how_far_it_is_its_takers() {
    let asked = ("here", "alice", "bob", "/build", "pending");
    commanded("asked", &[asked], Some("alice to bob: /build pending"));
    let taken = ("there", "alice", "bob", "/build", "running");
    commanded("taken", &[asked, taken], Some("alice to bob: /build running"));
    commanded("nobody asks as another", &[("evil", "alice", "bob", "/build", "pending")], None);
    let forged = ("evil", "alice", "bob", "/build", "done");
    commanded("nobody ends what is another's", &[asked, forged], Some("alice to bob: /build pending"));
    let changed = ("there", "alice", "bob", "/destroy", "done");
    commanded(
        "whoever runs it changes nothing of what was asked",
        &[asked, changed],
        Some("alice to bob: /build done"),
    );
    let of_another = ("here", "alice", "eve", "/build", "pending");
    commanded("nobody ends what was asked of another", &[of_another, taken], Some("alice to eve: /build pending"));
    let from_a_shell = ("here", "shell", "bob", "/build", "pending");
    commanded("a shell is anywhere", &[from_a_shell], Some("shell to bob: /build pending"));
    let later = ("evil", "shell", "bob", "/destroy", "pending");
    commanded("and was first", &[from_a_shell, later], Some("shell to bob: /build pending"));
}

#[test]
fn what_lies_in_an_agents_home() {
    for (at, home, open) in [
        ("agents/bob/meta", Some("agents/bob"), false),
        ("agents/bob/receipts", Some("agents/bob"), false),
        ("agents/bob@team/inbox", Some("agents/bob@team"), true),
        ("agents/shell/sent", None, false),
        ("reservations/r", None, false),
        ("global", None, false),
    ] {
        assert_eq!(AgentOwnership.home_of(&key(at)), home.map(key), "{at}");
        assert_eq!(AgentOwnership.is_open(&key(at)), open, "{at}");
    }
    let inbox = key("agents/bob/inbox");
    for (entry, speaker) in [
        (r#"{"id":"x","from":"alice"}"#, Some("agents/alice")),
        (r#"{"from":"shell"}"#, None),
        (r#"{"from":"Not A Name"}"#, None),
        ("{}", None),
    ] {
        assert_eq!(AgentOwnership.speaker(&inbox, entry.as_bytes()), speaker.map(key), "{entry}");
    }
}
