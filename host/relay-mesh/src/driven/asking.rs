//! Asking something of a driven agent from a command, and waiting until it is done.

use std::time::Duration;

use mesh::driven::{DrivenError, DrivenRecord, Request, RequestKind, RequestOutcome};
use mesh::names::AgentName;
use mesh::runs::Workplace;

use super::{begin, permission};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs;
use crate::shapes::driven::RequestShape;

/// How long to wait until it is done. It is kept longer than that.
const PATIENCE: Duration = Duration::from_secs(180);

/// What is asked.
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: RequestKind,
    /// What is said when it is done.
    pub(crate) done: &'static str,
}

/// Asks it on the command line. Below a harness it is refused; but an agent may dismiss what it had started.
pub(crate) async fn ask(context: &Context, asked: Asked<'_>) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let by = match asked.kind {
        RequestKind::Dismiss { .. } => {
            let asker = permission::on_command_line(context, &open).await?;
            if asker.is_user() { None } else { Some(permission::may_dismiss(&open, &asker, asked.name).await?) }
        }
        RequestKind::Prompt { .. } | RequestKind::Steer { .. } | RequestKind::Interrupt => {
            runs::permission::only_the_user(context, &open, "steer or stop an agent").await?;
            None
        }
    };
    let dismisses = matches!(asked.kind, RequestKind::Dismiss { .. });
    let (record, outcome) = done(context, &open, (asked.name, asked.kind), by.as_ref(), PATIENCE).await?;
    context.printer.show(&RequestShape::of(&record, asked.done, outcome.note))?;
    if let (true, Workplace::Worktree { folder, branch, .. }) = (dismisses, &record.workplace)
        && folder.exists()
    {
        context.printer.say(&format!("its work stays in {}, on the branch {branch}", folder.display()));
    }
    Ok(Exit::Success)
}

/// Asks something of a driven agent. It is kept, and done as soon as a process drives the agent. A process that begins to
/// drive first ends what the last one left.
pub(crate) async fn keep(
    open: &Open,
    name: &str,
    kind: RequestKind,
    by: Option<&AgentName>,
) -> Result<(DrivenRecord, Request), CommandError> {
    let kept = open.mesh.ask_driven(name, kind, by).await?;
    open.mesh.want_driving(true).await?;
    Ok(kept)
}

/// Asks something of a driven agent and waits until it is done.
pub(crate) async fn done(
    context: &Context,
    open: &Open,
    (name, kind): (&str, RequestKind),
    by: Option<&AgentName>,
    patience: Duration,
) -> Result<(DrivenRecord, RequestOutcome), CommandError> {
    let dismisses = matches!(kind, RequestKind::Dismiss { .. });
    let prompts = matches!(kind, RequestKind::Prompt { .. } | RequestKind::Steer { .. });
    let (record, request) = keep(open, name, kind, by).await?;
    if let Ok(agent) = record.agent.name.parse::<AgentName>()
        && prompts
        && open.mesh.is_paused(&agent).await?
    {
        begin::ensure_host(context, open).await?;
        return Err(Failure {
            what: format!("`{agent}` has not taken it, because its user has paused it"),
            hint: Some(format!("it is kept; `relay-mesh resume {agent}` lets it go on")),
            exit: Exit::TimedOut,
            source: None,
        }
        .into());
    }
    let done = async { Ok(open.mesh.request_outcome(record.id, &request.id).await?) };
    let outcome = match tokio::time::timeout(patience, begin::while_driven(context, open, done)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => {
            // It may have ended by itself meanwhile, which is what was wanted.
            let ended = open.mesh.driven(record.id).await?.is_some_and(|record| record.ended.is_some());
            if !(dismisses && ended) {
                return Err(error);
            }
            RequestOutcome { id: request.id.clone(), failed: None, note: None }
        }
        Err(_) => {
            return Err(Failure {
                what: format!("`{}` has not taken it within {} s", name, patience.as_secs()),
                hint: Some(format!("it is kept; `relay-mesh spawn show {}` shows what the agent does", name)),
                exit: Exit::TimedOut,
                source: None,
            }
            .into());
        }
    };
    if let Some(why) = outcome.failed {
        return Err(Failure {
            what: format!("`{}` did not do it: {why}", name),
            hint: Some(format!("`relay-mesh spawn show {}` shows what the agent does", name)),
            exit: Exit::Failure,
            source: None,
        }
        .into());
    }
    Ok((record, outcome))
}

impl crate::errors::Explain for DrivenError {
    fn exit(&self) -> Exit {
        match self {
            DrivenError::Taken(_) => Exit::Held,
            DrivenError::Unknown(_) | DrivenError::Ended { .. } => Exit::NotFound,
            DrivenError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            DrivenError::Taken(_) => Some("give it another by `--name NAME`".to_owned()),
            DrivenError::Unknown(_) => {
                Some("`relay-mesh spawn list` shows the agents that you started; others belong to sessions".to_owned())
            }
            DrivenError::Ended { name, .. } => Some(format!("`relay-mesh spawn show {name}` shows what it did")),
            DrivenError::Store(error) => error.hint(),
        }
    }
}

impl crate::errors::Explain for mesh::driven::RequestError {
    fn exit(&self) -> Exit {
        use mesh::driven::RequestError::{Agent, Empty, TooLong, TooMany};
        match self {
            Agent(error) => error.exit(),
            Empty | TooLong { .. } => Exit::Usage,
            TooMany(_) => Exit::Held,
        }
    }

    fn hint(&self) -> Option<String> {
        use mesh::driven::RequestError::{Agent, Empty, TooLong, TooMany};
        match self {
            Agent(error) => error.hint(),
            Empty => Some("say something".to_owned()),
            TooLong { .. } => Some("put what is long into a file, and name that".to_owned()),
            TooMany(name) => Some(format!("`relay-mesh spawn show {name}` shows why it does not go on")),
        }
    }
}
