//! Lookups on servers: what is found by a log's catalog is what a plain scan finds, whatever became of the catalog, the
//! clocks and the server; and it does not cost what the log has ever held.

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use futures::{StreamExt, TryStreamExt};
use nats_server::NatsServer;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use serde::{Deserialize, Serialize};
use store::{Durability, Entry, Expect, IndexRule, Indexed, Key, Position, Seek, Store, Term};
use store_nats::{NatsOptions, NatsStore};

/// An entry of these tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    id: String,
    at: u64,
    filling: String,
}

struct Rule(u32);

impl IndexRule for Rule {
    fn version(&self) -> u32 {
        self.0
    }

    fn of(&self, _: &Key, entry: &[u8]) -> Indexed {
        let Ok(line) = serde_json::from_slice::<Line>(entry) else { return Indexed::default() };
        Indexed { terms: vec![Term::growing(line.id)], at: Some(line.at) }
    }
}

fn log(name: &str) -> Key {
    format!("agents/{name}/inbox").parse().expect("a key")
}

fn options(server: &NatsServer, prefix: &str, machine: &str) -> NatsOptions {
    NatsOptions {
        servers: vec![server.url()],
        prefix: prefix.to_owned(),
        machine: machine.to_owned(),
        timeout: Duration::from_secs(10),
        ..NatsOptions::default()
    }
}

/// One that makes catalogs, by a rule of this version.
fn with_catalogs(server: &NatsServer, prefix: &str, machine: &str, version: u32) -> NatsStore {
    NatsStore::with_rules(options(server, prefix, machine), None, Arc::new(Rule(version)))
}

fn new_prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("C{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn append(store: &NatsStore, log: &Key, lines: &[Line]) {
    let entries: Vec<Vec<u8>> = lines.iter().map(|line| serde_json::to_vec(line).expect("JSON")).collect();
    store.append(log, &entries, Expect::Any, Durability::Synced).await.expect("appended");
}

fn line_of(entry: &Entry) -> Line {
    serde_json::from_slice(&entry.bytes).expect("a line")
}

async fn everything(store: &NatsStore, log: &Key) -> Vec<Entry> {
    let (mut all, mut from) = (Vec::new(), Position::START);
    loop {
        let batch = store.read(log, from, 1 << 20).await.expect("read");
        all.extend(batch.entries);
        if batch.at_end {
            return all;
        }
        from = batch.next;
    }
}

/// Something that happens to a log, or to its catalog.
#[derive(Clone, Debug)]
enum Deed {
    /// Some entries, each a message; by a build that makes catalogs or by an older one.
    Append(Vec<Line>, bool),
    /// Long entries, each of which makes a row, so that rows move into blocks.
    AppendLong(u64),
    /// A lookup, and the catalog grows.
    LookUp,
    /// The daily cleanup brings the catalog up to date.
    Index,
    /// A time is sought first.
    SeekTime(u64),
    /// The catalog is lost.
    Lose,
    /// A block of it is lost, or a byte of one changes.
    LoseBlock(prop::sample::Index, bool),
    /// A byte of it changes.
    Flip(prop::sample::Index),
    /// It is again what it was some time before.
    Restore(prop::sample::Index),
    /// The catalog of another log takes its place.
    Mistake,
    /// A program with another rule makes it anew.
    Rule(u32),
    /// What is older than a position is retired.
    Retire(prop::sample::Index),
    /// The log is removed.
    Remove,
    /// One message is deleted by the operator.
    Delete(prop::sample::Index),
    /// The server comes back without the stream, and the catalogs are still there.
    NewStream,
}

fn line() -> impl Strategy<Value = Line> {
    // Ids mostly grow with the time, and sometimes a clock steps back. Long entries, so that few make a row.
    (0..60_u64, 0..8_u64, 0..3_usize).prop_map(|(at, jitter, filling)| Line {
        id: format!("{:010}-id", (at * 10).saturating_sub(jitter * 30)),
        at,
        filling: "x".repeat(filling * 20_000),
    })
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let any = any::<prop::sample::Index>;
    let deed = prop_oneof![
        6 => (prop::collection::vec(line(), 1..30), prop::bool::ANY).prop_map(|(lines, old)| Deed::Append(lines, old)),
        3 => Just(Deed::LookUp),
        1 => (0..60_u64).prop_map(Deed::SeekTime),
        1 => Just(Deed::Index),
        1 => Just(Deed::Lose),
        2 => (20..90_u64).prop_map(Deed::AppendLong),
        1 => (any(), prop::bool::ANY).prop_map(|(which, flips)| Deed::LoseBlock(which, flips)),
        1 => any().prop_map(Deed::Flip),
        1 => any().prop_map(Deed::Restore),
        1 => Just(Deed::Mistake),
        1 => (1..3_u32).prop_map(Deed::Rule),
        1 => any().prop_map(Deed::Retire),
        1 => Just(Deed::Remove),
        1 => any().prop_map(Deed::Delete),
        1 => Just(Deed::NewStream),
    ];
    prop::collection::vec(deed, 4..20)
}

/// A log on a server, as several programs see it.
struct World {
    server: Arc<NatsServer>,
    prefix: String,
    log: Key,
    /// Makes catalogs.
    store: NatsStore,
    /// Knows none, and reads everything.
    plain: NatsStore,
    jetstream: jetstream::Context,
    /// Earlier texts of the catalog.
    before: Vec<Vec<u8>>,
}

impl World {
    async fn new(server: Arc<NatsServer>) -> World {
        let prefix = new_prefix();
        let client = async_nats::connect(server.url()).await.expect("connected");
        let world = World {
            store: with_catalogs(&server, &prefix, "one", 1),
            plain: NatsStore::new(options(&server, &prefix, "old")),
            jetstream: jetstream::new(client),
            log: log("bob"),
            before: Vec::new(),
            server,
            prefix,
        };
        // Both streams exist from here on.
        append(&world.store, &log("other"), &lines(200)).await;
        world.look_up(&log("other")).await;
        world
    }

    fn catalog_at(&self, log: &Key) -> String {
        format!("$KV.{}_MAP._._catalogs.{}", self.prefix, log.as_str().replace('/', "."))
    }

    async fn catalog(&self, log: &Key) -> Option<Vec<u8>> {
        let stream = self.jetstream.get_stream(format!("KV_{}_MAP", self.prefix)).await.ok()?;
        let message = stream.get_last_raw_message_by_subject(&self.catalog_at(log)).await.ok()?;
        Some(message.payload.to_vec()).filter(|text| !text.is_empty())
    }

    async fn put_catalog(&self, text: Vec<u8>) {
        self.put(self.catalog_at(&self.log), text).await;
    }

    async fn put(&self, subject: String, text: Vec<u8>) {
        self.jetstream.publish(subject, text.into()).await.expect("sent").await.expect("stored");
    }

    /// The subjects of the blocks of the log's catalog.
    async fn blocks(&self) -> Vec<String> {
        let Ok(stream) = self.jetstream.get_stream(format!("KV_{}_MAP", self.prefix)).await else { return Vec::new() };
        let at = self.catalog_at(&self.log).replace("._catalogs.", "._catalog_blocks.");
        let found = stream.info_with_subjects(format!("{at}.>")).await.expect("told");
        let mut subjects: Vec<String> = found.map_ok(|(subject, _)| subject).try_collect().await.expect("all of them");
        subjects.sort();
        subjects
    }

    async fn look_up(&self, log: &Key) {
        self.store.find(log, &[Term::growing("nothing")]).await.expect("found");
    }

    async fn happens(&mut self, deed: Deed) {
        match deed {
            Deed::Append(lines, is_old) => {
                let store = if is_old { &self.plain } else { &self.store };
                for line in lines {
                    append(store, &self.log, &[line]).await;
                }
            }
            Deed::AppendLong(count) => {
                let long = |number: u64| Line {
                    id: format!("{:010}-id", number * 7 % 600),
                    at: number % 60,
                    filling: "x".repeat(66_000),
                };
                for line in (0..count).map(long) {
                    append(&self.store, &self.log, &[line]).await;
                }
            }
            Deed::LookUp => self.look_up(&self.log).await,
            Deed::LoseBlock(which, flips) => {
                let blocks = self.blocks().await;
                if !blocks.is_empty() {
                    let subject = &blocks[which.index(blocks.len())];
                    let stream = self.jetstream.get_stream(format!("KV_{}_MAP", self.prefix)).await.expect("there");
                    let message = stream.get_last_raw_message_by_subject(subject).await.expect("a block");
                    let mut text = message.payload.to_vec();
                    match text.last_mut() {
                        Some(last) if flips => *last ^= 0x04,
                        _ => text.clear(),
                    }
                    self.put(subject.clone(), text).await;
                }
            }
            Deed::Index => self.store.index(&self.log).await.expect("indexed"),
            Deed::SeekTime(at) => drop(self.store.seek(&self.log, Seek::Time(at)).await.expect("sought")),
            Deed::Lose => {
                if self.catalog(&self.log).await.is_some() {
                    self.put_catalog(Vec::new()).await;
                }
            }
            Deed::Flip(at) => {
                if let Some(mut text) = self.catalog(&self.log).await {
                    let at = at.index(text.len());
                    text[at] ^= 0x04;
                    self.put_catalog(text).await;
                }
            }
            Deed::Restore(which) => {
                if !self.before.is_empty() {
                    self.put_catalog(self.before[which.index(self.before.len())].clone()).await;
                }
            }
            Deed::Mistake => {
                if let Some(text) = self.catalog(&log("other")).await {
                    self.put_catalog(text).await;
                }
            }
            Deed::Rule(version) => self.store = with_catalogs(&self.server, &self.prefix, "one", version),
            Deed::Retire(which) => {
                let all = everything(&self.plain, &self.log).await;
                if !all.is_empty() {
                    self.plain.retire(&self.log, all[which.index(all.len())].at).await.expect("retired");
                }
            }
            Deed::Remove => self.plain.remove(&self.log).await.expect("removed"),
            Deed::Delete(which) => {
                let all = everything(&self.plain, &self.log).await;
                if !all.is_empty() {
                    let stream = self.jetstream.get_stream(format!("{}_MESSAGES", self.prefix)).await.expect("there");
                    stream.delete_message(all[which.index(all.len())].at.0 >> 16).await.expect("deleted");
                }
            }
            Deed::NewStream => {
                self.jetstream.delete_stream(format!("{}_MESSAGES", self.prefix)).await.expect("deleted");
                self.store = with_catalogs(&self.server, &self.prefix, "one", 1);
                self.plain = NatsStore::new(options(&self.server, &self.prefix, "old"));
                self.plain.end(&self.log).await.expect("made anew");
            }
        }
        self.before.extend(self.catalog(&self.log).await);
    }

    /// Every lookup against the scan of everything.
    async fn check(&self) -> TestCaseResult {
        let all = everything(&self.plain, &self.log).await;
        let absent = [Term::growing("0000000305-id"), Term::growing("zzz")];
        let some: Vec<Term> =
            all.iter().step_by(11).map(|entry| Term::growing(line_of(entry).id)).chain(absent).collect();
        for asked in some.iter().map(std::slice::from_ref).chain([&some[..]]) {
            let found = self.store.find(&self.log, asked).await.expect("found");
            let has = |entry: &&Entry| asked.contains(&Term::growing(line_of(entry).id));
            let expected: Vec<&Entry> = all.iter().filter(has).collect();
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{:?}", asked);
        }
        for at in [0, 20, 40, 60, 100] {
            let reached =
                self.store.seek(&self.log, Seek::Time(at)).await.expect("sought").expect("servers know times");
            let missed = all.iter().find(|entry| entry.at < reached && line_of(entry).at >= at);
            prop_assert!(missed.is_none(), "{} from {:?}: {:?}", at, reached, missed.map(|entry| entry.at));
        }
        let lowest = self.store.lowest_term(&self.log, Position::START).await.expect("read");
        let truth = all.iter().map(|entry| line_of(entry).id).min();
        prop_assert!(lowest.as_deref() <= truth.as_deref(), "{:?} is above {:?}", lowest, truth);
        for id in ["", "0000000100", "0000000305-id", "0000000590", "zzz"] {
            let Some(reached) = self.store.seek(&self.log, Seek::Term(id)).await.expect("sought") else { continue };
            let missed = all.iter().find(|entry| entry.at < reached && line_of(entry).id.as_str() >= id);
            prop_assert!(missed.is_none(), "{} from {:?}: {:?}", id, reached, missed.map(|entry| entry.at));
        }
        Ok(())
    }
}

/// Lines of ids and times that grow by one.
fn lines(count: u64) -> Vec<Line> {
    (0..count).map(|number| Line { id: format!("{number:010}-id"), at: number, filling: String::new() }).collect()
}

#[test]
fn what_a_catalog_finds_is_what_a_plain_scan_finds() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let server = Arc::new(NatsServer::start());
    let cases = 24;
    let mut runner =
        TestRunner::new(Config { cases, max_shrink_iters: 64, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&deeds(), |deeds| {
        runtime.block_on(async {
            let mut world = World::new(Arc::clone(&server)).await;
            for deed in deeds {
                world.happens(deed).await;
            }
            world.check().await
        })
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Counts what the server is asked and what it answers while something is done.
struct Spy {
    client: async_nats::Client,
    all: async_nats::Subscriber,
}

#[derive(Debug)]
struct Traffic {
    requests: usize,
    answers: usize,
}

impl Spy {
    async fn on(server: &NatsServer) -> Spy {
        let client = async_nats::connect(server.url()).await.expect("connected");
        let all = client.subscribe(">").await.expect("subscribed");
        client.flush().await.expect("the server knows");
        Spy { client, all }
    }

    /// What was sent since the last call.
    async fn traffic(&mut self) -> Traffic {
        self.client.publish("the.mark", "".into()).await.expect("sent");
        let mut traffic = Traffic { requests: 0, answers: 0 };
        loop {
            let message = self.all.next().await.expect("the server is there");
            match message.subject.as_str() {
                "the.mark" => return traffic,
                subject if subject.starts_with("_INBOX.") => traffic.answers += 1,
                subject if subject.starts_with("$JS.API.") => traffic.requests += 1,
                _ => {}
            }
        }
    }
}

async fn fill(store: &NatsStore, log: &Key, lines: &[Line]) {
    let all = futures::stream::iter(lines).map(Ok::<_, ()>);
    // One at a time, as the order is the log's.
    all.try_for_each(|line| async move {
        append(store, log, std::slice::from_ref(line)).await;
        Ok(())
    })
    .await
    .expect("filled");
}

/// A mesh that was moved to a server: its oldest mail is new to that server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_log_that_is_new_to_its_server_a_lookup_reads_a_small_part() {
    let server = NatsServer::start();
    let (prefix, log) = (new_prefix(), log("bob"));
    let moving = with_catalogs(&server, &prefix, "one", 1);
    let mut spy = Spy::on(&server).await;
    for age in 1..=4 {
        fill(&moving, &log, &lines(1_500 * age)[1_500 * (age as usize - 1)..]).await;
        let looking = with_catalogs(&server, &prefix, "one", 1);
        // The first lookup reads what the catalog lacks, unless the daily cleanup did; a process opens the streams at
        // its first call.
        match age {
            1 | 2 => drop(looking.find(&log, &[Term::growing("nothing").since(0)]).await.expect("found")),
            _ => {
                moving.index(&log).await.expect("indexed");
                looking.end(&log).await.expect("there");
            }
        }
        spy.traffic().await;
        for number in [0, 750 * age, 1_500 * age - 1] {
            let id = format!("{number:010}-id");
            let found = looking.find(&log, &[Term::growing(&id).since(number)]).await.expect("found");
            assert_eq!(found.iter().map(|entry| line_of(entry).id).collect::<Vec<_>>(), [id]);
            let traffic = spy.traffic().await;
            assert!(traffic.requests <= 6 && traffic.answers <= 250, "{number} of {}: {traffic:?}", 1_500 * age);
        }
        let at = looking.seek(&log, Seek::Time(1_500 * age - 10)).await.expect("sought").expect("a position");
        let of_term = Seek::Term("0000000700");
        let at_term = looking.seek(&log, of_term).await.expect("sought").expect("the catalog says where it is");
        let first = looking.read(&log, at_term, 1).await.expect("read").entries.remove(0);
        assert_eq!(line_of(&first).id, "0000000700-id");
        let rest = looking.read(&log, at, 1 << 20).await.expect("read");
        assert!((10..=250).contains(&rest.entries.len()), "{} entries are ten old", rest.entries.len());
        spy.traffic().await;
    }
}

/// What a catalog has in blocks is the log's: it goes with it, and with what retention deletes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_go_with_what_they_tell_of() {
    let world = World::new(Arc::new(NatsServer::start())).await;
    let other = world.blocks().await;
    assert_eq!(other, Vec::<String>::new());
    fill(&world.store, &world.log, &lines(5_000)).await;
    world.store.index(&world.log).await.expect("indexed");
    let full = world.blocks().await;
    assert!(full.len() >= 3, "{full:?}");
    let all = everything(&world.plain, &world.log).await;
    world.store.retire(&world.log, all[2_500].at).await.expect("retired");
    fill(&world.store, &world.log, &lines(200)).await;
    world.store.index(&world.log).await.expect("indexed");
    let half = world.blocks().await;
    assert!(!half.is_empty() && half.len() < full.len(), "{half:?} of {full:?}");
    // A catalog that is made anew by another rule has other blocks, and so has what a process left that was killed.
    let stray = format!("{}.0-7-0badc0de", world.catalog_at(&world.log).replace("._catalogs.", "._catalog_blocks."));
    world.put(stray.clone(), b"{}".to_vec()).await;
    let anew = with_catalogs(&world.server, &world.prefix, "one", 2);
    anew.index(&world.log).await.expect("indexed");
    let after = world.blocks().await;
    assert!(
        !after.is_empty() && after.len() <= half.len() && after.iter().all(|name| !half.contains(name)),
        "{after:?}"
    );
    // What was written since may be of a process that works on it at this time.
    world.put(stray.clone(), b"{}".to_vec()).await;
    anew.index(&world.log).await.expect("indexed");
    assert!(world.blocks().await.contains(&stray));
    fill(&anew, &world.log, &lines(200)).await;
    anew.index(&world.log).await.expect("indexed");
    anew.index(&world.log).await.expect("indexed");
    assert!(!world.blocks().await.contains(&stray));
    anew.remove(&world.log).await.expect("removed");
    assert_eq!(world.blocks().await, Vec::<String>::new());
}

/// An agent that gets no more mail, whose mail is deleted day by day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_log_that_nobody_writes_any_more_little_stays() {
    let world = World::new(Arc::new(NatsServer::start())).await;
    fill(&world.store, &world.log, &lines(3_000)).await;
    world.store.index(&world.log).await.expect("indexed");
    let before = world.catalog(&world.log).await.expect("a catalog").len();
    let all = everything(&world.plain, &world.log).await;
    world.store.retire(&world.log, all[2_900].at).await.expect("retired");
    world.store.index(&world.log).await.expect("indexed");
    let after = world.catalog(&world.log).await.expect("a catalog").len();
    assert!(world.blocks().await.is_empty() && after < before / 4, "{after} of {before}");
    // What it covers is gone, and too little is there for a new one.
    let end = world.store.end(&world.log).await.expect("an end");
    world.store.retire(&world.log, end).await.expect("retired");
    world.store.index(&world.log).await.expect("indexed");
    assert_eq!((world.catalog(&world.log).await, world.blocks().await.len()), (None, 0));
}

/// The first cleanup after a long time, or with a shorter retention than before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_forgotten_blocks_go_at_once() {
    let server = Arc::new(NatsServer::start());
    let mut requests = Vec::new();
    for count in [2_000, 10_000] {
        let world = World::new(Arc::clone(&server)).await;
        fill(&world.store, &world.log, &lines(count)).await;
        world.store.index(&world.log).await.expect("indexed");
        let blocks = world.blocks().await.len();
        let all = everything(&world.plain, &world.log).await;
        world.store.retire(&world.log, all[all.len() - 100].at).await.expect("retired");
        let mut spy = Spy::on(&server).await;
        world.store.index(&world.log).await.expect("indexed");
        requests.push((blocks, spy.traffic().await.requests));
        assert_eq!(world.blocks().await, Vec::<String>::new());
    }
    let [(few, of_few), (many, of_many)] = requests[..] else { unreachable!("two were counted") };
    assert!(many >= few + 5 && of_many <= of_few + 2, "{of_few} requests for {few} blocks, {of_many} for {many}");
}

/// What is gone of a block does not count, however many messages it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lowest_term_is_of_what_is_left() {
    let world = World::new(Arc::new(NatsServer::start())).await;
    assert_eq!(world.store.lowest_term(&world.log, Position::START).await.expect("read"), None, "of nothing");
    fill(&world.store, &world.log, &lines(3_000)).await;
    world.store.index(&world.log).await.expect("indexed");
    let all = everything(&world.plain, &world.log).await;
    for gone in [0, 1, 700, 1_100, 2_900, 2_999] {
        world.store.retire(&world.log, all[gone].at).await.expect("retired");
        let lowest = world.store.lowest_term(&world.log, Position::START).await.expect("read");
        assert_eq!(lowest, Some(format!("{gone:010}")));
        world.store.index(&world.log).await.expect("indexed");
    }
    append(&world.store, &world.log, &[Line { id: "0000000005-late".to_owned(), ..lines(1).remove(0) }]).await;
    assert_eq!(
        world.store.lowest_term(&world.log, Position::START).await.expect("read").as_deref(),
        Some("0000000005")
    );
    let late = everything(&world.plain, &world.log).await.pop().expect("it is there").at;
    let of_late = world.store.lowest_term(&world.log, late).await.expect("read");
    assert_eq!(of_late.as_deref(), Some("0000000005"));
    // The server keeps the last message of all, and it does not count.
    let end = world.store.end(&world.log).await.expect("an end");
    assert_eq!(world.store.lowest_term(&world.log, end).await.expect("read"), None);
    world.store.retire(&world.log, end).await.expect("retired");
    assert_eq!(world.store.lowest_term(&world.log, Position::START).await.expect("read"), None);
    // Without a rule, it is not known.
    assert_eq!(world.plain.lowest_term(&world.log, Position::START).await.expect("read"), None);
}

/// A block that an operator deleted is made again by the next cleanup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_block_is_made_again() {
    let world = World::new(Arc::new(NatsServer::start())).await;
    fill(&world.store, &world.log, &lines(3_000)).await;
    world.store.index(&world.log).await.expect("indexed");
    let blocks = world.blocks().await;
    let bucket = world.jetstream.get_stream(format!("KV_{}_MAP", world.prefix)).await.expect("there");
    bucket.purge().filter(&blocks[0]).await.expect("the block is gone");
    let wanted = [Term::growing("0000000001-id")];
    assert_eq!(world.store.find(&world.log, &wanted).await.expect("found").len(), 1);
    world.store.index(&world.log).await.expect("indexed");
    assert_eq!(world.blocks().await, blocks);
}

/// A process that is killed after it wrote a block and before it wrote the catalog leaves what the next one makes again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_without_its_catalog_is_taken_up() {
    let world = World::new(Arc::new(NatsServer::start())).await;
    fill(&world.store, &world.log, &lines(3_000)).await;
    world.store.index(&world.log).await.expect("indexed");
    let (blocks, catalog) = (world.blocks().await, world.catalog(&world.log).await);
    assert!(!blocks.is_empty());
    let stream = world.jetstream.get_stream(format!("KV_{}_MAP", world.prefix)).await.expect("there");
    stream.purge().filter(world.catalog_at(&world.log)).await.expect("the catalog is gone");
    world.store.index(&world.log).await.expect("indexed");
    assert_eq!((world.blocks().await, world.catalog(&world.log).await), (blocks, catalog));
}

/// The newest entries of a log that is one of many, and whatever the stream held before them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_entries_cost_no_more_after_much_else() {
    let server = NatsServer::start();
    let (prefix, bob, others) = (new_prefix(), log("bob"), log("others"));
    let store = with_catalogs(&server, &prefix, "one", 1);
    let mut spy = Spy::on(&server).await;
    let mut answers = Vec::new();
    for _ in 0..6 {
        for line in lines(60) {
            let filled = Line { filling: "x".repeat(400), ..line };
            append(&store, &bob, std::slice::from_ref(&filled)).await;
            append(&store, &others, &[filled]).await;
            for _ in 0..8 {
                append(&store, &others, &lines(1)).await;
            }
        }
        let end = store.end(&bob).await.expect("an end");
        spy.traffic().await;
        let newest = store.read_back(&bob, end, 256 * 1024).await.expect("read");
        assert!(newest.entries.len() >= 30, "{}", newest.entries.len());
        answers.push(spy.traffic().await.answers);
    }
    let (first, last) = (answers[1], answers[5]);
    assert!(last <= first + first / 4, "{answers:?}");
}

/// On several servers any copy answers, and may lag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catalog_serves_on_a_cluster() {
    let cluster = NatsServer::cluster(3);
    let (prefix, log) = (new_prefix(), log("bob"));
    let open = || {
        let options =
            NatsOptions { replicas: 3, timeout: Duration::from_secs(20), ..options(&cluster[0], &prefix, "one") };
        NatsStore::with_rules(options, None, Arc::new(Rule(1)))
    };
    // Long ones, of which four make a row.
    let long = |line: Line| Line { filling: "x".repeat(20_000), ..line };
    fill(&open(), &log, &lines(20).into_iter().map(long).collect::<Vec<_>>()).await;
    for _ in 0..2 {
        let store = open();
        for number in [0, 10, 19] {
            let id = format!("{number:010}-id");
            let found = store.find(&log, &[Term::growing(&id).since(number)]).await.expect("found");
            assert_eq!(found.iter().map(|entry| line_of(entry).id).collect::<Vec<_>>(), [id]);
        }
    }
    let client = async_nats::connect(cluster[0].url()).await.expect("connected");
    let bucket = jetstream::new(client).get_stream(format!("KV_{prefix}_MAP")).await.expect("there");
    let catalog = format!("$KV.{prefix}_MAP._._catalogs.agents.bob.inbox");
    bucket.get_last_raw_message_by_subject(&catalog).await.expect("the catalog was written");
}
