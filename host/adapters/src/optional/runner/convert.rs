//! Converts the types of `runner`, in both directions.

use std::time::Duration;

use mesh::ports::runner as mesh_side;
use serde_json::Value;

use super::runner as guest;
use crate::host_functions::log::plain;
use crate::optional::launched;
use crate::template::OwnInstallation;

pub(super) fn task(task: &mesh_side::Task, own: &OwnInstallation) -> guest::Task {
    guest::Task {
        id: task.id.clone(),
        folder: task.folder.to_string_lossy().into_owned(),
        start: match &task.start {
            mesh_side::Start::Fresh(id) => guest::Start::Fresh(id.clone()),
            mesh_side::Start::Resume(session) => guest::Start::Resume(session.clone()),
            mesh_side::Start::Fork(session) => guest::Start::Fork(session.clone()),
        },
        reach: launched::reach(task.reach),
        extensions: launched::extensions(task.extensions),
        installation: launched::installation(own),
        model: task.model.clone(),
        schema: task.schema.as_ref().map(Value::to_string),
        guidance: task.guidance.clone(),
        turns: task.turns,
        cost: task.cost,
    }
}

pub(super) fn readiness(ready: guest::Readiness) -> mesh_side::Readiness {
    let able = |ability: guest::Abilities| ready.able.contains(ability);
    mesh_side::Readiness {
        version: plain(&ready.version),
        login: match ready.login {
            guest::Login::LoggedIn => mesh_side::Login::LoggedIn,
            guest::Login::LoggedOut => mesh_side::Login::LoggedOut,
            guest::Login::Unknown => mesh_side::Login::Unknown,
        },
        why: ready.why.as_deref().map(plain),
        able: mesh_side::Abilities {
            own_id: able(guest::Abilities::OWN_ID),
            resume: able(guest::Abilities::RESUME),
            fork: able(guest::Abilities::FORK),
            schema: able(guest::Abilities::SCHEMA),
            guidance: able(guest::Abilities::GUIDANCE),
            turns: able(guest::Abilities::TURNS),
            cost: able(guest::Abilities::COST),
            alone: able(guest::Abilities::ALONE),
            look: able(guest::Abilities::LOOK),
            edit: able(guest::Abilities::EDIT),
            work: able(guest::Abilities::WORK),
            unguarded: able(guest::Abilities::UNGUARDED),
        },
    }
}

pub(super) fn line(line: &mesh_side::OutputLine) -> guest::OutputLine {
    guest::OutputLine { text: line.text.clone(), cut: line.cut }
}

/// None for a piece of a message, which is none by itself.
pub(super) fn event(event: guest::Event) -> Option<mesh_side::RunEvent> {
    Some(match event {
        guest::Event::Piece(_) => return None,
        guest::Event::Session(session) => mesh_side::RunEvent::Session { session },
        guest::Event::Said(text) => mesh_side::RunEvent::Said { text },
        guest::Event::Tool(tool) => mesh_side::RunEvent::Tool {
            id: tool.id,
            name: tool.name,
            about: tool.about,
            succeeded: tool.succeeded,
        },
        guest::Event::Wrote(files) => mesh_side::RunEvent::Wrote { files },
        guest::Event::Denied(denial) => mesh_side::RunEvent::Denied { tool: denial.tool, why: reason(&denial.why) },
        guest::Event::Retries(retry) => mesh_side::RunEvent::Retries {
            attempt: retry.attempt,
            status: retry.status,
            wait_ms: retry.wait_ms,
        },
        guest::Event::Used(usage) => mesh_side::RunEvent::Used { usage: self::usage(usage) },
        guest::Event::Turns(taken) => mesh_side::RunEvent::Turns { taken },
        guest::Event::Note(text) => mesh_side::RunEvent::Note { text: reason(&text) },
    })
}

pub(super) fn exit(exit: &mesh_side::ProcessExit) -> guest::ProcessExit {
    guest::ProcessExit {
        code: exit.code,
        signal: exit.signal,
        asked_to_stop: exit.asked_to_stop,
        stderr_end: exit.stderr_end.clone(),
    }
}

/// `output` is the outcome's own, parsed.
pub(super) fn outcome(outcome: guest::Outcome, output: Option<Value>) -> mesh_side::RunOutcome {
    let denial =
        |denial: guest::Denial| mesh_side::Denial { tool: denial.tool, why: reason(&denial.why) };
    mesh_side::RunOutcome {
        ending: match outcome.ending {
            guest::Ending::Answered => mesh_side::Ending::Answered,
            guest::Ending::Turns => mesh_side::Ending::Turns,
            guest::Ending::Cost => mesh_side::Ending::Cost,
            guest::Ending::Shape => mesh_side::Ending::Shape,
            guest::Ending::Login => mesh_side::Ending::Login,
            guest::Ending::Limited => mesh_side::Ending::Limited,
            guest::Ending::Provider => mesh_side::Ending::Provider,
            guest::Ending::Denied => mesh_side::Ending::Denied,
            guest::Ending::Stopped => mesh_side::Ending::Stopped,
            guest::Ending::BrokeOff => mesh_side::Ending::BrokeOff,
        },
        answer: outcome.answer,
        output,
        session: outcome.session,
        usage: outcome.usage.map(usage),
        turns: outcome.turns,
        denials: outcome.denials.into_iter().map(denial).collect(),
        why: outcome.why.as_deref().map(reason),
        retry_after: outcome.retry_after_ms.map(Duration::from_millis),
    }
}

fn usage(usage: guest::Usage) -> mesh_side::Usage {
    mesh_side::Usage {
        input: usage.input,
        cached_input: usage.cached_input,
        output: usage.output,
        reasoning: usage.reasoning,
        cost: usage.cost,
        whole_session: usage.whole_session,
    }
}

/// A reason for the user, on one short line: a harness puts whole pages of HTML into its errors.
fn reason(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
