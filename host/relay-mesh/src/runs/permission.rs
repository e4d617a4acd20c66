//! Who asks for a run, by evidence: the session of the caller, the processes above it, and the mark of a run.

use mesh::allowances::{Asker, NotAllowed};
use mesh::names::AgentName;
use mesh::ports::machine::Machine as _;
use mesh::runs::{RunRecord, RunStage};
use mesh::sessions::{Principal, Transport};
use mesh::{IdentifyError, MailReader};

use super::{MARK, Runs};
use crate::compose::Open;
use crate::context::{Context, Seat};
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;
use crate::process_info;

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) asker: Asker,
    /// The live run that the caller is in.
    pub(crate) parent: Option<RunRecord>,
}

impl Evidence {
    /// Whether nothing shows that an agent is behind this caller.
    pub(crate) fn is_user(&self) -> bool {
        self.asker == Asker::User && self.parent.is_none()
    }

    /// What makes this caller an agent's, in words.
    fn what_it_is_below(&self) -> String {
        match (&self.parent, &self.asker) {
            (Some(run), _) => format!("run {}", run.id),
            (None, Asker::Session { harness, .. }) => harness.clone(),
            (None, Asker::User) => "any client".to_owned(),
        }
    }
}

/// Works out who asks through a client of one of our servers. Over MCP it is a model that asks, no matter who started its
/// client, so a caller without an agent may nothing. What is above this process is above the client that started it; a
/// server of many clients is below none of them.
pub(crate) fn of_client(context: &Context, open: &Open, runs: &Runs, caller: &Principal) -> Evidence {
    let above: Vec<u32> = match caller.transport() {
        Transport::Stdio => processes::ancestors().iter().map(|process| process.pid).collect(),
        Transport::Http | Transport::CommandLine => Vec::new(),
    };
    let marked = match caller.transport() {
        Transport::Stdio => context.environment.get(MARK),
        Transport::Http | Transport::CommandLine => None,
    };
    let parent = parent(marked, open, runs, caller.agent(), &above);
    let harness = caller.session().map(|session| session.harness.clone());
    let harness = harness.unwrap_or_else(|| "an MCP client".to_owned());
    Evidence { asker: Asker::Session { harness, agent: caller.agent().cloned() }, parent }
}

/// Works out who asks on this command line, or on a page. Nothing that was typed counts.
pub(crate) async fn evidence(context: &Context, open: &Open, runs: &Runs) -> Result<Evidence, CommandError> {
    if context.seat == Seat::Page {
        return Ok(Evidence { asker: Asker::User, parent: None });
    }
    let principal = open.mesh.identify(&context.call(None)).await?;
    let above: Vec<u32> = processes::ancestors().iter().map(|process| process.pid).collect();
    let parent = parent(context.environment.get(MARK), open, runs, principal.agent(), &above);
    let asker = match principal.session() {
        Some(session) => Asker::Session { harness: session.harness.clone(), agent: principal.agent().cloned() },
        None => match open.mesh.session_of_process(&above).await? {
            Some((session, agent)) => Asker::Session { harness: worded(session.harness), agent },
            // The mark of a driven agent stays in what has left its processes.
            None if context.environment.get(crate::driven::MARK).is_some() => {
                Asker::Session { harness: "an agent that relay-mesh started".to_owned(), agent: None }
            }
            // The mark of a run that is over is still no user's terminal.
            None if parent.is_none() && context.environment.get(MARK).is_some() => {
                Asker::Session { harness: "a run that is over".to_owned(), agent: None }
            }
            // What the harness set for its shells stays in what has left its processes, and in another data folder.
            None => match open.mesh.shell_of(&context.environment.pairs()) {
                Some(harness) => Asker::Session { harness: worded(harness), agent: None },
                None => Asker::User,
            },
        },
    };
    Ok(Evidence { asker, parent })
}

/// A harness as users know it.
fn worded(harness: String) -> String {
    if harness == "generic" { "another client".to_owned() } else { harness }
}

/// An error if anything shows that an agent is behind this command line: below a harness, below a run, or with the mark of
/// one. What only the user may do begins with this.
pub(crate) async fn only_the_user(context: &Context, open: &Open, what: &'static str) -> Result<(), CommandError> {
    let evidence = evidence(context, open, &Runs::of(&context.settings.dir.value)).await?;
    if evidence.is_user() { Ok(()) } else { Err(AnAgents { what, of: evidence.what_it_is_below() }.into()) }
}

/// Who looks at mail on this command line: the agent that it acts as, else the one that it is below of, else the user. An
/// agent that has no name sees nothing, since nobody can say what is its own.
pub(crate) async fn mail_reader(
    context: &Context,
    open: &Open,
    named: Option<AgentName>,
) -> Result<MailReader, CommandError> {
    let named = named.or_else(|| context.settings.agent.value.clone());
    match (open.mesh.identify(&context.call(named.clone())).await, named) {
        (Ok(caller), _) => match caller.agent() {
            Some(agent) => Ok(MailReader::Agent(agent.clone())),
            None => evident_reader(context, open).await,
        },
        // The user may look as anybody; what an agent typed does not make it somebody else.
        (Err(error @ (IdentifyError::NotYours(_) | IdentifyError::Elsewhere { .. })), Some(named)) => {
            match evident_reader(context, open).await? {
                MailReader::User => Ok(MailReader::Agent(named)),
                own @ MailReader::Agent(_) if own == MailReader::Agent(named) => Ok(own),
                MailReader::Agent(_) => Err(error.into()),
            }
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The same by evidence alone: nothing that was typed or set counts.
async fn evident_reader(context: &Context, open: &Open) -> Result<MailReader, CommandError> {
    let evidence = evidence(context, open, &Runs::of(&context.settings.dir.value)).await?;
    let (is_user, below) = (evidence.is_user(), evidence.what_it_is_below());
    let of_session = match evidence.asker {
        Asker::Session { agent, .. } => agent,
        Asker::User => None,
    };
    match of_session.or_else(|| evidence.parent.and_then(|run| run.agent)) {
        Some(agent) => Ok(MailReader::Agent(agent)),
        None if is_user => Ok(MailReader::User),
        None => Err(AnAgents { what: "look at everybody's mail", of: below }.into()),
    }
}

/// An agent would do what only its user may.
#[derive(Debug, thiserror::Error)]
#[error("this shell belongs to an agent, and an agent cannot {what} for its user")]
struct AnAgents {
    what: &'static str,
    /// By what that is known.
    of: String,
}

impl Explain for AnAgents {
    fn exit(&self) -> Exit {
        Exit::Refused
    }

    fn hint(&self) -> Option<String> {
        Some(format!("run it in a terminal of your own, outside of {}", self.of))
    }
}

fn parent(
    marked: Option<&str>,
    open: &Open,
    runs: &Runs,
    agent: Option<&mesh::names::AgentName>,
    above: &[u32],
) -> Option<RunRecord> {
    let live = runs.live().into_iter();
    let mut live = live.filter(|(folder, record)| folder.stage(record, open.machine.as_ref()) == RunStage::Running);
    let is_it = |record: &RunRecord, folder: &super::RunFolder| {
        let running = folder.running(record.attempts);
        let is_above = running.is_some_and(|running| {
            let is_here = open.machine.runs(process_info::named(running.guard));
            let program = running.program.filter(|program| above.contains(&program.pid));
            is_here && (above.contains(&running.guard.pid) || program.is_some())
        });
        marked == Some(record.id.to_string().as_str())
            || is_above
            || (agent.is_some() && record.agent.as_ref() == agent)
    };
    live.find(|(folder, record)| is_it(record, folder)).map(|(_, record)| record)
}

impl Explain for mesh::runs::NotPermitted {
    fn exit(&self) -> Exit {
        Exit::Refused
    }

    fn hint(&self) -> Option<String> {
        use mesh::runs::NotPermitted::{NotAllowed, NothingLeft, TooDeep, Uncounted};
        match self {
            NotAllowed(error) => error.hint(),
            NothingLeft { what: "budget", .. } => Some(
                "do the work here, or report what is left to do; the user can set a part aside with `--budget-below`"
                    .to_owned(),
            ),
            NothingLeft { .. } => Some("do the work here, or report what is left to do".to_owned()),
            Uncounted { .. } => {
                Some("do the work here, or ask a harness whose cost is known, such as Claude Code".to_owned())
            }
            TooDeep { .. } => {
                Some("do the work here, or report what is left to do; the user can set `depth` in runs.toml".to_owned())
            }
        }
    }
}

impl Explain for NotAllowed {
    fn exit(&self) -> Exit {
        Exit::Refused
    }

    fn hint(&self) -> Option<String> {
        use NotAllowed::{Nameless, NotAtAll, Spent, TooFar};
        Some(match self {
            Nameless { .. } => {
                "join first, with the tool `register_agent`; then the user can allow that name. Of some clients only the \
                 tools are known: use `start_run` or `spawn_agent` there"
                    .to_owned()
            }
            NotAtAll { starts, agent, harness } => {
                let command = starts.command();
                format!("the user can run `relay-mesh {command} allow {agent} {harness}` in a terminal of their own")
            }
            TooFar { starts, agent, harness, .. } => format!(
                "ask for less, or let the user run `relay-mesh {} allow {agent} {harness} --reach REACH` in a terminal",
                starts.command()
            ),
            Spent { starts, agent, harness, .. } => format!(
                "wait, or let the user raise it by `relay-mesh {} allow {agent} {harness} --budget N/day` in a terminal",
                starts.command()
            ),
        })
    }
}
