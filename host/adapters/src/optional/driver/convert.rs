//! Converts the types of `driver`, in both directions.

use mesh::ports::driver as mesh_side;
use mesh::ports::driver::DriverEvent;
use serde_json::Value;

use super::driver as guest;
use crate::convert::from_guest;
use crate::host_functions::log::plain;
use crate::optional::launched;
use crate::template::OwnInstallation;

pub(super) fn agent(agent: &mesh_side::DrivenAgent, own: &OwnInstallation) -> guest::Agent {
    let tailoring = &agent.tailoring;
    guest::Agent {
        name: agent.name.clone(),
        folder: agent.folder.to_string_lossy().into_owned(),
        model: agent.model.clone(),
        effort: tailoring.effort.clone(),
        base: tailoring.base.clone(),
        compaction: tailoring.compaction.clone(),
        settings: tailoring.settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect(),
        guidance: agent.guidance.clone(),
        reach: launched::reach(agent.reach),
        approvals: match agent.approvals {
            mesh_side::Approvals::Ask => guest::Approvals::Ask,
            mesh_side::Approvals::Refuse => guest::Approvals::Refuse,
        },
        extensions: launched::extensions(agent.extensions),
        installation: launched::installation(own),
        id: agent.id.clone(),
        environment: agent.environment.clone(),
    }
}

pub(super) fn action(action: &mesh_side::Action, own: &OwnInstallation) -> guest::Action {
    match action {
        mesh_side::Action::Begin(agent) => guest::Action::Begin(self::agent(agent, own)),
        mesh_side::Action::Resume(id, agent) => guest::Action::Resume((id.clone(), self::agent(agent, own))),
        mesh_side::Action::Prompt(id, prompt) => guest::Action::Prompt((id.clone(), self::prompt(prompt))),
        mesh_side::Action::Steer(id, prompt) => guest::Action::Steer((id.clone(), self::prompt(prompt))),
        mesh_side::Action::Interrupt(id) => guest::Action::Interrupt(id.clone()),
        mesh_side::Action::Answer { session, question, kept, answer } => {
            let kept = kept.as_ref().map(Value::to_string);
            let reply = guest::Reply { question: question.clone(), kept, answer: self::answer(answer) };
            guest::Action::Answer((session.clone(), reply))
        }
        mesh_side::Action::Account(id, prompts) => {
            guest::Action::Account((id.clone(), prompts.iter().map(prompt).collect()))
        }
        mesh_side::Action::End(id) => guest::Action::End(id.clone()),
    }
}

fn prompt(prompt: &mesh_side::Prompt) -> guest::Prompt {
    guest::Prompt {
        id: prompt.id.clone(),
        text: prompt.text.clone(),
        by_user: prompt.by_user,
        context: prompt.context.clone(),
    }
}

fn answer(answer: &mesh_side::UserAnswer) -> guest::Answer {
    match answer {
        mesh_side::UserAnswer::Allow => guest::Answer::Allow,
        mesh_side::UserAnswer::AllowForSession => guest::Answer::AllowForSession,
        mesh_side::UserAnswer::Refuse(why) => guest::Answer::Refuse(why.clone()),
        mesh_side::UserAnswer::Stop => guest::Answer::Stop,
        mesh_side::UserAnswer::Choose(id) => guest::Answer::Choose(id.clone()),
        mesh_side::UserAnswer::Fill(form) => guest::Answer::Fill(form.to_string()),
    }
}

pub(super) fn abilities(able: guest::Abilities) -> mesh_side::DriverAbilities {
    let has = |ability: guest::Abilities| able.contains(ability);
    mesh_side::DriverAbilities {
        steer: has(guest::Abilities::STEER),
        interrupt: has(guest::Abilities::INTERRUPT),
        ask: has(guest::Abilities::ASK),
        resume: has(guest::Abilities::RESUME),
        outlive: has(guest::Abilities::OUTLIVE),
        join: has(guest::Abilities::JOIN),
        once: has(guest::Abilities::ONCE),
        share: has(guest::Abilities::SHARE),
        context: has(guest::Abilities::CONTEXT),
        tailor: has(guest::Abilities::TAILOR),
    }
}

pub(super) fn status(status: guest::PromptStatus) -> mesh_side::PromptStatus {
    match status {
        guest::PromptStatus::Accepted => mesh_side::PromptStatus::Accepted,
        guest::PromptStatus::Shown => mesh_side::PromptStatus::Shown,
        guest::PromptStatus::Answered => mesh_side::PromptStatus::Answered,
        guest::PromptStatus::Lost => mesh_side::PromptStatus::Lost,
        guest::PromptStatus::Unknown => mesh_side::PromptStatus::Unknown,
    }
}

/// Fails with what is no JSON where JSON was promised.
pub(super) fn exchange(exchange: guest::Exchange) -> Result<mesh_side::Exchange, String> {
    let events = exchange.events.into_iter().map(|said| Ok((said.session, event(said.event)?)));
    Ok(mesh_side::Exchange {
        memory: exchange.memory.as_deref().map(|memory| json(memory, "what it wants kept")).transpose()?,
        frames: exchange.frames,
        events: events.collect::<Result<_, String>>()?,
    })
}

fn json(text: &str, what: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{what} is no JSON: {error}"))
}

fn event(event: guest::Event) -> Result<DriverEvent, String> {
    Ok(match event {
        guest::Event::Ready => DriverEvent::Ready,
        guest::Event::Opened(id) => DriverEvent::Opened(id),
        guest::Event::Activity(activity) => DriverEvent::Activity(from_guest::activity(activity)),
        guest::Event::Prompt((id, status)) => DriverEvent::Prompt(id, self::status(status)),
        guest::Event::TurnStarted(id) => DriverEvent::TurnStarted(id),
        guest::Event::TurnEnded((id, end)) => DriverEvent::TurnEnded(id, turn_end(end)),
        guest::Event::Piece(text) => DriverEvent::Piece(text),
        guest::Event::Said(text) => DriverEvent::Said(text),
        guest::Event::Item(item) => DriverEvent::Item {
            id: item.id,
            operation: item.operation.map(operation).transpose()?,
            succeeded: item.succeeded,
            detail: item.detail,
        },
        guest::Event::Diff(text) => DriverEvent::Diff(text),
        guest::Event::Asks(question) => DriverEvent::Asks(mesh_side::Question {
            id: question.id,
            operation: operation(question.operation)?,
            reason: question.reason.as_deref().map(plain),
            choices: question.choices.into_iter().map(|choice| (choice.id, plain(&choice.label))).collect(),
            kept: question.kept.as_deref().map(|kept| json(kept, "what it keeps of a question")).transpose()?,
        }),
        guest::Event::Settled(id) => DriverEvent::Settled(id),
        guest::Event::UserSpoke => DriverEvent::UserSpoke,
        guest::Event::Used(tokens) => DriverEvent::Used(mesh_side::Tokens {
            input: tokens.input,
            cached_input: tokens.cached_input,
            output: tokens.output,
        }),
        guest::Event::Refused((what, why)) => DriverEvent::Refused(what, from_guest::error(why)),
        guest::Event::Note(text) => DriverEvent::Note(plain(&text)),
        guest::Event::Ended => DriverEvent::Ended,
    })
}

fn operation(operation: guest::Operation) -> Result<mesh_side::Operation, String> {
    Ok(match operation {
        guest::Operation::Command(command) => mesh_side::Operation::Command(command),
        guest::Operation::Files(files) => mesh_side::Operation::Files(files),
        guest::Operation::Tool((name, arguments)) => {
            mesh_side::Operation::Tool(plain(&name), json(&arguments, "a tool's arguments")?)
        }
        guest::Operation::Other(text) => mesh_side::Operation::Other(text),
    })
}

fn turn_end(end: guest::TurnEnd) -> mesh_side::TurnEnd {
    match end {
        guest::TurnEnd::Completed => mesh_side::TurnEnd::Completed,
        guest::TurnEnd::Interrupted => mesh_side::TurnEnd::Interrupted,
        guest::TurnEnd::Failed((failure, why)) => mesh_side::TurnEnd::Failed {
            failure: match failure {
                guest::Failure::Overloaded => mesh_side::Failure::Overloaded,
                guest::Failure::OutOfQuota => mesh_side::Failure::OutOfQuota,
                guest::Failure::NotSignedIn => mesh_side::Failure::NotSignedIn,
                guest::Failure::ContextFull => mesh_side::Failure::ContextFull,
                guest::Failure::Other => mesh_side::Failure::Other,
            },
            why: plain(&why),
        },
    }
}
