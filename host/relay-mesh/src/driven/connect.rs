//! The link of one agent: made when something waits for it, and made anew after a break, when the harness is asked first
//! what became of everything that it was given.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mesh::driven::{PromptContent, after_another_session};
use mesh::ports::driver::{Action, DriverConnection, Prompt};
use mesh::ports::harness::HarnessError;
use mesh::ports::runner::Login;
use mesh::sessions::Activity;
use mesh::tool_threads::ThreadStatus;
use tokio::time::Instant;

use super::agent::{Driving, Linked, Step};
use super::exec::{self, EXEC};
use super::link::{Link, LinkHandle};
use super::program::{self, ProgramFiles, ProgramOrder, Shared};
use super::transcript::Happening;
use super::{MARK, OUTBOX, end_marked};
use crate::errors::{CommandError, adapters};
use crate::runs::runner_of;

/// How long a harness may take to tell what became of its prompts.
const ACCOUNTS: Duration = Duration::from_secs(30);
/// How often a program may fail to begin a session in a row.
const MOST_FAILURES: u32 = 5;
/// Why a program that was just started takes nobody.
const ENDED_AT_ONCE: &str = "its program ended at once";
/// Milliseconds before it is tried again after a first failure.
const FIRST_REST: u64 = 500;

impl Driving {
    /// Starts the program, and begins or continues the session.
    pub(super) async fn connect(&mut self) -> Result<Step, CommandError> {
        match self.start().await {
            Ok(()) => Ok(Step::On),
            Err(why) if self.record.tool.is_some() => self.falls_back_or_ends(&why).await,
            Err(why) => self.failed(&why).await,
        }
    }

    async fn start(&mut self) -> Result<(), String> {
        let connection = match self.record.connection.as_deref() {
            Some(EXEC) => None,
            Some(_) | None => Some(self.connection().await.map_err(|error| store::reasons(&error))?),
        };
        for (file, text) in connection.iter().flat_map(|connection| &connection.launch.files) {
            std::fs::write(self.folder.files().join(file), text).map_err(|error| error.to_string())?;
        }
        let environment = self.environment(connection.as_ref());
        let mark = self.host.open.mesh.new_driven_id().to_string();
        let own =
            vec![(MARK.to_owned(), mark.clone()), (OUTBOX.to_owned(), self.folder.outbox().display().to_string())];
        let name = connection.as_ref().map_or(EXEC, |connection| &connection.name).to_owned();
        // Before anything runs: the next process ends what bears the mark.
        let noted = self.change(|record| {
            record.mark = Some(mark.clone());
            record.program_mark = None;
            record.socket = None;
            record.connection = Some(name.clone());
        });
        noted.await.map_err(|error| store::reasons(&error))?;
        let mut agent = self.record.agent.clone();
        let handle = match connection {
            None => {
                let environment = environment.into_iter().chain(own).collect();
                exec::start(self.harness.clone(), environment, self.record.program.clone(), self.folder.clone())
            }
            Some(connection) => match Shared::of(&self.record.harness, &connection, &environment) {
                Some(shared) => {
                    agent.environment = own;
                    self.seat(shared, connection, environment).await?
                }
                None => {
                    let environment = environment.into_iter().chain(own).collect();
                    let (folder, files) = (agent.folder.clone(), self.folder.of_program());
                    let link = self.program(ProgramOrder { connection, environment, mark, folder, files }).await?;
                    link.seat(1).ok_or(ENDED_AT_ONCE)?
                }
            },
        };
        let (action, resumes) = match &self.record.session {
            Some(session) => (Action::Resume(session.clone(), agent), true),
            None => (Action::Begin(agent), false),
        };
        let news = handle.open(action);
        self.linked = Some(Linked { handle, news, session: None, resumes });
        Ok(())
    }

    /// What the program gets beside what is this agent's alone.
    fn environment(&self, connection: Option<&DriverConnection>) -> Vec<(String, String)> {
        let mut environment = self.record.environment.clone();
        for (name, value) in connection.iter().flat_map(|connection| &connection.launch.environment) {
            if !environment.iter().any(|(known, _)| known == name) {
                environment.push((name.clone(), value.clone()));
            }
        }
        environment.retain(|(name, _)| name != MARK && name != OUTBOX && name != "RELAY_DIR");
        environment.push(("RELAY_DIR".to_owned(), self.host.context.settings.dir.value.display().to_string()));
        environment
    }

    async fn program(&self, order: ProgramOrder) -> Result<Link, String> {
        program::start(self.harness.clone(), order).await.map_err(|error| store::reasons(&error))
    }

    /// A place on a program that others share, which is started if there is none with a free one.
    async fn seat(
        &mut self,
        shared: Shared,
        connection: DriverConnection,
        mut environment: Vec<(String, String)>,
    ) -> Result<LinkHandle, String> {
        let (host, most) = (Arc::clone(&self.host), self.host.most_on_a_program);
        let mut place = host.programs.place(shared).await;
        if let Some(link) = &*place
            && let Some(handle) = link.seat(most)
        {
            self.note_program(&link.mark, link.socket.as_deref()).await?;
            return Ok(handle);
        }
        let mark = host.open.mesh.new_driven_id().to_string();
        self.note_program(&mark, None).await?;
        let data = &host.context.settings.dir.value;
        let files = ProgramFiles::shared(data, &mark).map_err(|error| error.to_string())?;
        let folder = files.own.clone().unwrap_or_else(|| data.clone());
        environment.push((MARK.to_owned(), mark.clone()));
        let link = self.program(ProgramOrder { connection, environment, mark, folder, files }).await?;
        self.note_program(&link.mark, link.socket.as_deref()).await?;
        let handle = link.seat(most).ok_or(ENDED_AT_ONCE)?;
        *place = Some(link);
        Ok(handle)
    }

    /// Notes which program it is driven in, before anything of it happens there.
    async fn note_program(&mut self, mark: &str, socket: Option<&Path>) -> Result<(), String> {
        let noted = self.change(|record| {
            record.program_mark = Some(mark.to_owned());
            record.socket = socket.map(Path::to_owned);
        });
        noted.await.map_err(|error| store::reasons(&error))
    }

    /// How the program is started: by the words of its adapter, as it was found where the agent was asked for.
    async fn connection(&self) -> Result<DriverConnection, CommandError> {
        let unusable = |error: HarnessError| adapters::failed(&self.record.harness, error);
        let driver = self.harness.driver().map_err(unusable)?;
        let mut offered = driver
            .connections(&self.record.agent, self.record.session.as_deref(), &self.folder.files())
            .await
            .map_err(unusable)?;
        let wanted = self.record.connection.as_ref();
        if offered.is_empty() {
            return Err(unusable(HarnessError::Unsupported("its adapter offers no way of driving it".to_owned())));
        }
        let at = offered.iter().position(|connection| Some(&connection.name) == wanted).unwrap_or(0);
        // A way that has failed gives way to the next one, until a session has begun.
        let failed = usize::from(self.rest.failures > 0 && self.record.session.is_none());
        let at = (at + failed) % offered.len();
        let mut connection = offered.swap_remove(at);
        if let (Some(program), Some(first)) = (&self.record.program, connection.launch.command.first_mut()) {
            first.clone_from(program);
        }
        if !self.record.command.is_empty() {
            connection.launch.command.clone_from(&self.record.command);
        }
        Ok(connection)
    }

    /// The session has begun, or is continued.
    pub(super) async fn opened(&mut self, session: String) -> Result<(), CommandError> {
        let Some(linked) = &mut self.linked else { return Ok(()) };
        // A harness that is run for each prompt names its session in the first of them.
        let goes_on = linked.session.replace(session.clone()).is_some();
        let resumed = linked.resumes;
        self.rest.failures = 0;
        self.rest.until = None;
        self.note(Happening::Opened { session: session.clone(), resumed });
        if self.session.id != session {
            self.host.open.mesh.run_is(&mut self.principal, &session, std::process::id()).await?;
            self.session.id.clone_from(&session);
        }
        self.change(|record| record.session = Some(session.clone())).await?;
        self.note_thread(if goes_on { ThreadStatus::Active } else { ThreadStatus::Idle }).await?;
        self.host.open.mesh.listens_for(&self.session).await?;
        if goes_on {
            return self.does(Activity::Busy).await;
        }
        self.does(Activity::Idle).await?;
        self.account().await
    }

    /// Asks what became of everything that was given before the break.
    async fn account(&mut self) -> Result<(), CommandError> {
        let Some(linked) = &self.linked else { return Ok(()) };
        let Some(session) = &linked.session else { return Ok(()) };
        if self.record.given.is_empty() {
            return Ok(());
        }
        let prompts: Vec<Prompt> = self
            .record
            .given
            .iter()
            .map(|given| Prompt {
                id: given.prompt.clone(),
                text: String::new(),
                by_user: given.content == PromptContent::Request,
                context: None,
            })
            .collect();
        self.accounting = prompts.iter().map(|prompt| prompt.id.clone()).collect();
        self.account_by = Instant::now() + ACCOUNTS;
        linked.handle.act(Action::Account(session.clone(), prompts));
        Ok(())
    }

    /// The link is over. What was given stays in the ledger.
    pub(super) async fn gone(&mut self, why: &str) -> Result<(), CommandError> {
        let was_open = self.is_open();
        self.linked = None;
        self.end_commands().await;
        self.accounting.clear();
        self.leases.clear();
        self.turn = None;
        self.note(Happening::Gone { why: why.to_owned() });
        let questions = std::mem::take(&mut self.questions);
        if let Err(error) = self.withdraw(questions, "its program has ended").await {
            tracing::warn!(%error, "a question of an agent whose program has ended stays until its time is up");
        }
        if let Some((requests, _)) = self.interrupting.take() {
            for request in requests {
                self.change(|record| record.done(&request, None, None)).await?;
            }
        }
        self.does(Activity::Idle).await?;
        match was_open {
            true if self.record.tool.is_some() => self.tool_died(why).await,
            true => {
                self.rest.breaks += u32::from(!self.record.given.is_empty());
                self.rest_for(FIRST_REST);
                Ok(())
            }
            false => self.failed(why).await.map(|_| ()),
        }
    }

    /// Ends what the agent's commands have left in a program that others share.
    pub(super) async fn end_commands(&self) {
        if let (Some(mark), Some(_)) = (self.record.mark.clone(), &self.record.program_mark) {
            end_marked(mark).await;
        }
    }

    /// The program could not be had, or no session in it.
    pub(super) async fn failed(&mut self, why: &str) -> Result<Step, CommandError> {
        if let Some(step) = self.tool_failed(why).await? {
            return Ok(step);
        }
        self.rest.failures += 1;
        let was_used = self.record.spent.turns > 0 || self.record.given.iter().any(|given| given.status.is_some());
        if self.record.session.is_some() && !was_used {
            // Nothing was ever said in it, so nothing is lost by another one.
            let id = self.host.open.mesh.new_uuid();
            self.change(|record| {
                record.session = None;
                record.agent.id.clone_from(&id);
            })
            .await?;
        }
        if self.record.session.is_some() && self.rest.failures >= MOST_FAILURES {
            return self.begin_anew(why).await;
        }
        if self.record.session.is_none() && self.rest.failures > 1 && self.falls_back(why).await? {
            return Ok(Step::On);
        }
        if self.rest.failures >= MOST_FAILURES || (self.record.session.is_none() && self.rest.failures > 1) {
            return self.end(&format!("it could not be had: {why}"), false, None).await;
        }
        self.note(Happening::Note { text: format!("it could not be had, and is tried again: {why}") });
        self.rest_for(FIRST_REST);
        Ok(Step::On)
    }

    /// Where no way of driving a harness is left, as with an old version of it, it is run for one prompt at a time, if it can
    /// do that.
    pub(super) async fn falls_back(&mut self, why: &str) -> Result<bool, CommandError> {
        if self.record.connection.as_deref() == Some(EXEC) {
            return Ok(false);
        }
        let Ok(runner) = runner_of(self.harness.as_ref()) else { return Ok(false) };
        // One that does not work, or in which nobody is signed in, would not work that way either.
        if !runner.ready().await.is_ok_and(|ready| ready.login != Login::LoggedOut) {
            return Ok(false);
        }
        self.rest.failures = 0;
        self.change(|record| record.connection = Some(EXEC.to_owned())).await?;
        let text = format!("it cannot be driven, so it is run for one prompt at a time: {why}");
        self.note(Happening::Note { text });
        self.rest_for(FIRST_REST);
        Ok(true)
    }

    /// Gives a session up that cannot be continued. A new one is told what was said last; what was given and may have been
    /// shown comes again, marked so.
    pub(super) async fn begin_anew(&mut self, why: &str) -> Result<Step, CommandError> {
        if self.breaks_each_time() {
            self.gives_up_breaking().await?;
            return Ok(Step::Over);
        }
        for given in self.record.given.clone() {
            let may_be_shown = given.status.is_some();
            self.back(&given, may_be_shown).await?;
        }
        self.rest.failures = 0;
        let id = self.host.open.mesh.new_uuid();
        self.change(|record| {
            record.session = None;
            record.agent.id.clone_from(&id);
            record.agent.guidance = after_another_session(&record.agent.guidance, record.last_words.as_deref());
        })
        .await?;
        self.note(Happening::Note { text: format!("its session cannot be continued, and it begins a new one: {why}") });
        self.rest_for(FIRST_REST);
        Ok(Step::On)
    }

    /// Waits before the next try, longer after each failure, and not exactly as long as others that failed at the same time.
    pub(super) fn rest_for(&mut self, first: u64) {
        let spaced = mesh::spaced(first, self.rest.failures.min(8));
        let jitter = u64::from(self.host.open.mesh.machine().random()[0]) * spaced / 1_024;
        self.rest.until = Some(Instant::now() + Duration::from_millis(spaced + jitter));
    }
}
