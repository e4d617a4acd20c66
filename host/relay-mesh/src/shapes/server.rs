//! The server and the mesh as a whole: `up`, `down`, `status` and `version`.

use mesh::StuckMail;
use mesh::agents::AgentSummary;
use mesh::ports::machine::Instant;
use serde::Serialize;

use super::agents::{Detail, agents_on, agents_table, each_agent, waits};
use super::commands::{CommandShape, commands_table};
use super::counted;
use super::harness_servers::{HarnessServerShape, WithShape};
use super::mail::{QueuedShape, queued_table};
use super::reservations::{ListedShapes, reservations_on, reservations_table};
use crate::install_channel::Channel;
use crate::render::{Show, printable_line, table};
use crate::screen::Screen;

/// The long-lived server of a data folder.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServerShape {
    pub(crate) running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// The URL for MCP clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// The Unix socket for events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
}

/// `relay-mesh up`.
#[derive(Debug, Serialize)]
pub(crate) struct UpShape {
    /// `started` or `running` (it was before).
    pub(crate) outcome: &'static str,
    #[serde(flatten)]
    pub(crate) own: ServerShape,
    /// This machine's own nats-server, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<NatsShape>,
    pub(crate) log: String,
    /// What `--with` came to, for each harness.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) with: Vec<WithShape>,
    /// What the user can do next.
    pub(crate) next_steps: Vec<String>,
}

/// A nats-server that was started for a data folder.
#[derive(Debug, Serialize)]
pub(crate) struct NatsShape {
    /// The URL for clients.
    pub(crate) url: String,
    pub(crate) pid: u32,
}

impl Show for UpShape {
    fn text(&self) -> String {
        let url = self.own.url.as_deref().unwrap_or_default();
        let pid = self.own.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
        let own = match self.outcome {
            "started" => format!("the server runs: {url}{pid}"),
            _ => format!("the server runs already: {url}{pid}"),
        };
        let nats = self.server.iter().map(|server| format!("nats-server runs: {}, process {}", server.url, server.pid));
        let with = self.with.iter().map(WithShape::text);
        nats.chain([own]).chain(with).collect::<Vec<_>>().join("\n")
    }
}

/// `relay-mesh down`.
#[derive(Debug, Serialize)]
pub(crate) struct DownShape {
    /// `stopped`, or `not running`.
    pub(crate) outcome: &'static str,
    /// The process that was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// This machine's own nats-server, if it was stopped too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_pid: Option<u32>,
    /// Servers of harnesses that were stopped too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) harness_servers: Vec<HarnessServerShape>,
}

impl Show for DownShape {
    fn text(&self) -> String {
        let own = match self.pid {
            Some(pid) => format!("stopped the server, process {pid}"),
            None => "no server runs".to_owned(),
        };
        let nats = self.server_pid.map(|pid| format!("stopped nats-server, process {pid}"));
        let of_harnesses = self.harness_servers.iter();
        let of_harnesses =
            of_harnesses.map(|server| format!("stopped the server of {}, process {}", server.title, server.pid));
        [own].into_iter().chain(nats).chain(of_harnesses).collect::<Vec<_>>().join("\n")
    }
}

/// Messages of one sender in one inbox that go no further by themselves.
#[derive(Debug, Serialize)]
pub(crate) struct StuckShape {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) messages: usize,
    pub(crate) reason: String,
}

impl From<&StuckMail> for StuckShape {
    fn from(mail: &StuckMail) -> StuckShape {
        let StuckMail { from, to, messages, reason } = mail;
        StuckShape { from: from.to_string(), to: to.to_string(), messages: *messages, reason: reason.clone() }
    }
}

/// `relay-mesh status`.
#[derive(Debug, Serialize)]
pub(crate) struct StatusShape<'a> {
    pub(crate) dir: String,
    pub(crate) server: ServerShape,
    /// Servers of harnesses that relay-mesh keeps running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) harness_servers: Vec<HarnessServerShape>,
    /// Every agent.
    #[serde(serialize_with = "each_agent")]
    pub(crate) agents: &'a [AgentSummary],
    /// Waiting messages in all inboxes.
    pub(crate) waiting: usize,
    /// How many of these only the servers counted: the messages themselves were not read.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) counted: usize,
    pub(crate) reservations: ListedShapes<'a>,
    /// Pending and running commands, oldest first.
    pub(crate) commands: Vec<CommandShape>,
    /// Mail for which the loop guard stopped waking.
    pub(crate) held: Vec<StuckShape>,
    /// Mail that no route takes. It stays in the inbox.
    pub(crate) undeliverable: Vec<StuckShape>,
    /// Damage in the data folder, one sentence each.
    pub(crate) damaged: Vec<String>,
    /// Messages that wait on this machine for the servers, and messages that they returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) queued: Vec<QueuedShape>,
    /// Why the servers cannot be reached; the other fields are then the last known state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) out_of_reach: Option<String>,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    pub(crate) now: Instant,
    /// The parts that the user asked for; all if none. JSON always has all.
    #[serde(skip)]
    pub(crate) named: Vec<StatusPart>,
    /// What a terminal shows of the agents.
    #[serde(skip)]
    pub(crate) detail: Detail,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A part of the status that can be shown alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusPart {
    Agents,
    Reservations,
    Commands,
}

impl StatusShape<'_> {
    /// One part as a table. An empty part is mentioned only if it was asked for.
    fn part(&self, part: StatusPart, screen: Option<&Screen>) -> Option<String> {
        let asked = self.named.contains(&part);
        let (empty, table) = match part {
            StatusPart::Agents => {
                let table = || match screen {
                    Some(screen) => agents_on(screen, self.agents, self.now, self.detail),
                    None => agents_table(self.agents, self.now),
                };
                ("no agent has joined", (!self.agents.is_empty()).then(table))
            }
            StatusPart::Reservations => {
                let table = || match screen {
                    Some(screen) => reservations_on(screen, &self.reservations),
                    None => reservations_table(&self.reservations),
                };
                ("nothing is reserved", (!self.reservations.is_empty()).then(table))
            }
            StatusPart::Commands => {
                let table = || commands_table(&self.commands, self.now);
                let table = || screen.map_or_else(table, |screen| screen.cut_lines(&table()));
                ("no command waits", (!self.commands.is_empty()).then(table))
            }
        };
        match table {
            Some(table) if asked || self.named.is_empty() => Some(table),
            None if asked => Some(empty.to_owned()),
            Some(_) | None => None,
        }
    }
}

impl StatusShape<'_> {
    /// Everything that was asked for, for a terminal or whole.
    fn blocks(&self, screen: Option<&Screen>) -> String {
        let cut = |text: String| screen.map_or_else(|| text.clone(), |screen| screen.cut_lines(&text));
        let server = match (&self.server.url, self.server.pid) {
            (Some(url), Some(pid)) => format!("{url}, process {pid}"),
            (Some(_), None) | (None, _) => {
                "not running; clients over HTTP need one, and sessions that nothing else wakes (`relay-mesh up`)"
                    .to_owned()
            }
        };
        let of_harnesses = self.harness_servers.iter();
        let of_harnesses = of_harnesses
            .map(|server| format!("\n        {} serves {}, process {}", server.title, server.url, server.pid));
        let mut blocks = vec![format!(
            "data    {}\nserver  {server}{}\nmail    {}, {}",
            self.dir,
            of_harnesses.collect::<String>(),
            counted(self.agents.len(), "agent"),
            waits(self.waiting)
        )];
        if self.counted > 0 {
            blocks[0].push_str(&format!(
                "\n        {} of these by the servers' count: they are not read yet, nor checked",
                counted(self.counted, "message")
            ));
        }
        if let Some(why) = &self.out_of_reach {
            blocks.push(format!("the servers cannot be reached; what follows is as it was: {}", printable_line(why)));
        }
        blocks[0] = cut(std::mem::take(&mut blocks[0]));
        let parts =
            [StatusPart::Agents, StatusPart::Reservations, StatusPart::Commands].map(|part| self.part(part, screen));
        if !self.named.is_empty() {
            return parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        }
        blocks.extend(parts.into_iter().flatten());
        if !self.queued.is_empty() {
            blocks.push(cut(queued_table(&self.queued, self.now)));
        }
        for (head, stuck) in [("HELD", &self.held), ("UNDELIVERABLE", &self.undeliverable)] {
            if stuck.is_empty() {
                continue;
            }
            let row = |mail: &StuckShape| {
                vec![mail.from.clone(), mail.to.clone(), mail.messages.to_string(), printable_line(&mail.reason)]
            };
            let rows: Vec<Vec<String>> = stuck.iter().map(row).collect();
            blocks.push(cut(table(&["FROM", "TO", head, "BECAUSE"], &rows)));
        }
        if !self.damaged.is_empty() {
            let lines: Vec<String> =
                self.damaged.iter().map(|what| format!("damaged: {}", printable_line(what))).collect();
            blocks.push(lines.join("\n"));
        }
        blocks.join("\n\n")
    }
}

impl Show for StatusShape<'_> {
    fn text(&self) -> String {
        self.blocks(None)
    }

    fn text_on(&self, screen: &Screen) -> String {
        self.blocks(Some(screen))
    }
}

/// `relay-mesh upgrade`.
#[derive(Debug, Serialize)]
pub(crate) struct UpgradeShape {
    /// The version.
    pub(crate) version: &'static str,
    /// Where the program lies.
    pub(crate) program: String,
    pub(crate) channel: Channel,
    /// What to run for a newer version. Words in capitals are the user's to fill in.
    pub(crate) command: String,
}

impl Show for UpgradeShape {
    fn text(&self) -> String {
        let UpgradeShape { version, program, channel, command } = self;
        let (from, then) = match channel {
            Channel::Debian => ("a package of Debian", " with the newer file"),
            Channel::Rpm => ("an RPM package", " with the newer file"),
            Channel::Homebrew => ("Homebrew", ""),
            Channel::Npm => ("npm", ""),
            Channel::Python => ("a Python package", ""),
            Channel::Cargo => ("cargo", ""),
            Channel::Image => ("a container image", ", and start the container again"),
            Channel::Source => ("a clone of the repository", ""),
            Channel::Archive => ("an archive or install.sh", " with the install.sh of the newer release"),
        };
        format!("relay-mesh {version}, from {from}: {program}\nTo upgrade, run `{command}`{then}.")
    }
}

/// `relay-mesh version`.
#[derive(Debug, Serialize)]
pub(crate) struct VersionShape {
    /// The version.
    pub(crate) version: &'static str,
    /// The WIT version for adapters.
    pub(crate) wit: &'static str,
    pub(crate) system: &'static str,
    /// The processor architecture.
    pub(crate) architecture: &'static str,
}

impl Show for VersionShape {
    fn text(&self) -> String {
        format!(
            "relay-mesh {} (adapters: relay:adapter {}, {} {})",
            self.version, self.wit, self.system, self.architecture
        )
    }
}
