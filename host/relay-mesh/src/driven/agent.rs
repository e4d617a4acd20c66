//! Driving one agent: what is asked of it and what its mail brings become turns, one at a time; what its harness tells is
//! noted. Everything that must outlast this process is in the agent's record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mesh::agents::Profile;
use mesh::driven::{DrivenRecord, OverBudget, PromptContent, TreeOver, Turn, tree_over};
use mesh::names::AgentName;
use mesh::ports::driver::{DriverEvent, PromptStatus};
use mesh::ports::harness::Harness;
use mesh::ports::machine::Machine as _;
use mesh::sessions::{Activity, Principal, SessionRef};
use mesh::turns::{Actor, TurnEvent, TurnWatch};
use mesh::{Fetch, Lease, MailWatch};
use store::{Hold, Position};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::DrivenFolder;
use super::ending::Dismissal;
use super::host::Host;
use super::link::{LinkHandle, LinkNews};
use super::questions::{AnswerQueue, OpenQuestion};
use super::transcript::{Happening, Transcript};
use crate::errors::{CommandError, adapters};
use crate::runs::worktrees;

/// Pause after a fault of the store.
const AFTER_A_FAULT: Duration = Duration::from_secs(2);
/// How much is heard before it is looked at.
const MOST_HEARD: usize = 64;

/// An agent that this process drives.
pub(super) struct Driving {
    pub(super) host: Arc<Host>,
    pub(super) harness: Arc<dyn Harness>,
    pub(super) record: DrivenRecord,
    /// Whether its record has become another since the last step began: then something may follow from that.
    is_changed: bool,
    pub(super) name: AgentName,
    pub(super) principal: Principal,
    pub(super) session: SessionRef,
    pub(super) folder: DrivenFolder,
    pub(super) transcript: Transcript,
    /// What its turn is as events.
    pub(super) watch: TurnWatch,
    /// The events that are to be told.
    untold: Vec<TurnEvent>,
    pub(super) linked: Option<Linked>,
    pub(super) turn: Option<RunningTurn>,
    /// What a harness has been given and has not taken: its leases are renewed.
    pub(super) leases: BTreeMap<String, Lease>,
    pub(super) renew: Instant,
    /// The prompts of which the harness was asked what became of them, and until when its answer is waited for.
    pub(super) accounting: BTreeSet<String>,
    pub(super) account_by: Instant,
    pub(super) rest: Rest,
    /// The requests that stop the running turn, and until when it may take to stop.
    pub(super) interrupting: Option<(Vec<String>, Instant)>,
    /// When it ends although its turn has not stopped, because its time is up.
    pub(super) stops_by: Option<Instant>,
    pub(super) dismissing: Option<Dismissal>,
    /// Whether it was noted that it ends: an end that fails half-way is tried again.
    pub(super) told_end: bool,
    pub(super) questions: BTreeMap<String, OpenQuestion>,
    pub(super) answers: AnswerQueue,
    /// Its user has paused it: nothing is given to it.
    paused: bool,
    /// Changes when an agent is asked for a command.
    orders: watch::Receiver<()>,
    /// The exclusive right to bring mail to its session.
    delivery: Option<(SessionRef, Box<dyn Hold>)>,
    beat: Instant,
}

/// The link of an agent.
pub(super) struct Linked {
    pub(super) handle: LinkHandle,
    pub(super) news: mpsc::UnboundedReceiver<LinkNews>,
    /// The harness's session, once it is there.
    pub(super) session: Option<String>,
    pub(super) resumes: bool,
}

impl Linked {
    /// Its name in receipts.
    pub(super) fn route(&self) -> String {
        format!("{}{}", mesh::ROUTE_OF_DRIVERS, self.handle.name)
    }
}

/// A turn, from when its prompt was given.
pub(super) struct RunningTurn {
    pub(super) turn: Turn,
    /// The harness said that it began.
    pub(super) started: bool,
    /// Where the inboxes ended of those who get its final words.
    pub(super) inboxes: Vec<(AgentName, Position)>,
    /// What has changed since it began.
    pub(super) diff: Option<String>,
}

/// When it is tried again, after how many failures.
pub(super) struct Rest {
    pub(super) until: Option<Instant>,
    pub(super) failures: u32,
    /// Prompts in a row that were lost, and not by a break.
    pub(super) lost: u32,
    /// How often in a row its program has ended with prompts of which none was shown.
    pub(super) breaks: u32,
}

/// Whether an agent is driven further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    On,
    Over,
}

/// Drives an agent until it has ended, or until `stop`: then another process can go on with it.
pub(super) async fn drive(
    host: Arc<Host>,
    record: DrivenRecord,
    mut changed: watch::Receiver<()>,
    stop: CancellationToken,
) -> Result<(), CommandError> {
    let mut driving = Driving::of(Arc::clone(&host), record).await?;
    let mut mail = host.open.mesh.watch_mail(&driving.name).await?;
    let mut records = host.open.mesh.watch_driven_agent(&driving.record).await?;
    loop {
        let step = match driving.step().await {
            Ok(step) => step,
            Err(error) => {
                tracing::warn!(agent = %driving.name, error = %store::reasons(&error), "a driven agent waits a little");
                // What it would have looked at waits for the next step.
                driving.is_changed = true;
                driving.tell_events().await;
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(AFTER_A_FAULT) => {}
                }
                Step::On
            }
        };
        driving.tell_events().await;
        if step == Step::Over {
            return Ok(());
        }
        if driving.is_changed && !stop.is_cancelled() {
            continue;
        }
        let (deadline, ask) = (driving.next_deadline(), driving.takes_mail());
        let outcome = loop {
            break tokio::select! {
                () = stop.cancelled() => {
                    driving.leave_link().await;
                    return Ok(());
                }
                news = heard(&mut driving.linked) => driving.hear_what_came(news).await,
                _ = changed.changed() => Ok(()),
                changed = records.changed() => match changed {
                    // Its own changes wake it too.
                    Ok(()) => match driving.is_news().await {
                        Ok(false) => continue,
                        outcome => outcome.map(drop),
                    },
                    Err(error) => Err(error.into()),
                },
                waited = mail_for(&mut mail, ask.as_ref()) => waited,
                (question, outcome) = driving.answers.next() => driving.answered(&question, outcome).await,
                () = tokio::time::sleep_until(deadline) => driving.tick().await,
            };
        };
        if let Err(error) = outcome {
            tracing::warn!(agent = %driving.name, error = %store::reasons(&error), "a driven agent missed something");
        }
    }
}

async fn heard(linked: &mut Option<Linked>) -> LinkNews {
    match linked {
        Some(linked) => linked.news.recv().await.unwrap_or_else(|| LinkNews::Gone("its link ended".to_owned())),
        None => std::future::pending().await,
    }
}

async fn mail_for(mail: &mut MailWatch<'_>, ask: Option<&Fetch>) -> Result<(), CommandError> {
    match ask {
        Some(ask) => Ok(mail.may_have_come(ask).await?),
        None => std::future::pending().await,
    }
}

impl Driving {
    pub(super) async fn of(host: Arc<Host>, record: DrivenRecord) -> Result<Driving, CommandError> {
        let found = host.open.mesh.harnesses().get(&record.harness).await;
        let harness = found.map_err(|error| adapters::failed(&record.harness, error))?;
        let harness = harness.ok_or_else(|| adapters::unknown(&record.harness, host.open.mesh.harnesses().as_ref()))?;
        // The process that began it may have been killed before it could say so.
        worktrees::open_for_work(&record.workplace)?;
        let session = session_of(&record);
        let (principal, name) = join(&host, &record, session.clone()).await?;
        let own = host.open.machine.this_process();
        let record =
            host.open.mesh.change_driven(record.id, |record| record.driver = Some(own)).await?.unwrap_or(record);
        let in_ledger = record.given.iter().filter_map(|given| match &given.content {
            PromptContent::Mail { lease, .. } => Some(lease.as_str()),
            PromptContent::Request | PromptContent::Own => None,
        });
        let in_ledger: Vec<&str> = in_ledger.collect();
        host.open.mesh.forsaken_turn_mail((&name, record.id), &in_ledger).await?;
        let folder = DrivenFolder::of(&host.context.settings.dir.value, record.id);
        let transcript = Transcript::open(folder.transcript());
        let now = Instant::now();
        let mut orders = host.orders.subscribe();
        // Some may have come before.
        orders.mark_changed();
        Ok(Driving {
            host,
            harness,
            record,
            is_changed: false,
            name,
            principal,
            session,
            folder,
            transcript,
            watch: TurnWatch::default(),
            untold: Vec::new(),
            linked: None,
            turn: None,
            leases: BTreeMap::new(),
            renew: now,
            accounting: BTreeSet::new(),
            account_by: now,
            rest: Rest { until: None, failures: 0, lost: 0, breaks: 0 },
            interrupting: None,
            stops_by: None,
            dismissing: None,
            told_end: false,
            questions: BTreeMap::new(),
            answers: AnswerQueue::default(),
            paused: false,
            orders,
            delivery: None,
            beat: now,
        })
    }

    /// Reads the record anew.
    async fn reload(&mut self) -> Result<(), CommandError> {
        if let Some(record) = self.host.open.mesh.driven(self.record.id).await? {
            self.takes(record);
        }
        Ok(())
    }

    /// Changes the record. Others may have changed it meanwhile: what they ask for is looked at in the next step.
    pub(super) async fn change(&mut self, change: impl FnMut(&mut DrivenRecord) + Send) -> Result<(), CommandError> {
        if let Some(record) = self.host.open.mesh.change_driven(self.record.id, change).await? {
            self.takes(record);
        }
        Ok(())
    }

    fn takes(&mut self, record: DrivenRecord) {
        self.is_changed |= self.record != record;
        self.record = record;
    }

    /// Whether its record is another than it knows, or one of those that it hangs on may be.
    async fn is_news(&mut self) -> Result<bool, CommandError> {
        self.reload().await?;
        Ok(self.is_changed || self.record.parent.is_some())
    }

    /// Notes what happened, for its user and for the event log.
    pub(super) fn note(&mut self, what: Happening) {
        let last = self.turn.as_ref().and_then(|running| running.turn.last_words());
        self.untold.extend(super::events::of(&what, &mut self.watch, last, &self.record.agent.folder));
        self.transcript.note(self.host.open.machine.now(), what);
    }

    /// Adds what happened to the event log.
    pub(super) async fn tell_events(&mut self) {
        if self.untold.is_empty() {
            return;
        }
        let actor = Actor {
            agent: Some(self.name.clone()),
            session: self.session.clone(),
            folder: self.record.agent.folder.display().to_string(),
        };
        for event in std::mem::take(&mut self.untold) {
            self.host.open.mesh.note_turn_event(&actor, &event).await;
        }
    }

    /// Whether the harness takes a prompt now.
    pub(super) fn is_idle(&self) -> bool {
        self.turn.is_none() && self.accounting.is_empty()
    }

    pub(super) fn is_open(&self) -> bool {
        self.linked.as_ref().is_some_and(|linked| linked.session.is_some())
    }

    fn is_resting(&self) -> bool {
        self.rest.until.is_some_and(|until| until > Instant::now())
    }

    /// Does what can be done now.
    pub(super) async fn step(&mut self) -> Result<Step, CommandError> {
        self.rest.until = self.rest.until.filter(|until| *until > Instant::now());
        self.reload().await?;
        self.is_changed = false;
        if self.record.ended.is_some() {
            self.leave_link().await;
            return Ok(Step::Over);
        }
        self.hold_delivery().await?;
        self.does_what_is_owed().await?;
        self.take_interrupts().await?;
        if let Some(over) = self.record.over_budget(self.host.open.machine.now()) {
            return self.spent(&over.to_string(), over == OverBudget::Time).await;
        }
        if let Some(over) = self.tree_over().await? {
            let at_once = matches!(over, TreeOver::ParentEnded(_) | TreeOver::Spent(_, OverBudget::Time));
            return self.spent(&over.to_string(), at_once).await;
        }
        let orders = self.take_new_orders().await;
        let step = self.go_on().await?;
        // Not before: what keeps a command from being begun keeps the agent from nothing else, such as a dismissal.
        if step == Step::On {
            orders?;
        }
        Ok(step)
    }

    /// Takes the commands that other agents have for it. After an error they are tried again in the next step.
    async fn take_new_orders(&mut self) -> Result<(), CommandError> {
        if !self.orders.has_changed().unwrap_or(false) {
            return Ok(());
        }
        self.orders.mark_unchanged();
        let taken = self.take_orders().await;
        if taken.is_err() {
            self.orders.mark_changed();
        }
        taken
    }

    /// Does what its prompts, its mail and its user ask for.
    async fn go_on(&mut self) -> Result<Step, CommandError> {
        if self.leave_tool().await? == Step::Over {
            return Ok(Step::Over);
        }
        if self.take_dismissal().await? == Step::Over {
            return Ok(Step::Over);
        }
        self.paused = self.host.open.mesh.is_paused(&self.name).await?;
        if self.paused || self.is_resting() {
            return Ok(Step::On);
        }
        if self.turn.is_some() {
            self.steer().await?;
        } else if self.is_idle() && self.dismissing.is_none() {
            match self.is_open() {
                true => self.prompt().await?,
                false if self.linked.is_none() && self.has_work().await? => return self.connect().await,
                false => {}
            }
        }
        Ok(Step::On)
    }

    /// Whether it is to end because of the agents above it.
    async fn tree_over(&self) -> Result<Option<TreeOver>, CommandError> {
        let Some(parent) = self.record.parent else { return Ok(None) };
        let mesh = &self.host.open.mesh;
        let (parent, root) = (mesh.driven(parent).await?, mesh.driven(self.record.root).await?);
        Ok(tree_over(parent.as_ref(), root.as_ref(), self.host.open.machine.now()))
    }

    /// Whether anything waits that takes a link.
    async fn has_work(&self) -> Result<bool, CommandError> {
        if !self.record.given.is_empty() || self.record.session.is_none() {
            return Ok(true);
        }
        let has_text = |request: &mesh::driven::Request| request.text().is_some();
        if self.record.requests.iter().any(has_text) {
            return Ok(true);
        }
        if self.record.tool.is_some() {
            return Ok(false);
        }
        let ask = Fetch { limit: 1, peek: true, interrupting: Some(Activity::Idle), ..Fetch::default() };
        Ok(!self.host.open.mesh.fetch(&self.name, &ask).await?.messages.is_empty())
    }

    /// Which mail can be taken now; none if nothing can.
    fn takes_mail(&self) -> Option<Fetch> {
        let ask = |activity| Some(Fetch { interrupting: Some(activity), ..Fetch::default() });
        let able = self.linked.as_ref().map(|linked| linked.handle.able);
        match (&self.turn, able) {
            _ if self.record.tool.is_some() => None,
            _ if self.paused || self.is_resting() || self.dismissing.is_some() || !self.accounting.is_empty() => None,
            (None, _) => ask(Activity::Idle),
            (Some(turn), Some(able)) if turn.started && able.steer && self.questions.is_empty() => ask(Activity::Busy),
            (Some(_), _) => None,
        }
    }

    fn next_deadline(&self) -> Instant {
        let mut soonest = self.beat;
        let mut by = |deadline: Option<Instant>| soonest = deadline.map_or(soonest, |deadline| soonest.min(deadline));
        by((!self.leases.is_empty()).then_some(self.renew));
        by((!self.accounting.is_empty()).then_some(self.account_by));
        by(self.rest.until);
        by(self.interrupting.as_ref().map(|(_, until)| *until));
        by(self.dismissing.as_ref().map(|dismissal| dismissal.until));
        by(self.stops_by);
        by(self.leaves_tool_at());
        by(self
            .record
            .limits
            .until
            .map(|until| Instant::now() + Duration::from_millis(until.since(self.host.open.machine.now()).max(1))));
        soonest
    }

    /// Does what its time has come for.
    async fn tick(&mut self) -> Result<(), CommandError> {
        let now = Instant::now();
        if now >= self.beat {
            // Before what may fail, which is tried again with the next beat and not at once.
            self.beat = now + self.host.open.mesh.listening_interval();
            self.host.open.mesh.listens_for(&self.session).await?;
        }
        if now >= self.renew {
            self.renew = now + Duration::from_millis(self.host.open.mesh.lease_time() / 2);
            for lease in self.leases.values() {
                self.host.open.mesh.renew_lease(lease).await?;
            }
        }
        if now >= self.account_by {
            for prompt in std::mem::take(&mut self.accounting) {
                self.settle(&prompt, PromptStatus::Unknown, true).await?;
            }
        }
        if let Some((requests, _)) = self.interrupting.take_if(|(_, until)| now >= *until) {
            for request in requests {
                self.change(|record| record.done(&request, Some("the turn goes on all the same".to_owned()), None))
                    .await?;
            }
        }
        Ok(())
    }

    /// Hears what has come since, and then looks once at what follows from it. Not without an end: a harness that talks
    /// all the time can be stopped.
    async fn hear_what_came(&mut self, first: LinkNews) -> Result<(), CommandError> {
        self.hear(first).await?;
        for _ in 1..MOST_HEARD {
            let Some(news) = self.linked.as_mut().and_then(|linked| linked.news.try_recv().ok()) else { break };
            self.hear(news).await?;
        }
        Ok(())
    }

    async fn hear(&mut self, news: LinkNews) -> Result<(), CommandError> {
        match news {
            LinkNews::Gone(why) => self.gone(&why).await,
            LinkNews::Event(event) => self.event(*event).await,
        }
    }

    async fn event(&mut self, event: DriverEvent) -> Result<(), CommandError> {
        if !matches!(event, DriverEvent::Piece(_) | DriverEvent::Said(_))
            && let Some(text) = self.turn.as_mut().and_then(|running| running.turn.joined())
        {
            self.note(Happening::Said { text });
        }
        match event {
            DriverEvent::Ready => Ok(()),
            DriverEvent::Opened(session) => self.opened(session).await,
            DriverEvent::Activity(activity) => self.does(activity).await,
            DriverEvent::Prompt(id, status) => {
                let accounted = self.accounting.remove(&id);
                self.settle(&id, status, accounted).await
            }
            DriverEvent::TurnStarted(_) => {
                self.note(Happening::TurnStarted);
                self.turn.get_or_insert_with(RunningTurn::of_somebody).started = true;
                Ok(())
            }
            DriverEvent::TurnEnded(_, end) => self.turn_ended(end).await,
            DriverEvent::Piece(text) => {
                self.host.deltas.say(self.host.open.machine.now(), &self.name, "delta", &text);
                // Only `TurnStarted` begins one: what comes after its end would begin one that nothing ends.
                if let Some(running) = &mut self.turn {
                    running.turn.piece(&text);
                }
                Ok(())
            }
            DriverEvent::Said(text) => {
                self.host.deltas.say(self.host.open.machine.now(), &self.name, "said", &text);
                if let Some(running) = &mut self.turn {
                    running.turn.said(&text);
                }
                self.note(Happening::Said { text });
                Ok(())
            }
            DriverEvent::Item { id, operation, succeeded, detail } => {
                self.note(Happening::Item { id, operation, succeeded, detail });
                Ok(())
            }
            DriverEvent::Diff(diff) => {
                if let Some(running) = &mut self.turn {
                    running.diff = Some(diff);
                }
                Ok(())
            }
            DriverEvent::Asks(question) => self.asked(question).await,
            DriverEvent::Settled(id) => self.settled(&id).await,
            DriverEvent::UserSpoke => {
                self.note(Happening::Note { text: "its user typed in its own terminal".to_owned() });
                Ok(self.host.open.mesh.user_spoke(&self.name).await?)
            }
            DriverEvent::Used(tokens) => self.used(tokens).await,
            DriverEvent::Refused(what, error) => self.refused(&what, error).await,
            DriverEvent::Note(text) => {
                self.note(Happening::Note { text });
                Ok(())
            }
            DriverEvent::Ended => Ok(()),
        }
    }

    /// Notes what its session does. One with an open question waits for its user, whatever else it does.
    pub(super) async fn does(&self, activity: Activity) -> Result<(), CommandError> {
        let activity = if self.questions.is_empty() { activity } else { Activity::NeedsInput };
        Ok(self.host.open.mesh.driven_does(&self.session, activity).await?)
    }

    async fn hold_delivery(&mut self) -> Result<(), CommandError> {
        if self.delivery.as_ref().is_none_or(|(session, _)| *session != self.session) {
            self.delivery = None;
            let hold = self.host.open.mesh.hold_delivery(&self.session).await?;
            self.delivery = hold.map(|hold| (self.session.clone(), hold));
        }
        Ok(())
    }
}

impl RunningTurn {
    pub(super) fn of(turn: Turn) -> RunningTurn {
        RunningTurn { turn, started: false, inboxes: Vec::new(), diff: None }
    }

    /// One that somebody else began, such as a user who has joined the session.
    fn of_somebody() -> RunningTurn {
        RunningTurn { started: true, ..RunningTurn::of(Turn::default()) }
    }
}

/// The session that an agent has, or that stands for it until its harness names one.
pub(crate) fn session_of(record: &DrivenRecord) -> SessionRef {
    let id = record.session.clone().unwrap_or_else(|| record.agent.id.clone());
    SessionRef { harness: record.harness.clone(), id }
}

/// Registers a driven agent, whose process is this one.
pub(super) async fn join(
    host: &Host,
    record: &DrivenRecord,
    session: SessionRef,
) -> Result<(Principal, AgentName), CommandError> {
    let name: AgentName = record.agent.name.parse()?;
    let principal = host.open.mesh.driven_joins(session, std::process::id(), name.clone(), profile(record)).await?;
    let name = principal.agent().cloned().unwrap_or(name);
    Ok((principal, name))
}

pub(crate) fn profile(record: &DrivenRecord) -> Profile {
    Profile {
        harness: Some(record.harness.clone()),
        program: None,
        model: record.agent.model.clone(),
        project: Some(record.agent.folder.display().to_string()),
        role: Some("driven".to_owned()),
        task: Some(record.about.chars().take(60).collect()),
        issue: None,
        skills: Vec::new(),
    }
}
