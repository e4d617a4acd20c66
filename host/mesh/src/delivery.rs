//! Delivery: bringing stored messages to live sessions by the adapters' routes.
//!
//! Whoever stores a message also rings the recipient's bell, so most mail needs nothing of this.
//! What is here tries the further routes, in the adapter's order and with each one's patience, in
//! whichever process holds the session's lease.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use store::{Durability, StoreError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::bell::{ROUTE, Ring};
use crate::caller::CONNECTION;
use crate::harness::{Delivered, Harness, HarnessError, Load, Mail, Route};
use crate::inbox::{Inbox, Slot};
use crate::machine::Instant;
use crate::message::Priority;
use crate::names::{AgentName, MessageId};
use crate::receipt::{Event, Ladder};
use crate::roster::of_record;
use crate::session::{Activity, ConnectionId, Session, SessionRecord, SessionRef};
use crate::{Mesh, envelope, keys};

/// Whose mail a process delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// Every session of this machine: the long-lived host.
    Everyone,
    /// The agents that registered on this connection: `relay-mesh mcp`.
    Connection(ConnectionId),
}

/// How long a burst of changes is collected before it is looked at.
const BURST: Duration = Duration::from_millis(5);
/// How often the bell is rung for a message. More than once, for a session that has only just
/// begun does not watch its bell yet.
const MOST_RINGS: u32 = 2;
/// How long to wait after a fault, or for another process's lease.
const RETRY: Duration = Duration::from_secs(2);
/// How often the long-lived host retires what is old.
const HOUSEKEEPING: Duration = Duration::from_secs(3_600);

impl Mesh {
    /// Delivers until it is told to stop. Faults are logged and tried again; it returns only then.
    pub async fn deliver(self: Arc<Self>, served: Served, stop: CancellationToken) {
        let housekeeper = async {
            if served == Served::Everyone {
                self.keep_house().await;
            }
            std::future::pending::<()>().await;
        };
        let rounds = async {
            loop {
                if let Err(error) = self.rounds(&served).await {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "delivery is interrupted and will be tried again");
                }
                tokio::time::sleep(RETRY).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = housekeeper => {}
            () = rounds => {}
        }
    }

    async fn keep_house(&self) {
        let mut tick = tokio::time::interval(HOUSEKEEPING);
        loop {
            tick.tick().await;
            if let Err(error) = self.retire_old().await {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "old mail is not retired");
            }
        }
    }

    /// Looks for mail to deliver whenever something changed or is due. Returns only with a fault.
    async fn rounds(self: &Arc<Self>, served: &Served) -> Result<(), StoreError> {
        let mut tasks: JoinSet<(SessionRef, Result<Option<u64>, StoreError>)> = JoinSet::new();
        let mut running: BTreeSet<SessionRef> = BTreeSet::new();
        let mut due: Option<tokio::time::Instant> = None;
        loop {
            let joined = self.joined.notified();
            tokio::pin!(joined);
            joined.as_mut().enable();
            let clients = self.clients(served).await?;
            // Watching begins before looking, so that nothing can come in between.
            let mut watch = self.watch_for(served, &clients).await?;
            let mut passed_over = false;
            for (agent, record) in clients {
                let session = record.session.clone();
                if !self.has_deliverable(&agent).await? {
                    continue;
                }
                if running.insert(session.clone()) {
                    let mesh = Arc::clone(self);
                    tasks.spawn(async move { (session, mesh.serve_session(&agent, &record).await) });
                } else {
                    passed_over = true;
                }
            }
            loop {
                let timer = async {
                    match due {
                        Some(due) => tokio::time::sleep_until(due).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = joined.as_mut() => break,
                    () = timer => { due = None; break; }
                    changed = watch.changed() => {
                        changed?;
                        tokio::time::sleep(BURST).await;
                        break;
                    }
                    Some(finished) = tasks.join_next() => {
                        let wait = match finished {
                            Ok((session, outcome)) => {
                                running.remove(&session);
                                outcome?
                            }
                            // A panic in an adapter's call costs this pass; the next one looks again.
                            Err(error) => {
                                tracing::error!(%error, "a delivery ended badly");
                                running.clear();
                                Some(RETRY.as_millis() as u64)
                            }
                        };
                        if let Some(wait) = wait {
                            let at = tokio::time::Instant::now() + Duration::from_millis(wait.max(10));
                            due = Some(due.map_or(at, |due| due.min(at)));
                        }
                        // Mail came for a session while it was being served: it is served again.
                        if passed_over {
                            break;
                        }
                    }
                }
            }
        }
    }

    async fn watch_for(
        &self,
        served: &Served,
        clients: &[(AgentName, SessionRecord)],
    ) -> Result<Box<dyn store::Watch>, StoreError> {
        match served {
            Served::Everyone => {
                let shared = self.shared.watch(&[keys::agents()]).await?;
                let local = self.local.watch(&[keys::sessions()]).await?;
                Ok(Box::new(Either(shared, local)))
            }
            Served::Connection(_) => {
                // One client's server does not wake for the mail of others.
                let inboxes: Vec<_> = clients.iter().map(|(agent, _)| keys::inbox(agent)).collect();
                let sessions: Vec<_> = clients.iter().map(|(_, record)| keys::session(&record.session)).collect();
                let shared = self.shared.watch(&inboxes).await?;
                let local = self.local.watch(&sessions).await?;
                Ok(Box::new(Either(shared, local)))
            }
        }
    }

    /// The agents whose mail is ours to deliver, each with its live session on this machine.
    async fn clients(&self, served: &Served) -> Result<Vec<(AgentName, SessionRecord)>, StoreError> {
        let records: Vec<SessionRecord> = match served {
            Served::Everyone => self.sessions().await?.into_iter().map(|view| view.record).collect(),
            Served::Connection(connection) => {
                let mut records = Vec::new();
                for agent in self.agents_by(connection) {
                    if let Some(session) = self.load_agent(&agent).await?.and_then(|agent| agent.session) {
                        records.extend(self.session_record(&session).await?);
                    }
                }
                records
            }
        };
        Ok(records.into_iter().filter_map(|record| record.agent.clone().map(|agent| (agent, record))).collect())
    }

    /// Whether an agent has mail that a route might carry.
    async fn has_deliverable(&self, agent: &AgentName) -> Result<bool, StoreError> {
        let inbox = self.inbox_of(agent);
        let mut inbox = inbox.lock().await;
        inbox.refresh(self.shared.as_ref(), agent).await?;
        let now = self.machine.now();
        Ok(inbox.presentable(now).into_iter().any(deliverable))
    }

    /// One pass over a session's mail. Gives after how many milliseconds it is worth another.
    async fn serve_session(&self, agent: &AgentName, listed: &SessionRecord) -> Result<Option<u64>, StoreError> {
        let Some(_lease) = self.local.hold(&keys::delivery(&listed.session)).await? else {
            return Ok(Some(RETRY.as_millis() as u64));
        };
        // Read again under the lease, this time with its route hint.
        let Some(record) = self.session_record(&listed.session).await? else { return Ok(None) };
        let activity = self.activity(&record);
        let harness = match self.harnesses.get(&record.session.harness).await {
            Ok(Some(harness)) => harness,
            Ok(None) => {
                let reason = format!("no adapter for `{}` is installed here", record.session.harness);
                if record.session.harness != CONNECTION {
                    self.give_up(agent, |ladder| is_untouched(ladder).then(|| reason.clone())).await?;
                }
                return Ok(None);
            }
            Err(error) => {
                tracing::warn!(%error, harness = record.session.harness, "the adapter cannot be used");
                return Ok(Some(RETRY.as_millis() as u64));
            }
        };
        let session = of_record(&record);
        let routes: Vec<Route> = match harness.routes(&session).await {
            Ok(routes) => routes.into_iter().filter(|route| route.name != ROUTE || record.hears_bell).collect(),
            Err(error) => {
                tracing::warn!(%error, harness = record.session.harness, "the adapter names no routes");
                return Ok(Some(RETRY.as_millis() as u64));
            }
        };
        let mut soonest: Option<u64> = None;
        let mut batches: Vec<Vec<Slot>> = routes.iter().map(|_| Vec::new()).collect();
        {
            let inbox = self.inbox_of(agent);
            let mut inbox = inbox.lock().await;
            inbox.refresh(self.shared.as_ref(), agent).await?;
            let now = self.machine.now();
            for slot in inbox.presentable(now).into_iter().filter(|slot| deliverable(slot)) {
                match next_step(now, &slot.ladder, &routes, activity) {
                    Step::Nothing => {}
                    Step::Wait(until) => {
                        let wait = until.since(now);
                        soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
                    }
                    Step::Try(route) => batches[route].push(slot.clone()),
                }
            }
        }
        for (route, slots) in routes.iter().zip(batches).filter(|(_, slots)| !slots.is_empty()) {
            let wait = self.try_route(agent, harness.as_ref(), &session, route, &slots).await?;
            soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
        }
        // A bare connection has nothing that could wake it, and asks for its mail by itself.
        if record.session.harness != CONNECTION {
            self.give_up(agent, |ladder| refused_by_all(ladder, &routes)).await?;
        }
        Ok(soonest)
    }

    /// Tells the senders of what can be brought to nobody, once each. It stays in the inbox, where a
    /// hook or a fetch may still find it.
    async fn give_up(
        &self,
        agent: &AgentName,
        why: impl Fn(&Ladder) -> Option<String> + Send,
    ) -> Result<(), StoreError> {
        let given_up: Vec<(MessageId, String)> = {
            let inbox = self.inbox_of(agent);
            let mut inbox = inbox.lock().await;
            inbox.refresh(self.shared.as_ref(), agent).await?;
            let slots = inbox.presentable(self.machine.now()).into_iter().filter(|slot| deliverable(slot));
            slots.filter_map(|slot| Some((slot.header.id, why(&slot.ladder)?))).collect()
        };
        for (id, reason) in given_up {
            self.receipt(agent, &[id], &Event::Undeliverable { reason }, Durability::Process).await?;
        }
        Ok(())
    }

    /// Tries one route for some messages. Gives after how many milliseconds to look again.
    async fn try_route(
        &self,
        agent: &AgentName,
        harness: &dyn Harness,
        session: &Session,
        route: &Route,
        slots: &[Slot],
    ) -> Result<u64, StoreError> {
        if route.name == ROUTE {
            for slot in slots {
                let Some(to) = self.load_agent(agent).await? else { continue };
                let header = &slot.header;
                let ring = Ring {
                    id: header.id,
                    from: header.from.clone(),
                    priority: header.priority,
                    hops: header.trace.hops,
                };
                let record = self.traces(&to).await?.record;
                self.ring(&to, record.as_ref(), &ring).await?;
            }
            return Ok(u64::from(route.patience));
        }
        let wanted: BTreeSet<_> = slots.iter().map(|slot| slot.header.id).collect();
        let outcome = match route.load {
            Load::Bell => {
                let mail = news(slots);
                let outcome = harness.deliver(session, &route.name, &mail).await;
                outcome.map(|delivered| (mail.ids, delivered))
            }
            Load::Letter => {
                let pick = |inbox: &Inbox, now: Instant| -> Vec<Slot> {
                    let slots = inbox.presentable(now).into_iter();
                    slots.filter(|slot| wanted.contains(&slot.header.id)).cloned().collect()
                };
                let (slots, claim, _) = self.claim(agent, pick).await?;
                let Some(mut claim) = claim else { return Ok(u64::from(route.patience)) };
                let mut messages = Vec::new();
                for slot in &slots {
                    messages.push(self.message_at(agent, slot.at).await?);
                }
                let (text, taken) = envelope(&messages, route.room as usize);
                let rest = crate::Claim { messages: claim.messages.split_off(taken), ..claim.clone() };
                self.release(rest).await.map_err(store_fault)?;
                let priority = messages.iter().take(taken).map(|message| message.priority).max().unwrap_or_default();
                let mail = Mail { ids: claim.messages.clone(), text, priority };
                let delivered = match harness.deliver(session, &route.name, &mail).await {
                    Ok(sent) => Ok(self.wait_for_proof(harness, session, route, sent).await),
                    Err(error) => Err(error),
                };
                match &delivered {
                    Ok(delivered) if delivered.rung.settles() => {
                        self.confirm(&claim, delivered.rung, &route.name, evidence(delivered))
                            .await
                            .map_err(store_fault)?;
                        return Ok(u64::from(route.patience));
                    }
                    // What the harness took may still be shown, so nobody else may show it until the
                    // claim lapses by itself.
                    Ok(_) => {}
                    Err(_) => self.release(claim.clone()).await.map_err(store_fault)?,
                }
                delivered.map(|delivered| (claim.messages, delivered))
            }
        };
        match outcome {
            Ok((ids, delivered)) => {
                let event =
                    Event::Rung { rung: delivered.rung, route: route.name.clone(), evidence: evidence(&delivered) };
                self.receipt(agent, &ids, &event, Durability::Process).await?;
                Ok(u64::from(route.patience))
            }
            Err(HarnessError::Busy(wait)) => Ok(u64::from(wait)),
            Err(error) => {
                let ids: Vec<_> = wanted.into_iter().collect();
                let event = Event::Refused { route: route.name.clone(), reason: error.to_string() };
                self.receipt(agent, &ids, &event, Durability::Process).await?;
                Ok(0)
            }
        }
    }

    /// Asks the adapter again, at growing intervals, until the route has proved what it can or its
    /// patience is at an end.
    async fn wait_for_proof(
        &self,
        harness: &dyn Harness,
        session: &Session,
        route: &Route,
        sent: Delivered,
    ) -> Delivered {
        let mut best = sent;
        let mut interval = 50;
        let mut waited = 0;
        while best.rung < route.proves && waited < u64::from(route.patience) {
            tokio::time::sleep(Duration::from_millis(interval)).await;
            waited += interval;
            interval = (interval * 2).min(2_000);
            match harness.confirm(session, &route.name, &best).await {
                Ok(next) if next.rung > best.rung => best = next,
                Ok(_) | Err(HarnessError::Busy(_)) => {}
                Err(error) => {
                    tracing::debug!(%error, route = route.name, "the route proves no more");
                    break;
                }
            }
        }
        best
    }
}

/// A store's fault from a verb that can fail in no other way.
fn store_fault(error: crate::FetchError) -> StoreError {
    match error {
        crate::FetchError::Store(error) => error,
    }
}

fn evidence(delivered: &Delivered) -> Option<serde_json::Value> {
    delivered.evidence.as_ref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()))
}

fn deliverable(slot: &Slot) -> bool {
    slot.header.priority > Priority::Low && slot.ladder.held.is_none()
}

/// The news that mail waits. It says from whom, and nothing of what they wrote.
fn news(slots: &[Slot]) -> Mail {
    let senders: BTreeSet<&str> = slots.iter().map(|slot| slot.header.from.as_str()).collect();
    let senders = senders.into_iter().take(5).collect::<Vec<_>>().join(", ");
    let text = match slots.len() {
        1 => format!("A relay-mesh message from {senders} waits. Call fetch_messages to read it."),
        many => format!("{many} relay-mesh messages from {senders} wait. Call fetch_messages to read them."),
    };
    Mail {
        ids: slots.iter().map(|slot| slot.header.id).collect(),
        text,
        priority: slots.iter().map(|slot| slot.header.priority).max().unwrap_or_default(),
    }
}

/// What to do about one message now.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// No route is left, or none fits what the session does. A change of either is looked at again.
    Nothing,
    /// The route tried last still has time to work.
    Wait(Instant),
    /// This route is next.
    Try(usize),
}

/// Routes are tried in order, each once but for the bell, and the next one only when the last one's patience has run
/// out or it refused. A session that waits for its person is left alone.
fn next_step(now: Instant, ladder: &Ladder, routes: &[Route], activity: Activity) -> Step {
    match activity {
        Activity::AwaitingHuman | Activity::Gone => return Step::Nothing,
        Activity::Idle | Activity::Busy => {}
    }
    for (index, route) in routes.iter().enumerate() {
        match ladder.tried.get(&route.name) {
            Some((times, at)) => {
                let refused = refusal(ladder, route).is_some();
                let until = at.plus(u64::from(route.patience));
                if !refused && now < until {
                    return Step::Wait(until);
                }
                if route.name == ROUTE && *times < MOST_RINGS && route.when.contains(&activity) {
                    return Step::Try(index);
                }
            }
            None if route.when.contains(&activity) => return Step::Try(index),
            None => {}
        }
    }
    Step::Nothing
}

/// Why a message cannot be brought to a session, where each of its routes has refused it and none
/// has ever taken it.
fn refused_by_all(ladder: &Ladder, routes: &[Route]) -> Option<String> {
    if routes.is_empty() || !is_untouched(ladder) {
        return None;
    }
    let refusals: Option<Vec<String>> = routes.iter().map(|route| refusal(ladder, route)).collect();
    Some(format!("no route took it: {}", refusals?.join("; ")))
}

/// What a route said when it refused a message; none where it did not.
fn refusal(ladder: &Ladder, route: &Route) -> Option<String> {
    let (_, reason, _) = ladder.refused.iter().rfind(|(name, ..)| *name == route.name)?;
    Some(format!("{} ({reason})", route.name))
}

/// Whether a message is stored and no more, its sender not yet told why.
fn is_untouched(ladder: &Ladder) -> bool {
    ladder.climbed.is_empty() && ladder.undeliverable.is_none()
}

/// Two watches as one.
struct Either(Box<dyn store::Watch>, Box<dyn store::Watch>);

#[async_trait::async_trait]
impl store::Watch for Either {
    async fn changed(&mut self) -> Result<(), StoreError> {
        tokio::select! {
            one = self.0.changed() => one,
            other = self.1.changed() => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::Rung;

    fn routes() -> Vec<Route> {
        let route = |name: &str, when: &[Activity], patience| Route {
            name: name.to_owned(),
            load: Load::Bell,
            proves: Rung::Offered,
            when: when.to_vec(),
            room: 1_000,
            patience,
        };
        vec![
            route("socket", &[Activity::Idle, Activity::Busy], 5_000),
            route("queue", &[Activity::Idle], 1_000),
            route("notification", &[Activity::Idle, Activity::Busy], 0),
        ]
    }

    fn check(now: u64, tried: &[(&str, u64)], refused: &[&str], activity: Activity, expected: &str) {
        let mut ladder = Ladder::default();
        for (route, at) in tried {
            let rung = Event::Rung { rung: Rung::Offered, route: (*route).to_owned(), evidence: None };
            ladder.take(Instant(*at), rung);
        }
        for route in refused {
            ladder.take(Instant(now), Event::Refused { route: (*route).to_owned(), reason: "no".to_owned() });
        }
        let routes = routes();
        let step = match next_step(Instant(now), &ladder, &routes, activity) {
            Step::Nothing => "nothing".to_owned(),
            Step::Wait(until) => format!("wait until {}", until.0),
            Step::Try(route) => format!("try {}", routes[route].name),
        };
        assert_eq!(step, expected);
    }

    #[test]
    fn routes_are_tried_in_order_and_with_patience() {
        check(0, &[], &[], Activity::Idle, "try socket");
        check(4_999, &[("socket", 0)], &[], Activity::Idle, "wait until 5000");
        check(5_000, &[("socket", 0)], &[], Activity::Idle, "try queue");
        check(5_000, &[("socket", 0)], &[], Activity::Busy, "try notification");
        check(100, &[], &["socket"], Activity::Idle, "try queue");
        check(5_500, &[("socket", 0), ("queue", 5_000)], &[], Activity::Idle, "wait until 6000");
        check(9_000, &[("socket", 0), ("queue", 5_000), ("notification", 8_000)], &[], Activity::Idle, "nothing");
    }

    #[test]
    fn the_bell_is_rung_once_more_before_the_next_route() {
        let bell = [Route { name: ROUTE.to_owned(), ..routes().remove(0) }, routes().remove(2)];
        let step = |now, rung_at: &[u64]| {
            let mut ladder = Ladder::default();
            for at in rung_at {
                let rung = Event::Rung { rung: Rung::Offered, route: ROUTE.to_owned(), evidence: None };
                ladder.take(Instant(*at), rung);
            }
            next_step(Instant(now), &ladder, &bell, Activity::Idle)
        };
        assert_eq!(step(0, &[]), Step::Try(0));
        assert_eq!(step(4_999, &[0]), Step::Wait(Instant(5_000)));
        assert_eq!(step(5_000, &[0]), Step::Try(0));
        assert_eq!(step(9_999, &[0, 5_000]), Step::Wait(Instant(10_000)));
        assert_eq!(step(10_000, &[0, 5_000]), Step::Try(1));
    }

    #[test]
    fn what_each_route_refused_is_given_up_once() {
        let refused = |routes: &[&str]| {
            let mut ladder = Ladder::default();
            for route in routes {
                ladder.take(Instant(0), Event::Refused { route: (*route).to_owned(), reason: "no".to_owned() });
            }
            ladder
        };
        let all = refused(&["socket", "queue", "notification"]);
        let why = "no route took it: socket (no); queue (no); notification (no)";
        assert_eq!(refused_by_all(&all, &routes()).as_deref(), Some(why));
        assert_eq!(refused_by_all(&refused(&["socket", "queue"]), &routes()), None, "one is left");
        assert_eq!(refused_by_all(&Ladder::default(), &[]), None, "a harness without routes fetches its mail");
        for (event, what) in [
            (Event::Undeliverable { reason: why.to_owned() }, "it was said before"),
            (Event::Rung { rung: Rung::Offered, route: "bell".to_owned(), evidence: None }, "the bell was rung"),
        ] {
            let mut ladder = all.clone();
            ladder.take(Instant(1), event);
            assert_eq!(refused_by_all(&ladder, &routes()), None, "{what}");
        }
    }

    #[test]
    fn a_session_that_waits_for_its_person_is_left_alone() {
        check(0, &[], &[], Activity::AwaitingHuman, "nothing");
        check(0, &[], &[], Activity::Gone, "nothing");
    }
}
