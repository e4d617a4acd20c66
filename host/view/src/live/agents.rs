//! Agents in groups: who needs the person comes first.

use std::collections::HashMap;

use super::news::Overview;
use crate::{AgentDetail, PresenceView, natural_order};
use mesh::agents::Origin;

/// A group of agents, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// They ask their user something or wait for them.
    NeedsYou,
    /// They work.
    Busy,
    /// They wait for work.
    Idle,
    /// They have been silent for long.
    Away,
    /// Their session has ended.
    Offline,
}

impl Group {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::NeedsYou => "Needs you",
            Group::Busy => "Busy",
            Group::Idle => "Idle",
            Group::Away => "Away",
            Group::Offline => "Offline",
        }
    }

    /// The group of an agent. Who asks something needs the person, whatever else it does.
    pub(crate) fn of(presence: PresenceView, asks: usize) -> Group {
        match presence {
            _ if asks > 0 => Group::NeedsYou,
            PresenceView::NeedsInput => Group::NeedsYou,
            PresenceView::Busy => Group::Busy,
            PresenceView::Idle => Group::Idle,
            PresenceView::Away => Group::Away,
            PresenceView::Offline => Group::Offline,
        }
    }
}

/// An agent in the list.
#[derive(Clone, Debug)]
pub struct AgentRow {
    /// What is known of it.
    pub detail: AgentDetail,
    /// Where it is shown.
    pub group: Group,
    /// How many questions of it wait for the user.
    pub asks: usize,
}

impl AgentRow {
    /// Its address.
    pub fn name(&self) -> &str {
        &self.detail.agent.name
    }

    /// Its harness, or what it is if it has none.
    pub fn harness(&self) -> &str {
        match (&self.detail.agent.harness, self.detail.origin) {
            (Some(harness), _) => harness,
            (None, Origin::CommandLine) => "command line",
            (None, Origin::Session | Origin::Connection) => "MCP client",
        }
    }

    /// What it works on, as it says.
    pub fn task(&self) -> &str {
        let agent = &self.detail.agent;
        agent.task.as_deref().or(agent.role.as_deref()).unwrap_or_default()
    }

    /// Whether a text is in what is shown of it.
    pub(crate) fn has(&self, folded: &str) -> bool {
        let agent = &self.detail.agent;
        let more = [&agent.role, &agent.project, &agent.model].into_iter().flatten().map(String::as_str);
        [self.name(), self.harness(), self.task()]
            .into_iter()
            .chain(more)
            .any(|text| mesh::folded(text).contains(folded))
    }
}

/// The agents in the order in which they are shown: by group, then by name as people count.
pub(crate) fn arranged(overview: &Overview) -> Vec<AgentRow> {
    let mut asks: HashMap<&str, usize> = HashMap::new();
    for agent in overview.asks.iter().filter_map(|ask| ask.by.agent.as_deref()) {
        *asks.entry(agent).or_default() += 1;
    }
    let row = |detail: &AgentDetail| {
        let asks = asks.get(detail.agent.name.as_str()).copied().unwrap_or_default();
        AgentRow { detail: detail.clone(), group: Group::of(detail.agent.presence, asks), asks }
    };
    let mut rows: Vec<AgentRow> = overview.agents.iter().map(row).collect();
    rows.sort_by(|one, other| one.group.cmp(&other.group).then_with(|| natural_order(one.name(), other.name())));
    rows
}

/// A line of the list of agents.
#[derive(Clone, Copy, Debug)]
pub enum AgentLine<'a> {
    /// The heading of a group, with the number of its agents.
    Heading(Group, usize),
    /// An agent, with its place among those that are listed.
    Agent(usize, &'a AgentRow),
}

/// The lines for these agents, with a heading above each group.
pub(crate) fn lines<'a>(rows: &[&'a AgentRow]) -> Vec<AgentLine<'a>> {
    let mut lines = Vec::with_capacity(rows.len() + 5);
    let mut at = 0;
    for group in rows.chunk_by(|one, other| one.group == other.group) {
        lines.push(AgentLine::Heading(group[0].group, group.len()));
        for row in group {
            lines.push(AgentLine::Agent(at, row));
            at += 1;
        }
    }
    lines
}
