//! What only the user may do: `asks`, `asks show`, `asks answer`, `pause`, `resume`; and `ask`.

use mesh::asks::{Ask, AskStatus};
use mesh::names::AgentName;
use mesh::ports::machine::Instant;
use serde::Serialize;
use view::AskDetail;

use super::{ago, span};
use crate::render::{Show, framed, printable_line, table};

/// How wide the name of an asker may be in the table.
const ASKER: usize = 20;

/// One question.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct AskShape {
    ask: AskDetail,
    #[serde(skip)]
    when: String,
}

impl AskShape {
    pub(crate) fn of(ask: &Ask, now: Instant) -> AskShape {
        let when = match ask.status(now) {
            AskStatus::Open => format!("{} left", span(ask.until.since(now))),
            AskStatus::Expired => ago(ask.until, now),
            AskStatus::Answered | AskStatus::Settled => ago(ask.at, now),
        };
        AskShape { ask: AskDetail::of(ask, now), when }
    }

    fn row(&self) -> Vec<String> {
        let AskDetail { id, kind, status, by, .. } = &self.ask;
        let asker = by.agent.as_deref().or(by.harness.as_deref()).unwrap_or("this machine");
        vec![id.clone(), short(asker), (*kind).to_owned(), (*status).to_owned(), self.when.clone()]
    }

    /// Everything below the row, each line behind a bar.
    fn below(&self) -> String {
        let ask = &self.ask;
        let mut text = framed(&ask.what);
        if let Some(reason) = &ask.reason {
            text.push_str(&framed(&format!("reason: {reason}")));
        }
        for choice in &ask.choices {
            text.push_str(&framed(&match choice.label.as_str() {
                "" => format!("- {}", choice.id),
                label => format!("- {}: {label}", choice.id),
            }));
        }
        match (&ask.answered, &ask.settled) {
            (Some(answered), _) => {
                text.push_str(&framed(&format!("answered: {}", answered.answer)));
                text.push_str(&format!("\n  {}", printable_line(&answered.via)));
            }
            (None, Some(why)) => text.push_str(&format!("\n  settled: {}", printable_line(why))),
            (None, None) if ask.status == AskStatus::Open.as_str() => {
                text.push_str(&format!("\n  answer with: {}", printable_line(&ask.answers.join(", "))));
            }
            (None, None) => text.push_str("\n  no answer came in time, so it counts as refused"),
        }
        text
    }
}

impl Show for AskShape {
    fn text(&self) -> String {
        format!("{}{}", table(&HEAD, &[self.row()]), self.below())
    }
}

const HEAD: [&str; 5] = ["ID", "FROM", "KIND", "STATUS", "WHEN"];

/// `relay-mesh asks`.
#[derive(Debug, Serialize)]
pub(crate) struct AsksShape {
    /// Oldest first.
    asks: Vec<AskShape>,
}

impl AsksShape {
    pub(crate) fn of(asks: &[Ask], now: Instant) -> AsksShape {
        AsksShape { asks: asks.iter().map(|ask| AskShape::of(ask, now)).collect() }
    }
}

impl Show for AsksShape {
    fn text(&self) -> String {
        if self.asks.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<String>> = self.asks.iter().map(AskShape::row).collect();
        let table = table(&HEAD, &rows);
        let mut lines = table.lines();
        let mut text = lines.next().unwrap_or_default().to_owned();
        for (row, ask) in lines.zip(&self.asks) {
            text.push_str(&format!("\n{row}{}", ask.below()));
        }
        text
    }
}

/// `relay-mesh pause` and `relay-mesh resume`.
#[derive(Debug, Serialize)]
pub(crate) struct PausedShape {
    /// What they are by now.
    state: &'static str,
    /// Those that were not so before.
    agents: Vec<String>,
}

impl PausedShape {
    pub(crate) fn paused(agents: &[AgentName]) -> PausedShape {
        PausedShape { state: "paused", agents: agents.iter().map(ToString::to_string).collect() }
    }

    pub(crate) fn resumed(agents: &[AgentName]) -> PausedShape {
        PausedShape { state: "resumed", ..PausedShape::paused(agents) }
    }
}

impl Show for PausedShape {
    fn text(&self) -> String {
        self.agents.iter().map(|agent| format!("{agent} is {}", self.state)).collect::<Vec<_>>().join("\n")
    }
}

fn short(name: &str) -> String {
    let name = printable_line(name);
    match name.char_indices().nth(ASKER) {
        Some(_) => format!("{}…", name.chars().take(ASKER - 1).collect::<String>()),
        None => name,
    }
}
