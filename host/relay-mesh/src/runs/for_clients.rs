//! Runs and reviews for the clients of an MCP server: what the tools of `mcp` ask for, under the rules of the command
//! line. A run that is tied to the server works in this process and ends with it; any other is left to one of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mcp::{NewReview, NewRun, ReviewSubject, RunHost, RunKind, RunProgress, RunRefusal, Tie};
use mesh::ports::runner::{Extensions, RunEvent, Start};
use mesh::reviews::{ReviewRecord, Subject};
use mesh::runs::{RunId, RunLimits, RunRecord};
use mesh::sessions::Principal;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use view::rfc3339;

use super::record_folder::RESULT;
use super::settle::{self, Settler};
use super::supervise::{Unwatched, supervise};
use super::{AnswerSchema, RunFolder, RunRequest, Runs, WorkFolder, begin, permission, stop};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::reviews::{self, ReviewFolder, ReviewRequest, Reviews};
use crate::shapes::runs::event_line;
use crate::signals::Stop;

/// The most runs that one server works on at once.
const MOST: usize = 32;
/// The end of the events that is read for the last of them, in bytes.
const TAIL: u64 = 64 * 1024;

/// The runs of one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClientRuns(Arc<Shared>);

struct Shared {
    context: Context,
    open: Arc<Open>,
    /// What ends each run that works in this process. Written when one begins and ends.
    tied: Mutex<HashMap<RunId, CancellationToken>>,
    /// Why runs of this process could not be brought to their end. A caller that asks for one hears it until it has ended.
    failed: Mutex<HashMap<RunId, String>>,
    tasks: TaskTracker,
}

impl ClientRuns {
    pub(crate) fn new(context: &Context, open: Arc<Open>) -> ClientRuns {
        let context = context.at(context.workdir.clone());
        ClientRuns(Arc::new(Shared {
            context,
            open,
            tied: Mutex::default(),
            failed: Mutex::default(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Ends every run that works in this process, and returns once all have ended.
    pub(crate) async fn finish(&self) {
        for token in self.0.tied().values() {
            token.cancel();
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl Shared {
    fn tied(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, CancellationToken>> {
        self.tied.lock().expect("no holder of this lock panics")
    }

    fn failed(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, String>> {
        self.failed.lock().expect("no holder of this lock panics")
    }

    fn runs(&self) -> Runs {
        Runs::of(&self.context.settings.dir.value)
    }

    /// A run that this caller has started. Another's is as unknown as one that never was.
    fn own(&self, caller: &Principal, id: &str) -> Result<(RunFolder, RunRecord), CommandError> {
        let (folder, record) = self.runs().find(id)?;
        if record.by.is_none() || record.by.as_ref() != caller.agent() {
            return Err(super::RunsError::Unknown(id.to_owned()).into());
        }
        Ok((folder, record))
    }

    async fn begin(self: &Arc<Self>, caller: &Principal, run: NewRun) -> Result<RunId, CommandError> {
        if self.tied().len() >= MOST {
            return Err(CommandError::usage(
                &format!("this server works on {MOST} runs already"),
                "wait for one of them, or stop one",
            ));
        }
        let tie = run.tie;
        let request = request(&self.context, caller, run)?;
        let evidence = permission::of_client(&self.context, &self.open, &self.runs(), caller);
        let begun = begin::begin_for(&self.context, &self.open, &evidence, request).await?;
        let id = begun.record.id;
        match tie {
            Tie::Free => {
                begin::leave(&self.context, &self.open, begun).await?;
            }
            Tie::Server => {
                let token = CancellationToken::new();
                self.tied().insert(id, token.clone());
                let shared = Arc::clone(self);
                self.tasks.spawn(async move {
                    let mut stop = Stop::by(token);
                    let ended = supervise(&shared.context, &shared.open, begun, &mut stop, &mut Unwatched).await;
                    if let Err(error) = ended {
                        shared.failed().insert(id, mesh::reasons(&error));
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(error, run = %id, "a run could not be brought to its end");
                    }
                    shared.tied().remove(&id);
                });
            }
        }
        Ok(id)
    }

    async fn begin_review(&self, caller: &Principal, review: NewReview) -> Result<RunId, CommandError> {
        let runs = self.runs();
        let NewReview { subject, folder, by, verify, timeout } = review;
        let subject = match subject {
            ReviewSubject::Uncommitted => Subject::Uncommitted,
            ReviewSubject::Base(base) => Subject::Base(base),
            ReviewSubject::Commit(commit) => Subject::Commit(commit),
            ReviewSubject::Run(run) => Subject::Run(self.own(caller, &run)?.1.id),
        };
        let request = ReviewRequest {
            subject,
            folder: folder_of(&self.context, caller, folder.as_deref())?,
            by,
            verify,
            time: super::begin::time_or_usual(timeout),
            report: caller.agent().map(ToString::to_string).into_iter().collect(),
        };
        let evidence = permission::of_client(&self.context, &self.open, &runs, caller);
        let (folder, record) = reviews::begin::begin(&self.context, &self.open, &evidence, request).await?;
        begin::work_beside(&self.context, record.id)?;
        // The one that works on it says so, so that the review is not taken for an abandoned one.
        begin::taken_over(&self.open, || Ok(folder.record()?.supervisor)).await?;
        Ok(record.id)
    }

    /// A review that this caller has asked for; none if there is none of this id.
    fn own_review(&self, caller: &Principal, id: &str) -> Result<Option<(ReviewFolder, ReviewRecord)>, CommandError> {
        let found = if id == "last" { None } else { Reviews::of(&self.context.settings.dir.value).find(id)? };
        Ok(found.filter(|(_, record)| record.by.is_some() && record.by.as_ref() == caller.agent()))
    }

    async fn progress_of_review(&self, folder: &ReviewFolder) -> Result<RunProgress, CommandError> {
        reviews::stop::settle(&self.context, &self.open, folder, Settler::Command).await?;
        let record = folder.record()?;
        let result = if record.ended.is_some() { Some(folder.result()?) } else { None };
        let (events, doing) = match record.runs.last() {
            Some(run) => last_event(&self.runs().folder(*run)),
            None => (0, None),
        };
        let doing = match &record.ended {
            Some(end) => format!("{} findings", end.findings),
            None => doing.unwrap_or_else(|| "nothing is reported yet".to_owned()),
        };
        let (id, started) = (record.id.to_string(), rfc3339(record.started));
        Ok(RunProgress { id, kind: RunKind::Review, events, doing, started, result })
    }

    async fn progress(&self, caller: &Principal, id: &str) -> Result<RunProgress, CommandError> {
        if let Some((folder, _)) = self.own_review(caller, id)? {
            return self.progress_of_review(&folder).await;
        }
        let (folder, mut record) = self.own(caller, id)?;
        if record.ended.is_none() && folder.stage(&record, self.open.machine.as_ref()) != mesh::runs::RunStage::Running
        {
            settle::settle(&self.context, &self.open, &self.runs()).await;
            record = folder.record()?;
        }
        let failed = self.failed().get(&record.id).cloned();
        match failed {
            Some(_) if record.ended.is_some() => drop(self.failed().remove(&record.id)),
            Some(why) => return Err(not_ended(record.id, &why)),
            None => {}
        }
        let (events, doing) = last_event(&folder);
        let result = match &record.ended {
            Some(_) => Some(whole(&folder)?),
            None => None,
        };
        let doing = match &record.ended {
            Some(end) => end.ending.as_str().to_owned(),
            None => doing.unwrap_or_else(|| "nothing is reported yet".to_owned()),
        };
        let started = rfc3339(record.started);
        Ok(RunProgress { id: record.id.to_string(), kind: RunKind::Run, events, doing, started, result })
    }

    async fn end(&self, caller: &Principal, id: &str) -> Result<(), CommandError> {
        if let Some((folder, _)) = self.own_review(caller, id)? {
            reviews::stop::stop(&self.context, &self.open, &folder).await?;
            return Ok(());
        }
        let (folder, record) = self.own(caller, id)?;
        if let Some(token) = self.tied().get(&record.id) {
            token.cancel();
        }
        stop::stop(&self.context, &self.open, &self.runs(), &folder).await?;
        Ok(())
    }
}

/// Its process could not bring it to its end, and nobody could since.
fn not_ended(id: RunId, why: &str) -> CommandError {
    let what = format!("run {id} could not be brought to its end: {why}");
    let hint = "see whether the disk is full; once it is not, look again, and what the run left is put together";
    Failure { what, hint: Some(hint.to_owned()), exit: Exit::Failure, source: None }.into()
}

/// The result of a run that has ended, as it was kept.
pub(crate) fn whole(folder: &RunFolder) -> Result<Value, super::RunsError> {
    let bytes = folder.read(RESULT)?;
    serde_json::from_slice(&bytes).map_err(|error| super::RunsError::Unreadable { id: folder.id, source: error.into() })
}

/// How many events a run has reported, and the last that says something.
fn last_event(folder: &RunFolder) -> (u64, Option<String>) {
    let Ok(text) = tail(&folder.events()) else { return (0, None) };
    let events = text.1.lines().rev().filter_map(|line| serde_json::from_str::<RunEvent>(line).ok());
    (text.0, events.into_iter().find_map(|event| event_line(&event)))
}

/// The number of lines of a file, and the text of its end.
fn tail(path: &Path) -> std::io::Result<(u64, String)> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut lines = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut end = Vec::new();
    file.take(TAIL).read_to_end(&mut end)?;
    Ok((lines, String::from_utf8_lossy(&end).into_owned()))
}

/// A run as a client asks for it, in the terms of the command line.
fn request(context: &Context, caller: &Principal, run: NewRun) -> Result<RunRequest, CommandError> {
    let NewRun { harness, task, folder, reach, here, resume, model, schema, timeout, turns, cost, tie } = run;
    if task.trim().is_empty() {
        return Err(CommandError::usage("the run has no task", "say what to do"));
    }
    if turns == Some(0) || timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(CommandError::usage("a limit is zero", "leave it out, or allow more"));
    }
    if let Some(schema) = &schema {
        AnswerSchema::of(schema)?;
    }
    let mut limits = RunLimits::default();
    if let Some(timeout) = timeout {
        limits.time = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    }
    Ok(RunRequest {
        harness,
        text: task,
        folder: folder_of(context, caller, folder.as_deref())?,
        place: if here { WorkFolder::Here } else { WorkFolder::Usual },
        reach,
        start: resume.map(Start::Resume),
        extensions: Extensions::Mesh,
        model,
        schema,
        turns,
        cost,
        below: None,
        limits,
        name: None,
        reserve: Vec::new(),
        report: match (tie, caller.agent()) {
            (Tie::Free, Some(agent)) => vec![agent.to_string()],
            (Tie::Free, None) | (Tie::Server, _) => Vec::new(),
        },
    })
}

/// The folder that a client means: the one that it names, as seen from its own.
pub(crate) fn folder_of(context: &Context, caller: &Principal, named: Option<&str>) -> Result<PathBuf, CommandError> {
    let own = caller.workdir().map(PathBuf::from);
    let folder = match (named, own) {
        (Some(named), Some(own)) => own.join(named),
        (Some(named), None) if Path::new(named).is_absolute() => PathBuf::from(named),
        (None, Some(own)) => own,
        (Some(_) | None, None) => {
            return Err(CommandError::usage("it is not known in which folder you are", "name one in cwd, absolutely"));
        }
    };
    begin::existing(&context.workdir.join(folder))
}

pub(crate) fn refusal(error: &CommandError) -> RunRefusal {
    RunRefusal { what: mesh::reasons(error), next: error.hint() }
}

#[async_trait]
impl RunHost for ClientRuns {
    async fn start(&self, caller: &Principal, run: NewRun) -> Result<String, RunRefusal> {
        let id = self.0.begin(caller, run).await.map_err(|error| refusal(&error))?;
        Ok(id.to_string())
    }

    async fn review(&self, caller: &Principal, review: NewReview) -> Result<String, RunRefusal> {
        let id = self.0.begin_review(caller, review).await.map_err(|error| refusal(&error))?;
        Ok(id.to_string())
    }

    async fn look(&self, caller: &Principal, id: &str) -> Result<RunProgress, RunRefusal> {
        self.0.progress(caller, id).await.map_err(|error| refusal(&error))
    }

    async fn stop(&self, caller: &Principal, id: &str) -> Result<(), RunRefusal> {
        self.0.end(caller, id).await.map_err(|error| refusal(&error))
    }
}
