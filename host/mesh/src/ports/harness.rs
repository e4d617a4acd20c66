//! A harness, as the mesh sees it. The adapters crate implements it over a sandboxed component;
//! tests implement it over a script.

use async_trait::async_trait;

use crate::commands::Command;
use crate::messages::Priority;
use crate::messages::receipt::DeliveryStatus;
use crate::names::MessageId;
use crate::ports::candidate::Candidate;
use crate::ports::driver::HarnessDriver;
use crate::ports::machine::Instant;
use crate::ports::runner::HarnessRunner;
use crate::sessions::{Activity, Caller, Detection, Session};

/// What an adapter says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The name that users type: `claude-code`.
    pub harness: String,
    /// The name that users read: `Claude Code`.
    pub title: String,
    /// The adapter's own version.
    pub version: String,
    /// Other names that users type.
    pub aliases: Vec<String>,
    /// Whether one MCP connection carries one session.
    pub connection_per_session: bool,
}

/// What the processes of a harness's client show of its sessions, as the adapter's manifest says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTraces {
    /// How the file is named that the client keeps open for each session that it has loaded.
    pub record: Option<RecordName>,
    /// The program in whose terminals sessions are on screen, while they may run in another process.
    pub terminal: Option<String>,
}

/// The name of a session's record: `begins`, anything, the session's id, `ends`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecordName {
    /// The beginning of the name.
    pub begins: String,
    pub ends: String,
    /// The length of a session's id, in characters.
    pub id_length: usize,
}

impl RecordName {
    /// The session whose record has this name, if any.
    pub fn session_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix(&self.begins)?.strip_suffix(&self.ends)?;
        let id = rest.get(rest.len().checked_sub(self.id_length)?..)?;
        (!id.is_empty()).then_some(id)
    }
}

/// When an agent is told about the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Occasion {
    /// A session began.
    Start,
    /// An agent has just registered.
    Registration,
    /// The session's context was compacted or cleared.
    Compaction,
    /// A session was resumed.
    Resume,
}

/// Mail as the mesh has worded it. Adapters place it and never reword it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The ids of the messages in it.
    pub ids: Vec<MessageId>,
    /// The text, inside envelopes.
    pub text: String,
    /// The highest priority among them.
    pub priority: Priority,
}

/// Whether a route carries the text or only a notification that mail waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// The text.
    Message,
    Notification,
}

/// One way of delivering a message to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name, as receipts show it.
    pub name: String,
    /// What it carries.
    pub carries: Carries,
    /// The best status that it can prove: notified, accepted or shown.
    pub proves: DeliveryStatus,
    /// The activities of a session in which it is tried.
    pub when: Vec<Activity>,
    /// The lowest priority for which it is tried.
    pub least: Priority,
    /// The longest text that it carries, in bytes.
    pub max_bytes: u32,
    /// How long to wait for a settling status before the next route, in milliseconds.
    pub timeout: u32,
}

impl Route {
    /// What counts of a report: at most what the route says that it proves, and of a notification, which does not hold
    /// the message, at most that the session was notified.
    pub(crate) fn counted(&self, delivered: Delivered) -> Delivered {
        let most = match self.carries {
            Carries::Message => self.proves,
            Carries::Notification => self.proves.min(DeliveryStatus::Notified),
        };
        if delivered.status > most {
            tracing::warn!(route = self.name, status = ?delivered.status, proves = ?most, "a route claims too much");
        }
        Delivered { status: delivered.status.min(most), ..delivered }
    }
}

/// What a route reports of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The status that it proves.
    pub status: DeliveryStatus,
    /// JSON: a turn id, a message id.
    pub evidence: Option<String>,
}

/// How a harness would run a command of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// Its name, which is shown beside the command.
    pub name: String,
    /// The activities of a session in which it works.
    pub when: Vec<Activity>,
}

/// The progress of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressStage {
    /// The harness was asked to run it.
    Begun,
    /// It ended well.
    Succeeded,
    /// It failed.
    Failed,
}

/// What a harness reports of a command that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How far the command is.
    pub stage: ProgressStage,
    /// The result or the error, in words.
    pub said: Option<String>,
    /// JSON: a turn id, a message id.
    pub evidence: Option<String>,
}

/// Whether a harness is being set up or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set it up.
    Install,
    /// Remove it.
    Remove,
}

/// Whose settings are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One project's.
    Project,
    /// The user's own, for every project.
    User,
}

/// How the harness reaches our MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// It starts this command line.
    Stdio(Vec<String>),
    /// It connects to this URL.
    Http(String),
}

/// What to install or remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Set up or remove.
    pub action: Action,
    /// Whose settings.
    pub scope: Scope,
    /// How our server is reached.
    pub server: Server,
    /// What it is called in the harness's settings.
    pub server_name: String,
    /// The command line by which a hook starts relay-mesh, for every transport.
    pub program: Vec<String>,
    /// Environment variables that the server and the hooks need, such as the data folder.
    pub environment: Vec<(String, String)>,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The root that contains the file, by its name in the manifest.
    pub root: String,
    /// Its path relative to the root.
    pub path: String,
    /// The content that the file must still have; none if it must be absent.
    pub before: Option<String>,
    /// The content to write; none deletes the file.
    pub after: Option<String>,
    /// Whether to make it executable.
    pub executable: bool,
}

/// What an adapter would change, and what remains for the user to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Changes to files.
    pub edits: Vec<Edit>,
    /// Steps that only the user can do.
    pub next_steps: Vec<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Works, but may surprise.
    Warning,
    /// Does not work.
    Broken,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// An event that a hook reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// A session lives.
    Alive(Session),
    /// The activity of a session changed.
    Activity {
        /// Which session.
        session: String,
        activity: Activity,
    },
    /// A session continues under another id.
    Rebound {
        /// The old id.
        from: String,
        /// The new id.
        to: String,
    },
    /// The user typed.
    UserSpoke(String),
    /// The user stopped the turn of a session.
    Stopped(String),
    /// A session ended.
    Ended(String),
}

/// A hook's call as received.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// The event's name in the harness's own spelling.
    pub name: String,
    /// The payload from standard input.
    pub payload: String,
    /// Environment variables of the hook's process, narrowed to the manifest's list.
    pub environment: Vec<(String, String)>,
    /// The calling process, in a form that is unique on this machine; none if it is unknown.
    pub process: Option<String>,
}

/// What an adapter read from a hook's payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The session that the hook concerns.
    pub speaker: Option<Session>,
    /// What happened.
    pub events: Vec<HookEvent>,
    /// The occasion on which protocol text fits here, if it does.
    pub occasion: Option<Occasion>,
    /// Bytes of mail that fit in the answer; zero if none may be shown.
    pub max_bytes: u32,
    /// Whether the user caused this hook, so that held mail may be shown too.
    pub attended: bool,
    /// Whether this answer makes the harness watch the wake file, so that writing to it notifies from now on.
    pub watches_wake_file: bool,
    /// Files about to be written.
    pub edits: Vec<String>,
}

impl Reading {
    /// Whether this hook says that the session has gone idle. At a start it has not gone anywhere.
    pub fn ends_turn(&self) -> bool {
        let idle = |event: &HookEvent| matches!(event, HookEvent::Activity { activity: Activity::Idle, .. });
        let stopped = |event: &HookEvent| matches!(event, HookEvent::Stopped(_));
        self.occasion.is_none() && self.events.iter().any(idle) && !self.events.iter().any(stopped)
    }
}

/// A message that an earlier answer to a hook of the same session carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOver {
    /// The message.
    pub id: MessageId,
    /// The hook that carried it, in the harness's own spelling.
    pub hook: String,
    pub at: Instant,
}

/// What became of a message that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A model request held it.
    Shown,
    /// The harness left it out and will not bring it any more.
    Lost,
}

/// What the mesh looked up for a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// The agent that is bound to the speaker.
    pub agent: Option<String>,
    /// Its mail, leased for this answer.
    pub mail: Option<Mail>,
    /// Protocol text.
    pub protocol: Option<String>,
    /// Why an edit is refused.
    pub refusal: Option<String>,
    /// Absolute path of the wake file, which gains a line when mail waits. Its folder exists.
    pub wake_file: String,
    /// The ticket: proof, for tools/call, that this hook named the session. Opaque JSON.
    pub ticket: String,
}

/// What a hook's process prints, and its exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Standard output.
    pub stdout: Option<String>,
    /// Standard error.
    pub stderr: Option<String>,
    pub exit_code: i32,
    /// Whether it contains the mail.
    pub shows_mail: bool,
}

/// Why an adapter did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HarnessError {
    /// The named thing does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// A grant is missing. The text names the grant and the command that gives it.
    #[error("denied: {0}")]
    Denied(String),
    /// This harness cannot do that.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Try again after this many milliseconds.
    #[error("busy for {0} ms")]
    Busy(u32),
    /// The adapter, its component or its harness is defective.
    #[error("{0}")]
    Failed(String),
}

/// The second step of a hook: the mesh looks up what the answer needs.
#[async_trait]
pub trait HookHost: Send {
    /// Looks up mail, reservations and protocol text for what the adapter read.
    async fn look_up(&mut self, reading: Reading) -> Findings;
}

/// A harness, through its adapter.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// What the adapter says about itself.
    fn about(&self) -> &About;
    /// What its client's processes show of its sessions.
    fn traces(&self) -> ClientTraces {
        ClientTraces::default()
    }
    /// The session that a caller's evidence points to, if any.
    async fn detect(&self, seen: &Caller) -> Result<Option<Detection>, HarnessError>;
    /// The sessions that are running now.
    async fn discover(&self) -> Result<Vec<Session>, HarnessError>;
    /// What a session does now, according to the harness itself.
    async fn activity_of(&self, session: &str) -> Result<Activity, HarnessError>;
    /// The protocol text for an occasion, made from the base text.
    async fn protocol(
        &self,
        base: &str,
        occasion: Occasion,
        agent: Option<&str>,
    ) -> Result<Option<String>, HarnessError>;
    /// The routes to a session, in the order in which to try them.
    async fn routes(&self, to: &Session) -> Result<Vec<Route>, HarnessError>;
    /// Delivers mail, or a notification of it, by one route.
    async fn deliver(&self, to: &Session, route: &str, mail: &Mail) -> Result<Delivered, HarnessError>;
    /// Asks what became of a delivery.
    async fn confirm(&self, to: &Session, route: &str, sent: &Delivered) -> Result<Delivered, HarnessError>;
    /// The harness's version, if it is installed on this machine.
    async fn present(&self) -> Result<Option<String>, HarnessError>;
    /// The changes that set it up or remove it.
    async fn propose(&self, setup: &Setup) -> Result<Plan, HarnessError>;
    /// Whether it is set up correctly.
    async fn check(&self, setup: &Setup) -> Result<Vec<Finding>, HarnessError>;
    /// The optional interfaces that this adapter has.
    fn optional(&self) -> OptionalInterfaces<'_> {
        OptionalInterfaces::default()
    }
    /// Its `commands` interface, or the error that it has none.
    fn commands(&self) -> Result<&dyn HarnessCommands, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` runs no commands", self.about().harness));
        self.optional().commands.ok_or_else(none)
    }
    /// Its `runner` interface, or the error that it has none.
    fn runner(&self) -> Result<&dyn HarnessRunner, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` runs no tasks", self.about().harness));
        self.optional().runner.ok_or_else(none)
    }
    /// Whether answers to hooks have a place for a notice that its user sees and its model does not.
    fn shows_notices(&self) -> bool {
        false
    }
    /// Puts a notice for the user into the answer to a hook. Returns whether they see it there.
    fn put_notice(&self, _hook: &str, _reply: &mut Reply, _notice: &str) -> bool {
        false
    }
    /// Its `driver` interface, or the error that it has none.
    fn driver(&self) -> Result<&dyn HarnessDriver, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` drives no agents", self.about().harness));
        self.optional().driver.ok_or_else(none)
    }
    /// Answers a hook in two steps on one instance: read the payload, let `hook_host` look up, answer.
    async fn hook(&self, call: &HookCall, hook_host: &mut dyn HookHost) -> Result<Reply, HarnessError>;
}

/// The interfaces that only some adapters have.
#[derive(Clone, Copy, Default)]
pub struct OptionalInterfaces<'h> {
    /// Running the harness's own slash commands.
    pub commands: Option<&'h dyn HarnessCommands>,
    /// Driving a live agent.
    pub driver: Option<&'h dyn HarnessDriver>,
    /// Finding out whether a model request held what a hook carried.
    pub evidence: Option<&'h dyn HarnessEvidence>,
    /// Running the harness for one task, without a user.
    pub runner: Option<&'h dyn HarnessRunner>,
}

/// The harness's own evidence that a model request held what an answer to a hook carried. The natural end of a turn
/// counts for a harness without it.
#[async_trait]
pub trait HarnessEvidence: Send + Sync {
    /// What became of these messages, which earlier answers to hooks of the same session carried. Those of which it is
    /// not known yet are left out. It is asked within a hook, so it takes no turn of its own.
    async fn look(&self, call: &HookCall, handed: &[HandedOver]) -> Result<Vec<(MessageId, Verdict)>, HarnessError>;
}

/// Running the harness's own slash commands in a live session.
#[async_trait]
pub trait HarnessCommands: Send + Sync {
    /// How it would run a command. Nothing happens yet.
    async fn plan(&self, to: &Session, command: &Command) -> Result<Means, HarnessError>;
    /// Begins a command. An error means that nothing has begun.
    async fn run(&self, to: &Session, command: &Command) -> Result<Progress, HarnessError>;
    /// Checks whether a command that was begun has ended.
    async fn watch(&self, to: &Session, command: &Command, begun: &Progress) -> Result<Progress, HarnessError>;
}

/// The harnesses that this process knows. An adapter may be loaded only when it is asked for.
#[async_trait]
pub trait Harnesses: Send + Sync + 'static {
    /// The known names, without loading anything.
    fn names(&self) -> Vec<String>;
    /// The harness of a name or alias; none if it is unknown.
    async fn get(&self, name: &str) -> Result<Option<std::sync::Arc<dyn Harness>>, HarnessError>;
    /// The harnesses that may match this caller. An adapter that cannot match is not loaded.
    async fn candidates(&self, seen: &Caller) -> Vec<Candidate>;
    /// The harness whose agent runs a process with these variables in its shell, as far as they show it; without loading
    /// anything.
    fn shell_of(&self, variables: &[(String, String)]) -> Option<String> {
        let _ = variables;
        None
    }
}
