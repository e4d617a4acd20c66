//! The delivery loop: brings stored messages to live sessions by the adapters' routes.
//!
//! The process that stores a message also writes to the recipient's wake file, so most mail does not need this loop. It
//! tries the other routes, in the adapter's order and with each one's timeout, in the process that holds the session's
//! lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use store::{Key, StoreError, Watch};
use tokio_util::sync::CancellationToken;

use crate::agents;
use crate::agents::remote_presence;
use crate::cleanup;
use crate::core::Core;
use crate::delivery::backoff::spaced;
use crate::delivery::scheduler::{Passes, Turn};
use crate::messages::Priority;
use crate::messages::hand_over;
use crate::messages::inbox::Slot;
use crate::messages::inboxes::Inboxes;
use crate::messages::outbox::Outbox;
use crate::names::AgentName;
use crate::ports::data_files::NoDataFiles;
use crate::ports::machine::Instant;
use crate::sessions::connections::Connections;
use crate::sessions::heartbeat;
use crate::sessions::record;
use crate::sessions::{ConnectionId, SessionRecord};
use crate::storage::keys;
use crate::{DryRun, Mesh, Scope};

/// Whose mail a process delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// Every session of this machine: the long-lived server.
    Everyone,
    /// The agents that registered on this connection: `relay-mesh mcp`.
    Connection(ConnectionId),
}

/// How long to collect a burst of changes before reacting.
const BURST: Duration = Duration::from_millis(5);
/// How long to wait after a first error, or for another process's lease.
pub(crate) const RETRY: Duration = Duration::from_secs(2);
/// After how many milliseconds to look again at what is damaged and nobody has changed since.
const MENDED_BY: u64 = 60_000;
/// Rounds that ran this many milliseconds count as a success, which resets the backoff.
const WELL: u64 = 60_000;
/// How often the long-lived server deletes what expired. The binary runs the rest of the cleanup, once a day.
const HOUSEKEEPING: Duration = Duration::from_secs(3_600);

impl Mesh {
    /// Delivers until `stop` is cancelled. Logs errors and retries.
    pub async fn deliver(self: Arc<Self>, served: Served, stop: CancellationToken) {
        let housekeeper = async {
            if served == Served::Everyone {
                tokio::join!(keep_house(&self.core, &self.inboxes), self.keep_noticing_silence());
            }
            std::future::pending::<()>().await;
        };
        let for_servers = async {
            if self.core.topology.has_other_machines() {
                let write_behind = self.core.event_log.write_behind.keep_writing();
                tokio::join!(
                    self.keep_sending_what_waits(),
                    remote_presence::keep_telling(&self.core, &self.connections, &served),
                    write_behind
                );
            }
            std::future::pending::<()>().await;
        };
        let rounds = async {
            let mut failed = 0;
            let mut told = false;
            loop {
                let began = self.core.machine.now();
                if let Err(error) = self.rounds(&served).await {
                    let is_out_of_reach = error.is_out_of_reach();
                    let error: &dyn std::error::Error = &error;
                    // Servers may be unreachable for a long time: warn only once.
                    if is_out_of_reach && told {
                        tracing::debug!(error, "delivery is still interrupted");
                    } else {
                        tracing::warn!(error, "delivery is interrupted and will be tried again");
                    }
                    told = is_out_of_reach;
                }
                // After a while without errors, this failure has another cause than the last one.
                failed = if self.core.machine.now().since(began) > WELL { 0 } else { failed };
                let wait = spaced(RETRY.as_millis() as u64, failed);
                failed += 1;
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = housekeeper => {}
            () = for_servers => {}
            () = heartbeat::keep_beating(&self.core, &self.connections, &served) => {}
            () = self.keep_running_commands(&served) => {}
            () = rounds => {}
        }
        if let Err(error) = self.core.event_log.write_behind.write_all().await {
            tracing::debug!(%error, "the last lines of the event log are lost");
        }
    }

    /// Sends the messages in the outbox as soon as the servers are reachable again.
    async fn keep_sending_what_waits(&self) {
        loop {
            let round = async {
                // Watch before reading, so that no change in between is lost.
                let mut watch = self.core.local.watch(&[keys::outbox()]).await?;
                while self.send_what_waits().await? == Outbox::Done {
                    watch.changed().await?;
                }
                Ok::<(), StoreError>(())
            };
            if let Err(error) = round.await {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "the outbox waits");
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Checks for mail to deliver whenever something changed or is due. Returns only with an error.
    async fn rounds(self: &Arc<Self>, served: &Served) -> Result<(), StoreError> {
        let mut passes = Passes::default();
        let mut watching: Option<(Watched, Either)> = None;
        loop {
            let joined = self.delivery.joined.notified();
            tokio::pin!(joined);
            joined.as_mut().enable();
            let clients = self::clients(&self.core, &self.connections, served).await?;
            if let Served::Connection(connection) = served
                && self.connections.agents_by(connection).len() > clients.len()
            {
                // A record may be damaged. Nothing watches it, so nothing tells that it was mended.
                passes.look_again_in(MENDED_BY);
            }
            // Watch before reading, so that no change in between is lost. Keep the watch while the keys stay the same:
            // on servers each new watch is a round trip.
            let watched = self::watched(&self.core, served, &clients);
            let (_, watch) = match watching.take().filter(|(before, _)| *before == watched) {
                Some(same) => watching.insert(same),
                None => {
                    let watch = watch_all(&self.core, &watched).await?;
                    watching.insert((watched, watch))
                }
            };
            // Sessions whose pass was still running: each gets another one as soon as that ends. Only they, because a
            // round that begins all passes again while some run would never come to an end.
            let mut skipped = BTreeMap::new();
            for (agent, record) in clients {
                let waits = match has_deliverable(&self.core, &self.inboxes, &agent).await {
                    Err(error) if !error.is_out_of_reach() => {
                        tracing::warn!(%error, %agent, "its mail could not be looked at");
                        passes.look_again_in(MENDED_BY);
                        false
                    }
                    looked => looked?,
                };
                if !waits && let Some(wait) = free_in(&self.core, &self.inboxes, &agent).await {
                    passes.look_again_in(wait);
                }
                if waits && !self.begin_pass(&mut passes, &agent, &record) {
                    skipped.insert(record.session.clone(), (agent, record));
                }
            }
            loop {
                tokio::select! {
                    () = joined.as_mut() => break,
                    changed = watch.changed() => {
                        changed?;
                        tokio::time::sleep(BURST).await;
                        break;
                    }
                    turn = passes.next() => {
                        match turn {
                            Turn::Due => break,
                            Turn::Ended(session, outcome) => {
                                // What is wrong with one session's records must not stop the others' mail.
                                let wait = match outcome {
                                    Err(error) if !error.is_out_of_reach() => {
                                        tracing::warn!(%error, session = session.id, "its mail waits");
                                        Some(MENDED_BY)
                                    }
                                    outcome => outcome?,
                                };
                                if let Some(wait) = wait {
                                    passes.look_again_in(wait);
                                }
                                if let Some((agent, record)) = skipped.remove(&session) {
                                    self.begin_pass(&mut passes, &agent, &record);
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Begins a pass over a session's mail. Returns false if one is running already.
    fn begin_pass(self: &Arc<Self>, passes: &mut Passes, agent: &AgentName, record: &SessionRecord) -> bool {
        let (mesh, agent, record) = (Arc::clone(self), agent.clone(), record.clone());
        passes.begin(record.session.clone(), async move { mesh.serve_session(&agent, &record).await })
    }
}

async fn keep_house(core: &Core, inboxes: &Inboxes) {
    let mut tick = tokio::time::interval(HOUSEKEEPING);
    loop {
        tick.tick().await;
        if let Err(error) = cleanup::clean_up(core, inboxes, (Scope::Expired, DryRun::No, None), &NoDataFiles).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "the cleanup failed");
        }
    }
}

/// The keys that change if these clients get mail, or if further clients appear.
fn watched(core: &Core, served: &Served, clients: &[(AgentName, SessionRecord)]) -> Watched {
    let inboxes = || clients.iter().map(|(agent, _)| keys::inbox(agent));
    match served {
        Served::Everyone => {
            let of_clients = || {
                let receipts = clients.iter().map(|(agent, _)| keys::receipts(agent));
                inboxes().chain(receipts).collect()
            };
            Watched { shared: core.topology.keys_to_watch(keys::agents(), of_clients), local: vec![keys::sessions()] }
        }
        // The server of one client must not wake for other agents' mail.
        Served::Connection(_) => Watched {
            shared: inboxes().collect(),
            local: clients.iter().map(|(_, record)| keys::session(&record.session)).collect(),
        },
    }
}

async fn watch_all(core: &Core, watched: &Watched) -> Result<Either, StoreError> {
    let shared = core.shared.watch(&watched.shared).await?;
    Ok(Either(shared, core.local.watch(&watched.local).await?))
}

/// The agents whose mail this process delivers, each with its live session on this machine.
pub(crate) async fn clients(
    core: &Core,
    connections: &Connections,
    served: &Served,
) -> Result<Vec<(AgentName, SessionRecord)>, StoreError> {
    let records: Vec<SessionRecord> = match served {
        Served::Everyone => record::sessions(core).await?.into_iter().map(|view| view.record).collect(),
        Served::Connection(connection) => {
            let mut records = Vec::new();
            for agent in connections.agents_by(connection) {
                match session_of(core, &agent).await {
                    // A damaged record must hide only its own agent.
                    Err(error @ StoreError::Damaged { .. }) => tracing::warn!(%agent, %error, "an agent is skipped"),
                    found => records.extend(found?),
                }
            }
            records
        }
    };
    Ok(records.into_iter().filter_map(|record| record.agent.clone().map(|agent| (agent, record))).collect())
}

async fn session_of(core: &Core, agent: &AgentName) -> Result<Option<SessionRecord>, StoreError> {
    match agents::list::load_agent(core, agent).await?.and_then(|agent| agent.session) {
        Some(session) => record::session_record(core, &session).await,
        None => Ok(None),
    }
}

/// Whether an agent has mail that a route could carry.
pub(crate) async fn has_deliverable(core: &Core, inboxes: &Inboxes, agent: &AgentName) -> Result<bool, StoreError> {
    let inbox = inboxes.of(agent);
    let mut inbox = inbox.lock().await;
    hand_over::refresh(core, &mut inbox, agent).await?;
    let now = core.machine.now();
    Ok(inbox.open.presentable(now).any(|slot| deliverable(slot, now)))
}

/// After how many milliseconds the first of an agent's mail is free that is leased, or held until a time. No change in
/// the store tells of that.
async fn free_in(core: &Core, inboxes: &Inboxes, agent: &AgentName) -> Option<u64> {
    let inbox = inboxes.of(agent);
    let inbox = inbox.lock().await;
    let now = core.machine.now();
    let ends = inbox.open.all().filter(|slot| slot.header.priority > Priority::Low).filter_map(|slot| {
        let history = &slot.history;
        let lease = history.lease.as_ref().filter(|_| history.is_leased(now)).map(|lease| lease.until);
        let hold = history.hold.as_ref().and_then(|hold| hold.until).filter(|until| now < *until);
        lease.max(hold)
    });
    ends.min().map(|until| until.since(now))
}

/// The watched keys, in the shared and in the local store.
#[derive(PartialEq, Eq)]
struct Watched {
    shared: Vec<Key>,
    local: Vec<Key>,
}

pub(super) fn deliverable(slot: &Slot, now: Instant) -> bool {
    slot.header.priority > Priority::Low && slot.history.held(now).is_none()
}

/// A watch that reports changes of either of two watches.
pub(crate) struct Either(pub(crate) Box<dyn store::Watch>, pub(crate) Box<dyn store::Watch>);

#[async_trait::async_trait]
impl store::Watch for Either {
    async fn changed(&mut self) -> Result<(), StoreError> {
        tokio::select! {
            one = self.0.changed() => one,
            other = self.1.changed() => other,
        }
    }
}
