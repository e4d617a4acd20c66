//! Retention with the real binary: what is over goes and what may be needed stays; by hand, in the server, and by itself
//! once a day; killed in the middle, twice at once, and on servers.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use test_support::{NatsServer, Outcome, Program, Stage, wait_for};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// Runs a command with a clock that is ahead by this many seconds.
fn later(stage: &Stage, seconds: i64, arguments: &[&str]) -> Program {
    stage.relay(arguments).env("RELAY_TEST_CLOCK_WRONG_BY", seconds.to_string())
}

fn json_of(told: &str) -> Value {
    serde_json::from_str(told).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// How much of a kind `gc --json` says it deleted, or would.
fn count(told: &Value, kind: &str) -> u64 {
    let all = told["deleted"].as_array().expect("a list");
    all.iter().filter(|one| one["kind"] == kind).filter_map(|one| one["count"].as_u64()).sum()
}

fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("a time");
    u64::try_from(since.as_millis()).expect("a number")
}

/// Writes a value as the files store keeps it.
fn value(stage: &Stage, key: &str, value: &Value) {
    let path = stage.data.join(format!("{key}.json"));
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(&path, format!("{{\"revision\":1,\"value\":{value}}}\n")).expect("written");
}

/// A session's record. `more` has fields that differ from those of one that ended.
fn session(stage: &Stage, id: &str, days_ago: u64, more: &Value) {
    let heard = now() - days_ago * 86_400_000;
    let mut record = json!({
        "session": { "harness": "claude-code", "id": id }, "workdir": "/work", "activity": "ended", "heard": heard,
        "first_seen": heard,
    });
    for (field, of) in more.as_object().into_iter().flatten() {
        record[field] = of.clone();
    }
    value(stage, &format!("sessions/claude-code/{id}"), &record);
}

/// A wake file with its locks, as a session leaves it.
fn wake_file(stage: &Stage, id: &str, days_ago: u64) {
    let folder = stage.data.join("wakes/claude-code");
    fs::create_dir_all(&folder).expect("writable");
    for (name, text) in
        [(format!("{id}.jsonl"), "{\"at\":1}\n"), (format!(".{id}.lock"), ""), (format!(".{id}.synced"), "")]
    {
        fs::write(folder.join(&name), text).expect("written");
        let then = SystemTime::UNIX_EPOCH + Duration::from_millis(now() - days_ago * 86_400_000);
        File::options().write(true).open(folder.join(&name)).expect("there").set_modified(then).expect("set");
    }
}

fn sessions_left(stage: &Stage) -> Vec<String> {
    let files = fs::read_dir(stage.data.join("sessions/claude-code")).into_iter().flatten().flatten();
    let name =
        |file: fs::DirEntry| file.file_name().to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned);
    let mut left: Vec<String> = files.filter_map(name).filter(|name| !name.starts_with('.')).collect();
    left.sort();
    left
}

fn unread(stage: &Stage, agent: &str) -> Vec<String> {
    let mail = json_of(&stage.relay_ok(&["read", "--agent", agent, "--unread", "--peek", "--json"]));
    let bodies = mail["messages"].as_array().cloned().unwrap_or_default();
    bodies.iter().map(|message| message["body"].as_str().unwrap_or_default().to_owned()).collect()
}

/// An agent with a session and a message that waits for it.
fn agent_with_session(stage: &Stage, name: &str, session: &str) {
    let machine = fs::read_to_string(stage.data.join("machine")).expect("it has a name");
    let meta = json!({
        "name": name, "origin": "session", "session": { "harness": "claude-code", "id": session },
        "machine": machine.trim(), "registered": 1, "bound": 1,
    });
    value(stage, &format!("agents/{name}/meta"), &meta);
    stage.relay_ok(&["send", name, "are you there?"]);
}

/// This process, as a session's record names it.
fn this_process() -> Value {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux tells");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let start: u64 = fields.split_ascii_whitespace().nth(19).and_then(|start| start.parse().ok()).expect("a start");
    json!({ "pid": std::process::id(), "start": start })
}

#[test]
fn a_year_of_ended_sessions_goes_and_the_living_stay() {
    let stage = stage();
    stage.relay_ok(&["register", "bob"]);
    for number in 0..5_000 {
        session(&stage, &format!("old-{number:04}"), 8, &json!({}));
        if number % 100 == 0 {
            wake_file(&stage, &format!("old-{number:04}"), 8);
        }
    }
    session(&stage, "alive", 40, &json!({ "activity": "idle", "process": this_process() }));
    session(&stage, "dead", 8, &json!({ "activity": "idle", "process": { "pid": u32::MAX - 1, "start": 1 } }));
    session(&stage, "unclear", 8, &json!({ "activity": "idle" }));
    session(&stage, "young", 6, &json!({}));
    session(&stage, "current", 8, &json!({ "agent": "carol" }));
    wake_file(&stage, "alive", 40);
    wake_file(&stage, "orphan", 8);
    agent_with_session(&stage, "carol", "current");
    let before = stage.tree(&stage.data).len();
    let dry = json_of(&stage.relay_ok(&["gc", "--dry-run", "--json"]));
    assert_eq!((dry["dry_run"].as_bool(), count(&dry, "sessions")), (Some(true), 5_001), "{dry}");
    assert_eq!((count(&dry, "wake files"), count(&dry, "wake files without a session")), (50, 1), "{dry}");
    assert_eq!(stage.tree(&stage.data).len(), before, "a dry run deletes nothing");
    let text = stage.relay_ok(&["gc", "--dry-run"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("WOULD REMOVE") && text.contains("sessions"), "{text}");
    let done = json_of(&stage.relay_ok(&["gc", "--json"]));
    assert_eq!((count(&done, "sessions"), count(&done, "wake files")), (5_001, 50), "{done}");
    assert_eq!(sessions_left(&stage), ["alive", "current", "unclear", "young"]);
    let wakes = fs::read_dir(stage.data.join("wakes/claude-code")).expect("a folder").flatten();
    let mut wakes: Vec<String> = wakes.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    wakes.sort();
    assert_eq!(wakes, [".alive.lock", ".alive.synced", "alive.jsonl"], "locks go with their wake files");
    assert_eq!(unread(&stage, "carol"), ["are you there?"]);
    assert_eq!(stage.relay_ok(&["gc"]), "nothing is finished and old\n");
}

#[test]
fn mail_that_waits_stays_and_settled_mail_goes() {
    let stage = stage();
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
        stage.relay_ok(&["send", agent, "settled"]);
        stage.relay_ok(&["read", "--agent", agent, "--unread", "--mark-read"]);
    }
    stage.relay_ok(&["send", "bob", "waits"]);
    let inbox = |agent: &str| stage.data.join("agents").join(agent).join("inbox.jsonl");
    let dry = json_of(&later(&stage, 8 * DAY, &["gc", "--dry-run", "--json"]).succeed());
    assert_eq!((count(&dry, "mail segments"), count(&dry, "receipt segments")), (1, 1), "{dry}");
    let named: Vec<&str> = dry["segment_names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    for log in ["agents/alice/inbox.jsonl", "agents/alice/receipts.jsonl", "global.jsonl"] {
        assert!(named.contains(&log) && stage.data.join(log).is_file(), "{log}: {dry}");
    }
    assert!(inbox("alice").exists());
    let done = json_of(&later(&stage, 8 * DAY, &["gc", "--json"]).succeed());
    for kind in ["mail segments", "receipt segments", "event log segments"] {
        assert_eq!(count(&done, kind), count(&dry, kind), "{kind}: {done}");
    }
    assert!(!inbox("alice").exists() && inbox("bob").exists(), "bob has mail that waits");
    assert_eq!(unread(&stage, "bob"), ["waits"]);
    // What was sent can be asked about for as long as a message may wait.
    assert!(stage.data.join("agents/shell/sent.jsonl").exists());
    later(&stage, 31 * DAY, &["gc"]).succeed();
    assert!(!stage.data.join("agents/shell/sent.jsonl").exists());
}

/// A record that cannot be read hides itself and nothing else.
#[test]
fn a_damaged_record_does_not_stop_the_cleanup() {
    for folder in ["invitations/claude-code", "listeners/claude-code", "sessions/claude-code", "agents/eve"] {
        let stage = stage();
        stage.relay_ok(&["register", "bob"]);
        let folder = stage.data.join(folder);
        fs::create_dir_all(&folder).expect("writable");
        let name = if folder.ends_with("eve") { "meta.json" } else { "torn.json" };
        fs::write(folder.join(name), "{\"revision\":1,\"val").expect("written");
        session(&stage, "old", 8, &json!({}));
        let done = json_of(&stage.relay_ok(&["gc", "--json"]));
        assert_eq!(count(&done, "sessions"), 1, "{}: {done}", folder.display());
        assert!(folder.join(name).exists(), "{}", folder.display());
    }
}

/// Of an agent that was dismissed: without its record nobody can tell what is in its worktree.
#[test]
fn a_worktree_of_a_driven_agent_is_named_and_stays() {
    let stage = stage();
    stage.relay_ok(&["register", "bob"]);
    let [holds, empty] = ["01JD8Z3K5V0000000000000000", "01JD8Z3K5V0000000000000001"].map(|id| {
        let folder = stage.data.join("spawned").join(id);
        fs::create_dir_all(folder.join("files")).expect("writable");
        folder
    });
    fs::create_dir(holds.join("worktree")).expect("writable");
    fs::write(holds.join("worktree/new.rs"), "fn work() {}\n").expect("written");
    let done = json_of(&stage.relay_ok(&["gc", "--json"]));
    assert_eq!(count(&done, "folders of driven agents"), 1, "{done}");
    assert!(!empty.exists() && holds.join("worktree/new.rs").exists());
    let worktree = holds.join("worktree").display().to_string();
    assert_eq!(done["kept"], json!([worktree]), "{done}");
    assert!(stage.relay_ok(&["gc"]).contains("worktree holds work and stays"));
}

#[test]
fn a_cleanup_that_is_killed_loses_nothing_and_the_next_one_goes_on() {
    for call in ["?unlink", "unlinkat", "write", "pwrite64", "?rename"] {
        for nth in [1, 2, 4, 7, 11] {
            let stage = stage();
            stage.relay_ok(&["register", "bob"]);
            stage.relay_ok(&["send", "bob", "settled"]);
            stage.relay_ok(&["read", "--agent", "bob", "--unread", "--mark-read"]);
            stage.relay_ok(&["send", "bob", "keep this"]);
            for number in 0..4 {
                session(&stage, &format!("old-{number}"), 8, &json!({}));
                wake_file(&stage, &format!("old-{number}"), 8);
            }
            session(&stage, "young", 1, &json!({}));
            let killed = stage.run_killed_at(call, nth, ["gc"]);
            let cut = format!("killed at {call} number {nth}: {killed:?}");
            assert_eq!(unread(&stage, "bob"), ["keep this"], "{cut}");
            let status = json_of(&stage.relay_ok(&["status", "--json"]));
            assert_eq!(status["damaged"], json!([]), "{cut}");
            stage.relay_ok(&["gc"]);
            assert_eq!(sessions_left(&stage), ["young"], "{cut}");
            assert_eq!(fs::read_dir(stage.data.join("wakes/claude-code")).expect("there").count(), 0, "{cut}");
            assert_eq!(unread(&stage, "bob"), ["keep this"], "{cut}");
            if killed.code.is_some() {
                break;
            }
        }
    }
}

#[test]
fn two_cleanups_never_run_at_once() {
    let stage = stage();
    stage.relay_ok(&["register", "bob"]);
    session(&stage, "old", 8, &json!({}));
    let hold = File::create(stage.data.join(".cleanup.hold")).expect("writable");
    hold.lock().expect("locked");
    let refused = stage.run(&["gc"]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(refused.stderr.contains("another process is cleaning up"), "{}", refused.stderr);
    stage.relay_ok(&["gc", "--background"]);
    assert_eq!(sessions_left(&stage), ["old"], "it left the work to the other one");
    stage.relay_ok(&["gc", "--dry-run"]);
    drop(hold);
    for number in 0..2_000 {
        session(&stage, &format!("old-{number}"), 8, &json!({}));
    }
    let both: Vec<Outcome> = std::thread::scope(|scope| {
        let run = || stage.run(&["gc"]);
        [scope.spawn(run), scope.spawn(run)].into_iter().map(|thread| thread.join().expect("it ran")).collect()
    });
    assert!(both.iter().all(|one| one.code == Some(0)), "one waits for the other: {both:?}");
    assert!(sessions_left(&stage).is_empty());
}

/// The time of the last cleanup by the data folder.
fn stamp(stage: &Stage) -> SystemTime {
    fs::metadata(stage.data.join("last-cleanup")).and_then(|found| found.modified()).expect("it is noted")
}

#[test]
fn a_command_starts_the_cleanup_of_the_day_and_waits_for_none() {
    let stage = stage();
    stage.configure("[retention]\nkeep = '1h'\n");
    stage.relay_ok(&["register", "bob"]);
    let begun = stamp(&stage);
    session(&stage, "old", 0, &json!({}));
    later(&stage, 23 * HOUR, &["agents"]).succeed();
    assert_eq!(stamp(&stage), begun, "it is not due");
    // A clock that jumps ahead by weeks deletes nothing: the time must have gone on for an hour first.
    later(&stage, 20 * DAY, &["agents"]).succeed();
    let days = |days: u64| Duration::from_secs(days * 86_400);
    assert!(stamp(&stage) > begun + days(18) && stamp(&stage) < begun + days(20), "it is due an hour after the jump");
    later(&stage, -20 * DAY, &["agents"]).succeed();
    assert!(stamp(&stage) < begun, "nor does one that jumps back");
    assert_eq!(sessions_left(&stage), ["old"]);
    File::options().write(true).open(stage.data.join("last-cleanup")).expect("there").set_modified(begun).expect("set");
    // A command that is not about the mesh starts nothing.
    later(&stage, 25 * HOUR, &["config"]).succeed();
    assert_eq!(stamp(&stage), begun);
    later(&stage, 25 * HOUR, &["agents"]).succeed();
    wait_for("the session to be deleted", || sessions_left(&stage).is_empty().then_some(()));
    assert!(stamp(&stage) > begun);
}

#[test]
fn the_cleanup_of_the_day_can_be_switched_off() {
    let stage = stage();
    stage.configure("[retention]\nkeep = '1h'\n");
    stage.relay_ok(&["register", "bob"]);
    let begun = stamp(&stage);
    session(&stage, "old", 0, &json!({}));
    stage.configure("[retention]\nkeep = '1h'\nautomatic = false\n");
    later(&stage, 25 * HOUR, &["agents"]).succeed();
    assert_eq!(stamp(&stage), begun, "nothing was started");
    // In a folder that cannot be written to, the command works and nothing is started.
    stage.configure("[retention]\nkeep = '1h'\n");
    fs::remove_file(stage.data.join("last-cleanup")).expect("it is there");
    std::os::unix::fs::symlink("/proc/nobody/may/write", stage.data.join("last-cleanup")).expect("linked");
    later(&stage, 25 * HOUR, &["agents"]).succeed();
    assert_eq!(sessions_left(&stage), ["old"]);
}

#[test]
fn the_server_cleans_up_by_itself() {
    let stage = stage();
    stage.configure("[http]\nlisten = '127.0.0.1:0'\n[retention]\nautomatic = false\n");
    stage.relay_ok(&["register", "bob"]);
    session(&stage, "old", 8, &json!({}));
    let mut server = stage.relay(&["serve"]).start(&stage.folder.join("serve.log"));
    wait_for("the session to be deleted", || sessions_left(&stage).is_empty().then_some(()));
    // Delivery puts ended sessions away too, and may be first.
    let begun = wait_for("the cleanup to be noted", || {
        fs::metadata(stage.data.join("last-cleanup")).and_then(|found| found.modified()).ok()
    });
    assert!(begun.elapsed().is_ok_and(|age| age < Duration::from_secs(60)));
    server.stop();
}

#[test]
fn on_servers_each_machine_deletes_only_what_is_its_own() {
    let server = NatsServer::start();
    let machines = [stage(), stage()];
    for machine in &machines {
        let settings =
            format!("store = '{}'\naway-after = '0s'\n[retention]\nkeep = '0s'\nautomatic = false\n", server.url());
        machine.configure(&settings);
    }
    let [one, other] = &machines;
    other.relay_ok(&["register", "dora"]);
    one.relay_ok(&["register", "carol"]);
    one.relay_ok(&["send", "carol", "settled"]);
    one.relay_ok(&["read", "--agent", "carol", "--unread", "--mark-read"]);
    one.relay_ok(&["register", "bob"]);
    one.relay_ok(&["send", "bob", "waits"]);
    for machine in &machines {
        session(machine, "old", 1, &json!({}));
    }
    let last = |agent: &str| {
        let mail = json_of(&one.relay_ok(&["read", "--agent", agent, "--peek", "--last", "1", "--json"]));
        mail["messages"][0]["body"].as_str().map(str::to_owned)
    };
    let theirs = json_of(&other.relay_ok(&["gc", "--json"]));
    assert_eq!(theirs["agents"], json!(["dora"]), "{theirs}");
    assert_eq!(count(&theirs, "mail segments"), 0, "{theirs}");
    assert_eq!(last("carol").as_deref(), Some("settled"), "the other machine did not delete it");
    assert_eq!((sessions_left(one), sessions_left(other)), (vec!["old".to_owned()], vec![]));
    let dry = json_of(&one.relay_ok(&["gc", "--dry-run", "--json"]));
    assert!(count(&dry, "mail segments") > 0, "{dry}");
    // Servers have no segments: there the logs are named.
    let names = dry["segment_names"].as_array().cloned().unwrap_or_default();
    assert!(names.iter().any(|name| name.as_str().is_some_and(|name| name.ends_with("/inbox"))), "{dry}");
    let ours = json_of(&one.relay_ok(&["gc", "--json"]));
    assert_eq!(ours["agents"], json!(["carol"]), "{ours}");
    assert_eq!(unread(one, "bob"), ["waits"]);
    assert_eq!(unread(one, "bob"), ["waits"], "and again, from the servers");
    assert!(sessions_left(one).is_empty());
}

#[test]
fn the_size_of_a_store_is_told_by_kind_largest_first() {
    let stage = stage();
    stage.relay_ok(&["register", "bob"]);
    stage.relay_ok(&["send", "bob", &"a long text ".repeat(500)]);
    session(&stage, "old", 8, &json!({}));
    wake_file(&stage, "old", 8);
    let text = stage.relay_ok(&["store", "size"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.starts_with("KIND") && text.lines().last().is_some_and(|line| line.starts_with("total")), "{text}");
    let told = json_of(&stage.relay_ok(&["store", "size", "--json"]));
    let sizes = told["sizes"].as_array().expect("a list");
    let bytes: Vec<u64> = sizes.iter().filter_map(|one| one["bytes"].as_u64()).collect();
    assert!(bytes.is_sorted_by(|one, other| one >= other), "{told}");
    assert_eq!(told["bytes"], json!(bytes.iter().sum::<u64>()));
    let of = |kind: &str| sizes.iter().find(|one| one["kind"] == kind).cloned().unwrap_or_default();
    let length = |path: PathBuf| fs::metadata(stage.data.join(path)).map(|found| found.len()).expect("there");
    assert_eq!(of("messages")["bytes"], json!(length("agents/bob/inbox.jsonl".into())), "{told}");
    assert_eq!(of("sent")["bytes"], json!(length("agents/shell/sent.jsonl".into())), "{told}");
    assert_eq!(of("event log")["bytes"], json!(length("global.jsonl".into())), "{told}");
    assert_eq!((&of("sessions")["count"], &of("wake files")["count"]), (&json!(1), &json!(3)), "{told}");

    let server = NatsServer::start();
    stage.configure(&format!("store = '{}'\n", server.url()));
    stage.relay_ok(&["register", "carol"]);
    stage.relay_ok(&["send", "carol", "a text"]);
    let told = json_of(&stage.relay_ok(&["store", "size", "--json"]));
    let sizes = told["sizes"].as_array().expect("a list");
    let streams = sizes.iter().filter(|one| one["kind"].as_str().is_some_and(|kind| kind.starts_with("stream ")));
    let streams: Vec<&Value> = streams.collect();
    assert_eq!(streams.len(), 2, "{told}");
    assert!(streams.iter().all(|one| one["bytes"].as_u64().is_some_and(|bytes| bytes > 0)), "{told}");
}
