//! What is printed of driven agents.

use mesh::asks::{Ask, AskKind, ConsentFor};
use mesh::driven::{DrivenRecord, DrivenStage};
use mesh::ports::driver::{Operation, TurnEnd};
use mesh::runs::Workplace;
use serde::Serialize;
use view::Timestamp;

use super::counted;
use crate::driven::permission::Agreed;
use crate::driven::transcript::{Happening, TranscriptLine};
use crate::render::{Show, printable, printable_line, table};

/// One driven agent in a list.
#[derive(Debug, Serialize)]
pub(crate) struct DrivenLine {
    name: String,
    id: String,
    harness: String,
    /// driven, resting or ended
    state: &'static str,
    reach: &'static str,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    about: String,
    turns: u32,
    tokens: u64,
    /// Requests that wait.
    waiting: usize,
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl DrivenLine {
    pub(crate) fn of(record: &DrivenRecord, stage: DrivenStage) -> DrivenLine {
        let tokens = record.spent.tokens;
        DrivenLine {
            name: record.agent.name.clone(),
            id: record.id.to_string(),
            harness: record.harness.clone(),
            state: match stage {
                DrivenStage::Driven => "driven",
                DrivenStage::Resting => "resting",
                DrivenStage::Ended => "ended",
            },
            reach: record.agent.reach.as_str(),
            cwd: record.agent.folder.display().to_string(),
            branch: match &record.workplace {
                Workplace::Worktree { branch, .. } => Some(branch.clone()),
                Workplace::Here { .. } => None,
            },
            session: record.session.clone(),
            by: record.by.as_ref().map(ToString::to_string),
            about: record.about.clone(),
            turns: record.spent.turns,
            tokens: tokens.input.saturating_add(tokens.cached_input).saturating_add(tokens.output),
            waiting: record.requests.len(),
            started_at: Timestamp(record.started),
            ended_at: record.ended.as_ref().map(|end| Timestamp(end.at)),
            why: record.ended.as_ref().map(|end| end.why.clone()),
        }
    }
}

/// Driven agents in a list.
#[derive(Debug, Serialize)]
pub(crate) struct DrivenShape {
    pub(crate) agents: Vec<DrivenLine>,
}

impl Show for DrivenShape {
    fn text(&self) -> String {
        if self.agents.is_empty() {
            return "no agent was started: `relay-mesh spawn HARNESS PROMPT` starts one".to_owned();
        }
        let rows = self.agents.iter().map(|agent| {
            let about = agent.why.as_deref().unwrap_or(&agent.about);
            let about: String = printable_line(about).chars().take(40).collect();
            vec![agent.name.clone(), agent.harness.clone(), agent.state.to_owned(), agent.turns.to_string(), about]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        table(&["NAME", "HARNESS", "STATE", "TURNS", "ABOUT"], &rows)
    }
}

/// An agent that has begun.
#[derive(Debug, Serialize)]
pub(crate) struct SpawnedShape {
    name: String,
    id: String,
    harness: String,
    connection: Option<String>,
    session: Option<String>,
    cwd: String,
    /// The final words of its first turn, if they were waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

impl SpawnedShape {
    pub(crate) fn of(record: &DrivenRecord, answer: Option<String>) -> SpawnedShape {
        SpawnedShape {
            name: record.agent.name.clone(),
            id: record.id.to_string(),
            harness: record.harness.clone(),
            connection: record.connection.clone(),
            session: record.session.clone(),
            cwd: record.agent.folder.display().to_string(),
            answer,
        }
    }
}

impl Show for SpawnedShape {
    fn text(&self) -> String {
        match &self.answer {
            Some(answer) => printable(answer),
            None => format!("{} is here ({}), in {}", self.name, self.harness, self.cwd),
        }
    }
}

/// An agent that the user is asked about first.
#[derive(Debug, Serialize)]
pub(crate) struct SpawnRequestShape {
    /// The question's id.
    question: String,
    #[serde(skip)]
    harness: String,
}

impl SpawnRequestShape {
    pub(crate) fn of(ask: &Ask) -> SpawnRequestShape {
        let harness = match &ask.what {
            AskKind::Consent(ConsentFor::Spawn(wanted)) => wanted.harness.clone(),
            _ => String::new(),
        };
        SpawnRequestShape { question: ask.id.to_string(), harness }
    }
}

impl Show for SpawnRequestShape {
    fn text(&self) -> String {
        format!("your user is asked whether an agent of {} may be started ({})", self.harness, self.question)
    }
}

/// An agent that the user has agreed to.
#[derive(Debug, Serialize)]
pub(crate) struct AgreedShape {
    /// The question's id.
    question: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl AgreedShape {
    pub(crate) fn of(agreed: &Agreed) -> AgreedShape {
        AgreedShape {
            question: agreed.ask.id.to_string(),
            name: agreed.outcome.as_ref().ok().map(|record| record.agent.name.clone()),
            why: agreed.outcome.as_ref().err().cloned(),
        }
    }
}

impl Show for AgreedShape {
    fn text(&self) -> String {
        match (&self.name, &self.why) {
            (Some(name), _) => format!("{name} is started"),
            (None, why) => format!("it was not started: {}", printable(why.as_deref().unwrap_or_default())),
        }
    }
}

/// A request that is done.
#[derive(Debug, Serialize)]
pub(crate) struct RequestShape {
    name: String,
    id: String,
    #[serde(skip)]
    done: &'static str,
    /// The summary of an agent that was dismissed.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

impl RequestShape {
    pub(crate) fn of(record: &DrivenRecord, done: &'static str, summary: Option<String>) -> RequestShape {
        RequestShape { name: record.agent.name.clone(), id: record.id.to_string(), done, summary }
    }
}

impl Show for RequestShape {
    fn text(&self) -> String {
        match &self.summary {
            Some(summary) => printable(summary),
            None => format!("{}: {}", self.name, self.done),
        }
    }
}

/// A line of a transcript, for people.
pub(crate) fn transcript_text(line: &TranscriptLine) -> String {
    let indented = |text: &str| printable(text).lines().collect::<Vec<_>>().join("\n    ");
    let what = match &line.what {
        Happening::Opened { session, resumed: false } => format!("session {}", printable_line(session)),
        Happening::Opened { session, resumed: true } => format!("session {} goes on", printable_line(session)),
        Happening::Told { from: None, text } => format!("you: {}", indented(text)),
        Happening::Told { from: Some(from), text } => format!("from {}: {}", printable_line(from), indented(text)),
        Happening::TurnStarted => "turn begins".to_owned(),
        Happening::Said { text } => format!("says: {}", indented(text)),
        Happening::Item { operation: Some(operation), succeeded: None, .. } => operation_text(operation),
        Happening::Item { operation, succeeded, detail, .. } => {
            let what = operation.as_ref().map(operation_text).unwrap_or_else(|| "that".to_owned());
            let how = if *succeeded == Some(false) { "failed" } else { "is done" };
            match detail {
                Some(detail) => format!("{what} {how}: {}", indented(detail)),
                None => format!("{what} {how}"),
            }
        }
        Happening::Diff { diff } => format!("has changed {}", counted(diff.matches("\n+++ ").count().max(1), "file")),
        Happening::TurnEnded { end: TurnEnd::Completed } => "turn ends".to_owned(),
        Happening::TurnEnded { end: TurnEnd::Interrupted } => "turn was stopped".to_owned(),
        Happening::TurnEnded { end: TurnEnd::Failed { why, .. } } => format!("turn failed: {}", printable_line(why)),
        Happening::Asks { operation, reason, .. } => match reason {
            Some(reason) => format!("asks for {} ({})", operation_text(operation), printable_line(reason)),
            None => format!("asks for {}", operation_text(operation)),
        },
        Happening::Settled { answer: Some(answer), .. } => format!("is told: {}", mesh::asks::answer_text(answer)),
        Happening::Settled { answer: None, .. } => "needs no answer any more".to_owned(),
        Happening::Note { text } => format!("note: {}", printable_line(text)),
        Happening::Gone { why } => format!("its program is gone: {}", printable_line(why)),
        Happening::Ended { why } => format!("ended: {}", printable_line(why)),
    };
    format!("{} {what}", Timestamp(line.at))
}

fn operation_text(operation: &Operation) -> String {
    match operation {
        Operation::Command(command) => format!("`{}`", printable_line(command)),
        Operation::Files(files) => format!("changing {}", printable_line(&files.join(", "))),
        Operation::Tool(name, arguments) => {
            format!("{} {}", printable_line(name), printable_line(&arguments.to_string()))
        }
        Operation::Other(text) => printable_line(text),
    }
}
