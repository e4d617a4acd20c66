//! A link: one started program of a harness, with the agents that are driven over it. It carries frames between the
//! program and the adapter, and hands each event to its agent. It decides nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mesh::ports::driver::{Action, DriverAbilities, DriverEvent, Exchange};
use mesh::ports::harness::{Harness, HarnessError};
use processes::Guard;
use processes::guard::Ended;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::end_marked;
use super::frames::{FramesError, Incoming, Outgoing};
use super::program::Started;

/// How long a program may take until it takes actions, and until it has begun a session.
pub(super) const BEGINS: Duration = Duration::from_secs(120);
/// The signal that nothing survives.
const SIGKILL: i32 = 9;
/// How long a program whose connection has closed may take to end, before it counts as one that lives.
const ENDS: Duration = Duration::from_secs(1);

/// What an agent hears of its link.
#[derive(Debug)]
pub(super) enum LinkNews {
    Event(Box<DriverEvent>),
    /// It is over, for this reason.
    Gone(String),
}

/// What an agent wants of its link.
#[derive(Debug)]
pub(super) enum LinkRequest {
    /// Begin or continue a session, whose events go there.
    Open(Action, mpsc::UnboundedSender<LinkNews>),
    Act(Action),
    /// The agent of this session is not driven any more. Answered once its session has ended; if this was the last agent,
    /// once the program is gone.
    Leave(Option<String>, oneshot::Sender<()>),
}

/// How many agents a link has. One that nobody has any more takes nobody.
#[derive(Debug, Default)]
struct Seats {
    taken: usize,
    closed: bool,
}

/// A link that agents can be driven over.
#[derive(Debug)]
pub(super) struct Link {
    requests: mpsc::UnboundedSender<LinkRequest>,
    seats: Arc<Mutex<Seats>>,
    name: String,
    able: DriverAbilities,
    /// What marks its program.
    pub(super) mark: String,
    pub(super) socket: Option<PathBuf>,
}

/// An agent's end of a link. Dropping it leaves the link.
#[derive(Debug)]
pub(super) struct LinkHandle {
    requests: mpsc::UnboundedSender<LinkRequest>,
    pub(super) name: String,
    pub(super) able: DriverAbilities,
    has_left: bool,
}

impl Link {
    /// Takes frames to and fro, until the last agent has left or the program ends.
    pub(super) fn carry(harness: Arc<dyn Harness>, started: Started, greeting: Exchange) -> Link {
        let (requests, wanted) = mpsc::unbounded_channel();
        let seats = Arc::default();
        let link = Link {
            requests,
            seats: Arc::clone(&seats),
            name: started.name,
            able: started.able,
            mark: started.mark.clone(),
            socket: started.socket,
        };
        let carrier = Carrier {
            harness,
            guard: started.guard,
            outgoing: started.outgoing,
            output_ended: started.output_ended,
            mark: started.mark,
            folder: started.folder,
            memory: None,
            ready: false,
            sessions: BTreeMap::new(),
            former: BTreeSet::new(),
            unwanted: Vec::new(),
            leaving: BTreeMap::new(),
            opening: None,
            waiting: VecDeque::new(),
            seats,
            left: None,
            deadline: Some(Instant::now() + BEGINS),
        };
        tokio::spawn(carrier.run(greeting, started.incoming, wanted));
        link
    }

    /// A place on it; none if it has as many agents as it may, or is ending.
    pub(super) fn seat(&self, most: usize) -> Option<LinkHandle> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if seats.closed || seats.taken >= most {
            return None;
        }
        seats.taken += 1;
        let (requests, name) = (self.requests.clone(), self.name.clone());
        Some(LinkHandle { requests, name, able: self.able, has_left: false })
    }

    /// Whether nobody can be driven over it any more.
    pub(super) fn is_over(&self) -> bool {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).closed
    }
}

impl LinkHandle {
    pub(super) fn of(requests: mpsc::UnboundedSender<LinkRequest>, name: &str, able: DriverAbilities) -> LinkHandle {
        LinkHandle { requests, name: name.to_owned(), able, has_left: false }
    }

    /// Begins or continues a session. What is heard of it comes by the result.
    pub(super) fn open(&self, action: Action) -> mpsc::UnboundedReceiver<LinkNews> {
        let (sender, news) = mpsc::unbounded_channel();
        // The end of a link is heard by its news.
        let _gone = self.requests.send(LinkRequest::Open(action, sender));
        news
    }

    pub(super) fn act(&self, action: Action) {
        let _gone = self.requests.send(LinkRequest::Act(action));
    }

    pub(super) fn actions(&self) -> LinkActions {
        LinkActions(self.requests.clone())
    }

    /// Leaves the link: then `gone` is answered or dropped once nothing of this session runs in its program.
    pub(super) fn leave(mut self, session: Option<String>, gone: oneshot::Sender<()>) {
        self.has_left = true;
        let _gone = self.requests.send(LinkRequest::Leave(session, gone));
    }
}

/// What is asked of a link's sessions, for whoever has no place on it.
#[derive(Clone, Debug)]
pub(super) struct LinkActions(mpsc::UnboundedSender<LinkRequest>);

impl LinkActions {
    pub(super) fn act(&self, action: Action) {
        let _gone = self.0.send(LinkRequest::Act(action));
    }
}

impl Drop for LinkHandle {
    fn drop(&mut self) {
        if !self.has_left {
            let _gone = self.requests.send(LinkRequest::Leave(None, oneshot::channel().0));
        }
    }
}

/// Why a link is over, as its agents are told.
#[derive(Debug, thiserror::Error)]
enum Over {
    #[error("{0}")]
    Frames(#[from] FramesError),
    #[error("its adapter failed: {0}")]
    Adapter(#[from] HarnessError),
    #[error("it took no action within {} s", BEGINS.as_secs())]
    Slow,
    /// Its program takes no actions at all, as one that is too old.
    #[error("{0}")]
    Refused(HarnessError),
    /// Nobody is driven over it any more.
    #[error("its last agent has left")]
    Left,
}

/// The task behind a link.
struct Carrier {
    harness: Arc<dyn Harness>,
    guard: Guard,
    outgoing: Outgoing,
    /// Cancelled when the program has closed its standard output, if that is not what carries the frames.
    output_ended: Option<CancellationToken>,
    mark: String,
    /// The link's own folder, if it has one: deleted with it.
    folder: Option<PathBuf>,
    memory: Option<serde_json::Value>,
    /// Whether it takes actions.
    ready: bool,
    sessions: BTreeMap<String, mpsc::UnboundedSender<LinkNews>>,
    /// The sessions whose agents have left.
    former: BTreeSet<String>,
    /// The sessions that nobody waits for any more, and that are to be ended.
    unwanted: Vec<String>,
    /// Who waits for the end of their session.
    leaving: BTreeMap<String, oneshot::Sender<()>>,
    /// Whose session is being begun. One at a time, because a new session is known only by when it comes.
    opening: Option<mpsc::UnboundedSender<LinkNews>>,
    waiting: VecDeque<(Action, mpsc::UnboundedSender<LinkNews>)>,
    seats: Arc<Mutex<Seats>>,
    /// Who waits for its end.
    left: Option<oneshot::Sender<()>>,
    /// When the program has to have done what it was asked first.
    deadline: Option<Instant>,
}

impl Carrier {
    async fn run(
        mut self,
        greeting: Exchange,
        mut incoming: Incoming,
        mut wanted: mpsc::UnboundedReceiver<LinkRequest>,
    ) {
        let over = match self.carry(greeting) {
            Ok(()) => self.talk(&mut incoming, &mut wanted).await,
            Err(over) => over,
        };
        self.close();
        let mut why = over.to_string();
        let ended_by_itself = match (&over, &self.output_ended) {
            (Over::Frames(_), Some(ended)) => tokio::time::timeout(ENDS, ended.cancelled()).await.is_ok(),
            (_, _) => true,
        };
        self.guard.stop().await;
        if let Ok(ended) = self.guard.ended().await
            && ended_by_itself
        {
            why = told_of(&over, &ended).unwrap_or(why);
        }
        // What a guard that was killed has left.
        end_marked(std::mem::take(&mut self.mark)).await;
        if let Some(folder) = &self.folder {
            let _gone = std::fs::remove_dir_all(folder);
        }
        if let Some(left) = self.left.take() {
            let _unheard = left.send(());
        }
        let agents = self.sessions.into_values().chain(self.opening).chain(self.waiting.into_iter().map(|(_, to)| to));
        for agent in agents {
            let _left = agent.send(LinkNews::Gone(why.clone()));
        }
    }

    async fn talk(&mut self, incoming: &mut Incoming, wanted: &mut mpsc::UnboundedReceiver<LinkRequest>) -> Over {
        loop {
            let outcome = tokio::select! {
                frames = incoming.next() => match frames {
                    Ok(frames) => self.receive(&frames).await,
                    Err(error) => Err(error.into()),
                },
                request = wanted.recv() => match request {
                    Some(request) => self.request(request).await,
                    None => Err(Over::Left),
                },
                () = at(self.deadline) => self.is_late(),
            };
            if let Err(over) = outcome {
                return over;
            }
        }
    }

    async fn receive(&mut self, frames: &[String]) -> Result<(), Over> {
        let exchange = self.harness.driver()?.receive(self.memory.as_ref(), frames).await?;
        self.carry(exchange)?;
        for session in std::mem::take(&mut self.unwanted) {
            self.former.insert(session.clone());
            self.act(Action::End(session)).await?;
        }
        self.open_next().await
    }

    async fn request(&mut self, request: LinkRequest) -> Result<(), Over> {
        match request {
            LinkRequest::Open(action, to) => {
                self.waiting.push_back((action, to));
                self.open_next().await
            }
            LinkRequest::Act(action) => self.act(action).await,
            LinkRequest::Leave(session, gone) => self.leave(session, gone).await,
        }
    }

    async fn leave(&mut self, session: Option<String>, gone: oneshot::Sender<()>) -> Result<(), Over> {
        let is_last = self.is_last();
        let Some(session) = session else {
            // Only the last one waits for something.
            self.left = is_last.then_some(gone);
            return if is_last { Err(Over::Left) } else { Ok(()) };
        };
        self.sessions.remove(&session);
        self.former.insert(session.clone());
        match is_last {
            true => self.left = Some(gone),
            false => drop(self.leaving.insert(session.clone(), gone)),
        }
        self.act(Action::End(session)).await?;
        if is_last { Err(Over::Left) } else { Ok(()) }
    }

    /// Takes one agent off the link. The last one closes it.
    fn is_last(&self) -> bool {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.taken = seats.taken.saturating_sub(1);
        seats.closed |= seats.taken == 0;
        seats.taken == 0
    }

    fn close(&self) {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
    }

    /// A program that begins nothing costs those that wait for it, and not the agents that it has.
    fn is_late(&mut self) -> Result<(), Over> {
        if !self.ready || self.sessions.is_empty() {
            return Err(Over::Slow);
        }
        self.close();
        self.deadline = None;
        for agent in self.opening.take().into_iter().chain(self.waiting.drain(..).map(|(_, to)| to)) {
            let _left = agent.send(LinkNews::Gone(Over::Slow.to_string()));
        }
        Ok(())
    }

    async fn open_next(&mut self) -> Result<(), Over> {
        while self.ready && self.opening.is_none() {
            let Some((action, to)) = self.waiting.pop_front() else { return Ok(()) };
            if to.is_closed() {
                continue;
            }
            self.opening = Some(to);
            self.deadline = Some(Instant::now() + BEGINS);
            self.act(action).await?;
        }
        Ok(())
    }

    async fn act(&mut self, action: Action) -> Result<(), Over> {
        match self.harness.driver()?.act(self.memory.as_ref(), &action).await {
            Ok(exchange) => self.carry(exchange),
            Err(error) => {
                self.not_done(action, error);
                Ok(())
            }
        }
    }

    /// An adapter that fails at one action has its memory as before, so that only this action's agent has to hear of it.
    fn not_done(&mut self, action: Action, error: HarnessError) {
        let refused = |what: String| DriverEvent::Refused(what, error.clone());
        let (session, event) = match action {
            Action::Begin(_) | Action::Resume(..) => {
                self.deadline = None;
                if let Some(opening) = self.opening.take() {
                    let _left = opening.send(LinkNews::Gone(format!("its adapter failed: {}", mesh::reasons(&error))));
                }
                return;
            }
            Action::Prompt(session, prompt) | Action::Steer(session, prompt) => (session, refused(prompt.id)),
            Action::Answer { session, question, .. } => (session, refused(question)),
            Action::Interrupt(session) | Action::Account(session, _) | Action::End(session) => {
                (session, DriverEvent::Note(format!("its adapter failed: {}", mesh::reasons(&error))))
            }
        };
        if let Some(agent) = self.sessions.get(&session) {
            let _left = agent.send(LinkNews::Event(Box::new(event)));
        }
        // Its agent waits for no end that nobody has asked for.
        self.leaving.remove(&session);
    }

    /// Sends the frames, and hands the events to their agents.
    fn carry(&mut self, exchange: Exchange) -> Result<(), Over> {
        self.memory = exchange.memory;
        self.outgoing.send(exchange.frames)?;
        for (session, event) in exchange.events {
            match (session, event) {
                (_, DriverEvent::Ready) => {
                    self.ready = true;
                    self.deadline = None;
                }
                (_, DriverEvent::Opened(session)) => {
                    if let Some(opened) = self.opening.take() {
                        self.deadline = None;
                        match opened.send(LinkNews::Event(Box::new(DriverEvent::Opened(session.clone())))) {
                            Ok(()) => drop(self.sessions.insert(session, opened)),
                            Err(_) => self.unwanted.push(session),
                        }
                    }
                }
                (None, DriverEvent::Refused(_, error)) if !self.ready => return Err(Over::Refused(error)),
                (session, event) => self.hand_over(session.as_deref(), event),
            }
        }
        Ok(())
    }

    /// An event of a session that is not known belongs to the one that is being begun; one of none, to all.
    fn hand_over(&mut self, session: Option<&str>, event: DriverEvent) {
        if let Some(known) = session.and_then(|session| self.sessions.get(session)) {
            let _left = known.send(LinkNews::Event(Box::new(event)));
            return;
        }
        if let Some(former) = session.filter(|session| self.former.contains(*session)) {
            if event == DriverEvent::Ended
                && let Some(gone) = self.leaving.remove(former)
            {
                let _unheard = gone.send(());
            }
            return;
        }
        let is_refused = matches!(event, DriverEvent::Refused(..));
        if session.is_none() && !is_refused {
            for agent in self.sessions.values() {
                let _left = agent.send(LinkNews::Event(Box::new(event.clone())));
            }
        }
        if let Some(opening) = &self.opening {
            let _left = opening.send(LinkNews::Event(Box::new(event)));
            if is_refused {
                self.opening = None;
                self.deadline = None;
            }
        }
    }
}

/// Why the link is over, if its program tells more than that it has closed its output.
fn told_of(over: &Over, ended: &Ended) -> Option<String> {
    if !matches!(over, Over::Frames(FramesError::Closed)) {
        return None;
    }
    let how = match (ended.code, ended.signal) {
        (Some(code), _) => format!("its program ended with exit code {code}"),
        (None, Some(signal)) => format!("its program was ended by signal {signal}"),
        (None, None) => "its program ended".to_owned(),
    };
    // What a program says has nothing to do with being killed.
    Some(match ended.complaint().filter(|_| ended.signal != Some(SIGKILL)) {
        Some(complaint) => format!("{how}: {complaint}"),
        None => how,
    })
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
