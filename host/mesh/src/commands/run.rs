//! Running commands in live sessions: who may, when, and at most once.
//!
//! A command that an agent or a script takes is theirs to understand. One that a harness runs by itself is
//! somebody else's keystroke in a person's session, so it needs that person's consent, an idle session, and
//! a claim that is on disk before anything happens.

use std::time::Duration;

use store::{Durability, Hold, StoreError};

use crate::Mesh;
use crate::commands::{Command, Ended, LONGEST_RESULT, Run, Stage, Standing};
use crate::delivery::serve::Either;
use crate::names::{AgentName, MessageId};
use crate::ports::consent::why_not_allowed;
use crate::ports::harness::{HarnessError, Means};
use crate::sessions::discover::of_record;
use crate::sessions::identify::CONNECTION;
use crate::sessions::{Activity, Session, SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// For how long a claim to run a command holds without being renewed, in milliseconds.
const SURE: u64 = 60_000;
/// How often it is renewed.
const RENEWED: Duration = Duration::from_secs(20);
/// After how many milliseconds it is worth another look where only the moment was wrong.
const LATER: u64 = 2_000;

/// Runs commands in a session: by its adapter, or by a connector inside the harness.
pub trait Runner: Send + Sync {
    /// By what it would run a command. Nothing happens yet.
    fn plan(&self, to: &Session, command: &Command) -> impl Future<Output = Result<Means, HarnessError>> + Send;
    /// Runs it to its end. An error says that nothing has begun.
    fn run(&self, to: &Session, command: &Command) -> impl Future<Output = Result<Ran, HarnessError>> + Send;
}

/// What came of running a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// How it ended; none where that will never be known.
    pub ended: Option<Ended>,
    /// What it says.
    pub said: String,
    /// What shows it.
    pub evidence: Option<serde_json::Value>,
}

/// What stands between a command and a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// Nothing.
    Ready(Means),
    /// This, which somebody has to change.
    Waits(String),
    /// Nothing but the moment: it is worth another look after so many milliseconds.
    Later(String, u64),
}

impl Mesh {
    /// What can be told of a command before anybody tried it: why the session that it is for will not run it by
    /// itself; none where it will as soon as it can. Only of agents of this machine, and without asking the
    /// harness.
    pub async fn foreseen(&self, command: &Command) -> Result<Option<String>, StoreError> {
        let Some(agent) = self.load_agent(&command.to).await? else { return Ok(None) };
        if agent.host != self.machine.host() {
            return Ok(Some(format!("`{}` lives on the machine `{}`, whose person decides", command.to, agent.host)));
        }
        // What was registered on a command line takes its commands by itself.
        let Some(session) = &agent.session else { return Ok(None) };
        let Some(record) = self.current_record(session).await? else { return Ok(Some(no_session(&command.to))) };
        if let Err(why) = self.harness_runs_commands(&command.to, &record).await {
            return Ok(Some(why));
        }
        Ok(match self.obstacle(command, &record).await? {
            Some(Prospect::Waits(why) | Prospect::Later(why, _)) => Some(why),
            Some(Prospect::Ready(_)) | None => None,
        })
    }

    /// The right to run commands in a session, for as long as it is kept; none where another process has it.
    pub async fn hold_commands(&self, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.local.hold(&keys::running(session)).await
    }

    /// Watches what may change whether a command can be run.
    pub async fn watch_for_commands(&self) -> Result<Box<dyn store::Watch>, StoreError> {
        let shared = self.shared.watch(&[keys::commands()]).await?;
        let local = self.local.watch(&[keys::sessions()]).await?;
        Ok(Box::new(Either(shared, local)))
    }

    /// Looks through what waits for an agent and runs what may be run, one after the other, by whoever holds
    /// [`Mesh::hold_commands`]. Gives after how many milliseconds it is worth another look; none where only a
    /// change in the store is.
    pub async fn run_commands(
        &self,
        agent: &AgentName,
        session: &SessionRef,
        runner: &impl Runner,
    ) -> Result<Option<u64>, StoreError> {
        let mut soonest: Option<u64> = None;
        for command in self.commands(Some(agent)).await? {
            if command.standing(self.machine.now()) != Standing::Pending {
                continue;
            }
            let Some(record) = self.session_record(session).await? else { return Ok(None) };
            match self.prospect(&command, &record, runner).await? {
                Prospect::Ready(means) => {
                    if let Some(taken) = self.claim_to_run(&command, &means).await? {
                        return self.carry_out(taken, &means, &record, runner).await.map(Some);
                    }
                }
                Prospect::Waits(why) => self.let_wait(command.id, &why).await?,
                Prospect::Later(why, wait) => {
                    self.let_wait(command.id, &why).await?;
                    soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
                }
            }
        }
        Ok(soonest)
    }

    /// Forgets why commands wait that are allowed by now, so that whoever runs them looks again. Gives them.
    pub async fn look_again(&self) -> Result<Vec<Command>, StoreError> {
        let given = self.consents.given();
        let mut freed = Vec::new();
        for command in self.commands(None).await? {
            let is_pending = command.standing(self.machine.now()) == Standing::Pending;
            if is_pending && command.waits().is_some() && why_not_allowed(&command, &given).is_none() {
                self.note_wait(command.id, None).await?;
                freed.push(command);
            }
        }
        Ok(freed)
    }

    /// Says of every pending command of an agent why it waits.
    pub(super) async fn let_all_wait(&self, agent: &AgentName, why: &str) -> Result<(), StoreError> {
        for command in self.commands(Some(agent)).await? {
            if command.standing(self.machine.now()) == Standing::Pending {
                self.let_wait(command.id, why).await?;
            }
        }
        Ok(())
    }

    /// What stands between a command and a session, the harness's own word included.
    async fn prospect(
        &self,
        command: &Command,
        record: &SessionRecord,
        runner: &impl Runner,
    ) -> Result<Prospect, StoreError> {
        if let Some(obstacle) = self.obstacle(command, record).await? {
            return Ok(obstacle);
        }
        let activity = self.activity(record);
        Ok(match runner.plan(&of_record(record), command).await {
            Ok(means) if means.when.contains(&activity) => Prospect::Ready(means),
            Ok(_) => Prospect::Later(format!("`{}` is {} just now", command.to, activity.as_str()), LATER),
            Err(HarnessError::Busy(wait)) => Prospect::Later(format!("`{}` is busy just now", command.to), wait.into()),
            Err(error) => Prospect::Waits(left_to_others(&error.to_string(), &command.to)),
        })
    }

    /// What stands in the way before the harness is asked. The person's consent comes first: for a stranger
    /// nothing at all happens.
    async fn obstacle(&self, command: &Command, record: &SessionRecord) -> Result<Option<Prospect>, StoreError> {
        if let Some(why) = why_not_allowed(command, &self.consents.given()) {
            return Ok(Some(Prospect::Waits(why)));
        }
        if command.arguments.iter().any(|argument| argument.chars().any(char::is_control)) {
            let why = "an argument holds a line break or another control character, which no harness is given";
            return Ok(Some(Prospect::Waits(left_to_others(why, &command.to))));
        }
        match self.activity(record) {
            Activity::Idle | Activity::Busy => {}
            Activity::AwaitingHuman => {
                let why = format!("`{}` waits for its person, and nothing comes between them", command.to);
                return Ok(Some(Prospect::Waits(why)));
            }
            Activity::Gone => return Ok(Some(Prospect::Waits(no_session(&command.to)))),
        }
        let hops = command.trace.map_or(0, |trace| trace.hops);
        let held = self.why_not_wake(&record.session, &command.from, hops).await?;
        Ok(held
            .map(|why| Prospect::Waits(left_to_others(&format!("the loop guard holds it back: {why}"), &command.to))))
    }

    /// Takes a command in order to run it: on disk before anything happens, so that it is never run twice.
    async fn claim_to_run(&self, command: &Command, means: &Means) -> Result<Option<Command>, StoreError> {
        let now = self.machine.now();
        let run = Run { by: means.name.clone(), until: now.plus(SURE), evidence: None };
        let claim = |old: Option<Command>| match old.filter(|old| old.standing(now) == Standing::Pending) {
            None => (Next::Keep, None),
            Some(mut command) => {
                command.stage = Stage::Consumed { at: now, run: Some(run.clone()) };
                (Next::Put(command.clone()), Some(command))
            }
        };
        let key = keys::command(command.id);
        records::update(self.shared.as_ref(), &key, Durability::Synced, claim).await
    }

    /// Runs what was claimed, and says how it ended. Gives after how many milliseconds the next one may come.
    async fn carry_out(
        &self,
        command: Command,
        means: &Means,
        record: &SessionRecord,
        runner: &impl Runner,
    ) -> Result<u64, StoreError> {
        let Command { id, from, to, .. } = &command;
        self.note("command-run", serde_json::json!({ "id": id, "agent": to, "from": from, "by": means.name })).await;
        // The bell's file is the record of wakes, and a command wakes as a message does.
        self.add_to_bell(&record.session, from, *id).await?;
        if let Some(trace) = command.trace {
            self.works_on(to, trace).await?;
        }
        let session = of_record(record);
        let running = runner.run(&session, &command);
        tokio::pin!(running);
        let ran = loop {
            tokio::select! {
                ran = &mut running => break ran,
                () = tokio::time::sleep(RENEWED) => self.change_run(*id, |run| run.until = self.machine.now().plus(SURE)).await?,
            }
        };
        match ran {
            Ok(ran) => self.ran(&command, ran).await.map(|()| 0),
            Err(HarnessError::Busy(wait)) => {
                self.unclaim(*id).await?;
                Ok(u64::from(wait))
            }
            Err(error) => {
                let said = format!("it was not begun: {error}");
                self.ran(&command, Ran { ended: Some(Ended::Failed), said, evidence: None }).await.map(|()| 0)
            }
        }
    }

    /// Writes down what came of a command.
    async fn ran(&self, command: &Command, ran: Ran) -> Result<(), StoreError> {
        let Ran { ended, mut said, evidence } = ran;
        let now = self.machine.now();
        let Some(ended) = ended else {
            let evidence = evidence.unwrap_or_else(|| serde_json::json!({ "said": said }));
            return self
                .change_run(command.id, |run| {
                    run.until = now;
                    run.evidence = Some(evidence.clone());
                })
                .await;
        };
        said.truncate(said.floor_char_boundary(LONGEST_RESULT));
        let key = keys::command(command.id);
        records::update(self.shared.as_ref(), &key, Durability::Synced, |old: Option<Command>| {
            let Some(Command { stage: Stage::Consumed { run: Some(run), .. }, .. }) = &old else {
                return (Next::Keep, ());
            };
            let run = Some(Run { evidence: evidence.clone(), ..run.clone() });
            let stage = Stage::Done { at: now, ended, result: said.clone(), run };
            (old.map_or(Next::Keep, |old| Next::Put(Command { stage, ..old })), ())
        })
        .await?;
        let Command { id, to, .. } = command;
        self.note("command-done", serde_json::json!({ "id": id, "agent": to, "ended": ended })).await;
        Ok(())
    }

    /// Gives back what the harness had no time to begin.
    async fn unclaim(&self, id: MessageId) -> Result<(), StoreError> {
        records::update(
            self.shared.as_ref(),
            &keys::command(id),
            Durability::Synced,
            |old: Option<Command>| match old {
                Some(Command { stage: Stage::Consumed { run: Some(_), .. }, .. }) => (
                    old.map_or(Next::Keep, |old| Next::Put(Command { stage: Stage::Pending { waits: None }, ..old })),
                    (),
                ),
                Some(_) | None => (Next::Keep, ()),
            },
        )
        .await
    }

    async fn change_run(&self, id: MessageId, change: impl Fn(&mut Run) + Send + Sync) -> Result<(), StoreError> {
        records::update(self.shared.as_ref(), &keys::command(id), Durability::Process, |old: Option<Command>| match old
        {
            Some(mut command) => match &mut command.stage {
                Stage::Consumed { run: Some(run), .. } => {
                    change(run);
                    (Next::Put(command), ())
                }
                Stage::Pending { .. } | Stage::Consumed { .. } | Stage::Done { .. } => (Next::Keep, ()),
            },
            None => (Next::Keep, ()),
        })
        .await
    }

    /// Notes why a command waits, where that is news.
    async fn let_wait(&self, id: MessageId, why: &str) -> Result<(), StoreError> {
        if self.note_wait(id, Some(why)).await? {
            self.note("command-waits", serde_json::json!({ "id": id, "why": why })).await;
        }
        Ok(())
    }

    async fn note_wait(&self, id: MessageId, why: Option<&str>) -> Result<bool, StoreError> {
        records::update(self.shared.as_ref(), &keys::command(id), Durability::Process, |old: Option<Command>| match old
        {
            Some(old) if matches!(&old.stage, Stage::Pending { waits } if waits.as_deref() != why) => {
                let stage = Stage::Pending { waits: why.map(str::to_owned) };
                (Next::Put(Command { stage, ..old }), true)
            }
            Some(_) | None => (Next::Keep, false),
        })
        .await
    }

    /// The harness of a session, where it can run commands; else why not.
    pub(super) async fn harness_runs_commands(
        &self,
        agent: &AgentName,
        record: &SessionRecord,
    ) -> Result<std::sync::Arc<dyn crate::ports::harness::Harness>, String> {
        let name = &record.session.harness;
        if name == CONNECTION {
            return Err(left_to_others("its client has no commands that anybody else could run", agent));
        }
        match self.harnesses.get(name).await {
            Ok(Some(harness)) if harness.runs_commands() => Ok(harness),
            Ok(Some(harness)) => {
                let why = format!("{} lets nobody run a command in a live session", harness.about().title);
                Err(left_to_others(&why, agent))
            }
            Ok(None) => Err(left_to_others(&format!("no adapter for `{name}` is installed here"), agent)),
            Err(error) => Err(left_to_others(&format!("the adapter `{name}` cannot be used ({error})"), agent)),
        }
    }
}

/// Who else could take a command.
fn left_to_others(why: &str, agent: &AgentName) -> String {
    format!("{why}; its agent can take it by the tool take_command, and a script by `relay-mesh cmd take {agent}`")
}

fn no_session(agent: &AgentName) -> String {
    left_to_others(&format!("`{agent}` has no session that lives"), agent)
}
