//! Retention: what is over goes after its time, what may still be needed stays, and a dry run deletes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, IndexRule, Indexed, Key, Position, Store, Term};

use super::counted::Counted;
use super::{World, draft, name};
use crate::names::{AgentName, MessageId};
use crate::ports::data_files::{Amount, DataFiles, OldSegments};
use crate::ports::machine::Machine;
use crate::sessions::Principal;
use crate::storage::keys;
use crate::testing::{FakeHarnesses, FakeMachine, session_call, shell_call};
use crate::{Cleanup, DryRun, Fetch, Limits, Mesh, Parts, RecordKind, Scope};

const DAY: u64 = 24 * 3_600_000;

impl World {
    /// The sessions on record.
    async fn sessions_kept(&self) -> String {
        let mut kept = self.store.list(&keys::sessions()).await.expect("listed");
        kept.extend(self.store.list(&keys::ended_sessions()).await.expect("listed"));
        kept.iter().map(Key::leaf).collect::<Vec<_>>().join(" ")
    }

    /// Cleans up; returns how many sessions were deleted, or would be.
    async fn sessions_gone(&self, dry_run: DryRun) -> usize {
        let cleanup = self.mesh.clean_up(Scope::Everything, dry_run, None).await.expect("cleanup");
        cleanup.tally.amounts.get(&RecordKind::Sessions).map_or(0, |amount| amount.count)
    }
}

/// What happens to the session `s1`, with process 7, and after how many days of silence its record goes.
async fn check(what: &str, days: Option<u64>, happens: impl AsyncFnOnce(&World)) {
    let world = World::new();
    world.machine.start(7);
    world.hook_of("s1", "start", Some(7)).await;
    happens(&world).await;
    for day in 1..=40 {
        world.machine.pass(DAY);
        let goes = days == Some(day);
        let would = world.sessions_gone(DryRun::Yes).await;
        assert_eq!(would, usize::from(goes), "{what}, after {day} days, in a dry run");
        assert!(world.sessions_kept().await.contains("s1"), "{what}: a dry run deletes nothing");
        assert_eq!(world.sessions_gone(DryRun::No).await, usize::from(goes), "{what}, after {day} days");
        if goes {
            assert_eq!(world.sessions_kept().await, "", "{what}");
            return;
        }
    }
    assert!(days.is_none(), "{what}: it never went");
}

#[tokio::test]
async fn a_session_goes_a_week_after_its_end_and_a_living_one_never() {
    check("it lives", None, async |_| {}).await;
    check("it said that it ended", Some(7), async |world| drop(world.hook_of("s1", "end", Some(7)).await)).await;
    check("its process is gone", Some(7), async |world| world.machine.kill(7)).await;
    check("another process has its number", Some(7), async |world| {
        world.machine.kill(7);
        world.machine.start(8);
    })
    .await;
    check("its process is in another container", Some(30), async |world| {
        world.machine.kill(7);
        world.machine.enter_space(2);
    })
    .await;
    check("a process in another container has its number", Some(30), async |world| world.machine.enter_space(2)).await;
}

#[tokio::test]
async fn a_session_without_a_process_goes_only_by_long_silence() {
    let world = World::new();
    world.hook_of("s1", "start", None).await;
    world.machine.pass(30 * DAY - 1);
    assert_eq!(world.sessions_gone(DryRun::No).await, 0);
    world.machine.pass(1);
    assert_eq!(world.sessions_gone(DryRun::No).await, 1);
}

#[tokio::test]
async fn the_current_session_of_an_agent_and_the_parent_of_a_living_one_stay() {
    let world = World::new();
    world.machine.start(7);
    world.register(&session_call("c1", "s1"), "alice").await;
    world.hook_of("s1", "end", Some(7)).await;
    world.hook_of("s2", "start", Some(7)).await;
    world.hook_of("s2.a", "start", Some(7)).await;
    world.hook_of("s2", "end", Some(7)).await;
    world.say("alice", "are you there?").await;
    world.machine.pass(8 * DAY);
    assert_eq!(world.sessions_gone(DryRun::No).await, 0, "alice has mail, so she is kept and her session with her");
    assert_eq!(world.sessions_kept().await, "s1 s2 s2.a");
    assert_eq!(world.fetch("alice").await, "are you there?");
    world.machine.pass(8 * DAY);
    assert_eq!(world.sessions_gone(DryRun::Yes).await, 1);
    assert_eq!(world.sessions_gone(DryRun::No).await, 1, "alice is gone, and her session with her");
    assert_eq!(world.sessions_kept().await, "s2 s2.a");
    world.machine.kill(7);
    assert_eq!(world.sessions_gone(DryRun::No).await, 2, "the subagent, and the session that it was in");
    assert_eq!(world.sessions_kept().await, "");
}

#[tokio::test]
async fn a_message_of_a_sender_whose_clock_is_a_year_behind_does_not_expire_at_once() {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    world.machine.pass(500 * DAY);
    world.say("alice", "fresh").await;
    world.machine.go_back(400 * DAY);
    world.say("alice", "from a year ago").await;
    world.machine.pass(400 * DAY);
    for (days, waiting) in [(0, 2), (29, 2), (1, 0)] {
        world.machine.pass(days * DAY);
        world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleanup");
        let fetched = world.mesh.fetch(&name("alice"), &Fetch { peek: true, ..Fetch::default() }).await;
        assert_eq!(fetched.expect("fetched").messages.len(), waiting, "{days} days on");
    }
}

#[tokio::test]
async fn a_session_of_an_agent_whose_record_is_damaged_stays() {
    let world = World::new();
    world.machine.start(7);
    world.register(&session_call("c1", "s1"), "alice").await;
    world.hook_of("s1", "end", Some(7)).await;
    let key = keys::meta(&name("alice"));
    let kept = world.store.get(&key).await.expect("read").expect("there");
    world.store.swap(&key, Some(kept.revision), Some(b"7"), Durability::Process).await.expect("damaged");
    world.machine.pass(40 * DAY);
    assert_eq!(world.sessions_gone(DryRun::No).await, 0);
}

#[tokio::test]
async fn notes_about_agents_without_a_record_go() {
    let world = World::new();
    for (key, value) in [
        (keys::speaker(&name("gone")), "1"),
        (keys::speaker(&name("here")), "1"),
        (keys::offline_notice(&name("gone")), "[]"),
        (keys::offline_notice(&name("here")), "[]"),
    ] {
        world.store.swap(&key, None, Some(value.as_bytes()), Durability::Process).await.expect("stored");
    }
    world.register(&shell_call(None), "here").await;
    let cleanup = world.mesh.clean_up(Scope::Everything, DryRun::Yes, None).await.expect("cleanup");
    let kinds: Vec<&str> = cleanup.tally.amounts.keys().map(|kind| kind.as_str()).collect();
    assert_eq!(kinds, ["command line marks", "offline notices"]);
    for _ in 0..2 {
        world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleanup");
        for (key, stays) in [
            (keys::speaker(&name("gone")), false),
            (keys::speaker(&name("here")), true),
            (keys::offline_notice(&name("gone")), false),
            (keys::offline_notice(&name("here")), true),
        ] {
            assert_eq!(world.store.get(&key).await.expect("read").is_some(), stays, "{key}");
        }
    }
}

/// A rule of the test: the id of a message is a growing term, and `at` the time.
struct Rule;

impl IndexRule for Rule {
    fn version(&self) -> u32 {
        1
    }

    fn of(&self, log: &Key, entry: &[u8]) -> Indexed {
        let Ok(value) = serde_json::from_slice::<Value>(entry) else { return Indexed::default() };
        let field = if log.leaf() == "receipts" { "message" } else { "id" };
        let terms = value[field].as_str().map(Term::growing).into_iter().collect();
        Indexed { terms, at: value["at"].as_u64() }
    }
}

/// What a store has to look things up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lookups {
    ByReading,
    ByIndex,
    /// By what servers know.
    AsOnServers,
}

/// A mesh in a folder with short segments.
struct Folder {
    _temporary: tempfile::TempDir,
    path: PathBuf,
    store: Arc<FilesStore>,
    counted: Arc<Counted>,
    machine: Arc<FakeMachine>,
    mesh: Mesh,
}

impl Folder {
    fn new(lookups: Lookups) -> Folder {
        let rule = (lookups != Lookups::ByReading).then(|| Arc::new(Rule) as Arc<dyn IndexRule>);
        let temporary = tempfile::tempdir().expect("a folder");
        let path = temporary.path().to_owned();
        let options =
            FilesOptions { rotate_at: 2_000, rule, durability: Durability::Process, ..FilesOptions::default() };
        let store = Arc::new(FilesStore::open(&path, options).expect("a store"));
        let counted = match lookups {
            Lookups::ByReading | Lookups::ByIndex => Counted::new(Arc::clone(&store) as Arc<dyn Store>),
            Lookups::AsOnServers => Counted::as_server(Arc::clone(&store) as Arc<dyn Store>),
        };
        let machine = Arc::new(FakeMachine::default());
        let mesh = Mesh::new(Parts {
            shared: Arc::clone(&counted) as Arc<dyn Store>,
            local: Arc::clone(&counted) as Arc<dyn Store>,
            machine: Arc::clone(&machine) as Arc<dyn Machine>,
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        });
        Folder { _temporary: temporary, path, store, counted, machine, mesh }
    }

    /// Bob registers.
    async fn joins(&self) -> Principal {
        let caller = self.mesh.identify(&shell_call(None)).await.expect("identified");
        let bob = crate::Registration { name: Some(name("bob")), ..crate::Registration::default() };
        self.mesh.register(&caller, bob).await.expect("registered");
        caller
    }

    async fn sends(&self, body: &str) -> MessageId {
        self.machine.pass(1);
        let caller = self.mesh.identify(&shell_call(None)).await.expect("identified");
        self.mesh.send(&caller, &["bob".to_owned()], draft(body)).await.expect("sent").id
    }

    async fn reads(&self) -> usize {
        let mut read = 0;
        loop {
            let fetched = self.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
            let Some(lease) = &fetched.lease else { return read };
            let status = crate::messages::receipt::DeliveryStatus::Acknowledged;
            self.mesh.confirm(lease, status, "fetch", None).await.expect("confirmed");
            read += fetched.messages.len();
        }
    }

    async fn clean_up(&self, dry_run: DryRun) -> Cleanup {
        let files = FewFiles { agents: vec![name("bob")], ..FewFiles::default() };
        self.mesh.clean_up_in(Scope::Everything, dry_run, None, &files).await.expect("cleanup")
    }

    /// The bytes of a log's files.
    fn bytes(&self, leaf: &str, of: &str) -> u64 {
        let folder = self.path.join("agents").join(of);
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let of_log = files.filter(|file| file.file_name().to_string_lossy().starts_with(&format!("{leaf}.jsonl")));
        of_log.map(|file| file.metadata().expect("a file").len()).sum()
    }
}

/// Files whose lengths nobody looks at.
#[derive(Default)]
pub(super) struct FewFiles {
    /// Who has a folder.
    pub(super) agents: Vec<AgentName>,
    pub(super) worktree: Option<PathBuf>,
}

impl DataFiles for FewFiles {
    fn segments_before(&self, _: &Key, _: Position) -> Option<OldSegments> {
        None
    }

    fn forget(&self, _: &Key, _: &[Key], _: DryRun) -> Option<Amount> {
        None
    }

    fn agents(&self) -> Vec<AgentName> {
        self.agents.clone()
    }

    fn has_worktree(&self, folder: &Path) -> bool {
        self.worktree.as_deref() == Some(folder)
    }
}

/// With and without an index, retention deletes what is settled and old and nothing else.
#[tokio::test]
async fn settled_mail_goes_by_segments_and_unsettled_mail_stays() {
    for lookups in [Lookups::ByReading, Lookups::ByIndex, Lookups::AsOnServers] {
        let case = format!("{lookups:?}");
        let folder = Folder::new(lookups);
        let caller = folder.joins().await;
        for number in 0..60 {
            folder.sends(&format!("old {number}")).await;
            if number % 7 == 0 {
                assert!(folder.reads().await > 0);
            }
        }
        folder.reads().await;
        let waiting = folder.sends("waits").await;
        for number in 0..30 {
            folder.sends(&format!("after {number}")).await;
        }
        let before = ["inbox", "receipts"].map(|leaf| folder.bytes(leaf, "bob"));
        folder.machine.pass(8 * DAY);
        folder.sends("young").await;
        let would = folder.clean_up(DryRun::Yes).await.tally;
        assert!(folder.bytes("inbox", "bob") >= before[0], "{case}: a dry run deletes nothing");
        let gone = folder.clean_up(DryRun::No).await.tally;
        for kind in [RecordKind::Mail, RecordKind::Receipts] {
            // Of a file it is known how long it is; elsewhere what goes is read.
            let counted = [&would, &gone].map(|tally| tally.amounts.get(&kind).is_some_and(|of| of.bytes > 0));
            assert_eq!(counted, [lookups != Lookups::ByIndex; 2], "{case}: {kind:?} of {would:?} and {gone:?}");
        }
        let after = ["inbox", "receipts"].map(|leaf| folder.bytes(leaf, "bob"));
        assert!(after[0] < before[0] * 2 / 3, "{case}: {before:?}, then {after:?}");
        assert!(after[1] < before[1] / 2, "{case}: {before:?}, then {after:?}");
        // What was settled stays settled, and what waits is still there.
        let status = folder.mesh.message_status(&caller, waiting).await.expect("its sender can ask");
        assert_eq!(status.recipients.len(), 1, "{case}");
        assert_eq!(folder.reads().await, 32, "{case}");
        // The list of what was sent outlives any message that may wait.
        let sent = folder.bytes("sent", "shell");
        assert!(sent > 10_000, "{case}: {sent}");
        folder.machine.pass(23 * DAY);
        let gone = folder.clean_up(DryRun::No).await.tally;
        assert!(gone.amounts.contains_key(&RecordKind::Sent), "{case}: {gone:?}");
        assert!(folder.bytes("sent", "shell") < sent, "{case}");
        folder.machine.pass(30 * DAY);
        folder.clean_up(DryRun::No).await;
        folder.clean_up(DryRun::No).await;
        for log in [keys::inbox(&name("bob")), keys::receipts(&name("bob")), keys::sent(&AgentName::shell())] {
            let left = folder.store.read(&log, Position::START, 1).await.expect("read");
            assert!(left.entries.is_empty(), "{case}: {log} is empty after its time");
        }
        let rest = folder.store.list(&keys::agents()).await.expect("listed");
        assert!(rest.iter().all(|key| !key.as_str().contains("bob")), "{case}: nothing is left of bob: {rest:?}");
    }
}

/// A clock that was wrong for a moment keeps nothing for years.
#[tokio::test]
async fn what_was_sent_while_the_clock_was_ahead_keeps_nothing_that_is_old() {
    for lookups in [Lookups::ByReading, Lookups::ByIndex] {
        let folder = Folder::new(lookups);
        folder.joins().await;
        for (old, ahead) in [(20, 1_000 * DAY), (60, 0)] {
            for number in 0..old {
                folder.sends("old").await;
                if number % 7 == 0 {
                    folder.reads().await;
                }
            }
            folder.machine.pass(ahead);
            folder.sends("ahead, or as old").await;
            folder.reads().await;
            folder.machine.go_back(ahead);
        }
        let before = ["inbox", "receipts"].map(|leaf| folder.bytes(leaf, "bob"));
        folder.machine.pass(8 * DAY);
        folder.sends("young").await;
        folder.clean_up(DryRun::No).await;
        let after = ["inbox", "receipts"].map(|leaf| folder.bytes(leaf, "bob"));
        let (inbox, receipts) = (after[0] < before[0] / 2, after[1] < before[1] * 2 / 3);
        assert!(inbox && receipts, "{lookups:?}: {before:?}, then {after:?}");
        assert_eq!(folder.reads().await, 1, "{lookups:?}: what is young waits");
    }
}

/// A process that was killed between the messages and their receipts leaves receipts without a message.
#[tokio::test]
async fn receipts_without_a_message_go_in_the_next_run() {
    let folder = Folder::new(Lookups::ByIndex);
    let log = keys::receipts(&name("bob"));
    for number in 0..200_u64 {
        let id = MessageId(ulid::Ulid::from_parts(1_000 + number, 1));
        let line = serde_json::json!({ "message": id, "at": 1_000 + number, "event": "expired" });
        let entry = vec![line.to_string().into_bytes()];
        folder.store.append(&log, &entry, Expect::Any, Durability::Process).await.expect("appended");
    }
    folder.joins().await;
    folder.sends("young").await;
    let before = folder.bytes("receipts", "bob");
    folder.clean_up(DryRun::No).await;
    assert!(folder.bytes("receipts", "bob") < before / 4, "{before}");
}

/// The messages of a week stay, and are not read to find the receipts of those that went.
#[tokio::test]
async fn of_what_stays_a_cleanup_reads_little_on_servers() {
    let mut read = Vec::new();
    // About as much as is read at a time.
    for young in [400, 800] {
        let folder = Folder::new(Lookups::AsOnServers);
        folder.joins().await;
        for _ in 0..60 {
            folder.sends("old").await;
        }
        folder.reads().await;
        folder.machine.pass(8 * DAY);
        for _ in 0..young {
            folder.sends("young").await;
        }
        folder.reads().await;
        folder.counted.take();
        assert!(folder.clean_up(DryRun::No).await.tally.amounts.contains_key(&RecordKind::Receipts));
        read.push(folder.counted.take().entries);
    }
    assert!(read[1] < read[0] + 400, "not even one entry of each message: {read:?}");
}

#[test]
fn amounts_add_up() {
    let mut amount = Amount::default();
    amount.add(3);
    amount.add(4);
    assert_eq!(amount, Amount { count: 2, bytes: 7 });
}
