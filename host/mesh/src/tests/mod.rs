//! The mesh over the memory store, described in sentences. Only `World` calls the API.

mod adopting;
mod archive;
mod asks;
mod channels;
mod checkpoint;
mod cleanup;
mod conversations;
mod counted;
mod delivery;
mod driven;
mod edits;
mod event_hooks;
mod faults;
mod hand_over;
mod heartbeats;
mod hooks;
mod identity;
mod invitations;
mod leases;
mod loop_guard;
mod machines;
mod model;
mod namespaces;
mod newest_threads;
mod orders;
mod outbox;
mod pausing;
mod presence_events;
mod reservations;
mod retention;
mod runs;
mod scheduler;
mod screens;
mod send;
mod session_changes;
mod tool_threads;
mod turns;
mod wakes;
mod watches;
mod write_behind;

use std::sync::Arc;

use store::memory::MemoryStore;
use store::{Position, Store};

use crate::messages::Draft;
use crate::messages::receipt::DeliveryStatus;
use crate::names::{AgentName, MessageId};
use crate::ports::harness::{HookCall, Reply};
use crate::reservations::Reservation;
use crate::reservations::repository::Repository;
use crate::sessions::{Call, SessionRef};
use crate::storage::keys;
use crate::testing::{FakeHarnesses, FakeMachine, call, shell_call};
use crate::{
    Fetch, HookOutcome, Limits, Mesh, Parts, RegisterOutcome, Registration, RepositoryReservations, ReservationFilter,
    SendError, Sent,
};

/// The reservations, each with its repository.
pub(crate) async fn listed(mesh: &Mesh, filter: &ReservationFilter) -> Vec<(Repository, Reservation)> {
    let all = mesh.reservations(filter).await.expect("readable");
    all.into_iter()
        .flat_map(|RepositoryReservations { repository, reservations }| {
            reservations.into_iter().map(move |one| (repository.clone(), one))
        })
        .collect()
}

/// One mesh, and everything that a test can change.
pub(crate) struct World {
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) machine: Arc<FakeMachine>,
    pub(crate) harnesses: FakeHarnesses,
    pub(crate) store: Arc<MemoryStore>,
}

pub(crate) fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

pub(crate) fn draft(body: &str) -> Draft {
    Draft { body: body.to_owned(), ..Draft::default() }
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> World {
        let store = Arc::new(MemoryStore::default());
        let machine = Arc::new(FakeMachine::default());
        let harnesses = FakeHarnesses::default();
        let mesh = World::mesh_over(&store, &machine, &harnesses, limits);
        World { mesh, machine, harnesses, store }
    }

    fn mesh_over(
        store: &Arc<MemoryStore>,
        machine: &Arc<FakeMachine>,
        harnesses: &FakeHarnesses,
        limits: Limits,
    ) -> Arc<Mesh> {
        Arc::new(Mesh::new(Parts {
            shared: Arc::clone(store) as Arc<dyn Store>,
            local: Arc::clone(store) as Arc<dyn Store>,
            machine: Arc::clone(machine) as Arc<dyn crate::ports::machine::Machine>,
            harnesses: Arc::new(harnesses.clone()),
            limits,
        }))
    }

    /// Another process on the same machine and store.
    pub(crate) fn another_process(&self) -> World {
        let mesh = World::mesh_over(&self.store, &self.machine, &self.harnesses, Limits::default());
        World {
            mesh,
            machine: Arc::clone(&self.machine),
            harnesses: self.harnesses.clone(),
            store: Arc::clone(&self.store),
        }
    }

    /// Registers by a call; returns the name and how it was obtained.
    pub(crate) async fn register(&self, call: &Call, wanted: &str) -> String {
        let caller = self.mesh.identify(call).await.expect("identified");
        let registration = Registration { name: Some(name(wanted)), ..Registration::default() };
        let registered = self.mesh.register(&caller, registration).await.expect("registered");
        let how = match registered.outcome {
            RegisterOutcome::New => "new",
            RegisterOutcome::Same => "same",
            RegisterOutcome::Numbered { .. } => "numbered",
            RegisterOutcome::Reclaimed => "reclaimed",
        };
        format!("{} {how}", registered.agent.name)
    }

    pub(crate) async fn send(&self, call: &Call, to: &str, draft: Draft) -> Result<Sent, SendError> {
        let caller = self.mesh.identify(call).await.expect("identified");
        self.mesh.send(&caller, &[to.to_owned()], draft).await
    }

    /// Sends from the anonymous command line.
    pub(crate) async fn say(&self, to: &str, body: &str) -> MessageId {
        self.send(&shell_call(None), to, draft(body)).await.expect("sent").id
    }

    /// Fetches and confirms; returns the bodies, in order.
    pub(crate) async fn fetch(&self, agent: &str) -> String {
        let fetched = self.mesh.fetch(&name(agent), &Fetch::default()).await.expect("fetched");
        if let Some(lease) = &fetched.lease {
            self.mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
        }
        let bodies: Vec<&str> = fetched.messages.iter().map(|fetched| fetched.message.body.as_str()).collect();
        bodies.join(" ")
    }

    /// The statuses that a message reached, with their routes.
    pub(crate) async fn history(&self, id: MessageId) -> String {
        let person = self.mesh.identify(&shell_call(None)).await.expect("identified");
        let status = self.mesh.message_status(&person, id).await.expect("known");
        let mut words = vec!["stored".to_owned()];
        for recipient in &status.recipients {
            for (status, reached) in &recipient.history.reached {
                words.push(format!("{} by {}", status.as_str(), reached.route));
            }
            if recipient.history.held(crate::ports::machine::Machine::now(self.machine.as_ref())).is_some() {
                words.push("held".to_owned());
            }
            for (route, ..) in &recipient.history.refused {
                words.push(format!("refused by {route}"));
            }
            words.extend(recipient.history.undeliverable.iter().map(|reason| format!("undeliverable: {reason}")));
        }
        words.join(", ")
    }

    /// How many lines the wake file of a session of the fake harness has.
    pub(crate) async fn wake_lines(&self, session: &str) -> usize {
        let session = SessionRef { harness: "fake".to_owned(), id: session.to_owned() };
        let batch = self.store.read(&keys::wake_file(&session), Position::START, 1 << 20).await.expect("readable");
        batch.entries.len()
    }

    /// Runs a hook of the fake harness and confirms its answer; returns what it printed.
    pub(crate) async fn hook(&self, session: &str, did: &str) -> Reply {
        self.hook_of(session, did, Some(1)).await
    }

    /// The same for a session in another process, or in one that the harness does not name.
    pub(crate) async fn hook_of(&self, session: &str, did: &str, pid: Option<u32>) -> Reply {
        let outcome = self.answered_hook(session, did, pid).await;
        let reply = outcome.reply.clone();
        self.mesh.confirm_hook(outcome, did).await.expect("confirmed");
        reply
    }

    /// The same as long as it is not noted that the harness has the answer.
    pub(crate) async fn answered_hook(&self, session: &str, did: &str, pid: Option<u32>) -> HookOutcome {
        let call = HookCall {
            name: did.to_owned(),
            payload: serde_json::json!({ "session": session, "did": did, "pid": pid }).to_string(),
            environment: Vec::new(),
            process: pid.map(|pid| format!("{pid}.1")),
        };
        self.mesh.hook("fake", &call).await.expect("answered")
    }

    /// The mail that a hook showed; empty if it showed none.
    pub(crate) async fn shown(&self, session: &str, did: &str) -> String {
        self.shown_by(session, did, Some(1)).await
    }

    /// The same for a session in another process.
    pub(crate) async fn shown_by(&self, session: &str, did: &str, pid: Option<u32>) -> String {
        let text = self.hook_of(session, did, pid).await.stdout.unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('<')).collect();
        lines.join(" ")
    }

    /// An agent on a plain connection.
    pub(crate) async fn joined(&self, agent: &str) -> Call {
        let call = call(&format!("connection-of-{agent}"));
        let outcome = self.register(&call, agent).await;
        assert_eq!(outcome, format!("{agent} new"));
        call
    }
}

/// A fetch of all messages, settled or not.
pub(crate) fn everything() -> Fetch {
    Fetch { limit: usize::MAX, include_settled: true, ..Fetch::default() }
}
