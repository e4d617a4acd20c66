//! The link of an agent whose harness cannot be driven live, as an old Codex without an app server: each prompt is a run of
//! its own, in the same session. It behaves as any other link, with less: a running turn takes no further text, nothing is
//! asked of the user, and after a break nobody knows what became of a prompt.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mesh::ports::driver::{
    Action, DrivenAgent, DriverAbilities, DriverEvent, Failure, Operation, Prompt, PromptStatus, Tokens, TurnEnd,
};
use mesh::ports::harness::{Harness, HarnessError};
use mesh::ports::runner::{Ending, Launch, RunEvent, RunOutcome, Start, Task, Usage};
use mesh::sessions::Activity;
use processes::Guard;
use processes::guard::{Cause, Limits, Order, Streams};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::link::{LinkHandle, LinkNews, LinkRequest};
use super::{DrivenFolder, MARK, end_marked};
use crate::runs::reading::Reading;
use crate::runs::supervise::{exit_of, step};
use crate::runs::{self, runner_of};

/// Its name in receipts and listings.
pub(super) const EXEC: &str = "exec";
/// How often to look for new output.
const LOOK: Duration = Duration::from_millis(25);
/// The file that is there once the harness has begun a session. Until then its id is only the one that it would be given.
const BEGUN: &str = "exec-begun";

/// Opens such a link. `environment` is the whole environment of the harness's program, beside what its adapter adds;
/// `program` is the one that is started, if it is not the one that is found now.
pub(super) fn start(
    harness: Arc<dyn Harness>,
    environment: Vec<(String, String)>,
    program: Option<String>,
    folder: DrivenFolder,
) -> LinkHandle {
    let (requests, wanted) = mpsc::unbounded_channel();
    let link = ExecLink {
        harness,
        environment,
        program,
        folder,
        agent: None,
        session: String::new(),
        news: None,
        counted: None,
    };
    tokio::spawn(link.run(wanted));
    let able = DriverAbilities { interrupt: true, resume: true, ..DriverAbilities::default() };
    LinkHandle::of(requests, EXEC, able)
}

struct ExecLink {
    harness: Arc<dyn Harness>,
    environment: Vec<(String, String)>,
    program: Option<String>,
    folder: DrivenFolder,
    /// Whose link it is, once it is open.
    agent: Option<DrivenAgent>,
    session: String,
    news: Option<mpsc::UnboundedSender<LinkNews>>,
    /// What its session has used so far, if that is known: from its beginning, or since a run told of the whole session.
    counted: Option<Tokens>,
}

/// A prompt's run.
struct Running<'a> {
    guard: Guard,
    reading: Reading<'a>,
    /// The model has answered with something.
    shown: bool,
}

impl ExecLink {
    async fn run(mut self, mut wanted: mpsc::UnboundedReceiver<LinkRequest>) {
        while let Some(request) = wanted.recv().await {
            let left = match request {
                LinkRequest::Open(Action::Begin(agent), to) => {
                    self.open(agent.id.clone(), agent, to);
                    None
                }
                LinkRequest::Open(Action::Resume(session, agent), to) => {
                    self.open(session, agent, to);
                    None
                }
                LinkRequest::Open(..) => None,
                LinkRequest::Act(Action::Prompt(_, prompt)) => self.prompt(&prompt, &mut wanted).await,
                LinkRequest::Act(action) => {
                    self.act(&action, None);
                    None
                }
                LinkRequest::Leave(_, gone) => Some(gone),
            };
            if let Some(gone) = left {
                // Whoever left may not wait.
                let _unheard = gone.send(());
                return;
            }
        }
    }

    fn open(&mut self, session: String, agent: DrivenAgent, to: mpsc::UnboundedSender<LinkNews>) {
        self.session.clone_from(&session);
        self.agent = Some(agent);
        self.news = Some(to);
        self.say(DriverEvent::Opened(session));
    }

    /// What is asked of it beside a prompt. `running` is the prompt that runs.
    fn act(&self, action: &Action, running: Option<&str>) {
        match action {
            Action::Steer(_, prompt) => {
                let none = HarnessError::Unsupported("a running turn of this harness takes no further text".to_owned());
                self.say(DriverEvent::Refused(prompt.id.clone(), none));
            }
            Action::Prompt(_, prompt) => self.say(DriverEvent::Refused(prompt.id.clone(), HarnessError::Busy(0))),
            Action::Account(_, prompts) => {
                for prompt in prompts.iter().filter(|prompt| Some(prompt.id.as_str()) != running) {
                    self.say(DriverEvent::Prompt(prompt.id.clone(), PromptStatus::Unknown));
                }
            }
            Action::Answer { question, .. } => {
                let none = HarnessError::NotFound("this harness asks nothing".to_owned());
                self.say(DriverEvent::Refused(question.clone(), none));
            }
            Action::End(_) => self.say(DriverEvent::Ended),
            Action::Interrupt(_) | Action::Begin(_) | Action::Resume(..) => {}
        }
    }

    fn say(&self, event: DriverEvent) {
        if let Some(news) = &self.news {
            // An agent that has left hears nothing.
            let _left = news.send(LinkNews::Event(Box::new(event)));
        }
    }

    /// Runs a prompt to its end. Returns who waits for the end of the link, if it was to end meanwhile.
    async fn prompt(
        &mut self,
        prompt: &Prompt,
        wanted: &mut mpsc::UnboundedReceiver<LinkRequest>,
    ) -> Option<oneshot::Sender<()>> {
        let agent = self.agent.clone()?;
        let harness = Arc::clone(&self.harness);
        let task = self.task(prompt, &agent);
        let mut running = match self.begin(harness.as_ref(), &task, prompt).await {
            Ok(running) => running,
            Err(error) => {
                self.say(DriverEvent::Refused(prompt.id.clone(), error));
                return None;
            }
        };
        self.say(DriverEvent::Prompt(prompt.id.clone(), PromptStatus::Accepted));
        self.say(DriverEvent::TurnStarted(prompt.id.clone()));
        self.say(DriverEvent::Activity(Activity::Busy));
        let mut left = None;
        let ended = loop {
            tokio::select! {
                biased;
                ended = running.guard.ended() => break ended,
                request = wanted.recv() => match request {
                    Some(LinkRequest::Act(Action::Interrupt(_))) => running.guard.stop().await,
                    Some(LinkRequest::Act(action)) => self.act(&action, Some(&prompt.id)),
                    Some(LinkRequest::Open(..)) => {}
                    Some(LinkRequest::Leave(_, gone)) => {
                        left = Some(gone);
                        running.guard.stop().await;
                    }
                    // Nobody is there any more.
                    None => running.guard.stop().await,
                },
                () = tokio::time::sleep(LOOK) => {
                    while let Ok(Some(events)) = running.reading.more().await {
                        self.hear(events, prompt, &mut running.shown);
                    }
                }
            }
        };
        let is_lost = ended.as_ref().is_ok_and(|ended| ended.cause == Cause::GuardLost);
        if is_lost {
            self.end_what_is_left().await;
        }
        let Running { mut reading, mut shown, .. } = running;
        if let Ok(events) = reading.rest().await {
            self.hear(events, prompt, &mut shown);
        }
        let end = match ended {
            Err(error) => failed(Failure::Other, error.to_string()),
            Ok(_) if is_lost => failed(Failure::Other, "the process that watches over it was killed".to_owned()),
            Ok(ended) => {
                let was_stopped = ended.cause != Cause::Itself;
                match reading.conclude(&exit_of(&ended)).await {
                    Err(error) => {
                        failed(Failure::Other, format!("its adapter could not read what it printed: {error}"))
                    }
                    Ok(outcome) => {
                        self.used(&outcome);
                        end_of(&outcome, was_stopped)
                    }
                }
            }
        };
        // A run that has ended is told as it ended, also if nothing was shown: given again, it would only fail again. One
        // that was killed with its guard has not ended by itself.
        let is_known = shown || (left.is_none() && !is_lost);
        let status = if is_known { PromptStatus::Answered } else { PromptStatus::Unknown };
        self.say(DriverEvent::Prompt(prompt.id.clone(), status));
        self.say(DriverEvent::TurnEnded(prompt.id.clone(), end));
        self.say(DriverEvent::Activity(Activity::Idle));
        left
    }

    /// Ends what a guard that was killed has watched over.
    async fn end_what_is_left(&self) {
        let mark = self.environment.iter().find(|(name, _)| name == MARK).map(|(_, mark)| mark.clone());
        if let Some(mark) = mark {
            end_marked(mark).await;
        }
    }

    /// The task of a prompt. The text goes to standard input.
    fn task(&mut self, prompt: &Prompt, agent: &DrivenAgent) -> Task {
        let is_begun = self.session != agent.id || self.folder.root.join(BEGUN).exists();
        let start = if is_begun { Start::Resume(self.session.clone()) } else { Start::Fresh(agent.id.clone()) };
        if !is_begun {
            self.counted = Some(Tokens::default());
        }
        task(agent, prompt.id.clone(), start)
    }

    async fn begin<'a>(
        &self,
        harness: &'a dyn Harness,
        task: &'a Task,
        prompt: &Prompt,
    ) -> Result<Running<'a>, HarnessError> {
        let broken = |why: String| HarnessError::Failed(why);
        let runner = runner_of(harness)?;
        let launch = runner.prepare(task, &self.folder.files()).await?;
        for (file, text) in &launch.files {
            std::fs::write(self.folder.files().join(file), text).map_err(|error| broken(error.to_string()))?;
        }
        let output = self.folder.of_output();
        let order = self.order(launch, task.folder.clone(), (prompt.text.clone(), output.clone()));
        let binary = runs::binary().map_err(|error| broken(error.to_string()))?;
        let mut guard = Guard::start(&binary, &order).await.map_err(|error| broken(error.to_string()))?;
        if guard.started().await.is_none() {
            let ended = guard.ended().await.map_err(|error| broken(error.to_string()))?;
            return Err(broken(format!("its program could not be started: {}", ended.why_not_started())));
        }
        let reading = Reading::open(runner, task, &output).map_err(|error| broken(error.to_string()))?;
        Ok(Running { guard, reading, shown: false })
    }

    fn order(&self, launch: Launch, folder: PathBuf, (input, output): (String, PathBuf)) -> Order {
        let Launch { mut command, environment: added, stop, .. } = launch;
        if let (Some(program), Some(first)) = (&self.program, command.first_mut()) {
            first.clone_from(program);
        }
        let mut environment = self.environment.clone();
        for (name, value) in added {
            if !environment.iter().any(|(known, _)| *known == name) {
                environment.push((name, value));
            }
        }
        let files = self.folder.of_program();
        Order {
            command,
            environment,
            folder,
            streams: Streams::Files { input, output },
            stop: stop.iter().map(step).collect(),
            limits: Limits::default(),
            errors: files.errors,
            running: files.running,
            ended: files.ended,
        }
    }

    fn hear(&mut self, events: Vec<RunEvent>, prompt: &Prompt, shown: &mut bool) {
        for event in events {
            let told = match event {
                RunEvent::Session { session } => {
                    self.begun(session);
                    continue;
                }
                RunEvent::Said { text } => DriverEvent::Said(text),
                RunEvent::Tool { id, name, about, succeeded } => {
                    let what = if about.is_empty() {
                        Operation::Other(name)
                    } else {
                        Operation::Tool(name, Value::from(about))
                    };
                    DriverEvent::Item { id, operation: Some(what), succeeded, detail: None }
                }
                RunEvent::Wrote { files } => {
                    let id = format!("{} files", prompt.id);
                    let operation = Some(Operation::Files(files));
                    DriverEvent::Item { id, operation, succeeded: Some(true), detail: None }
                }
                RunEvent::Denied { tool, why } => {
                    self.say(DriverEvent::Note(format!("{tool} was refused: {why}")));
                    continue;
                }
                RunEvent::Note { text } => {
                    self.say(DriverEvent::Note(text));
                    continue;
                }
                RunEvent::Retries { .. } | RunEvent::Used { .. } | RunEvent::Turns { .. } => continue,
            };
            // Only a model that got the prompt says or does anything.
            if !std::mem::replace(shown, true) {
                self.say(DriverEvent::Prompt(prompt.id.clone(), PromptStatus::Shown));
            }
            self.say(told);
        }
    }

    /// The harness has begun its session, under the id that it was given or one of its own.
    fn begun(&mut self, session: String) {
        if let Err(error) = std::fs::write(self.folder.root.join(BEGUN), "") {
            tracing::warn!(%error, "the next prompt of an agent begins a new session");
        }
        if self.session != session {
            self.session.clone_from(&session);
            self.say(DriverEvent::Opened(session));
        }
    }

    fn used(&mut self, outcome: &RunOutcome) {
        if let Some(usage) = &outcome.usage {
            let used = newly_used(&mut self.counted, usage);
            self.say(DriverEvent::Used(used));
        }
    }
}

/// What a run has used. Figures of a whole session count what came before again, so that is taken off; where it is not
/// known, as after a new start of the host, the first such figures only tell it.
fn newly_used(counted: &mut Option<Tokens>, usage: &Usage) -> Tokens {
    let told = Tokens { input: usage.input, cached_input: usage.cached_input, output: usage.output };
    let with = |one: Tokens, other: Tokens, by: fn(u64, u64) -> u64| Tokens {
        input: by(one.input, other.input),
        cached_input: by(one.cached_input, other.cached_input),
        output: by(one.output, other.output),
    };
    if usage.whole_session {
        return counted.replace(told).map_or_else(Tokens::default, |before| with(told, before, u64::saturating_sub));
    }
    *counted = counted.map(|before| with(before, told, u64::saturating_add));
    told
}

/// What an agent is as a task.
pub(super) fn task(agent: &DrivenAgent, id: String, start: Start) -> Task {
    Task {
        id,
        folder: agent.folder.clone(),
        start,
        reach: agent.reach,
        extensions: agent.extensions,
        model: agent.model.clone(),
        schema: None,
        guidance: Some(agent.guidance.clone()),
        turns: None,
        cost: None,
    }
}

fn failed(failure: Failure, why: String) -> TurnEnd {
    TurnEnd::Failed { failure, why }
}

fn end_of(outcome: &RunOutcome, was_stopped: bool) -> TurnEnd {
    let why = || outcome.why.clone().unwrap_or_else(|| format!("it ended, {}", outcome.ending.as_str()));
    match outcome.ending {
        Ending::Answered => TurnEnd::Completed,
        Ending::Stopped => TurnEnd::Interrupted,
        _ if was_stopped => TurnEnd::Interrupted,
        Ending::Login => failed(Failure::NotSignedIn, why()),
        Ending::Limited => failed(Failure::OutOfQuota, why()),
        Ending::Provider => failed(Failure::Overloaded, why()),
        Ending::Turns | Ending::Cost | Ending::Shape | Ending::Denied | Ending::Time | Ending::BrokeOff => {
            failed(Failure::Other, why())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(counted: &mut Option<Tokens>, output: u64, whole_session: bool) -> u64 {
        newly_used(counted, &Usage { output, whole_session, ..Usage::default() }).output
    }

    #[test]
    fn what_a_session_has_used_counts_once() {
        let mut counted = Some(Tokens::default());
        assert_eq!(used(&mut counted, 10, false), 10);
        assert_eq!(used(&mut counted, 25, true), 15, "the whole session, with the first run");
        assert_eq!(used(&mut counted, 40, true), 15);
        // After a new start of the host.
        let mut counted = None;
        assert_eq!(used(&mut counted, 40, true), 0, "nobody knows what came before");
        assert_eq!(used(&mut counted, 50, true), 10);
    }
}
