//! A harness, as the mesh sees it. The adapters crate implements it over a sandboxed component;
//! tests implement it over a script.

use async_trait::async_trait;

use crate::commands::Command;
use crate::messages::Priority;
use crate::messages::receipt::DeliveryStatus;
use crate::names::MessageId;
use crate::sessions::{Activity, Caller, Detection, Session};

/// Who an adapter is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// What people type: `claude-code`.
    pub harness: String,
    /// What people read: `Claude Code`.
    pub title: String,
    /// The adapter's own version.
    pub version: String,
    /// Other names that people type.
    pub aliases: Vec<String>,
    /// Whether one MCP connection carries one session.
    pub connection_per_session: bool,
}

/// When an agent must be told about the mesh.
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

/// Mail as the host has worded it. Adapters place it and never reword it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The messages in it.
    pub ids: Vec<MessageId>,
    /// The text, inside envelopes.
    pub text: String,
    /// The highest priority among them.
    pub priority: Priority,
}

/// Whether a route carries the text or only the news that mail waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// The text.
    Message,
    /// The news.
    Notification,
}

/// One way of bringing a message to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name, which receipts show.
    pub name: String,
    /// What it carries.
    pub carries: Carries,
    /// The best status that it can prove: notified, accepted or shown.
    pub proves: DeliveryStatus,
    /// What the session may be doing.
    pub when: Vec<Activity>,
    /// The least urgent mail that it is tried for.
    pub least: Priority,
    /// The longest text that it carries, in bytes.
    pub max_bytes: u32,
    /// How long to wait for a settling status before the next route, in milliseconds.
    pub timeout: u32,
}

/// What a route says of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The status that it proves.
    pub status: DeliveryStatus,
    /// JSON: a turn id, a message id.
    pub evidence: Option<String>,
}

/// By what a harness would run a command of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// Its name, which is shown beside the command.
    pub name: String,
    /// What the session may be doing.
    pub when: Vec<Activity>,
}

/// How far a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressStage {
    /// The harness was asked for it.
    Begun,
    /// It did what it was asked.
    Succeeded,
    /// It did not.
    Failed,
}

/// What a harness says of a command that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How far it is.
    pub stage: ProgressStage,
    /// What came of it.
    pub said: Option<String>,
    /// JSON: a turn id, a message id.
    pub evidence: Option<String>,
}

/// Whether a harness is being set up or taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set up.
    Install,
    /// Taken out.
    Remove,
}

/// Whose settings are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One project's.
    Project,
    /// The person's own, for every project.
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

/// What an install or a removal is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Set up or taken out.
    pub action: Action,
    /// Whose settings.
    pub scope: Scope,
    /// How our server is reached.
    pub server: Server,
    /// What it is called in the harness's settings.
    pub server_name: String,
    /// The command line by which a hook starts relay-mesh, whatever the transport.
    pub program: Vec<String>,
    /// Variables that the server and the hooks must be given, such as a data folder of one's own.
    pub environment: Vec<(String, String)>,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The manifest's name of the root that it lies under.
    pub root: String,
    /// Its path from there.
    pub path: String,
    /// What the file must still hold; none where it must be absent.
    pub before: Option<String>,
    /// What it shall hold; none deletes it.
    pub after: Option<String>,
    /// Whether it shall be executable.
    pub executable: bool,
}

/// What an adapter would change, and what is left to the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Changes to files.
    pub edits: Vec<Edit>,
    /// What only the person can do.
    pub next_steps: Vec<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Works, and may surprise.
    Warning,
    /// Does not work.
    Broken,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// What.
    pub what: String,
    /// What to do.
    pub fix: Option<String>,
}

/// What a hook's payload says has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// A session is there.
    Alive(Session),
    /// It does this now.
    Activity {
        /// Which session.
        session: String,
        /// What it does.
        activity: Activity,
    },
    /// A session goes on under another id.
    Rebound {
        /// The id it had.
        from: String,
        /// The id it has.
        to: String,
    },
    /// A person typed.
    UserSpoke(String),
    /// It ended.
    Ended(String),
}

/// A hook's call, as it reached us.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// The event's name, in the harness's own spelling.
    pub name: String,
    /// The payload as it stood on standard input.
    pub payload: String,
    /// Variables of the hook's process. Narrowed to the manifest's list on the way in.
    pub environment: Vec<(String, String)>,
    /// Which process called, told apart from every other of this machine; none where that is not known.
    pub process: Option<String>,
}

/// What an adapter reads in a hook's payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Who is concerned.
    pub speaker: Option<Session>,
    /// What happened.
    pub events: Vec<HookEvent>,
    /// Whether protocol text fits here, and why.
    pub occasion: Option<Occasion>,
    /// Bytes of mail that fit in the answer; zero where none may be shown.
    pub max_bytes: u32,
    /// Whether a person's own action brought this hook about, so that held mail may be shown too.
    pub attended: bool,
    /// Whether this answer tells the harness to watch the wake file, so that ringing it is an offer from now on.
    pub watches_wake_file: bool,
    /// Files about to be written.
    pub edits: Vec<String>,
}

/// What the host found for a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// The agent that is bound to the speaker.
    pub agent: Option<String>,
    /// Its mail, claimed for this answer.
    pub mail: Option<Mail>,
    /// Protocol text.
    pub protocol: Option<String>,
    /// Why an edit must not happen.
    pub refusal: Option<String>,
    /// Absolute path of the file that gains a line when mail waits. Its folder exists.
    pub wake_file: String,
    /// Proof, for tools/call, that this hook named the session. Opaque JSON.
    pub ticket: String,
}

/// What a hook's process prints and how it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Standard output.
    pub stdout: Option<String>,
    /// Standard error.
    pub stderr: Option<String>,
    /// Exit code.
    pub exit_code: i32,
    /// Whether the mail is in it.
    pub shows_mail: bool,
}

/// Why an adapter did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HarnessError {
    /// The named thing is not there.
    #[error("not found: {0}")]
    NotFound(String),
    /// A grant is missing. Names the grant and the command that gives it.
    #[error("denied: {0}")]
    Denied(String),
    /// This harness cannot do that.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Try again after so many milliseconds.
    #[error("busy for {0} ms")]
    Busy(u32),
    /// The adapter, its component or its harness is defective.
    #[error("{0}")]
    Failed(String),
}

/// What became of a hook in the second step: made from the reading by the host.
#[async_trait]
pub trait Desk: Send {
    /// Looks up mail, claims and protocol for what the adapter read.
    async fn look_up(&mut self, reading: Reading) -> Findings;
}

/// A harness, by way of its adapter.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// Who it is for.
    fn about(&self) -> &About;
    /// The session that a caller shows, if any.
    async fn detect(&self, seen: &Caller) -> Result<Option<Detection>, HarnessError>;
    /// The sessions that live now.
    async fn discover(&self) -> Result<Vec<Session>, HarnessError>;
    /// What a session does now, asked of the harness itself.
    async fn activity_of(&self, session: &str) -> Result<Activity, HarnessError>;
    /// The protocol text for a moment, made from the host's.
    async fn protocol(
        &self,
        base: &str,
        occasion: Occasion,
        agent: Option<&str>,
    ) -> Result<Option<String>, HarnessError>;
    /// The ways to a session, in the order to try.
    async fn routes(&self, to: &Session) -> Result<Vec<Route>, HarnessError>;
    /// Sends mail, or the news of it, by one of them.
    async fn deliver(&self, to: &Session, route: &str, mail: &Mail) -> Result<Delivered, HarnessError>;
    /// Asks what became of a delivery.
    async fn confirm(&self, to: &Session, route: &str, sent: &Delivered) -> Result<Delivered, HarnessError>;
    /// The harness's version, where it is on this machine.
    async fn present(&self) -> Result<Option<String>, HarnessError>;
    /// The changes that set it up or take it out.
    async fn propose(&self, setup: &Setup) -> Result<Plan, HarnessError>;
    /// Whether it is set up, and rightly.
    async fn check(&self, setup: &Setup) -> Result<Vec<Finding>, HarnessError>;
    /// The optional interfaces that this adapter has.
    fn optional(&self) -> OptionalInterfaces<'_> {
        OptionalInterfaces::default()
    }
    /// Its `commands`, or the error that it has none.
    fn commands(&self) -> Result<&dyn HarnessCommands, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` runs no commands", self.about().harness));
        self.optional().commands.ok_or_else(none)
    }
    /// Answers a hook in two steps on one instance: read, the desk looks up, answer.
    async fn hook(&self, call: &HookCall, desk: &mut dyn Desk) -> Result<Reply, HarnessError>;
}

/// The interfaces that only some adapters have.
#[derive(Clone, Copy, Default)]
pub struct OptionalInterfaces<'h> {
    /// Running the harness's own slash commands.
    pub commands: Option<&'h dyn HarnessCommands>,
}

/// Running the harness's own slash commands in a live session.
#[async_trait]
pub trait HarnessCommands: Send + Sync {
    /// How it would run a command. Nothing happens yet.
    async fn plan(&self, to: &Session, command: &Command) -> Result<Means, HarnessError>;
    /// Begins a command. An error says that nothing has begun.
    async fn run(&self, to: &Session, command: &Command) -> Result<Progress, HarnessError>;
    /// Looks whether a command that was begun has ended.
    async fn watch(&self, to: &Session, command: &Command, begun: &Progress) -> Result<Progress, HarnessError>;
}

/// The harnesses that this process knows. Loading one may be put off until it is asked for.
#[async_trait]
pub trait Harnesses: Send + Sync + 'static {
    /// The names that can be asked for, without loading anything.
    fn names(&self) -> Vec<String>;
    /// One by name or alias; none where nobody knows it.
    async fn get(&self, name: &str) -> Result<Option<std::sync::Arc<dyn Harness>>, HarnessError>;
    /// Those that may match this client: an adapter that cannot be meant is not loaded.
    async fn candidates(&self, seen: &Caller) -> Vec<std::sync::Arc<dyn Harness>>;
}
