//! Several machines that share a mesh through servers, and a machine that cannot reach them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use store::memory::{MemoryStore, Tail};
use store::{
    AppendError, Batch, Durability, Expect, Hold, Key, Position, Revision, ServerTrouble, Store, StoreError,
    StoreIdentity, SwapError, Versioned, Watch,
};

use super::{draft, name};
use crate::agents::Profile;
use crate::messages::Draft;
use crate::ports::harness::HookCall;
use crate::sessions::{Call, SessionRef};
use crate::storage::keys;
use crate::testing::{FakeHarnesses, FakeMachine, session_call, shell_call};
use crate::{Fetch, Limits, Mesh, Parts, Registration, SendError};

/// The state of a machine's connection to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Good,
    /// Nothing gets through.
    Cut,
    /// A request is carried out, and its answer is lost.
    LosesAnswers,
    /// One more message gets through, with its answer; then nothing.
    TakesOneMessage,
    /// A message arrives twice: an earlier try's message arrives just before it.
    BringsItTwice,
    /// The servers can be reached and refuse messages of more than this many bytes.
    TakesNoLonger(usize),
    /// The servers can be reached and have no room for messages to this agent.
    HasNoBytesFor(&'static str),
}

/// Servers behind a connection.
pub(super) struct Servers {
    pub(super) store: MemoryStore,
    line: Mutex<LinkState>,
    /// When the store was made; 0 if it does not say.
    made: AtomicU64,
    /// A key that is listed and has no value: a power loss has left its name and not its bytes.
    empty: Option<Key>,
}

impl Servers {
    pub(super) fn of(store: &MemoryStore, empty: Option<Key>) -> Servers {
        Servers { store: store.clone(), line: Mutex::new(LinkState::Good), made: AtomicU64::new(0), empty }
    }

    fn set(&self, line: LinkState) {
        *self.line.lock().expect("no test panics while it holds this") = line;
    }

    /// The answer as it arrives, if it does.
    fn heard<T, E: From<StoreError>>(&self, answer: Result<T, E>) -> Result<T, E> {
        match *self.line.lock().expect("no test panics while it holds this") {
            LinkState::Good
            | LinkState::TakesOneMessage
            | LinkState::BringsItTwice
            | LinkState::TakesNoLonger(_)
            | LinkState::HasNoBytesFor(_) => answer,
            LinkState::Cut | LinkState::LosesAnswers => Err(lost().into()),
        }
    }

    fn reached(&self) -> Result<(), StoreError> {
        match *self.line.lock().expect("no test panics while it holds this") {
            LinkState::Good
            | LinkState::LosesAnswers
            | LinkState::TakesOneMessage
            | LinkState::BringsItTwice
            | LinkState::TakesNoLonger(_)
            | LinkState::HasNoBytesFor(_) => Ok(()),
            LinkState::Cut => Err(lost()),
        }
    }

    /// Whether the servers take a message.
    fn takes(&self, log: &Key, entries: &[Vec<u8>]) -> Result<(), StoreError> {
        let refused =
            |trouble, reason: &str| StoreError::server("could not append to", log, trouble, reason.to_owned());
        match *self.line.lock().expect("no test panics while it holds this") {
            LinkState::TakesNoLonger(most) if entries.iter().any(|entry| entry.len() > most) => {
                Err(refused(ServerTrouble::TooLong, "the message is too long"))
            }
            LinkState::HasNoBytesFor(agent) if log.as_str() == format!("agents/{agent}/inbox") => {
                Err(refused(ServerTrouble::Full, "the stream is full"))
            }
            LinkState::Good
            | LinkState::Cut
            | LinkState::LosesAnswers
            | LinkState::TakesOneMessage
            | LinkState::BringsItTwice
            | LinkState::TakesNoLonger(_)
            | LinkState::HasNoBytesFor(_) => Ok(()),
        }
    }
}

fn lost() -> StoreError {
    StoreError::server("could not reach", "the servers", ServerTrouble::TimedOut, "no answer came")
}

#[async_trait]
impl Store for Servers {
    async fn append(
        &self,
        log: &Key,
        entries: &[Vec<u8>],
        expect: Expect,
        how: Durability,
    ) -> Result<Position, AppendError> {
        self.reached()?;
        self.takes(log, entries)?;
        let line = *self.line.lock().expect("no test panics while it holds this");
        if line == LinkState::BringsItTwice && log.leaf() == "inbox" {
            self.set(LinkState::Good);
            self.store.append(log, entries, Expect::Any, how).await?;
        }
        let answer = self.heard(self.store.append(log, entries, expect, how).await);
        if line == LinkState::TakesOneMessage && log.leaf() == "inbox" {
            self.set(LinkState::Cut);
        }
        answer
    }

    async fn sync(&self, log: &Key, before: Position) -> Result<(), StoreError> {
        self.heard(self.store.sync(log, before).await)
    }

    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
        // Only a change is worth losing the answer of.
        self.reached()?;
        self.store.read(log, from, limit).await
    }

    async fn end(&self, log: &Key) -> Result<Position, StoreError> {
        self.reached()?;
        self.store.end(log).await
    }

    async fn retire(&self, log: &Key, before: Position) -> Result<usize, StoreError> {
        self.reached()?;
        self.store.retire(log, before).await
    }

    async fn remove(&self, log: &Key) -> Result<(), StoreError> {
        self.reached()?;
        self.store.remove(log).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.reached()?;
        self.store.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expected: Option<Revision>,
        next: Option<&[u8]>,
        how: Durability,
    ) -> Result<Option<Revision>, SwapError> {
        self.reached()?;
        self.heard(self.store.swap(key, expected, next, how).await)
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        self.reached()?;
        let mut keys = self.store.list(prefix).await?;
        keys.extend(self.empty.clone().filter(|key| key.is_under(prefix)));
        Ok(keys)
    }

    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
        self.reached()?;
        self.store.watch(under).await
    }

    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.reached()?;
        self.store.hold(key).await
    }

    fn identities(&self) -> Vec<StoreIdentity> {
        match self.made.load(Ordering::Relaxed) {
            0 => Vec::new(),
            made => vec![StoreIdentity { place: "servers".to_owned(), made }],
        }
    }

    fn file_of(&self, _: &Key) -> Option<PathBuf> {
        None
    }
}

/// One machine of several.
pub(super) struct Host {
    pub(super) mesh: Arc<Mesh>,
    pub(super) machine: Arc<FakeMachine>,
    pub(super) servers: Arc<Servers>,
    /// This machine's own store.
    pub(super) local: MemoryStore,
}

impl Host {
    fn new(named: &'static str, store: &MemoryStore) -> Host {
        let machine = Arc::new(FakeMachine::named(named));
        Host::over(machine, Arc::new(Servers::of(store, None)), MemoryStore::new())
    }

    fn over(machine: Arc<FakeMachine>, servers: Arc<Servers>, local: MemoryStore) -> Host {
        let mesh = Arc::new(Mesh::new(Parts {
            shared: Arc::clone(&servers) as Arc<dyn Store>,
            local: Arc::new(local.clone()),
            machine: Arc::clone(&machine) as Arc<dyn crate::ports::machine::Machine>,
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        }));
        Host { mesh, machine, servers, local }
    }

    /// The same machine after a power loss: what was not synced to its disk is gone.
    pub(super) fn after_a_loss_of_power(&self) -> Host {
        Host::over(Arc::clone(&self.machine), Arc::clone(&self.servers), self.local.crash(Tail::Lost))
    }

    /// Another process of the same machine.
    pub(super) fn another_process(&self) -> Host {
        Host::over(Arc::clone(&self.machine), Arc::clone(&self.servers), self.local.clone())
    }

    pub(super) fn line(&self, line: LinkState) {
        self.servers.set(line);
    }

    pub(super) async fn register(&self, call: &Call, wanted: &str) -> String {
        let caller = self.mesh.identify(call).await.expect("identified");
        let registration = Registration { name: Some(name(wanted)), ..Registration::default() };
        self.mesh.register(&caller, registration).await.expect("registered").agent.name.to_string()
    }

    /// Sends from the command line, as alice, to each of these; returns the status for each, or the error.
    pub(super) async fn send(&self, to: &str, draft: Draft) -> String {
        self.send_as("alice", to, draft).await
    }

    pub(super) async fn say_as(&self, from: &str, to: &str, body: &str) -> String {
        self.send_as(from, to, draft(body)).await
    }

    async fn send_as(&self, from: &str, to: &str, draft: Draft) -> String {
        let caller = self.mesh.identify(&shell_call(Some(from))).await.expect("identified");
        let to: Vec<String> = to.split(' ').map(str::to_owned).collect();
        match self.mesh.send(&caller, &to, draft).await {
            Ok(sent) => sent.recipients.iter().map(|to| to.status.as_str()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    pub(super) async fn say(&self, to: &str, body: &str) -> String {
        self.send(to, draft(body)).await
    }

    /// Sends to everybody from the command line, as alice; returns the status for each.
    pub(super) async fn broadcast(&self, body: &str) -> String {
        let caller = self.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
        let sent = self.mesh.broadcast(&caller, &crate::Audience::default(), draft(body)).await.expect("sent");
        let told = sent.recipients.iter().map(|one| format!("{} {}", one.to, one.status.as_str()));
        told.collect::<Vec<_>>().join(", ")
    }

    /// What waits in the outbox, and what was returned.
    pub(super) async fn outbox(&self) -> String {
        let queued = self.mesh.queued().await.expect("listed");
        let one = |one: &crate::Queued| {
            let back = one.returned.iter().map(|(to, why)| format!(" came back from {to}: {why}")).collect::<String>();
            let to = one.to.iter().map(|to| format!(" waits for {to}")).collect::<String>();
            let refused = one.refused.iter().map(|why| format!(" ({why})")).collect::<String>();
            format!("{}{to}{refused}{back}", one.subject)
        };
        queued.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    pub(super) async fn read(&self, agent: &str) -> String {
        let fetched =
            self.mesh.fetch(&name(agent), &Fetch { include_settled: true, ..Fetch::default() }).await.expect("fetched");
        fetched.messages.iter().map(|one| one.message.body.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub(super) async fn hook(&self, session: &str, did: &str) {
        let payload = serde_json::json!({ "session": session, "did": did, "pid": 1 }).to_string();
        let call = HookCall { name: did.to_owned(), payload, environment: Vec::new(), process: None };
        let outcome = self.mesh.hook("fake", &call).await.expect("answered");
        self.mesh.confirm_hook(outcome, did).await.expect("confirmed");
    }

    pub(super) async fn presence_of(&self, agent: &str) -> String {
        let seen = self.mesh.agent(&name(agent)).await.expect("asked").expect("known");
        format!("{}: {}", seen.presence.as_str(), seen.evidence)
    }
}

/// Alice's machine and Bob's.
pub(super) async fn two() -> (Host, Host) {
    let store = MemoryStore::new();
    let (one, other) = (Host::new("one", &store), Host::new("other", &store));
    assert_eq!(one.register(&shell_call(None), "alice").await, "alice");
    assert_eq!(other.register(&shell_call(None), "bob").await, "bob");
    (one, other)
}

#[tokio::test]
async fn what_cannot_be_promised_is_refused() {
    let (one, _) = two().await;
    one.line(LinkState::Cut);
    let caller = one.mesh.identify(&shell_call(Some("alice"))).await.expect("known here without the servers");
    let everyone = one.mesh.broadcast(&caller, &crate::Audience::default(), draft("all")).await;
    assert!(matches!(everyone, Err(SendError::Unreadable(error)) if error.is_out_of_reach()), "who is everyone?");
    let stranger = one.mesh.identify(&shell_call(Some("bob"))).await;
    assert!(stranger.is_err(), "bob was registered elsewhere");
}

#[tokio::test]
async fn a_machine_shows_what_it_last_saw() {
    let (one, _) = two().await;
    one.line(LinkState::Cut);
    assert!(one.mesh.agents().await.is_err(), "it has seen nobody yet");
    one.line(LinkState::Good);
    assert_eq!(one.mesh.agents().await.expect("listed").len(), 2);
    one.machine.pass(300_000);
    one.line(LinkState::Cut);
    let seen = one.mesh.agents().await.expect("remembered");
    let words: Vec<String> =
        seen.iter().map(|seen| format!("{} {}: {}", seen.agent.name, seen.presence.as_str(), seen.evidence)).collect();
    let faded = "5 min ago: idle, heard 0 s ago; the servers have been unreachable since";
    assert_eq!(words, [format!("alice away: {faded}"), format!("bob away: {faded}")]);
    let status = one.mesh.status().await.expect("told");
    assert_eq!((status.agents.len(), status.out_of_reach.as_deref()), (2, Some("could not reach the servers")));
    let found = one.mesh.find("bob", 5).await.expect("remembered");
    assert_eq!(found.iter().map(|found| found.seen.agent.name.as_str()).collect::<Vec<_>>(), ["bob"]);

    let (one, _) = two().await;
    one.mesh.status().await.expect("told");
    one.line(LinkState::Cut);
    assert_eq!(one.mesh.agents().await.expect("remembered").len(), 2, "a status saw them too");
}

#[tokio::test]
async fn servers_that_go_while_a_status_is_put_together_are_told_of() {
    let (one, _) = two().await;
    let mut status = one.mesh.status().await.expect("told");
    assert!(one.mesh.coordination(&mut status).await.expect("told").is_some(), "nothing is reserved, for sure");
    assert_eq!(status.out_of_reach, None);
    one.line(LinkState::Cut);
    assert!(one.mesh.coordination(&mut status).await.expect("no reason to show nothing").is_none());
    assert_eq!((status.agents.len(), status.out_of_reach.as_deref()), (2, Some("could not reach the servers")));
}

#[tokio::test]
async fn what_a_session_does_is_known_on_other_machines() {
    let (one, other) = two().await;
    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    assert_eq!(other.presence_of("carol").await, "idle: waits on another machine, heard 0 s ago", "at once");
    one.hook("s1", "prompt").await;
    assert_eq!(other.presence_of("carol").await, "busy: works on another machine, heard 0 s ago");
    one.hook("s1", "stop").await;
    assert_eq!(other.presence_of("carol").await, "idle: waits on another machine, heard 0 s ago");
    other.machine.pass(660_000);
    assert_eq!(other.presence_of("carol").await, "away: nothing heard from its machine for 11 min");
    assert_eq!(one.presence_of("carol").await, "idle: waits, heard 0 s ago", "its own machine sees more");
    one.hook("s1", "end").await;
    assert!(other.presence_of("carol").await.starts_with("offline: its session on another machine ended"));
}

#[tokio::test]
async fn a_command_line_speaks_for_its_own_machine_alone() {
    let (one, other) = two().await;
    assert_eq!(other.register(&shell_call(None), "alice").await, "alice-2", "alice lives elsewhere");
    assert_eq!(one.register(&shell_call(None), "alice").await, "alice", "and keeps her name");
    let refused = other.mesh.identify(&shell_call(Some("alice"))).await.expect_err("refused");
    assert_eq!(refused.to_string(), "`alice` lives on the machine `one`, and only a command line there can act for it");
}

#[tokio::test]
async fn a_repository_is_the_same_on_every_machine_that_has_a_clone_of_it() {
    let (one, other) = two().await;
    let repository = |host: &Host, folder: &str| {
        let checkout = host.mesh.checkout(std::path::Path::new(folder)).expect("a working copy");
        checkout.repository.as_str().to_owned()
    };
    assert_eq!(repository(&one, "/clone-1/src"), "example.org/it");
    assert_eq!(repository(&other, "/clone-2"), "example.org/it");
    assert_eq!(repository(&one, "/plain"), "one:/plain");
    assert_eq!(repository(&other, "/plain"), "other:/plain", "a path means nothing elsewhere");
}

#[tokio::test]
async fn how_present_a_recipient_elsewhere_is_is_asked_again_after_a_moment() {
    let (one, other) = two().await;
    assert_eq!(other.register(&session_call("c", "s1"), "carol").await, "carol");
    let told = async || {
        let alice = one.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
        let sent = one.mesh.send(&alice, &["carol".to_owned()], draft("hello")).await.expect("sent");
        sent.recipients[0].presence.as_str()
    };
    other.hook("s1", "prompt").await;
    assert_eq!(told().await, "busy");
    other.hook("s1", "end").await;
    one.machine.pass(2_000);
    assert_eq!(told().await, "offline");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_without_a_word_is_told_of_by_whoever_serves_its_machine() {
    let (one, other) = two().await;
    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    one.hook("s1", "prompt").await;
    assert_eq!(other.presence_of("carol").await, "busy: works on another machine, heard 0 s ago");
    one.machine.kill(1);
    let mut watch = other.mesh.watch_status().await.expect("watched");
    let stop = tokio_util::sync::CancellationToken::new();
    let serving = tokio::spawn(Arc::clone(&one.mesh).deliver(crate::Served::Everyone, stop.clone()));
    while !other.presence_of("carol").await.starts_with("offline: ") {
        watch.changed().await.expect("it goes on");
    }
    stop.cancel();
    serving.await.expect("it ends");
}

#[tokio::test]
async fn other_machines_are_told_when_something_changes_and_as_a_sign_of_life() {
    let (one, other) = two().await;
    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    let heard = async || {
        let key = crate::storage::keys::heartbeat(&name("carol"));
        one.servers.store.get(&key).await.expect("read").map(|value| value.revision)
    };
    one.hook("s1", "tool").await;
    let first = heard().await;
    one.machine.pass(59_999);
    one.hook("s1", "tool").await;
    assert_eq!(heard().await, first, "nothing has changed");
    one.machine.pass(1);
    one.hook("s1", "tool").await;
    assert_ne!(heard().await, first, "it still lives");

    // Another session of that name is a different one.
    other.hook("s1", "stop").await;
    assert_eq!(other.presence_of("carol").await, "busy: works on another machine, heard 0 s ago");
    assert_eq!(one.presence_of("carol").await, "busy: works, heard 0 s ago");
}

#[tokio::test]
async fn that_a_bare_connection_closed_is_known_on_other_machines() {
    let (one, other) = two().await;
    let connection = crate::testing::call("of-dora");
    assert_eq!(one.register(&connection, "dora").await, "dora");
    assert_eq!(other.presence_of("dora").await, "idle: waits on another machine, heard 0 s ago");
    one.mesh.disconnect(&connection.connection.expect("one")).await.expect("noted");
    assert!(other.presence_of("dora").await.starts_with("offline: its session on another machine ended"));
}

#[tokio::test]
async fn an_agent_of_a_silent_machine_goes_on_here_where_the_store_keeps_no_machines_apart() {
    let (one, other) = two().await;
    assert_eq!(other.say_as("bob", "alice", "before").await, "stored");
    let adopted = async |agent: &str| match other.mesh.adopt(&name(agent)).await {
        Ok(adopted) => format!("{} of {} with {}", adopted.agent, adopted.from, adopted.waiting),
        Err(error) => error.to_string(),
    };
    assert_eq!(adopted("nobody").await, "no agent named `nobody` has joined");
    assert_eq!(adopted("bob").await, "`bob` lives on this machine already");
    assert!(adopted("alice").await.starts_with("`alice` is idle on the machine `one`: "), "{}", adopted("alice").await);
    other.machine.pass(660_000);
    assert_eq!(adopted("alice").await, "alice of one with 1");
    assert_eq!(other.register(&shell_call(None), "alice").await, "alice");
    assert_eq!(other.read("alice").await, "before");
    let refused = one.mesh.identify(&shell_call(Some("alice"))).await.expect_err("refused");
    assert!(refused.to_string().contains("lives on the machine `other`"), "{refused}");
}

#[tokio::test]
async fn a_session_that_its_agent_has_left_tells_other_machines_nothing_of_it() {
    let (one, other) = two().await;
    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    one.hook("s1", "end").await;
    assert_eq!(one.register(&session_call("d", "s2"), "carol").await, "carol", "a name that nobody has");
    one.hook("s2", "stop").await;
    let idle = "idle: waits on another machine, heard 0 s ago";
    assert_eq!(other.presence_of("carol").await, idle);
    // The old one is back and works, but has no agent.
    for did in ["resume", "prompt", "tool"] {
        one.hook("s1", did).await;
        assert_eq!(other.presence_of("carol").await, idle, "{did}");
    }
}

#[tokio::test]
async fn sessions_that_ended_are_put_away_where_no_server_runs_and_other_machines_know_of_it() {
    let (one, other) = two().await;
    one.machine.start(1);
    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    one.hook("s1", "tool").await;
    for session in ["s2", "s3", "s4"] {
        one.hook(session, "start").await;
        one.hook(session, "end").await;
    }
    let listed = async || one.local.list(&crate::storage::keys::sessions()).await.expect("listed").len();
    assert_eq!((listed().await, one.mesh.sessions().await.expect("listed").len()), (4, 1));
    assert_eq!(listed().await, 1, "the next listing reads one record");

    // Its process is killed, so no hook says that it ended.
    one.machine.kill(1);
    one.line(LinkState::Cut);
    assert_eq!(one.mesh.sessions().await.expect("listed").len(), 0);
    assert_eq!(listed().await, 1, "no session was told yet");
    one.line(LinkState::Good);
    assert_eq!(one.mesh.sessions().await.expect("listed").len(), 0);
    assert_eq!(listed().await, 0);
    assert!(other.presence_of("carol").await.starts_with("offline: its session on another machine ended"));
}

/// What is in an agent's record after a loss of power of the servers.
async fn record_after_a_loss_of_power(host: &Host, agent: &str) -> String {
    let left = host.servers.store.crash(Tail::Lost);
    let record = left.get(&keys::meta(&name(agent))).await.expect("read").expect("there");
    String::from_utf8_lossy(&record.bytes).into_owned()
}

#[tokio::test]
async fn a_record_that_was_on_disk_is_not_replaced_by_one_that_a_loss_of_power_takes() {
    let (one, _) = two().await;
    let alice = one.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
    one.mesh.heartbeat(&alice, Some("the parser")).await.expect("noted");
    let left = record_after_a_loss_of_power(&one, "alice").await;
    assert!(left.contains("the parser"), "{left}");

    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    let session = SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
    let profile = Profile { task: Some("the lexer".to_owned()), ..Profile::default() };
    let run = one.mesh.run_joins(session, 1, Some(name("carol")), profile).await.expect("joined");
    assert_eq!(run.agent(), Some(&name("carol")), "it has the name that was there");
    let left = record_after_a_loss_of_power(&one, "carol").await;
    assert!(left.contains("the lexer"), "{left}");
}

#[tokio::test]
async fn who_could_not_register_again_in_a_store_made_anew_does_so_at_the_next_look() {
    let (one, _) = two().await;
    one.servers.made.store(1, Ordering::Relaxed);
    assert!(!one.mesh.notice_stores().await, "it is the first one");
    let key = keys::meta(&name("alice"));
    let record = one.servers.store.get(&key).await.expect("read").expect("there");
    one.servers.store.swap(&key, Some(record.revision), None, Durability::Synced).await.expect("removed");
    one.servers.made.store(2, Ordering::Relaxed);
    one.line(LinkState::Cut);
    assert!(one.mesh.notice_stores().await, "it is another one");
    assert!(!one.mesh.notice_stores().await, "and still out of reach");
    one.line(LinkState::Good);
    assert!(one.mesh.notice_stores().await);
    assert!(one.servers.store.get(&key).await.expect("read").is_some(), "alice is there again");
    assert!(!one.mesh.notice_stores().await, "nothing is left to do");
}

#[tokio::test]
async fn a_line_that_can_never_be_written_holds_up_no_other_log() {
    let (one, _) = two().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let serving = tokio::spawn(Arc::clone(&one.mesh).deliver(crate::Served::Everyone, stop.clone()));
    // Lines are batched from the time of its first run.
    tokio::task::yield_now().await;
    one.line(LinkState::TakesNoLonger(2_000));
    let behind = &one.mesh.core.event_log.write_behind;
    let (first, second) = (keys::sent(&name("alice")), keys::sent(&name("bob")));
    behind.log_line(&first, &"x".repeat(4_000)).await.expect("gathered");
    behind.log_line(&second, &"short").await.expect("gathered");
    behind.write_all().await.expect("the others are written");
    assert!(one.servers.store.end(&second).await.expect("read") > Position::START);
    assert!(behind.unwritten(&first).is_empty(), "it is dropped");
    stop.cancel();
    serving.await.expect("it ends");
}
