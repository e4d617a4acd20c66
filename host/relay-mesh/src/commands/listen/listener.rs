//! Connects the followed targets with the connector: prints what arrives, takes receipts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mesh::messages::receipt::DeliveryStatus;
use mesh::names::{AgentName, MessageId};
use mesh::sessions::SessionRef;
use mesh::{Lease, Mesh, reasons};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Receipts;
use super::connector_lines::{Input, News, Output};
use super::target::{Arrival, Finding, Rest, Target, follow};
use crate::errors::CommandError;
use crate::render::Printer;
use crate::shapes::mail::MessageShape;

/// The route's name in receipts.
const ROUTE: &str = "listen";
/// Milliseconds that a target rests after its connector first refused a message, so that other routes may take it.
const REST: u64 = 10_000;

/// The followed targets, and what was printed and is not confirmed.
pub(super) struct Listener {
    pub(super) mesh: Arc<Mesh>,
    pub(super) printer: Printer,
    /// Who confirms that a message was shown.
    pub(super) receipts: Receipts,
    /// The harness whose sessions may be watched and whose hook events are answered.
    harness: Option<String>,
    /// This process's environment. The harness's connector started it.
    pub(super) environment: Vec<(String, String)>,
    /// Where the tasks send what they find. Cloned for each task.
    arrivals: mpsc::Sender<Arrival>,
    /// The tasks. Written when a target is watched or no longer watched.
    followed: BTreeMap<Target, Followed>,
    /// What was printed and is not confirmed. Written by printing, by receipts and by `close`.
    pub(super) pending: BTreeMap<(MessageId, Target), Printed>,
}

/// A printed item that awaits its receipts.
#[derive(Clone)]
pub(super) enum Printed {
    Mail(Lease),
    /// An invitation on a line of its own.
    Invitation,
    /// An invitation in the answer to a hook.
    AnsweredInvitation,
}

/// The task that follows one target.
struct Followed {
    task: JoinHandle<()>,
    stop: CancellationToken,
    rest: watch::Sender<Rest>,
    /// How many times in a row its connector refused a message.
    refused: u32,
}

impl Listener {
    pub(super) fn new(
        mesh: Arc<Mesh>,
        printer: Printer,
        receipts: Receipts,
        harness: Option<String>,
        environment: Vec<(String, String)>,
        arrivals: mpsc::Sender<Arrival>,
    ) -> Listener {
        let (followed, pending) = (BTreeMap::new(), BTreeMap::new());
        Listener { mesh, printer, receipts, harness, environment, arrivals, followed, pending }
    }

    /// Follows one more target, and prints that it does.
    pub(super) async fn watch(&mut self, target: Target) -> Result<(), CommandError> {
        if self.followed.contains_key(&target) {
            return Ok(());
        }
        let (agent, ticket) = match &target {
            Target::Agent(agent) => (Some(agent.clone()), None),
            Target::Session(session) => {
                // Before the line below is printed: its reader relies on it.
                self.mesh.listens_for(session).await?;
                let agent = self.mesh.session(session).await?.and_then(|view| view.record.agent);
                match self.mesh.ticket(session).await {
                    Ok(ticket) => (agent, Some(ticket)),
                    Err(error) => {
                        self.complain(&reasons(&error))?;
                        (agent, None)
                    }
                }
            }
        };
        let said = Output::Watching { session: target.session(), agent: agent.as_ref(), ticket: ticket.as_ref() };
        self.printer.line(&said)?;
        let (rest, rests) = watch::channel(None);
        let stop = CancellationToken::new();
        let following =
            follow(Arc::clone(&self.mesh), target.clone(), rests, self.arrivals.clone(), agent, stop.clone());
        self.followed.insert(target, Followed { task: tokio::spawn(following), stop, rest, refused: 0 });
        Ok(())
    }

    /// Says of every session that this process listens for it still.
    pub(super) async fn go_on(&self) {
        for target in self.followed.keys() {
            if let Target::Session(session) = target
                && let Err(error) = self.mesh.listens_for(session).await
            {
                tracing::debug!(%error, "readers in other PID namespaces do not hear of this listener");
            }
        }
    }

    /// Prints what a task found.
    pub(super) async fn take(&mut self, arrival: Arrival) -> Result<(), CommandError> {
        let Arrival { target, news } = arrival;
        match news {
            Finding::Fault(words) => self.complain(&words),
            Finding::Agent(agent) => match &target {
                Target::Agent(_) => Ok(()),
                Target::Session(session) => self.printer.line(&Output::Bound { session: &session.id, agent: &agent }),
            },
            // The connector stopped watching the target while this message was on its way.
            Finding::Message(fetched, lease) if !self.followed.contains_key(&target) => {
                self.give_back(&(fetched.message.id, target), Printed::Mail(lease)).await;
                Ok(())
            }
            Finding::Invitation(taken) if !self.followed.contains_key(&target) => {
                self.give_back(&(taken.id, target), Printed::Invitation).await;
                Ok(())
            }
            Finding::Invitation(taken) => self.invite(target, &taken).await,
            Finding::Message(fetched, lease) => {
                let id = fetched.message.id;
                let text = mesh::envelope(std::slice::from_ref(&*fetched), usize::MAX).text;
                let said = Output::Message {
                    session: target.session(),
                    agent: &lease.agent,
                    message: Box::new(MessageShape::from(&fetched.message)),
                    text,
                };
                if let Err(error) = self.mesh.passes_on(&lease).await {
                    tracing::warn!(%error, "what the agent answers may count as a new chain of messages");
                }
                let printed = self.printer.line(&said);
                match (printed, self.receipts) {
                    (Err(error), _) => {
                        self.pending.insert((id, target), Printed::Mail(lease));
                        Err(error)
                    }
                    (Ok(()), Receipts::Printing) => {
                        Ok(self.mesh.confirm(&lease, DeliveryStatus::Shown, ROUTE, None).await?)
                    }
                    (Ok(()), Receipts::Lines) => {
                        self.pending.insert((id, target), Printed::Mail(lease));
                        Ok(())
                    }
                }
            }
        }
    }

    /// Handles a line from standard input. A line that is wrong is reported and does not end `listen`.
    pub(super) async fn hear(&mut self, heard: Input) -> Result<(), CommandError> {
        match heard {
            Input::Watch(id) => match self.session(id) {
                Some(target) => self.watch(target).await,
                None => self.complain("sessions can be watched only with `--harness`"),
            },
            Input::Unwatch(id) => {
                if let Some(target) = self.session(id) {
                    self.unwatch(&target).await;
                }
                Ok(())
            }
            Input::Receipt { id, session, news, evidence } => {
                let outcome = match self.leased(id, session.as_deref()) {
                    Ok(key) => self.receipt(key, news, evidence).await,
                    Err(words) => match self.late(id, session, news, evidence).await {
                        Ok(true) => Ok(()),
                        Ok(false) => Err(words),
                        Err(error) => Err(error),
                    },
                };
                outcome.or_else(|error| self.complain(&error))
            }
            Input::Ended { .. } => self.complain("no command with that id is running here"),
            Input::Runs { session, .. } => Box::pin(self.hear(Input::Watch(session))).await,
            Input::Hook { name, payload, call } => self.hook(name, payload, call).await,
        }
    }

    /// Prints an error that does not end `listen`.
    pub(super) fn complain(&self, words: &str) -> Result<(), CommandError> {
        self.printer.line(&Output::Error { error: words })
    }

    /// Stops every task and releases what was not confirmed. What was printed may have been shown.
    pub(super) async fn close(mut self, mut arrived: mpsc::Receiver<Arrival>) {
        let printed = std::mem::take(&mut self.pending);
        let followed = std::mem::take(&mut self.followed);
        for one in followed.values() {
            one.stop.cancel();
        }
        arrived.close();
        while let Some(Arrival { target, news }) = arrived.recv().await {
            match news {
                Finding::Message(fetched, lease) => {
                    self.pending.insert((fetched.message.id, target), Printed::Mail(lease));
                }
                Finding::Invitation(taken) => {
                    self.pending.insert((taken.id, target), Printed::Invitation);
                }
                Finding::Agent(_) | Finding::Fault(_) => {}
            }
        }
        for (_, one) in followed {
            if let Err(error) = one.task.await {
                tracing::warn!(%error, "a task that followed mail ended badly");
            }
        }
        for (key, left) in std::mem::take(&mut self.pending) {
            self.give_back(&key, left).await;
        }
        for (key, printed) in printed {
            self.leave_open(&key, printed).await;
        }
    }

    pub(super) fn harness(&self) -> Option<&str> {
        self.harness.as_deref()
    }

    fn session(&self, id: String) -> Option<Target> {
        self.harness.clone().map(|harness| Target::Session(SessionRef { harness, id }))
    }

    async fn unwatch(&mut self, target: &Target) {
        if let Some(followed) = self.followed.remove(target) {
            followed.stop.cancel();
        }
        let keys: Vec<(MessageId, Target)> = self.pending.keys().filter(|(_, of)| of == target).cloned().collect();
        for key in keys {
            if let Some(printed) = self.pending.remove(&key) {
                self.leave_open(&key, printed).await;
            }
        }
    }

    /// The printed item that a receipt is for. One message may have been printed for several sessions.
    fn leased(&self, id: MessageId, session: Option<&str>) -> Result<(MessageId, Target), String> {
        let fits = |target: &Target| session.is_none_or(|session| target.session() == Some(session));
        let mut found = self.pending.keys().filter(|(of, target)| *of == id && fits(target));
        match (found.next(), found.next()) {
            (Some(key), None) => Ok(key.clone()),
            (Some(_), Some(_)) => Err(format!("`{id}` was printed for several sessions: say which by `session`")),
            (None, _) => Err(format!("`{id}` was not printed here, or its receipt is complete")),
        }
    }

    async fn receipt(
        &mut self,
        key: (MessageId, Target),
        news: News,
        evidence: Option<serde_json::Value>,
    ) -> Result<(), String> {
        let lease = match self.pending.get(&key).cloned() {
            Some(Printed::Mail(lease)) => lease,
            Some(invitation @ (Printed::Invitation | Printed::AnsweredInvitation)) => {
                return self.invitation_receipt(key, invitation, news).await;
            }
            None => return Ok(()),
        };
        let status = match news {
            News::Notified => DeliveryStatus::Notified,
            News::Accepted => DeliveryStatus::Accepted,
            News::Shown | News::Acknowledged => DeliveryStatus::Shown,
            News::Refused => {
                if let Some(followed) = self.followed.get_mut(&key.1) {
                    let rest = Duration::from_millis(mesh::spaced(REST, followed.refused));
                    followed.refused += 1;
                    followed.rest.send_replace(Some(Instant::now() + rest));
                }
                self.pending.remove(&key);
                self.give_back(&key, Printed::Mail(lease)).await;
                return Ok(());
            }
        };
        self.mesh.confirm(&lease, status, ROUTE, evidence).await.map_err(|error| reasons(&error))?;
        if status.settles() {
            if let Some(followed) = self.followed.get_mut(&key.1) {
                followed.refused = 0;
            }
            self.pending.remove(&key);
        }
        match news {
            News::Acknowledged => self.acknowledge(&lease.agent, key.0).await,
            News::Notified | News::Accepted | News::Shown | News::Refused => Ok(()),
        }
    }

    /// Takes a receipt for what an earlier process printed, or whose lease has lapsed: a connector outlives the
    /// `listen` process that it reads. Returns whether the message was still unsettled.
    async fn late(
        &self,
        id: MessageId,
        session: Option<String>,
        news: News,
        evidence: Option<serde_json::Value>,
    ) -> Result<bool, String> {
        let Some(Target::Session(session)) = session.and_then(|session| self.session(session)) else {
            return Ok(false);
        };
        if self.late_invitation(&session, id, news).await? {
            return Ok(true);
        }
        let view = self.mesh.session(&session).await.map_err(|error| reasons(&error))?;
        let Some(agent) = view.and_then(|view| view.record.agent) else { return Ok(false) };
        let status = match news {
            News::Shown | News::Acknowledged => DeliveryStatus::Shown,
            News::Notified | News::Accepted | News::Refused => return Ok(false),
        };
        let noted =
            self.mesh.confirm_late(&agent, id, status, ROUTE, evidence).await.map_err(|error| reasons(&error))?;
        match news {
            News::Acknowledged if noted => self.acknowledge(&agent, id).await.map(|()| true),
            News::Acknowledged | News::Shown | News::Notified | News::Accepted | News::Refused => Ok(noted),
        }
    }

    async fn acknowledge(&self, agent: &AgentName, id: MessageId) -> Result<(), String> {
        self.mesh.acknowledge(agent, &[id]).await.map(|_| ()).map_err(|error| reasons(&error))
    }

    /// Gives back what the connector took and says no more of: its text may have been shown.
    async fn leave_open(&self, key: &(MessageId, Target), printed: Printed) {
        match printed {
            Printed::Mail(lease) => {
                if let Err(error) = self.mesh.release_passed_on(lease).await {
                    tracing::warn!(%error, "a lease was not given back; it lapses by itself");
                }
            }
            Printed::Invitation | Printed::AnsweredInvitation => self.give_back(key, printed).await,
        }
    }

    async fn give_back(&self, (id, target): &(MessageId, Target), printed: Printed) {
        match printed {
            Printed::Mail(lease) => {
                if let Err(error) = self.mesh.release(lease).await {
                    tracing::warn!(%error, "a lease was not given back; it lapses by itself");
                }
            }
            Printed::Invitation | Printed::AnsweredInvitation => self.give_back_invitation(*id, target).await,
        }
    }
}
