//! The types of sessions and callers: what a call, a hook or a command line reveals, and what is stored.

use serde::{Deserialize, Serialize};

use crate::agents::Profile;
use crate::names::AgentName;
use crate::ports::machine::{Instant, Process};
use crate::turns::sessions::AnnouncedEdit;

/// Names one session of one harness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionRef {
    /// The harness, by its adapter's name for it.
    pub harness: String,
    /// The session's id, as the harness spells it.
    pub id: String,
}

/// A session as an adapter reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id, as the harness spells it.
    pub id: String,
    /// The root session, if this one is a subagent's.
    pub parent: Option<String>,
    /// The folder it works in.
    pub workdir: String,
    /// The harness's process id, if known.
    pub process: Option<u32>,
    /// JSON that the adapter gets back at delivery. Never leaves this machine's local store.
    pub route_hint: Option<String>,
}

/// A session's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Waits for its user's next prompt or for a message.
    Idle,
    /// Works on a turn.
    Busy,
    /// Asked its user something. No mail is delivered until the user has answered.
    #[serde(alias = "awaiting-human")]
    NeedsInput,
    #[serde(alias = "gone")]
    Ended,
}

impl Activity {
    /// The word in output and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Activity::Idle => "idle",
            Activity::Busy => "busy",
            Activity::NeedsInput => "needs-input",
            Activity::Ended => "ended",
        }
    }
}

/// The evidence that a session's client is still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Its process, which serves only this session.
    #[default]
    Process,
    /// A stream that its client holds open. The process is a server's, which serves many clients.
    Stream,
    /// Only its calls: its HTTP client holds no stream open.
    Calls,
}

impl Sign {
    fn is_process(&self) -> bool {
        match self {
            Sign::Process => true,
            Sign::Stream | Sign::Calls => false,
        }
    }

    pub(crate) fn is_calls(self) -> bool {
        match self {
            Sign::Calls => true,
            Sign::Process | Sign::Stream => false,
        }
    }
}

/// This machine's record of a session, stored under `sessions/HARNESS/ID`, only in the local store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Which session. Written when it is first seen.
    pub session: SessionRef,
    /// The root session, if this one is a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The folder it works in.
    pub workdir: String,
    /// The harness's process, to tell a dead session from a silent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The process that started the server through which it registered: its MCP client's. What runs below that is its
    /// agent's, as far as anybody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Process>,
    /// Further processes of the harness that have it open: its user resumed it in a second terminal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Process>,
    /// The PID namespace in which that one was seen, as earlier versions noted it: only for processes that do not name
    /// theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_space: Option<u64>,
    /// When a process of ours that serves it last said that it lives: readers in another PID namespace have nothing else
    /// to go by while the session is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beat: Option<Instant>,
    /// The terminals that may have it on screen, by the last prompt of its user; `None` if that is not known. None is
    /// left if each of them has ended or shows another session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screens: Option<Vec<Process>>,
    /// The evidence that its client is there. Written by registration, and for an HTTP client whenever it opens its
    /// first stream or its last one breaks off.
    #[serde(default, skip_serializing_if = "Sign::is_process")]
    pub shown_by: Sign,
    /// JSON that the adapter gets back at delivery. Never listed, logged or copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_hint: Option<String>,
    /// The agent that is bound to it. Written by registration and by `bind_session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The agent that `adopt` took from it. It acts as that one no more, even if a connection remembers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<AgentName>,
    /// Its activity, by the last hook that reported one.
    pub activity: Activity,
    /// Its last sign of life.
    pub heard: Instant,
    /// When it was first seen.
    pub first_seen: Instant,
    /// Whether a hook of the harness was told where the wake file is, so that writing the file counts as a
    /// notification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watches_wake_file: bool,
    /// Whether a hook of the harness has had room for mail: then mail comes with the user's next prompt at the latest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hooks_carry_mail: bool,
    /// Whether a process of ours gives it its turns: then its mail comes as turns, and neither its hooks nor its wake file
    /// bring any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub driven: bool,
    /// Whether a hook reported that this session succeeds no other one, such as a fork. Then it takes over no agent,
    /// even if it follows another session on a connection whose agent is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stands_alone: bool,
    /// Advice to show with its next mail: it edited a file that another agent has reserved. Written by the hook before
    /// that edit, taken by the next hook that can show text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Files that it was about to write, until a later hook has looked whether they changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub announced: Vec<AnnouncedEdit>,
    /// What its user is still to be told of mail that has woken it. Written by a hook of whose answer they see nothing,
    /// taken by the next one of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// When its user stopped a turn of it. Their next prompt removes this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Instant>,
    /// When its user paused its agent. Written by `pause`, and by a hook of a new session of a paused agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Instant>,
    /// The id of the session that succeeded it after a clear or a resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded_by: Option<String>,
    /// The activity last reported to other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<ToldActivity>,
}

impl SessionRecord {
    /// The record of an idle session of which nothing else is known.
    pub(crate) fn new(session: SessionRef, now: Instant) -> SessionRecord {
        SessionRecord {
            session,
            parent: None,
            workdir: String::new(),
            process: None,
            client: None,
            others: Vec::new(),
            process_space: None,
            beat: None,
            screens: None,
            shown_by: Sign::Process,
            route_hint: None,
            agent: None,
            released: None,
            activity: Activity::Idle,
            heard: now,
            first_seen: now,
            watches_wake_file: false,
            hooks_carry_mail: false,
            driven: false,
            stands_alone: false,
            advice: None,
            announced: Vec::new(),
            notice: None,
            stopped: None,
            paused: None,
            succeeded_by: None,
            told: None,
        }
    }

    /// Its last sign of life, by itself or by a process of ours that serves it.
    pub(crate) fn last_sign(&self) -> Instant {
        self.beat.map_or(self.heard, |beat| beat.max(self.heard))
    }

    /// Until when mail waits for the user who has stopped this session or paused its agent; `None` if it does not. A
    /// pause has no end of its own: the record changes when it ends.
    pub(crate) fn stopped_until(&self, now: Instant, longest: u64) -> Option<Instant> {
        if self.paused.is_some() {
            return Some(now.plus(UNTIL_RESUMED));
        }
        let stopped = self.stopped?;
        let until = stopped.plus(longest);
        // A stop far in the future was noted by a clock that has stepped back since.
        (now < until && stopped.since(now) <= longest).then_some(until)
    }
}

/// When a paused session is looked at again, in milliseconds, unless its record changes before: a day.
const UNTIL_RESUMED: u64 = 24 * 3_600_000;

/// An activity that was reported to other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldActivity {
    /// When it was reported.
    pub at: Instant,
    /// The reported activity.
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

/// The raw evidence about a call, a hook or a command line, as relay-mesh received it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// How it arrived.
    pub transport: Transport,
    /// The client's own name, from `initialize`.
    pub client_name: Option<String>,
    /// The client's own version.
    pub client_version: Option<String>,
    /// `_meta` of this `tools/call`, as JSON.
    pub meta: Option<String>,
    /// The request's headers, if it came over HTTP.
    pub headers: Vec<(String, String)>,
    /// The called tool.
    pub tool: Option<String>,
    /// Its arguments as JSON, without those that relay-mesh removed.
    pub arguments: Option<String>,
    /// Environment variables of the harness's process. The adapters crate narrows them to each manifest's list.
    pub environment: Vec<(String, String)>,
    /// The client's working directory.
    pub workdir: Option<String>,
}

impl Caller {
    /// The caller behind a command line.
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
    /// From the environment of the parent process; may be stale.
    Inherited,
    /// From this call itself.
    Certain,
}

/// A session that an adapter found in a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    pub session: Session,
    /// How sure the adapter is.
    pub certainty: Certainty,
}

/// Proof, issued by this machine, that one of its hooks or connectors named a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    pub session: SessionRef,
    /// HMAC of the session with this machine's key, in hexadecimal.
    pub proof: String,
}

/// The id of an MCP connection, valid while it is open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub String);

/// One call, with everything that may identify its caller.
#[derive(Clone, Debug)]
pub struct Call {
    /// The raw evidence.
    pub caller: Caller,
    /// Its connection, if the protocol version has connections.
    pub connection: Option<ConnectionId>,
    /// The ticket from the arguments.
    pub ticket: Option<Ticket>,
    /// The agent key from the arguments.
    pub key: Option<String>,
    /// The agent that the caller claims to be (`--from` on the command line). Never trusted by itself.
    pub claims_to_be: Option<AgentName>,
}

/// The evidence that identified a caller, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The adapter detected the session with certainty from this call.
    Call,
    /// A ticket that this machine issued.
    Ticket,
    /// The agent registered through this connection, which has one session.
    Connection,
    /// The key that registration issued.
    Key,
    /// A command line that names an agent which was registered from a command line.
    CommandLine,
    /// No evidence.
    None,
}

/// The identified caller, determined once per call. Only this crate can construct one.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The session, if one was found.
    pub(crate) session: Option<(SessionRef, Session)>,
    pub(crate) connection: Option<ConnectionId>,
    /// The agent of the session, the connection or the key, if there is one.
    pub(crate) agent: Option<AgentName>,
    pub(crate) evidence: Evidence,
    /// Whether an agent that registers with this call acts through the whole connection from then on. False if the
    /// harness has several sessions per connection: then each call must identify its session.
    pub(crate) owns_connection: bool,
    pub(crate) transport: Transport,
    /// What the call tells about the client, for the agent's profile.
    pub(crate) profile: Profile,
}

impl Principal {
    /// The user, who acts for no agent.
    pub(crate) fn of_user() -> Principal {
        Principal {
            session: None,
            connection: None,
            agent: None,
            evidence: Evidence::CommandLine,
            owns_connection: false,
            transport: Transport::CommandLine,
            profile: Profile::default(),
        }
    }

    /// The calling agent, if it is registered.
    pub fn agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }

    /// The calling session, if known.
    pub fn session(&self) -> Option<&SessionRef> {
        self.session.as_ref().map(|(session, _)| session)
    }

    /// The caller's working directory, if known.
    pub fn workdir(&self) -> Option<&str> {
        self.profile.project.as_deref()
    }

    /// How the call came.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The evidence that identified the caller.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// Whether this is the command line of the user who owns the store, outside of any harness. The user may see
    /// everything, since the files are theirs.
    pub fn is_person(&self) -> bool {
        self.transport == Transport::CommandLine && self.session.is_none()
    }
}
