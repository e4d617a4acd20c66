//! Sessions of harnesses: what a call, a hook or a command line shows of them, and what we keep.

use serde::{Deserialize, Serialize};

use crate::agents::Profile;
use crate::names::AgentName;
use crate::ports::machine::{Instant, Process};

/// Names one session of one harness, in the harness's own spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionRef {
    /// The adapter's harness name.
    pub harness: String,
    /// The session's id.
    pub id: String,
}

/// A session as an adapter reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id, in the harness's own spelling.
    pub id: String,
    /// The root session, where this one is a subagent's.
    pub parent: Option<String>,
    /// The folder it works in.
    pub workdir: String,
    /// The harness's process, where known.
    pub process: Option<u32>,
    /// JSON that the adapter wants back at delivery. Never leaves this machine's local store.
    pub route_hint: Option<String>,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Waits for its person or for a message.
    Idle,
    /// Works on a turn.
    Busy,
    /// Asked its person something. Nothing is brought to it until they answered.
    #[serde(alias = "awaiting-human")]
    NeedsInput,
    /// Ended.
    #[serde(alias = "gone")]
    Ended,
}

impl Activity {
    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Activity::Idle => "idle",
            Activity::Busy => "busy",
            Activity::NeedsInput => "needs-input",
            Activity::Ended => "ended",
        }
    }
}

/// What shows that whoever is behind a session is still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Its process, which is its own.
    #[default]
    Process,
    /// A stream that its client holds open. The process is a host's, which serves many.
    Stream,
    /// Nothing but its calls: its client over HTTP holds no stream open.
    Calls,
}

impl Sign {
    fn is_process(&self) -> bool {
        match self {
            Sign::Process => true,
            Sign::Stream | Sign::Calls => false,
        }
    }
}

/// What this machine keeps of a session, in the local store only, under `sessions/HARNESS/ID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Which session. Written when it is first seen.
    pub session: SessionRef,
    /// The root session, where this one is a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The folder it works in.
    pub workdir: String,
    /// The harness's process, so that a dead session is known from a silent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// What shows that it is there. Written by registration, and for a client over HTTP whenever it
    /// opens its stream or the last one breaks off.
    #[serde(default, skip_serializing_if = "Sign::is_process")]
    pub shown_by: Sign,
    /// What the adapter wants back at delivery. Never listed, logged or copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_hint: Option<String>,
    /// The agent that is bound to it. Written by registration and by `bind_session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// What it is doing, by the last hook that said so.
    pub activity: Activity,
    /// When that hook spoke.
    pub heard: Instant,
    /// When it was first seen.
    pub first_seen: Instant,
    /// Whether a hook of the harness was told where the wake file is, so that ringing it is an offer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watches_wake_file: bool,
    /// Whether a hook said that it begins or goes on by itself, such as a fork: then it takes over nobody's
    /// agent, also where it is the next one of a window whose agent is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stands_alone: bool,
    /// What it is to be told beside its next mail of a file that it wrote and another agent holds. Written by the
    /// hook before that edit, taken by the next one that may show something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// The session that took its place after a clear or a resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded_by: Option<String>,
    /// What other machines were last told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<ToldActivity>,
}

/// What other machines were told of a session, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldActivity {
    /// When.
    pub at: Instant,
    /// What it did then.
    pub activity: Activity,
}

/// Where a call came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// An MCP client over standard input and output.
    Stdio,
    /// An MCP client over HTTP.
    Http,
    /// A command typed in a shell.
    CommandLine,
}

/// All that the host saw when a call, a hook or a command line reached it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Where it came from.
    pub transport: Transport,
    /// The client's own name, from `initialize`.
    pub client_name: Option<String>,
    /// The client's own version.
    pub client_version: Option<String>,
    /// `_meta` of this very tools/call, as JSON.
    pub meta: Option<String>,
    /// The request's headers, over HTTP.
    pub headers: Vec<(String, String)>,
    /// The tool that is called.
    pub tool: Option<String>,
    /// Its arguments as JSON, without what the host took out.
    pub arguments: Option<String>,
    /// Variables of the harness's process. The adapters crate narrows them to each manifest's list.
    pub environment: Vec<(String, String)>,
    /// The folder that the client works in.
    pub workdir: Option<String>,
}

impl Caller {
    /// What a command line shows of itself.
    pub fn of_command_line(environment: Vec<(String, String)>, workdir: Option<String>) -> Caller {
        Caller {
            transport: Transport::CommandLine,
            client_name: None,
            client_version: None,
            meta: None,
            headers: Vec::new(),
            tool: None,
            arguments: None,
            environment,
            workdir,
        }
    }
}

/// How sure an adapter is of the session it detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// It comes from the process that spawned us, and may be stale.
    Inherited,
    /// It comes from this very call.
    Certain,
}

/// A session that an adapter found in a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The session.
    pub session: Session,
    /// How sure.
    pub certainty: Certainty,
}

/// Proof, made by this host, that one of its hooks or connectors named a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The session.
    pub session: SessionRef,
    /// HMAC of the session under this machine's key, in hexadecimal.
    pub proof: String,
}

/// One MCP connection, for as long as it lasts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub String);

/// One call, with everything that may say who makes it.
#[derive(Clone, Debug)]
pub struct Call {
    /// What the host saw.
    pub caller: Caller,
    /// The connection that it came by, where the protocol era has connections.
    pub connection: Option<ConnectionId>,
    /// The ticket that came in the arguments.
    pub ticket: Option<Ticket>,
    /// The explicit key that came in the arguments.
    pub key: Option<String>,
    /// The agent that the caller says it is. Never believed by itself: the command line's `--from`.
    pub claims_to_be: Option<AgentName>,
}

/// By what evidence a caller is known, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The adapter was certain from this very call.
    Call,
    /// A ticket that this host made.
    Ticket,
    /// The connection has one session, and it is registered.
    Connection,
    /// The key that registration gave out.
    Key,
    /// A command line that speaks for an agent which was registered from one.
    CommandLine,
    /// Nothing at all.
    None,
}

/// Who is calling, worked out once per call. Only this crate makes one.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The session, where one was found.
    pub(crate) session: Option<(SessionRef, Session)>,
    /// The connection.
    pub(crate) connection: Option<ConnectionId>,
    /// The agent, where the session, the connection or the key has one.
    pub(crate) agent: Option<AgentName>,
    /// By what.
    pub(crate) evidence: Evidence,
    /// Whether whoever registers by this call speaks for the whole connection from then on: where a
    /// harness has several sessions on one, each call has to say whose it is.
    pub(crate) owns_connection: bool,
    /// How the call came.
    pub(crate) transport: Transport,
    /// What the caller says of the client, for the profile.
    pub(crate) profile: Profile,
}

impl Principal {
    /// The agent that calls, where it is registered.
    pub fn agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }

    /// The session that calls, where one is known.
    pub fn session(&self) -> Option<&SessionRef> {
        self.session.as_ref().map(|(session, _)| session)
    }

    /// The folder that the caller works in, where one is known.
    pub fn workdir(&self) -> Option<&str> {
        self.profile.project.as_deref()
    }

    /// By what evidence it is known.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// Whether this is the command line of the person who owns the store, outside of any harness:
    /// they may look at everything, for the files are theirs.
    pub fn is_person(&self) -> bool {
        self.transport == Transport::CommandLine && self.session.is_none()
    }
}
