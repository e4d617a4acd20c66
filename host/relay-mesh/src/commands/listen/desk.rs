//! The desk between the followed targets and the connector: prints what arrives, takes receipts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mesh::names::{AgentName, MessageId};
use mesh::receipt::DeliveryStatus;
use mesh::session::SessionRef;
use mesh::{Lease, Mesh, reasons};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Receipts;
use super::target::{Arrival, Found, Rest, Target, follow};
use super::words::{Heard, News, Said};
use crate::errors::CommandError;
use crate::render::Printer;
use crate::shapes::mail::MessageShape;

/// The route that receipts name.
const ROUTE: &str = "listen";
/// For how many milliseconds a target rests after its connector first refused a message, so that others may
/// carry it.
const REST: u64 = 10_000;

/// What is followed, and what was printed and is not confirmed.
pub(super) struct Desk {
    pub(super) mesh: Arc<Mesh>,
    pub(super) printer: Printer,
    /// Who confirms.
    pub(super) receipts: Receipts,
    /// The harness whose sessions may be watched and whose events are understood.
    harness: Option<String>,
    /// Variables of this process, which the harness's connector started.
    pub(super) environment: Vec<(String, String)>,
    /// Where the tasks send what they find. Cloned for each.
    arrivals: mpsc::Sender<Arrival>,
    /// The tasks. Written when a target is watched or no longer watched.
    followed: BTreeMap<Target, Followed>,
    /// What was printed, with its lease. Written by printing, by receipts and at the end.
    pub(super) pending: BTreeMap<(MessageId, Target), Printed>,
}

/// What was printed and wants its receipts.
#[derive(Clone)]
pub(super) enum Printed {
    /// A message.
    Mail(Lease),
    /// An invitation, by a line of its own.
    Invitation,
    /// An invitation in the answer to a hook.
    AnsweredInvitation,
}

/// One task.
struct Followed {
    task: JoinHandle<()>,
    stop: CancellationToken,
    rest: watch::Sender<Rest>,
    /// How often in a row its connector refused a message.
    refused: u32,
}

impl Desk {
    /// A desk that follows nothing yet.
    pub(super) fn new(
        mesh: Arc<Mesh>,
        printer: Printer,
        receipts: Receipts,
        harness: Option<String>,
        environment: Vec<(String, String)>,
        arrivals: mpsc::Sender<Arrival>,
    ) -> Desk {
        let (followed, pending) = (BTreeMap::new(), BTreeMap::new());
        Desk { mesh, printer, receipts, harness, environment, arrivals, followed, pending }
    }

    /// Follows one more target, and says so.
    pub(super) async fn watch(&mut self, target: Target) -> Result<(), CommandError> {
        if self.followed.contains_key(&target) {
            return Ok(());
        }
        let (agent, ticket) = match &target {
            Target::Agent(agent) => (Some(agent.clone()), None),
            Target::Session(session) => {
                // Whoever reads the line below may rely on it.
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
        let said = Said::Watching { session: target.session(), agent: agent.as_ref(), ticket: ticket.as_ref() };
        self.printer.line(&said)?;
        let (rest, rests) = watch::channel(None);
        let stop = CancellationToken::new();
        let following =
            follow(Arc::clone(&self.mesh), target.clone(), rests, self.arrivals.clone(), agent, stop.clone());
        self.followed.insert(target, Followed { task: tokio::spawn(following), stop, rest, refused: 0 });
        Ok(())
    }

    /// Prints what a task found.
    pub(super) async fn take(&mut self, arrival: Arrival) -> Result<(), CommandError> {
        let Arrival { target, news } = arrival;
        match news {
            Found::Fault(words) => self.complain(&words),
            Found::Agent(agent) => match &target {
                Target::Agent(_) => Ok(()),
                Target::Session(session) => self.printer.line(&Said::Bound { session: &session.id, agent: &agent }),
            },
            // It came up while the connector asked not to be told any more.
            Found::Message(fetched, lease) if !self.followed.contains_key(&target) => {
                self.give_back(&(fetched.message.id, target), Printed::Mail(lease)).await;
                Ok(())
            }
            Found::Invitation(taken) if !self.followed.contains_key(&target) => {
                self.give_back(&(taken.id, target), Printed::Invitation).await;
                Ok(())
            }
            Found::Invitation(taken) => self.invite(target, &taken).await,
            Found::Message(fetched, lease) => {
                let id = fetched.message.id;
                let (text, _) = mesh::envelope(std::slice::from_ref(&fetched.message), usize::MAX);
                let said = Said::Message {
                    session: target.session(),
                    agent: &lease.agent,
                    message: Box::new(MessageShape::from(&fetched.message)),
                    text,
                };
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

    /// Does what a line on standard input says. Whatever is wrong with it ends nothing.
    pub(super) async fn hear(&mut self, heard: Heard) -> Result<(), CommandError> {
        match heard {
            Heard::Watch(id) => match self.session(id) {
                Some(target) => self.watch(target).await,
                None => self.complain("sessions can be watched with `--harness` alone"),
            },
            Heard::Unwatch(id) => {
                if let Some(target) = self.session(id) {
                    self.unwatch(&target).await;
                }
                Ok(())
            }
            Heard::Receipt { id, session, news, evidence } => {
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
            Heard::Ended { .. } => self.complain("no command of that id is being run here"),
            Heard::Runs { session, .. } => Box::pin(self.hear(Heard::Watch(session))).await,
            Heard::Hook { name, payload, call } => self.hook(name, payload, call).await,
        }
    }

    /// Says that something went wrong that ends nothing.
    pub(super) fn complain(&self, words: &str) -> Result<(), CommandError> {
        self.printer.line(&Said::Error { error: words })
    }

    /// Stops every task and gives back what was not confirmed.
    pub(super) async fn close(mut self, mut arrived: mpsc::Receiver<Arrival>) {
        let followed = std::mem::take(&mut self.followed);
        for one in followed.values() {
            one.stop.cancel();
        }
        arrived.close();
        while let Some(Arrival { target, news }) = arrived.recv().await {
            match news {
                Found::Message(fetched, lease) => {
                    self.pending.insert((fetched.message.id, target), Printed::Mail(lease));
                }
                Found::Invitation(taken) => {
                    self.pending.insert((taken.id, target), Printed::Invitation);
                }
                Found::Agent(_) | Found::Fault(_) => {}
            }
        }
        for (_, one) in followed {
            if let Err(error) = one.task.await {
                tracing::warn!(%error, "a task that followed mail ended badly");
            }
        }
        for (key, printed) in std::mem::take(&mut self.pending) {
            self.give_back(&key, printed).await;
        }
    }

    /// The harness whose events are understood here.
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
                self.give_back(&key, printed).await;
            }
        }
    }

    /// Which lease a receipt means. One message may have been printed for several sessions.
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

    /// A receipt for what an earlier process printed, or whose lease has lapsed: a connector outlives
    /// the process that it listens by. Whether there was anything left to be said of that message.
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
