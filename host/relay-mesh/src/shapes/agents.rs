//! Agents: `register`, `agents`, and the table in `status`.

use mesh::agent::{Origin, Seen};
use mesh::machine::Instant;
use mesh::{Adopted, Outcome, Registered};
use serde::{Serialize, Serializer};

use super::{ago, as_rfc3339, as_some_rfc3339, counted};
use crate::render::{Show, Table, on_one_line, printable_line};

/// An agent, as others see it.
#[derive(Debug, Serialize)]
pub(crate) struct AgentShape<'a> {
    /// Its address: `alice` or `alice@backend`.
    pub(crate) name: &'a str,
    /// `live`, `idle`, `away` or `gone`.
    pub(crate) presence: &'static str,
    /// The sentence that says why we think so.
    pub(crate) evidence: &'a str,
    /// When it was last heard of.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_some_rfc3339")]
    pub(crate) last_heard: Option<Instant>,
    /// Messages that wait for it.
    pub(crate) waiting: usize,
    /// The harness that it runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) harness: Option<&'a str>,
    /// Its session there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<&'a str>,
    /// The program that speaks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<&'a str>,
    /// The model behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<&'a str>,
    /// The folder it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<&'a str>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<&'a str>,
    /// What it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<&'a str>,
    /// The issue that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bead: Option<&'a str>,
    /// What it can do.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) skills: &'a [String],
    /// The machine where it runs.
    pub(crate) host: &'a str,
    /// When its name was first registered.
    #[serde(serialize_with = "as_rfc3339")]
    pub(crate) registered: Instant,
    /// How it came to be: what it is called where its harness has no name.
    #[serde(skip)]
    pub(crate) origin: Origin,
}

impl AgentShape<'_> {
    /// The harness, or what stands in its place.
    fn kind(&self) -> &str {
        match (self.harness, self.origin) {
            (Some(harness), _) => harness,
            (None, Origin::CommandLine) => "command line",
            (None, Origin::Session | Origin::Connection) => "MCP client",
        }
    }
}

impl<'a> From<&'a Seen> for AgentShape<'a> {
    fn from(seen: &'a Seen) -> AgentShape<'a> {
        let Seen { agent, presence, evidence, last_heard, waiting } = seen;
        let (profile, session) = (&agent.profile, agent.session.as_ref());
        AgentShape {
            name: agent.name.as_str(),
            presence: presence.as_str(),
            evidence,
            last_heard: *last_heard,
            waiting: *waiting,
            harness: profile.harness.as_deref().or_else(|| session.map(|session| session.harness.as_str())),
            session: session.map(|session| session.id.as_str()),
            program: profile.program.as_deref(),
            model: profile.model.as_deref(),
            project: profile.project.as_deref(),
            role: profile.role.as_deref(),
            task: profile.task.as_deref(),
            bead: profile.bead.as_deref(),
            skills: &profile.skills,
            host: &agent.host,
            registered: agent.registered,
            origin: agent.origin,
        }
    }
}

/// Agents, an [`AgentShape`] each: they come by the thousand, so that each is made when it is shown.
pub(crate) fn each_agent<S: Serializer>(agents: &[Seen], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(agents.iter().map(AgentShape::from))
}

/// `relay-mesh agents [QUERY]`.
#[derive(Debug, Serialize)]
pub(crate) struct AgentsShape<'a> {
    /// By name, or best match first where something was asked for.
    #[serde(serialize_with = "each_agent")]
    pub(crate) agents: &'a [Seen],
    /// The time of asking, for "how long ago".
    #[serde(skip)]
    pub(crate) now: Instant,
}

impl Show for AgentsShape<'_> {
    fn text(&self) -> String {
        if self.agents.is_empty() { String::new() } else { agents_table(self.agents, self.now) }
    }
}

/// `relay-mesh heartbeat`.
#[derive(Debug, Serialize)]
pub(crate) struct HeartbeatShape<'a> {
    /// The agent, as others see it now.
    #[serde(flatten)]
    pub(crate) agent: AgentShape<'a>,
}

impl<'a> From<&'a Seen> for HeartbeatShape<'a> {
    fn from(seen: &'a Seen) -> HeartbeatShape<'a> {
        HeartbeatShape { agent: seen.into() }
    }
}

impl Show for HeartbeatShape<'_> {
    fn text(&self) -> String {
        let AgentShape { name, presence, task, waiting, .. } = &self.agent;
        let task = task.as_ref().map_or_else(String::new, |task| format!(", {}", printable_line(task)));
        format!("{name} is {presence}{task}; {}", waits(*waiting))
    }
}

/// The table that `agents` and `status` show.
pub(crate) fn agents_table(agents: &[Seen], now: Instant) -> String {
    let head = ["AGENT", "PRESENCE", "HEARD", "WAITING", "HARNESS", "ABOUT", "BECAUSE"];
    let mut table = Table::new(&head, agents.len());
    for agent in agents.iter().map(AgentShape::from) {
        let heard = agent.last_heard.map_or_else(|| "never".to_owned(), |heard| ago(heard, now));
        let about = match (agent.role, agent.task) {
            (Some(role), Some(task)) => &format!("{role}; {task}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "",
        };
        table.row([
            agent.name,
            agent.presence,
            &heard,
            &agent.waiting.to_string(),
            &on_one_line(agent.kind()),
            &on_one_line(about),
            &on_one_line(agent.evidence),
        ]);
    }
    table.text()
}

/// `relay-mesh register NAME`.
#[derive(Debug, Serialize)]
pub(crate) struct RegisteredShape {
    /// The agent's address.
    pub(crate) name: String,
    /// `new`, `same` (it was this caller's already), `numbered` (the name was taken) or
    /// `reclaimed` (its holder is gone).
    pub(crate) outcome: &'static str,
    /// What had been asked for, where the name got a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<String>,
    /// Messages that wait for it already.
    pub(crate) waiting: usize,
}

impl From<&Registered> for RegisteredShape {
    fn from(registered: &Registered) -> RegisteredShape {
        let (outcome, wanted) = match &registered.outcome {
            Outcome::New => ("new", None),
            Outcome::Same => ("same", None),
            Outcome::Numbered { wanted } => ("numbered", Some(wanted.to_string())),
            Outcome::Reclaimed => ("reclaimed", None),
        };
        RegisteredShape { name: registered.agent.name.to_string(), outcome, wanted, waiting: registered.waiting }
    }
}

impl Show for RegisteredShape {
    fn text(&self) -> String {
        let name = &self.name;
        let mut text = match (&self.wanted, self.outcome) {
            (Some(wanted), _) => format!("registered {name}, because {wanted} is somebody else"),
            (None, "same") => format!("{name} is registered already"),
            (None, "reclaimed") => format!("registered {name}, which was here before"),
            (None, _) => format!("registered {name}"),
        };
        if self.waiting > 0 {
            text.push_str(&format!("; {} for it", waits(self.waiting)));
        }
        text
    }
}

/// An agent that was brought here.
#[derive(Debug, Serialize)]
pub(crate) struct AdoptedShape {
    /// The agent's address.
    pub(crate) name: String,
    /// The machine that it lived on.
    pub(crate) from: String,
    /// Messages that wait for it.
    pub(crate) waiting: usize,
}

impl From<&Adopted> for AdoptedShape {
    fn from(adopted: &Adopted) -> AdoptedShape {
        AdoptedShape { name: adopted.agent.to_string(), from: adopted.from.clone(), waiting: adopted.waiting }
    }
}

impl Show for AdoptedShape {
    fn text(&self) -> String {
        let AdoptedShape { name, from, waiting } = self;
        let mut text = format!("{name} lives on this machine now, and no longer on {from}");
        if *waiting > 0 {
            text.push_str(&format!("; {} for it", waits(*waiting)));
        }
        text
    }
}

/// `1 message waits`, `2 messages wait`.
pub(crate) fn waits(count: usize) -> String {
    format!("{} {}", counted(count, "message"), if count == 1 { "waits" } else { "wait" })
}
