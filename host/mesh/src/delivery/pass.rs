//! One delivery pass over a session's mail and routes, under the session's lease.

use std::collections::BTreeSet;
use std::time::Duration;

use store::{Durability, StoreError};

use crate::Mesh;
use crate::agents;
use crate::agents::{Presence, pause, presence};
use crate::core::Core;
use crate::delivery::next_route::{NextRoute, is_untouched, next_step, refused_by_all};
use crate::delivery::notice;
use crate::delivery::serve::{RETRY, deliverable, has_deliverable};
use crate::delivery::wake_file;
use crate::delivery::wake_file::{ROUTE, Ring};
use crate::messages::Priority;
use crate::messages::fetch;
use crate::messages::fetch::EnvelopedLease;
use crate::messages::inbox;
use crate::messages::inbox::{Inbox, Slot};
use crate::messages::inboxes::Inboxes;
use crate::messages::receipt::{Awaits, DeliveryHistory, Event};
use crate::names::{AgentName, MessageId};
use crate::ports::harness::{Carries, Delivered, Harness, HarnessError, Mail, Route};
use crate::ports::machine::Instant;
use crate::sessions::discover::of_record;
use crate::sessions::identify::CONNECTION;
use crate::sessions::record;
use crate::sessions::{Activity, Session, SessionRecord, SessionRef};
use crate::storage::keys;

/// The backoff key of a session that waits for its user.
const WAITS_FOR_USER: &str = "user";
/// When such a session is first looked at again, in milliseconds.
const LOOK_AGAIN: u64 = 15_000;
/// The backoff key of an adapter that failed to name its routes.
const NO_ROUTES: &str = "";
/// How many senders a notification names.
const MOST_SENDERS: usize = 5;

/// The result of trying a route.
#[derive(Clone, Copy, Debug)]
enum Tried {
    /// The route answered; check again after this many milliseconds.
    Done(u64),
    /// The session was busy; the first backoff in milliseconds.
    Busy(u64),
}

impl Mesh {
    /// A session that waits for its user may have got their answer without any hook: they refused, and it stopped. Its
    /// wake file has its harness look, at growing intervals.
    async fn ask_again(&self, agent: &AgentName, record: &SessionRecord) -> Result<Option<u64>, StoreError> {
        let now = self.core.machine.now();
        if let Some(left) = self.delivery.resting(record, WAITS_FOR_USER, now) {
            return Ok(Some(left));
        }
        if !has_deliverable(&self.core, &self.inboxes, agent).await? {
            return Ok(None);
        }
        wake_file::ring_unnamed(&self.core, &record.session).await?;
        Ok(Some(self.delivery.rest(record, WAITS_FOR_USER, now, LOOK_AGAIN)))
    }

    /// One pass over a session's mail. Returns after how many milliseconds to try again.
    pub(super) async fn serve_session(
        &self,
        agent: &AgentName,
        listed: &SessionRecord,
    ) -> Result<Option<u64>, StoreError> {
        let Some(_lease) = self.core.local.hold(&keys::delivery(&listed.session)).await? else {
            return Ok(Some(RETRY.as_millis() as u64));
        };
        // Read again, now under the lease and with the route hint.
        let Some(mut record) = record::session_record(&self.core, &listed.session).await? else { return Ok(None) };
        // The agent's own pause decides: the record may be a new session's, or from before the pause ended.
        let is_paused = pause::is_paused(&self.core, agent).await?;
        if record.paused.is_some() != is_paused {
            pause::note_on(&self.core, &listed.session, is_paused).await?;
            let Some(noted) = record::session_record(&self.core, &listed.session).await? else { return Ok(None) };
            record = noted;
        }
        if record::lives_elsewhere(&self.core, agent).await? {
            return Ok(None);
        }
        let activity = record::activity(&self.core, &record);
        let now = self.core.machine.now();
        if activity == Activity::NeedsInput && record.watches_wake_file && record.paused.is_none() {
            return self.ask_again(agent, &record).await;
        }
        if let Some(until) = record.stopped_until(now, self.core.limits.after_stop) {
            return Ok(Some(until.since(now)));
        }
        let harness = match self.core.harnesses.get(&record.session.harness).await {
            Ok(Some(harness)) => harness,
            Ok(None) => {
                let reason = format!("no adapter for `{}` is installed here", record.session.harness);
                if record.session.harness != CONNECTION {
                    give_up(&self.core, &self.inboxes, agent, |slot| {
                        is_untouched(&slot.history).then(|| reason.clone())
                    })
                    .await?;
                }
                return Ok(None);
            }
            Err(error) => {
                tracing::warn!(%error, harness = record.session.harness, "the adapter cannot be used");
                return Ok(Some(self.delivery.rest(
                    &record,
                    NO_ROUTES,
                    self.core.machine.now(),
                    RETRY.as_millis() as u64,
                )));
            }
        };
        let session = of_record(&self.core, &record);
        let routes = match open_routes(harness.as_ref(), &session, &record).await {
            Ok(routes) => routes,
            Err(error) => {
                tracing::warn!(%error, harness = record.session.harness, "the adapter names no routes");
                return Ok(Some(self.delivery.rest(
                    &record,
                    NO_ROUTES,
                    self.core.machine.now(),
                    RETRY.as_millis() as u64,
                )));
            }
        };
        self.delivery.rested(&record, NO_ROUTES);
        let mut soonest: Option<u64> = None;
        let mut batches: Vec<Vec<Slot>> = routes.iter().map(|_| Vec::new()).collect();
        // Without routes there is nothing to choose, however much waits.
        if !routes.is_empty() {
            let inbox = self.inboxes.of(agent);
            let mut inbox = inbox.lock().await;
            inbox.refresh(self.core.shared.as_ref(), agent).await?;
            let now = self.core.machine.now();
            for slot in inbox.open.presentable(now) {
                if !deliverable(slot, now) {
                    // A hold that ends by itself is looked at again when it does.
                    if let Some(until) = slot.history.hold.as_ref().and_then(|hold| hold.until) {
                        let wait = until.since(now);
                        soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
                    }
                    continue;
                }
                let history = slot.history.since(record.first_seen);
                match next_step(now, &history, slot.header.priority, &routes, activity) {
                    NextRoute::Nothing => {}
                    NextRoute::Wait(until) => {
                        let wait = until.since(now);
                        soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
                    }
                    NextRoute::Try(route) => batches[route].push(slot.clone()),
                }
            }
        }
        for (route, slots) in routes.iter().zip(batches).filter(|(_, slots)| !slots.is_empty()) {
            let wait = match self.delivery.resting(&record, &route.name, self.core.machine.now()) {
                Some(left) => left,
                None => match try_route(&self.core, &self.inboxes, agent, harness.as_ref(), &session, route, &slots)
                    .await?
                {
                    Tried::Busy(first) => self.delivery.rest(&record, &route.name, self.core.machine.now(), first),
                    Tried::Done(wait) => {
                        self.delivery.rested(&record, &route.name);
                        wait
                    }
                },
            };
            soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
        }
        // A bare connection has no routes: its client fetches its mail itself. And what no route takes comes with the next
        // prompt where hooks carry it.
        if record.session.harness != CONNECTION && !record.hooks_carry_mail {
            give_up(&self.core, &self.inboxes, agent, |slot| {
                refused_by_all(&slot.history.since(record.first_seen), slot.header.priority, &routes)
            })
            .await?;
        }
        Ok(soonest)
    }
}

/// The routes to a session, the wake file among them only if its harness watches it.
async fn open_routes(
    harness: &dyn Harness,
    session: &Session,
    record: &SessionRecord,
) -> Result<Vec<Route>, HarnessError> {
    let routes = harness.routes(session).await?;
    Ok(routes.into_iter().filter(|route| route.name != ROUTE || record.watches_wake_file).collect())
}

/// What a message to this agent waits for, if it goes no further by itself.
pub(crate) async fn awaits(
    core: &Core,
    agent: &AgentName,
    history: &DeliveryHistory,
    priority: Priority,
) -> Result<Option<Awaits>, StoreError> {
    if history.is_settled() || history.handed.is_some() || history.undeliverable.is_some() {
        return Ok(None);
    }
    if pause::is_paused(core, agent).await? {
        return Ok(Some(Awaits::Resume));
    }
    let Some(loaded) = agents::list::load_agent(core, agent).await? else { return Ok(None) };
    if presence::presence(core, &loaded).await? == Presence::Offline {
        return Ok(Some(Awaits::Return));
    }
    match &loaded.session {
        None => Ok(Some(Awaits::Fetch)),
        Some(session) if session.harness == CONNECTION => Ok(Some(Awaits::Fetch)),
        Some(session) => {
            Ok(comes_with_next_prompt(core, agent, session, history, priority).await?.then_some(Awaits::NextPrompt))
        }
    }
}

/// Whether nothing but its session's next prompt brings a message to this agent: it is only stored, no route would take it
/// or none is left, and hooks carry mail there.
async fn comes_with_next_prompt(
    core: &Core,
    agent: &AgentName,
    session: &SessionRef,
    history: &DeliveryHistory,
    priority: Priority,
) -> Result<bool, StoreError> {
    if !is_untouched(history) || record::lives_elsewhere(core, agent).await? {
        return Ok(false);
    }
    let Some(record) = record::session_record(core, session).await? else { return Ok(false) };
    if !record.hooks_carry_mail || record::activity(core, &record) != Activity::Idle {
        return Ok(false);
    }
    let Ok(Some(harness)) = core.harnesses.get(&record.session.harness).await else { return Ok(false) };
    let session = of_record(core, &record);
    let Ok(routes) = open_routes(harness.as_ref(), &session, &record).await else { return Ok(false) };
    let would_take = routes.iter().any(|route| route.least <= priority);
    Ok(!would_take || refused_by_all(&history.since(record.first_seen), priority, &routes).is_some())
}

/// Marks undeliverable messages and tells their senders, once each. The messages stay in the inbox, where a hook or a
/// fetch may still find them.
async fn give_up(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    why: impl Fn(&Slot) -> Option<String> + Send,
) -> Result<(), StoreError> {
    let given_up: Vec<(MessageId, String)> = {
        let inbox = inboxes.of(agent);
        let mut inbox = inbox.lock().await;
        inbox.refresh(core.shared.as_ref(), agent).await?;
        let now = core.machine.now();
        let slots = inbox.open.presentable(now).filter(|slot| deliverable(slot, now));
        slots.filter_map(|slot| Some((slot.header.id, why(slot)?))).collect()
    };
    for (id, reason) in given_up {
        inbox::receipt(core, agent, &[id], &Event::Undeliverable { reason }, Durability::Process).await?;
    }
    Ok(())
}

/// Tries one route for some messages.
async fn try_route(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    harness: &dyn Harness,
    session: &Session,
    route: &Route,
    slots: &[Slot],
) -> Result<Tried, StoreError> {
    let timeout = Tried::Done(u64::from(route.timeout));
    if route.name == ROUTE {
        ring_again(core, agent, slots).await?;
        return Ok(timeout);
    }
    let wanted: BTreeSet<_> = slots.iter().map(|slot| slot.header.id).collect();
    let outcome = match route.carries {
        Carries::Notification => {
            let mail = news(slots);
            let outcome = harness.deliver(session, &route.name, &mail).await;
            outcome.map(|delivered| (mail.ids, route.counted(delivered)))
        }
        Carries::Message => match send_message(core, inboxes, agent, harness, session, route, &wanted).await? {
            Some(outcome) => outcome,
            None => return Ok(timeout),
        },
    };
    match outcome {
        Ok((ids, delivered)) => {
            let event =
                Event::Status { status: delivered.status, route: route.name.clone(), evidence: evidence(&delivered) };
            inbox::receipt(core, agent, &ids, &event, Durability::Process).await?;
            Ok(timeout)
        }
        Err(HarnessError::Busy(first)) => Ok(Tried::Busy(u64::from(first))),
        Err(error) => {
            let ids: Vec<_> = wanted.into_iter().collect();
            let event = Event::Refused { route: route.name.clone(), reason: error.to_string() };
            inbox::receipt(core, agent, &ids, &event, Durability::Process).await?;
            Ok(Tried::Done(0))
        }
    }
}

/// Writes to the wake file for messages that it has not notified of yet, or without effect.
async fn ring_again(core: &Core, agent: &AgentName, slots: &[Slot]) -> Result<(), StoreError> {
    let Some(to) = agents::list::load_agent(core, agent).await? else { return Ok(()) };
    let record = presence::traces(core, &to).await?.record;
    for Slot { header, history, .. } in slots {
        let again = history.tried.contains_key(ROUTE);
        let ring =
            Ring { id: header.id, from: header.from.clone(), priority: header.priority, trace: header.trace, again };
        match wake_file::why_hold(core, record.as_ref(), &ring).await? {
            Some(hold) => {
                let event = Event::Held { hold: hold.clone() };
                inbox::receipt(core, agent, &[ring.id], &event, Durability::Process).await?;
                wake_file::note_held(core, &ring, agent, &hold).await;
            }
            None => {
                wake_file::ring(core, agent, record.as_ref(), &ring).await?;
            }
        }
    }
    Ok(())
}

/// Leases some messages and gives the adapter their text. `None` if there was nothing to lease, or if the messages are
/// settled by this.
async fn send_message(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    harness: &dyn Harness,
    session: &Session,
    route: &Route,
    wanted: &BTreeSet<MessageId>,
) -> Result<Option<Result<(Vec<MessageId>, Delivered), HarnessError>>, StoreError> {
    let pick = |inbox: &Inbox, now: Instant| -> Vec<Slot> {
        let slots = inbox.open.presentable(now);
        slots.filter(|slot| wanted.contains(&slot.header.id)).cloned().collect()
    };
    let of_route = (fetch::UNNAMED, route.max_bytes as usize);
    let leased = fetch::lease_enveloped(core, inboxes, agent, of_route, pick).await?;
    let Some(EnvelopedLease { messages, text, lease }) = leased else { return Ok(None) };
    let priority = messages.iter().map(|fetched| fetched.message.priority).max().unwrap_or_default();
    let mail = Mail { ids: lease.messages.clone(), text, priority };
    let to = SessionRef { harness: harness.about().harness.clone(), id: session.id.clone() };
    let notice = notice::keep_for_route(core, harness, &to, messages.iter().map(|fetched| &fetched.message)).await;
    fetch::note_chain(core, &lease).await?;
    let sent = match harness.deliver(session, &route.name, &mail).await {
        Ok(sent) => sent,
        Err(error) => {
            if let Some(notice) = notice {
                notice::take_back(core, &to, notice).await;
            }
            fetch::release(core, lease).await?;
            return Ok(Some(Err(error)));
        }
    };
    let delivered = wait_for_proof(harness, session, route, sent).await;
    if delivered.status.settles() {
        fetch::confirm(core, inboxes, &lease, delivered.status, &route.name, evidence(&delivered)).await?;
        return Ok(None);
    }
    // The harness may still show what it took, so the lease is kept until it expires: no other route may show it
    // meanwhile.
    Ok(Some(Ok((lease.messages, delivered))))
}

/// Asks the adapter at growing intervals, until the route has reached the best status that it can prove, or timed out.
async fn wait_for_proof(harness: &dyn Harness, session: &Session, route: &Route, sent: Delivered) -> Delivered {
    let mut best = route.counted(sent);
    let mut interval = 50;
    let mut waited = 0;
    while best.status < route.proves && waited < u64::from(route.timeout) {
        tokio::time::sleep(Duration::from_millis(interval)).await;
        waited += interval;
        interval = (interval * 2).min(2_000);
        match harness.confirm(session, &route.name, &best).await.map(|next| route.counted(next)) {
            Ok(next) if next.status > best.status => best = next,
            Ok(_) | Err(HarnessError::Busy(_)) => {}
            Err(error) => {
                tracing::debug!(%error, route = route.name, "the route cannot be asked for a better status");
                break;
            }
        }
    }
    best
}

fn evidence(delivered: &Delivered) -> Option<serde_json::Value> {
    delivered.evidence.as_ref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()))
}

/// The notification that mail waits.
fn news(slots: &[Slot]) -> Mail {
    let senders: BTreeSet<&str> = slots.iter().map(|slot| slot.header.from.as_str()).collect();
    Mail {
        ids: slots.iter().map(|slot| slot.header.id).collect(),
        text: sentence(&senders, slots.len()),
        priority: slots.iter().map(|slot| slot.header.priority).max().unwrap_or_default(),
    }
}

/// It names the senders, and quotes nothing of their text.
fn sentence(senders: &BTreeSet<&str>, messages: usize) -> String {
    let senders = senders.iter().copied().take(MOST_SENDERS).collect::<Vec<_>>().join(", ");
    match messages {
        1 => format!("A relay-mesh message from {senders} waits. Call fetch_messages to read it."),
        many => format!("{many} relay-mesh messages from {senders} wait. Call fetch_messages to read them."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::LONGEST_NAME;

    #[test]
    fn the_interface_says_what_a_notification_holds() {
        let wit = include_str!("../../../../wit/v0.1/adapter.wit").split_whitespace();
        let wit = wit.filter(|word| *word != "///").collect::<Vec<_>>().join(" ");
        let said = "`mail.text` is the host's own sentence that mail waits, and holds no word of a message";
        assert!(wit.contains(said) && wit.contains("0 if it carries notifications"));
        // A route that carries notifications asks for no bytes, so their length is bounded here: a name and its team.
        let name = |number: usize| format!("{number}{0}/{0}", "n".repeat(LONGEST_NAME - 1));
        let names: Vec<String> = (0..9).map(name).collect();
        let senders: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        for messages in [1, 2, usize::MAX] {
            let told = sentence(&senders, messages);
            assert!(told.len() <= 1_000 && !told.contains('\n'), "{told}");
            assert_eq!(told.matches('/').count(), MOST_SENDERS, "{told}");
        }
    }
}
