//! Agents: `register`, `agents`, and the table in `status`.

use mesh::Adopted;
use mesh::agents::{AgentSummary, Origin, Presence};
use mesh::ports::machine::Instant;
use serde::{Serialize, Serializer};
use view::{AgentDetail, RegistrationView, natural_order};

pub(crate) use view::RegisteredView as RegisteredShape;

use super::{ago, counted};
use crate::render::{Show, Table, printable_line};
use crate::screen::{Column, Screen, colour_of_state};

/// What the HARNESS column shows.
fn kind(agent: &AgentDetail) -> &str {
    match (&agent.agent.harness, agent.origin) {
        (Some(harness), _) => harness,
        (None, Origin::CommandLine) => "command line",
        (None, Origin::Session | Origin::Connection) => "MCP client",
    }
}

/// Serialises thousands of agents without holding all their views at once.
pub(crate) fn each_agent<S: Serializer>(agents: &[AgentSummary], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(agents.iter().map(AgentDetail::from))
}

/// `relay-mesh agents [QUERY]`.
#[derive(Debug, Serialize)]
pub(crate) struct AgentsShape<'a> {
    /// By name, or best match first if there was a query.
    #[serde(serialize_with = "each_agent")]
    pub(crate) agents: &'a [AgentSummary],
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
    /// What a terminal shows of them.
    #[serde(skip)]
    pub(crate) detail: Detail,
}

/// What a terminal shows of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detail {
    /// Also agents that are offline.
    pub(crate) all: bool,
    /// Also why an agent is thought to be what it is.
    pub(crate) reasons: bool,
    /// The order of the list is kept: it is that of a search.
    pub(crate) as_found: bool,
}

impl Show for AgentsShape<'_> {
    fn text(&self) -> String {
        if self.agents.is_empty() { String::new() } else { agents_table(self.agents, self.now) }
    }

    fn text_on(&self, screen: &Screen) -> String {
        if self.agents.is_empty() { String::new() } else { agents_on(screen, self.agents, self.now, self.detail) }
    }
}

/// The table of agents as a terminal shows it, and how many of them it leaves out.
pub(crate) fn agents_on(screen: &Screen, agents: &[AgentSummary], now: Instant, detail: Detail) -> String {
    const HEAD: [Column; 7] = [
        Column::cut("AGENT", 8, 0),
        Column::whole("PRESENCE", 0).painted(colour_of_state),
        Column::whole("HEARD", 2),
        Column::whole("WAITING", 1),
        Column::cut("HARNESS", 7, 5),
        Column::cut("ABOUT", 10, 3),
        Column::cut("BECAUSE", 12, 4),
    ];
    let is_offline = |seen: &&AgentSummary| seen.presence == Presence::Offline;
    let shows_all = detail.all || screen.is_endless();
    let mut shown: Vec<&AgentSummary> = agents.iter().filter(|seen| shows_all || !is_offline(seen)).collect();
    if !detail.as_found {
        shown.sort_by(|one, other| natural_order(one.agent.name.as_str(), other.agent.name.as_str()));
    }
    let rows: Vec<Vec<String>> = shown.iter().map(|seen| row(&AgentDetail::from(*seen), now).to_vec()).collect();
    let columns = if detail.reasons || screen.is_endless() { &HEAD[..] } else { &HEAD[..6] };
    let hidden = agents.len() - shown.len();
    let table = (!rows.is_empty()).then(|| screen.table(columns, &rows));
    let left_out = (hidden > 0).then(|| format!("{} offline: `--all` shows them", counted(hidden, "agent")));
    table.into_iter().chain(left_out).collect::<Vec<_>>().join("\n")
}

/// `relay-mesh heartbeat`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct HeartbeatShape {
    /// The agent, as others see it now.
    agent: AgentDetail,
}

impl From<&AgentSummary> for HeartbeatShape {
    fn from(seen: &AgentSummary) -> HeartbeatShape {
        HeartbeatShape { agent: seen.into() }
    }
}

impl Show for HeartbeatShape {
    fn text(&self) -> String {
        let agent = &self.agent.agent;
        let task = agent.task.as_ref().map_or_else(String::new, |task| format!(", {}", printable_line(task)));
        format!("{} is {}{task}; {}", agent.name, agent.presence.as_str(), waits(agent.waiting))
    }
}

/// The table that `agents` and `status` show.
pub(crate) fn agents_table(agents: &[AgentSummary], now: Instant) -> String {
    let head = ["AGENT", "PRESENCE", "HEARD", "WAITING", "HARNESS", "ABOUT", "BECAUSE"];
    let mut table = Table::new(&head, agents.len());
    for detail in agents.iter().map(AgentDetail::from) {
        table.row(row(&detail, now).each_ref().map(String::as_str));
    }
    table.text()
}

fn row(detail: &AgentDetail, now: Instant) -> [String; 7] {
    let agent = &detail.agent;
    let heard = agent.last_heard.map_or_else(|| "never".to_owned(), |heard| ago(heard.0, now));
    let about = match (&agent.role, &agent.task) {
        (Some(role), Some(task)) => &format!("{role}; {task}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "",
    };
    let because = printable_line(&agent.evidence);
    [
        agent.name.clone(),
        if detail.paused { "paused" } else { agent.presence.as_str() }.to_owned(),
        heard,
        agent.waiting.to_string(),
        printable_line(kind(detail)),
        printable_line(about),
        if detail.paused { format!("its user has paused it; {because}") } else { because },
    ]
}

impl Show for RegisteredShape {
    fn text(&self) -> String {
        let name = &self.name;
        let mut text = match (&self.wanted, self.outcome) {
            (Some(wanted), _) => format!("registered {name}, because {wanted} is somebody else"),
            (None, RegistrationView::Same) => format!("{name} is registered already"),
            (None, RegistrationView::Reclaimed) => format!("registered {name}, which was here before"),
            (None, RegistrationView::New | RegistrationView::Numbered) => format!("registered {name}"),
        };
        if self.waiting > 0 {
            text.push_str(&format!("; {} for it", waits(self.waiting)));
        }
        text
    }
}

/// `relay-mesh adopt`: an agent that was moved to this machine.
#[derive(Debug, Serialize)]
pub(crate) struct AdoptedShape {
    /// The agent's address.
    pub(crate) name: String,
    /// The machine that it lived on.
    pub(crate) from: String,
    /// Messages that wait for it.
    pub(crate) waiting: usize,
    /// Whether it was taken from a session of this machine.
    #[serde(skip)]
    was_here: bool,
}

impl AdoptedShape {
    /// An adoption by the machine `here`.
    pub(crate) fn of(adopted: &Adopted, here: &str) -> AdoptedShape {
        AdoptedShape {
            name: adopted.agent.to_string(),
            from: adopted.from.clone(),
            waiting: adopted.waiting,
            was_here: adopted.from == here,
        }
    }
}

impl Show for AdoptedShape {
    fn text(&self) -> String {
        let AdoptedShape { name, from, waiting, was_here } = self;
        let mut text = if *was_here {
            format!("{name} is free: the next one to register as it goes on as it")
        } else {
            format!("{name} lives on this machine now, and no longer on {from}")
        };
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
