//! The process that delivers mail to a session also runs its commands, through its adapter.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use store::StoreError;

use crate::Mesh;
use crate::commands::order;
use crate::commands::run;
use crate::commands::run::{Ran, Runner};
use crate::commands::{Command, CommandStatus, Ended};
use crate::core::Core;
use crate::delivery::backoff::spaced;
use crate::delivery::scheduler::{Passes, Turn};
use crate::delivery::serve;
use crate::delivery::serve::{RETRY, Served};
use crate::names::AgentName;
use crate::ports::harness::{Harness, HarnessError, Means, Progress, ProgressStage};
use crate::sessions::record;
use crate::sessions::{Activity, Session, SessionRecord};

/// The first poll after a command began, in milliseconds.
const FIRST_LOOK: u64 = 250;
/// Longest poll interval, in milliseconds.
const LONGEST_LOOK: u64 = 5_000;

impl Mesh {
    /// Runs commands in the sessions that a process serves. Logs errors and retries.
    pub(crate) async fn keep_running_commands(self: &Arc<Self>, served: &Served) {
        let mut failed = 0;
        // Outside the loop, so that an error of the rounds does not abort a running command.
        let mut passes = Passes::default();
        loop {
            let Err(error) = self.command_rounds(served, &mut passes).await else { continue };
            tracing::warn!(%error, "commands are not run for a while");
            tokio::time::sleep(Duration::from_millis(spaced(RETRY.as_millis() as u64, failed))).await;
            failed += 1;
        }
    }

    /// Checks for commands whenever something changed or is due. Returns only with an error.
    async fn command_rounds(self: &Arc<Self>, served: &Served, passes: &mut Passes) -> Result<(), StoreError> {
        // Watch before reading, so that no change in between is lost.
        let mut watch = run::watch_for_commands(&self.core).await?;
        loop {
            let joined = self.delivery.joined.notified();
            tokio::pin!(joined);
            joined.as_mut().enable();
            let asked = asked_for_commands(&self.core).await?;
            if !asked.is_empty() {
                for (agent, record) in serve::clients(&self.core, &self.connections, served).await? {
                    let is_asked = asked.contains(&agent) && record::activity(&self.core, &record) != Activity::Ended;
                    if is_asked {
                        let mesh = Arc::clone(self);
                        let session = record.session.clone();
                        passes.begin(session, async move { serve_commands(&mesh.core, &agent, &record).await });
                    }
                }
            }
            tokio::select! {
                () = joined.as_mut() => {}
                changed = watch.changed() => changed?,
                turn = passes.next() => match turn {
                    Turn::Due => {}
                    Turn::Ended(session, outcome) => {
                        let wait = outcome.unwrap_or_else(|error| {
                            tracing::warn!(%error, session = session.id, "its commands wait");
                            Some(RETRY.as_millis() as u64)
                        });
                        if let Some(wait) = wait {
                            passes.look_again_in(wait);
                        }
                    }
                },
            }
        }
    }
}

/// The agents that have pending commands.
async fn asked_for_commands(core: &Core) -> Result<BTreeSet<AgentName>, StoreError> {
    let now = core.machine.now();
    let commands = order::commands(core, None).await?.into_iter();
    Ok(commands.filter(|command| command.standing(now) == CommandStatus::Pending).map(|command| command.to).collect())
}

/// One pass over the pending commands of a session, under the session's lease.
async fn serve_commands(core: &Core, agent: &AgentName, record: &SessionRecord) -> Result<Option<u64>, StoreError> {
    // The process that drives an agent carries out what it is asked for.
    if record.driven || record::lives_elsewhere(core, agent).await? {
        return Ok(None);
    }
    let Some(_lease) = run::hold_commands(core, &record.session).await? else {
        return Ok(Some(RETRY.as_millis() as u64));
    };
    match run::harness_runs_commands(core, agent, record).await {
        Ok(harness) => run::run_commands(core, agent, &record.session, &ByAdapter(harness)).await,
        Err(why) => run::let_all_wait(core, agent, &why).await.map(|()| None),
    }
}

/// Runs commands through an adapter.
struct ByAdapter(Arc<dyn Harness>);

impl Runner for ByAdapter {
    async fn plan(&self, to: &Session, command: &Command) -> Result<Means, HarnessError> {
        self.0.commands()?.plan(to, command).await
    }

    async fn run(&self, to: &Session, command: &Command) -> Result<Ran, HarnessError> {
        let mut progress = self.0.commands()?.run(to, command).await?;
        let mut wait = FIRST_LOOK;
        loop {
            let ended = match progress.stage {
                ProgressStage::Begun => {
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    wait = (wait * 2).min(LONGEST_LOOK);
                    match self.0.commands()?.watch(to, command, &progress).await {
                        Ok(next) => {
                            progress = next;
                            continue;
                        }
                        Err(HarnessError::Busy(_)) => continue,
                        Err(error) => {
                            progress.said = Some(error.to_string());
                            None
                        }
                    }
                }
                ProgressStage::Succeeded => Some(Ended::Done),
                ProgressStage::Failed => Some(Ended::Failed),
            };
            return Ok(told(progress, ended));
        }
    }
}

fn told(progress: Progress, ended: Option<Ended>) -> Ran {
    let Progress { said, evidence, .. } = progress;
    let evidence = evidence.map(|text| serde_json::from_str(&text).unwrap_or_else(|_| text.into()));
    Ran { ended, said: said.unwrap_or_default(), evidence }
}
