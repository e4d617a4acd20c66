//! A link: one started program of a harness, with the agents that are driven over it. It carries frames between the
//! program and the adapter, and hands each event to its agent. It decides nothing.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mesh::ports::driver::{Action, DriverAbilities, DriverConnection, DriverEvent, Exchange};
use mesh::ports::harness::{Harness, HarnessError};
use processes::guard::{Ended, Limits, Order, Streams};
use processes::{Guard, GuardError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::frames::{FramesError, Incoming, Outgoing};
use crate::runs::supervise::step;

/// How long a program may take until it takes actions, and until it has begun a session.
const BEGINS: Duration = Duration::from_secs(120);

/// What an agent hears of its link.
#[derive(Debug)]
pub(super) enum LinkNews {
    Event(Box<DriverEvent>),
    /// It is over, for this reason.
    Gone(String),
}

/// What an agent wants of its link.
#[derive(Debug)]
pub(super) enum Wish {
    /// Begin or continue a session, whose events go there.
    Open(Action, mpsc::UnboundedSender<LinkNews>),
    Act(Action),
    /// The agent of this session is not driven any more. Answered once the program is gone, if this was its last agent.
    Leave(Option<String>, oneshot::Sender<()>),
}

/// An agent's end of a link.
#[derive(Clone, Debug)]
pub(super) struct LinkHandle {
    wishes: mpsc::UnboundedSender<Wish>,
    pub(super) name: String,
    pub(super) able: DriverAbilities,
}

impl LinkHandle {
    pub(super) fn of(wishes: mpsc::UnboundedSender<Wish>, name: &str, able: DriverAbilities) -> LinkHandle {
        LinkHandle { wishes, name: name.to_owned(), able }
    }

    /// Begins or continues a session. What is heard of it comes by the result.
    pub(super) fn open(&self, action: Action) -> mpsc::UnboundedReceiver<LinkNews> {
        let (sender, news) = mpsc::unbounded_channel();
        // The end of a link is heard by its news.
        let _gone = self.wishes.send(Wish::Open(action, sender));
        news
    }

    pub(super) fn act(&self, action: Action) {
        let _gone = self.wishes.send(Wish::Act(action));
    }

    /// Leaves the link, which ends with its last agent: then `gone` is answered or dropped once nothing of it runs.
    pub(super) fn leave(&self, session: Option<String>, gone: oneshot::Sender<()>) {
        let _gone = self.wishes.send(Wish::Leave(session, gone));
    }
}

/// Where the files of a link lie.
#[derive(Clone, Debug)]
pub(super) struct LinkFiles {
    pub(super) errors: PathBuf,
    pub(super) running: PathBuf,
    pub(super) ended: PathBuf,
}

/// Why a link could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("its program could not be started: {0}")]
    NotStarted(String),
    #[error("its adapter failed")]
    Adapter(#[from] HarnessError),
}

/// Starts a program and talks with it until its last agent has left, or it ends. `environment` is its whole environment.
pub(super) async fn start(
    harness: Arc<dyn Harness>,
    connection: DriverConnection,
    environment: Vec<(String, String)>,
    folder: PathBuf,
    files: LinkFiles,
) -> Result<LinkHandle, LinkError> {
    let order = Order {
        command: connection.launch.command.clone(),
        environment,
        folder,
        streams: Streams::Pipes,
        stop: connection.launch.stop.iter().map(step).collect(),
        limits: Limits::default(),
        errors: files.errors,
        running: files.running,
        ended: files.ended,
    };
    let binary = crate::runs::binary().map_err(|error| LinkError::NotStarted(error.to_string()))?;
    let (mut guard, input, output) = Guard::talk(&binary, &order).await?;
    if guard.started().await.is_none() {
        return Err(LinkError::NotStarted(why_not(&guard.ended().await?)));
    }
    let greeting = harness.driver()?.connect(&connection.name).await?;
    let (wishes, wanted) = mpsc::unbounded_channel();
    let handle = LinkHandle { wishes, name: connection.name.clone(), able: connection.able };
    let link = Link {
        harness,
        guard,
        outgoing: Outgoing::to(input),
        memory: None,
        ready: false,
        sessions: BTreeMap::new(),
        opening: None,
        waiting: VecDeque::new(),
        agents: 0,
        left: None,
        deadline: Some(Instant::now() + BEGINS),
    };
    tokio::spawn(link.run(greeting, Incoming::of(output), wanted));
    Ok(handle)
}

fn why_not(ended: &Ended) -> String {
    let said = ended.stderr_end.trim();
    ended.not_started.clone().unwrap_or_else(|| match said.lines().last() {
        Some(last) => last.to_owned(),
        None => "the process that watches over it was killed".to_owned(),
    })
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
    /// Nobody is driven over it any more.
    #[error("its last agent has left")]
    Left,
}

struct Link {
    harness: Arc<dyn Harness>,
    guard: Guard,
    outgoing: Outgoing,
    memory: Option<serde_json::Value>,
    /// Whether it takes actions.
    ready: bool,
    sessions: BTreeMap<String, mpsc::UnboundedSender<LinkNews>>,
    /// Whose session is being begun. One at a time, because a new session is known only by when it comes.
    opening: Option<mpsc::UnboundedSender<LinkNews>>,
    waiting: VecDeque<(Action, mpsc::UnboundedSender<LinkNews>)>,
    /// How many agents are driven over it.
    agents: usize,
    /// Who waits for its end.
    left: Option<oneshot::Sender<()>>,
    /// When the program has to have done what it was asked first.
    deadline: Option<Instant>,
}

impl Link {
    async fn run(mut self, greeting: Exchange, mut incoming: Incoming, mut wanted: mpsc::UnboundedReceiver<Wish>) {
        let over = match self.carry(greeting) {
            Ok(()) => self.talk(&mut incoming, &mut wanted).await,
            Err(over) => over,
        };
        let mut why = over.to_string();
        self.guard.stop().await;
        if let Ok(ended) = self.guard.ended().await {
            why = told_of(&over, &ended).unwrap_or(why);
        }
        if let Some(left) = self.left.take() {
            let _unheard = left.send(());
        }
        let agents = self.sessions.into_values().chain(self.opening).chain(self.waiting.into_iter().map(|(_, to)| to));
        for agent in agents {
            let _left = agent.send(LinkNews::Gone(why.clone()));
        }
    }

    async fn talk(&mut self, incoming: &mut Incoming, wanted: &mut mpsc::UnboundedReceiver<Wish>) -> Over {
        loop {
            let outcome = tokio::select! {
                frames = incoming.next() => match frames {
                    Ok(frames) => self.receive(&frames).await,
                    Err(error) => Err(error.into()),
                },
                wish = wanted.recv() => match wish {
                    Some(wish) => self.wish(wish).await,
                    None => Err(Over::Left),
                },
                () = at(self.deadline) => Err(Over::Slow),
            };
            if let Err(over) = outcome {
                return over;
            }
        }
    }

    async fn receive(&mut self, frames: &[String]) -> Result<(), Over> {
        let exchange = self.harness.driver()?.receive(self.memory.as_ref(), frames).await?;
        self.carry(exchange)?;
        self.open_next().await
    }

    async fn wish(&mut self, wish: Wish) -> Result<(), Over> {
        match wish {
            Wish::Open(action, to) => {
                self.agents += 1;
                self.waiting.push_back((action, to));
                self.open_next().await
            }
            Wish::Act(action) => self.act(&action).await,
            Wish::Leave(session, gone) => {
                if let Some(session) = session {
                    self.sessions.remove(&session);
                }
                self.agents = self.agents.saturating_sub(1);
                if self.agents == 0 {
                    self.left = Some(gone);
                    return Err(Over::Left);
                }
                // Nobody waits for the others.
                let _unheard = gone.send(());
                Ok(())
            }
        }
    }

    async fn open_next(&mut self) -> Result<(), Over> {
        while self.ready && self.opening.is_none() {
            let Some((action, to)) = self.waiting.pop_front() else { return Ok(()) };
            self.opening = Some(to);
            self.deadline = Some(Instant::now() + BEGINS);
            self.act(&action).await?;
        }
        Ok(())
    }

    async fn act(&mut self, action: &Action) -> Result<(), Over> {
        let exchange = self.harness.driver()?.act(self.memory.as_ref(), action).await?;
        self.carry(exchange)
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
                        let _left = opened.send(LinkNews::Event(Box::new(DriverEvent::Opened(session.clone()))));
                        self.sessions.insert(session, opened);
                    }
                }
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
        if let Some(opening) = &self.opening {
            let is_refused = matches!(event, DriverEvent::Refused(..));
            let _left = opening.send(LinkNews::Event(Box::new(event)));
            if is_refused {
                self.opening = None;
                self.deadline = None;
            }
            return;
        }
        if session.is_none() {
            for agent in self.sessions.values() {
                let _left = agent.send(LinkNews::Event(Box::new(event.clone())));
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
    let last = ended.stderr_end.lines().rfind(|line| !line.trim().is_empty());
    Some(match last {
        Some(last) => format!("{how}: {}", last.trim().chars().take(300).collect::<String>()),
        None => how,
    })
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
