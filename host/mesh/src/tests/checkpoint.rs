//! The cursor of an inbox: whatever happened to it and to the logs, a reader that begins with it knows what a plain scan
//! of the logs finds; and what it reads depends on what is open, not on what ever was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use store::files::{FilesOptions, FilesStore};
use store::memory::MemoryStore;
use store::{Durability, Position, Store};

use super::counted::Counted;
use super::{draft, name};
use crate::messages::receipt::{DeliveryHistory, DeliveryStatus, Receipt};
use crate::messages::slot::Header;
use crate::names::MessageId;
use crate::storage::{keys, records};
use crate::testing::{FakeHarnesses, FakeMachine, call, shell_call};
use crate::{DryRun, Fetch, Lease, Limits, Mesh, MeshIndexRule, Parts, Registration, Scope};

/// Some processes over one store.
struct Processes {
    store: Arc<dyn Store>,
    machine: Arc<FakeMachine>,
    processes: Vec<Mesh>,
    /// All receipts up to the last time that some were deleted, and the end of the log then.
    remembered: (Vec<Receipt>, Position),
}

impl Processes {
    fn new(store: Arc<dyn Store>) -> Processes {
        Processes { store, machine: Arc::default(), processes: Vec::new(), remembered: (Vec::new(), Position::START) }
    }

    fn start(&self) -> Mesh {
        Mesh::new(Parts {
            shared: Arc::clone(&self.store),
            local: Arc::clone(&self.store),
            machine: Arc::clone(&self.machine) as Arc<dyn crate::ports::machine::Machine>,
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        })
    }

    fn restart(&mut self) {
        self.processes = vec![self.start(), self.start()];
    }

    async fn join_bob(&mut self) {
        self.restart();
        let caller = self.processes[0].identify(&call("c1")).await.expect("identified");
        let registration = Registration { name: Some(name("bob")), ..Registration::default() };
        self.processes[0].register(&caller, registration).await.expect("registered");
    }

    async fn say(&self, process: usize, body: &str) -> MessageId {
        let mesh = &self.processes[process];
        let caller = mesh.identify(&shell_call(None)).await.expect("identified");
        mesh.send(&caller, &["bob".to_owned()], draft(body)).await.expect("sent").id
    }

    async fn receipts(&self, from: Position) -> Vec<Receipt> {
        let mut all = Vec::new();
        records::scan(self.store.as_ref(), &keys::receipts(&name("bob")), from, |entry| {
            all.extend(serde_json::from_slice::<Receipt>(&entry.bytes));
        })
        .await
        .expect("read");
        all
    }

    async fn remember(&mut self) {
        let newer = self.receipts(self.remembered.1).await;
        self.remembered.0.extend(newer);
        self.remembered.1 = self.store.end(&keys::receipts(&name("bob"))).await.expect("an end");
    }

    /// The open messages by a scan of both logs.
    async fn scanned(&self) -> Open {
        self.folded(self.receipts(Position::START).await).await
    }

    /// The open messages as one knows them who has read the receipts that were deleted since: a cursor may hold these.
    async fn remembering(&self) -> Open {
        let (mut receipts, from) = self.remembered.clone();
        receipts.extend(self.receipts(from).await);
        self.folded(receipts).await
    }

    async fn folded(&self, receipts: Vec<Receipt>) -> Open {
        let mut all: Open = BTreeMap::new();
        records::scan(self.store.as_ref(), &keys::inbox(&name("bob")), Position::START, |entry| {
            if let Ok(header) = serde_json::from_slice::<Header>(&entry.bytes) {
                all.insert(header.id, (entry.at, DeliveryHistory::default()));
            }
        })
        .await
        .expect("read");
        for receipt in receipts {
            if let Some((_, history)) = all.get_mut(&receipt.message)
                && !history.is_settled()
            {
                history.take(receipt.at, receipt.event);
            }
        }
        all.retain(|_, (_, history)| !history.is_settled());
        all
    }

    /// The open messages as a process sees them.
    async fn seen_by(&self, mesh: &Mesh) -> Open {
        let inbox = mesh.inboxes.of(&name("bob"));
        let mut inbox = inbox.lock().await;
        inbox.refresh(self.store.as_ref(), &name("bob")).await.expect("read");
        inbox.open.all().map(|slot| (slot.header.id, (slot.at, slot.history.clone()))).collect()
    }
}

type Open = BTreeMap<MessageId, (Position, DeliveryHistory)>;

/// A random step.
#[derive(Clone, Debug)]
enum Act {
    Send {
        process: usize,
        long: bool,
    },
    Fetch {
        process: usize,
        limit: usize,
        newest: bool,
    },
    Settle {
        which: usize,
        confirm: bool,
    },
    Acknowledge {
        process: usize,
        which: usize,
    },
    Pass {
        hours: u64,
    },
    CleanUp,
    Restart,
    ForgetCursor,
    DamageCursor,
    /// What another version leaves: the two positions, without a checkpoint that is known here.
    PlainCursor,
    /// Power is lost: the end of a log is gone, and every process with it.
    CutInbox {
        bytes: u64,
    },
    CutReceipts {
        bytes: u64,
    },
    ForgetReceipts,
}

fn act() -> impl Strategy<Value = Act> {
    let process = 0..2_usize;
    prop_oneof![
        8 => (process.clone(), any::<bool>()).prop_map(|(process, long)| Act::Send { process, long }),
        6 => (process.clone(), 1..4_usize, any::<bool>())
            .prop_map(|(process, limit, newest)| Act::Fetch { process, limit, newest }),
        5 => (any::<usize>(), any::<bool>()).prop_map(|(which, confirm)| Act::Settle { which, confirm }),
        4 => (process, any::<usize>()).prop_map(|(process, which)| Act::Acknowledge { process, which }),
        1 => (0..300_u64).prop_map(|hours| Act::Pass { hours }),
        1 => Just(Act::CleanUp),
        2 => Just(Act::Restart),
        1 => Just(Act::ForgetCursor),
        1 => Just(Act::DamageCursor),
        2 => Just(Act::PlainCursor),
        1 => (1..3_000_u64).prop_map(|bytes| Act::CutInbox { bytes }),
        1 => (1..3_000_u64).prop_map(|bytes| Act::CutReceipts { bytes }),
        1 => Just(Act::ForgetReceipts),
    ]
}

async fn run(acts: Vec<Act>, folder: Option<&Path>) {
    let store: Arc<dyn Store> = match folder {
        Some(folder) => {
            let options = FilesOptions {
                rotate_at: 2_000,
                rule: Some(Arc::new(MeshIndexRule)),
                durability: Durability::Process,
                ..FilesOptions::default()
            };
            Arc::new(FilesStore::open(folder, options).expect("a store"))
        }
        None => Arc::new(MemoryStore::default()),
    };
    let mut world = Processes::new(store);
    world.join_bob().await;
    let bob = name("bob");
    let (mut leases, mut sent): (Vec<(usize, Lease)>, Vec<MessageId>) = Default::default();
    // Whatever was settled once stays so, also if the receipts that said so are lost.
    let mut settled: BTreeSet<MessageId> = BTreeSet::new();
    for act in acts {
        match act.clone() {
            Act::Send { process, long } => {
                sent.push(world.say(process, &"x".repeat(if long { 700 } else { 1 })).await);
            }
            Act::Fetch { process, limit, newest } => {
                let ask = Fetch { limit, newest, ..Fetch::default() };
                let fetched = world.processes[process].fetch(&bob, &ask).await.expect("fetched");
                leases.extend(fetched.lease.map(|lease| (process, lease)));
            }
            Act::Settle { which, confirm } if !leases.is_empty() => {
                let (process, lease) = leases.swap_remove(which % leases.len());
                let mesh = &world.processes[process];
                if confirm {
                    mesh.confirm(&lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
                } else {
                    mesh.release(lease).await.expect("released");
                }
            }
            Act::Acknowledge { process, which } if !sent.is_empty() => {
                // It may be retired or lost by now.
                drop(world.processes[process].acknowledge(&bob, &[sent[which % sent.len()]]).await);
            }
            Act::Settle { .. } | Act::Acknowledge { .. } => {}
            Act::Pass { hours } => world.machine.pass(hours * 3_600_000),
            Act::CleanUp => {
                world.processes[0].clean_up(Scope::Everything, DryRun::No, None).await.expect("cleaned up");
            }
            Act::Restart => world.restart(),
            Act::ForgetCursor | Act::DamageCursor => {
                let key = keys::cursor(&bob);
                let revision = world.store.get(&key).await.expect("read").map(|value| value.revision);
                let next = matches!(act, Act::DamageCursor).then_some(&b"[7]"[..]);
                if revision.is_some() || next.is_some() {
                    world.store.swap(&key, revision, next, Durability::Process).await.expect("swapped");
                }
            }
            Act::PlainCursor => {
                let key = keys::cursor(&bob);
                let found = world.store.get(&key).await.expect("read");
                if let Some(value) = found
                    && let Ok(mut cursor) = serde_json::from_slice::<serde_json::Value>(&value.bytes)
                    && let Some(fold) = cursor.pointer_mut("/checkpoint/fold")
                {
                    *fold = 7.into();
                    let (revision, next) = (Some(value.revision), cursor.to_string().into_bytes());
                    world.store.swap(&key, revision, Some(&next), Durability::Process).await.expect("swapped");
                }
            }
            Act::CutInbox { bytes } | Act::CutReceipts { bytes } => {
                let is_inbox = matches!(act, Act::CutInbox { .. });
                let log = if is_inbox { keys::inbox(&bob) } else { keys::receipts(&bob) };
                let file = folder.and_then(|_| world.store.file_of(&log));
                if let Some(file) = file.and_then(|path| fs::File::options().write(true).open(path).ok()) {
                    let length = file.metadata().expect("there").len();
                    file.set_len(length.saturating_sub(bytes)).expect("cut");
                }
                world.restart();
            }
            Act::ForgetReceipts => {
                world.remember().await;
                if let Some(file) = folder.and_then(|_| world.store.file_of(&keys::receipts(&bob))) {
                    drop(fs::remove_file(file));
                }
            }
        }
        let (scanned, remembered) = (world.scanned().await, world.remembering().await);
        let fresh = world.start();
        for mesh in world.processes.iter().chain([&fresh]) {
            let seen = world.seen_by(mesh).await;
            for (id, found) in &seen {
                if remembered.get(id) != Some(found) {
                    assert_eq!(scanned.get(id), Some(found), "{act:?}: {id}");
                }
            }
            let missing: BTreeSet<MessageId> = scanned.keys().filter(|id| !seen.contains_key(id)).copied().collect();
            assert!(missing.is_subset(&settled), "{act:?}: {missing:?} are open and not seen");
        }
        settled.extend(sent.iter().filter(|id| !scanned.contains_key(id)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_reader_that_begins_at_the_cursor_knows_what_a_scan_finds(
        acts in proptest::collection::vec(act(), 0..60),
        on_files in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        runtime.block_on(run(acts, on_files.then_some(folder.path())));
    }
}

/// One message that nobody reads, and then many that come and go.
async fn pinned(count: usize) -> (Processes, Arc<Counted>) {
    let counted = Counted::new(Arc::new(MemoryStore::default()));
    let mut world = Processes::new(Arc::clone(&counted) as Arc<dyn Store>);
    world.join_bob().await;
    let bob = name("bob");
    for number in 0..=count {
        world.say(0, &format!("m{number}")).await;
    }
    let mesh = &world.processes[0];
    let ask = Fetch { limit: count, newest: true, ..Fetch::default() };
    let lease = mesh.fetch(&bob, &ask).await.expect("fetched").lease.expect("a lease");
    mesh.confirm(&lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
    mesh.acknowledge(&bob, &lease.messages).await.expect("acknowledged");
    (world, counted)
}

#[tokio::test]
async fn one_old_open_message_does_not_make_every_reader_start_from_it() {
    let (few, many) = (pinned(20).await, pinned(400).await);
    let mut read = Vec::new();
    for (mut world, counted) in [few, many] {
        world.restart();
        counted.take();
        let open = world.seen_by(&world.processes[0]).await;
        assert_eq!(open, world.scanned().await);
        assert_eq!(open.len(), 1);
        world.restart();
        counted.take();
        world.seen_by(&world.processes[0]).await;
        read.push(counted.take().entries);
    }
    assert_eq!(read[0], read[1], "entries that a new process reads after 20 and after 400 messages");
}

#[tokio::test]
async fn ten_thousand_unread_messages_are_acknowledged_in_linear_work() {
    let work = async |count: usize| {
        let counted = Counted::new(Arc::new(MemoryStore::default()));
        let mut world = Processes::new(Arc::clone(&counted) as Arc<dyn Store>);
        world.join_bob().await;
        let bob = name("bob");
        for number in 0..count {
            world.say(0, &format!("m{number}")).await;
        }
        world.restart();
        counted.take();
        let mesh = &world.processes[0];
        let mut acknowledged = 0;
        while acknowledged < count {
            let ask = Fetch { limit: 50, ..Fetch::default() };
            let lease = mesh.fetch(&bob, &ask).await.expect("fetched").lease.expect("a lease");
            mesh.confirm(&lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
            acknowledged += mesh.acknowledge(&bob, &lease.messages).await.expect("acknowledged").len();
        }
        assert!(world.scanned().await.is_empty());
        counted.take()
    };
    let (small, large) = (work(500).await, work(10_000).await);
    // 20 times the messages are 20 times the work, and not 400 times.
    assert!(large.entries <= 21 * small.entries, "entries read: {} and {}", small.entries, large.entries);
    assert!(large.appends <= 20 * small.appends, "appends: {} and {}", small.appends, large.appends);
    assert!(large.values <= 25 * small.values, "bytes of cursors: {} and {}", small.values, large.values);
}

#[tokio::test]
async fn an_inbox_whose_tail_was_lost_does_not_show_acknowledged_mail_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FilesOptions { durability: Durability::Process, ..FilesOptions::default() };
    let mut world = Processes::new(Arc::new(FilesStore::open(folder.path(), options).expect("a store")));
    world.join_bob().await;
    for number in 0..5 {
        world.say(0, &format!("m{number}")).await;
    }
    let lease =
        world.processes[0].fetch(&name("bob"), &Fetch::default()).await.expect("fetched").lease.expect("a lease");
    world.processes[0].confirm(&lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
    let file = world.store.file_of(&keys::inbox(&name("bob"))).expect("a file");
    let file = fs::File::options().write(true).open(file).expect("there");
    // The whole last message is gone, and its successor is just as long.
    let length = file.metadata().expect("there").len();
    file.set_len(length / 5 * 4).expect("cut");
    world.restart();
    assert!(world.seen_by(&world.processes[0]).await.is_empty(), "all that is left was read");
    let new = world.say(1, "m5").await;
    for _ in 0..2 {
        world.restart();
        let seen: Vec<MessageId> = world.seen_by(&world.processes[0]).await.into_keys().collect();
        assert_eq!(seen, [new], "the new message, and none that was read");
    }
}

#[tokio::test]
async fn a_process_whose_logs_are_deleted_begins_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FilesOptions::default();
    let mut world = Processes::new(Arc::new(FilesStore::open(folder.path(), options).expect("a store")));
    world.join_bob().await;
    world.say(0, "old").await;
    let take = async |mesh: &Mesh| {
        let fetched = mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
        if let Some(lease) = &fetched.lease {
            mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
        }
        fetched.messages.len()
    };
    assert_eq!(take(&world.processes[0]).await, 1);
    for leaf in ["receipts.jsonl", "inbox.jsonl"] {
        fs::remove_file(folder.path().join("agents/bob").join(leaf)).expect("there");
    }
    let old = std::mem::take(&mut world.processes);
    world.restart();
    world.say(0, "new").await;
    assert_eq!(take(&old[0]).await, 1, "a process from before sees the new mail");
    assert_eq!(take(&world.processes[1]).await, 0, "and gives it once");
}

#[tokio::test]
async fn a_message_that_is_damaged_in_the_log_costs_only_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FilesOptions { durability: Durability::Process, ..FilesOptions::default() };
    let mut world = Processes::new(Arc::new(FilesStore::open(folder.path(), options).expect("a store")));
    world.join_bob().await;
    for body in ["pinned", "settled", "later"] {
        world.say(0, body).await;
    }
    let ask = Fetch { limit: 2, newest: true, ..Fetch::default() };
    let lease = world.processes[0].fetch(&name("bob"), &ask).await.expect("fetched").lease.expect("a lease");
    world.processes[0].confirm(&lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
    let file = world.store.file_of(&keys::inbox(&name("bob"))).expect("a file");
    let text = fs::read_to_string(&file).expect("text").replacen("{\"id\"", "~~damage~~", 1).replacen(
        "~~damage~~",
        "~\"id\"",
        1,
    );
    fs::write(&file, text).expect("written");
    for _ in 0..2 {
        world.restart();
        let fetched = world.processes[0].fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
        assert_eq!((fetched.messages.len(), fetched.lease), (0, None));
    }
}
