//! Several machines that share a mesh by servers, and what becomes of it when those are out of reach.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use store::memory::MemoryStore;
use store::{
    AppendError, Batch, Durability, Expect, Hold, Key, Position, Revision, Store, StoreError, SwapError, Versioned,
    Watch,
};

use super::{draft, name};
use crate::harness::HookCall;
use crate::message::Draft;
use crate::session::Call;
use crate::testing::{FakeHarnesses, FakeMachine, session_call, shell_call};
use crate::{Fetch, Limits, Mesh, Parts, Registration, SendError};

/// What a machine's way to the servers is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Good,
    /// Nothing gets through.
    Cut,
    /// What is asked for happens, and the answer is lost on the way.
    LosesAnswers,
}

/// Servers at the end of a line.
struct Servers {
    store: MemoryStore,
    line: Mutex<Line>,
}

impl Servers {
    /// What comes back of an answer.
    fn heard<T, E: From<StoreError>>(&self, answer: Result<T, E>) -> Result<T, E> {
        match *self.line.lock().expect("no test panics while it holds this") {
            Line::Good => answer,
            Line::Cut | Line::LosesAnswers => Err(lost().into()),
        }
    }

    fn reached(&self) -> Result<(), StoreError> {
        match *self.line.lock().expect("no test panics while it holds this") {
            Line::Good | Line::LosesAnswers => Ok(()),
            Line::Cut => Err(lost()),
        }
    }
}

fn lost() -> StoreError {
    let source = io::ErrorKind::TimedOut.into();
    StoreError::Server { doing: "could not reach", what: "the servers".to_owned(), source }
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
        self.heard(self.store.append(log, entries, expect, how).await)
    }

    async fn sync(&self, log: &Key, before: Position) -> Result<(), StoreError> {
        self.heard(self.store.sync(log, before).await)
    }

    async fn read(&self, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
        // Only what changes something is worth losing the answer of.
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
        self.store.list(prefix).await
    }

    async fn watch(&self, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
        self.reached()?;
        self.store.watch(under).await
    }

    async fn hold(&self, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.reached()?;
        self.store.hold(key).await
    }

    fn file_of(&self, _: &Key) -> Option<PathBuf> {
        None
    }
}

/// One machine of several.
struct Host {
    mesh: Arc<Mesh>,
    machine: Arc<FakeMachine>,
    servers: Arc<Servers>,
}

impl Host {
    fn new(named: &'static str, store: &MemoryStore) -> Host {
        let machine = Arc::new(FakeMachine::named(named));
        let servers = Arc::new(Servers { store: store.clone(), line: Mutex::new(Line::Good) });
        let mesh = Arc::new(Mesh::new(Parts {
            shared: Arc::clone(&servers) as Arc<dyn Store>,
            local: Arc::new(MemoryStore::new()),
            machine: Arc::clone(&machine) as Arc<dyn crate::machine::Machine>,
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        }));
        Host { mesh, machine, servers }
    }

    fn line(&self, line: Line) {
        *self.servers.line.lock().expect("no test panics while it holds this") = line;
    }

    async fn register(&self, call: &Call, wanted: &str) -> String {
        let caller = self.mesh.identify(call).await.expect("identified");
        let registration = Registration { name: Some(name(wanted)), ..Registration::default() };
        self.mesh.register(&caller, registration).await.expect("registered").agent.name.to_string()
    }

    /// Sends from the command line, as alice; gives how far it got, or why not.
    async fn send(&self, to: &str, draft: Draft) -> String {
        let caller = self.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
        match self.mesh.send(&caller, &[to.to_owned()], draft).await {
            Ok(sent) => sent.recipients.iter().map(|to| to.rung.as_str()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    async fn say(&self, to: &str, body: &str) -> String {
        self.send(to, draft(body)).await
    }

    /// What waits here, and what came back.
    async fn outbox(&self) -> String {
        let queued = self.mesh.queued().await.expect("listed");
        let one = |one: &crate::Queued| {
            let back = one.returned.iter().map(|(to, why)| format!(" came back from {to}: {why}")).collect::<String>();
            let to = one.to.iter().map(|to| format!(" waits for {to}")).collect::<String>();
            format!("{}{to}{back}", one.subject)
        };
        queued.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    async fn read(&self, agent: &str) -> String {
        let fetched =
            self.mesh.fetch(&name(agent), &Fetch { include_settled: true, ..Fetch::default() }).await.expect("fetched");
        fetched.messages.iter().map(|one| one.message.body.as_str()).collect::<Vec<_>>().join(", ")
    }

    async fn hook(&self, session: &str, did: &str) {
        let payload = serde_json::json!({ "session": session, "did": did, "pid": 1 }).to_string();
        let call = HookCall { name: did.to_owned(), payload, environment: Vec::new(), process: None };
        let outcome = self.mesh.hook("fake", &call).await.expect("answered");
        self.mesh.confirm_hook(outcome, did).await.expect("confirmed");
    }

    async fn presence_of(&self, agent: &str) -> String {
        let seen = self.mesh.agent(&name(agent)).await.expect("asked").expect("known");
        format!("{}: {}", seen.presence.as_str(), seen.evidence)
    }
}

/// Alice's machine and Bob's.
async fn two() -> (Host, Host) {
    let store = MemoryStore::new();
    let (one, other) = (Host::new("one", &store), Host::new("other", &store));
    assert_eq!(one.register(&shell_call(None), "alice").await, "alice");
    assert_eq!(other.register(&shell_call(None), "bob").await, "bob");
    (one, other)
}

#[tokio::test]
async fn what_cannot_be_handed_over_waits_and_is_stored_once_and_in_order() {
    for line in [Line::Cut, Line::LosesAnswers] {
        for key in [None, Some("key".to_owned())] {
            let (one, other) = two().await;
            one.line(line);
            let first = Draft { idempotency_key: key, ..draft("one") };
            assert_eq!(one.send("bob", first).await, "queued", "{line:?}");
            assert_eq!(one.say("bob", "two").await, "queued", "{line:?}");
            assert_eq!(one.outbox().await, "one waits for bob; two waits for bob", "{line:?}");
            one.line(Line::Good);
            assert_eq!(one.say("bob", "three").await, "stored", "{line:?}");
            assert_eq!(one.outbox().await, "", "{line:?}");
            assert_eq!(other.read("bob").await, "one, two, three", "{line:?}");
        }
    }
}

#[tokio::test]
async fn a_long_lived_process_sends_what_waits_by_itself() {
    let (one, other) = two().await;
    one.line(Line::Cut);
    assert_eq!(one.say("bob", "one").await, "queued");
    one.line(Line::Good);
    let stop = tokio_util::sync::CancellationToken::new();
    let mut watch = other.mesh.watch_inbox(&name("bob")).await.expect("watched");
    let serving = tokio::spawn(Arc::clone(&one.mesh).deliver(crate::Served::Everyone, stop.clone()));
    watch.changed().await.expect("it came");
    stop.cancel();
    serving.await.expect("it ends");
    assert_eq!(other.read("bob").await, "one");
}

#[tokio::test]
async fn a_message_that_can_be_sent_to_nobody_comes_back_with_the_reason() {
    let (one, _) = two().await;
    one.line(Line::Cut);
    assert_eq!(one.say("nobody", "hello").await, "queued");
    assert!(one.say("No Body!", "hello").await.contains("is not a name"), "what can never be sent is refused at once");
    let person = one.mesh.identify(&shell_call(None)).await.expect("identified");
    let id = one.mesh.queued().await.expect("listed")[0].id;
    let status = |status: crate::MessageStatus| {
        let ladder = &status.recipients[0].ladder;
        format!("{} {}", ladder.rung().as_str(), ladder.undeliverable.clone().unwrap_or_default())
    };
    let told = one.mesh.message_status(&person, id).await.expect("known");
    assert_eq!(status(told), "queued ");
    one.line(Line::Good);
    assert_eq!(one.say("bob", "something else").await, "stored");
    assert_eq!(one.outbox().await, "hello came back from nobody: no agent named `nobody` has joined");
    let told = one.mesh.message_status(&person, id).await.expect("known");
    assert_eq!(status(told), "queued no agent named `nobody` has joined");
}

#[tokio::test]
async fn what_cannot_be_promised_is_refused() {
    let (one, _) = two().await;
    one.line(Line::Cut);
    let caller = one.mesh.identify(&shell_call(Some("alice"))).await.expect("known here without the servers");
    let everyone = one.mesh.broadcast(&caller, &crate::Audience::default(), draft("all")).await;
    assert!(matches!(everyone, Err(SendError::Unreadable(error)) if error.is_out_of_reach()), "who is everyone?");
    let stranger = one.mesh.identify(&shell_call(Some("bob"))).await;
    assert!(stranger.is_err(), "bob was registered elsewhere");
}

#[tokio::test]
async fn a_machine_shows_what_it_last_saw() {
    let (one, _) = two().await;
    one.line(Line::Cut);
    assert!(one.mesh.agents().await.is_err(), "it has seen nobody yet");
    one.line(Line::Good);
    assert_eq!(one.mesh.agents().await.expect("listed").len(), 2);
    one.machine.pass(300_000);
    one.line(Line::Cut);
    let seen = one.mesh.agents().await.expect("remembered");
    let words: Vec<String> =
        seen.iter().map(|seen| format!("{} {}: {}", seen.agent.name, seen.presence.as_str(), seen.evidence)).collect();
    let faded = "5 min ago: idle, heard 0 s ago; the servers cannot be reached since";
    assert_eq!(words, [format!("alice away: {faded}"), format!("bob away: {faded}")]);
    let status = one.mesh.status().await.expect("told");
    assert_eq!((status.agents.len(), status.out_of_reach.as_deref()), (2, Some("could not reach the servers")));
}

#[tokio::test]
async fn what_a_session_does_is_known_on_other_machines() {
    let (one, other) = two().await;
    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    one.hook("s1", "prompt").await;
    assert_eq!(other.presence_of("carol").await, "live: works on another machine, heard 0 s ago");
    one.hook("s1", "stop").await;
    assert_eq!(other.presence_of("carol").await, "idle: waits on another machine, heard 0 s ago");
    other.machine.pass(660_000);
    assert_eq!(other.presence_of("carol").await, "away: nothing heard from its machine for 11 min");
    assert_eq!(one.presence_of("carol").await, "idle: waits, heard 0 s ago", "its own machine sees more");
    one.hook("s1", "end").await;
    assert!(other.presence_of("carol").await.starts_with("gone: its session on another machine ended"));
}

#[tokio::test]
async fn a_command_line_speaks_for_its_own_machine_alone() {
    let (one, other) = two().await;
    assert_eq!(other.register(&shell_call(None), "alice").await, "alice-2", "alice lives elsewhere");
    assert_eq!(one.register(&shell_call(None), "alice").await, "alice", "and keeps her name");
    let refused = other.mesh.identify(&shell_call(Some("alice"))).await.expect_err("refused");
    assert_eq!(refused.to_string(), "`alice` lives on the machine `one`, and only there a command line speaks for it");
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
async fn what_is_noted_beside_a_sending_is_known_at_once_and_written_in_the_end() {
    let (one, _) = two().await;
    let call = session_call("c", "s1");
    assert_eq!(one.register(&call, "carol").await, "carol");
    let stop = tokio_util::sync::CancellationToken::new();
    let serving = tokio::spawn(Arc::clone(&one.mesh).deliver(crate::Served::Everyone, stop.clone()));
    // Lines are gathered from the first time on that it runs.
    tokio::task::yield_now().await;
    let carol = one.mesh.identify(&call).await.expect("identified");
    let sent = one.mesh.send(&carol, &["bob".to_owned()], draft("hello")).await.expect("sent");
    let status = one.mesh.message_status(&carol, sent.id).await.expect("she knows what she sent");
    assert_eq!(status.recipients[0].to, name("bob"));
    stop.cancel();
    serving.await.expect("it ends");
    let there = one.servers.store.end(&crate::keys::sent(&name("carol"))).await.expect("read");
    assert!(there > Position::START, "whoever asks later finds it written");
}
