//! Beginning a review: everything that can be refused is refused here, before a reviewer is started.

use std::path::PathBuf;

use mesh::allowances::Asker;
use mesh::ports::machine::Machine as _;
use mesh::ports::runner::{Login, Reach};
use mesh::reviews::{ReviewRecord, Subject};

use super::{ReviewFolder, Reviews, subject};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::permission::{self, Evidence};
use crate::runs::{Runs, begin, changes, runner_of};

/// The harnesses that review if none is named, in the order in which they are tried.
const USUAL: [&str; 4] = ["codex", "claude-code", "gemini-cli", "opencode"];

/// A review as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct ReviewRequest {
    pub(crate) subject: Subject,
    /// Absolute, without symlinks.
    pub(crate) folder: PathBuf,
    /// By their names as typed; another than the author's if there are none.
    pub(crate) by: Vec<String>,
    pub(crate) verify: Option<String>,
    /// The most time of each run, in milliseconds.
    pub(crate) time: u64,
    pub(crate) report: Vec<String>,
}

/// Begins a review for a caller.
pub(crate) async fn begin(
    context: &Context,
    open: &Open,
    evidence: &Evidence,
    request: ReviewRequest,
) -> Result<(ReviewFolder, ReviewRecord), CommandError> {
    let (runs, git) = (Runs::of(&context.settings.dir.value), changes::git(context));
    for address in &request.report {
        open.mesh.resolve(address, None).await?;
    }
    let top = subject::top(&git, &runs, &request.subject, &request.folder).await?;
    if let Subject::Base(name) | Subject::Commit(name) = &request.subject {
        git.commit(&top, name).await?;
    }
    let reviewers = reviewers(open, &runs, evidence, &request).await?;
    let verify = match &request.verify {
        Some(typed) => Some(begin::harness(open, typed).await?.about().harness.clone()),
        None => None,
    };
    for harness in reviewers.iter().chain(&verify) {
        let harness = begin::harness(open, harness).await?;
        begin::permitted(context, open, &runs, evidence, (&harness, Reach::Look))?;
    }
    let (by, asked_from) = match &evidence.asker {
        Asker::User => (None, None),
        Asker::Session { harness, agent } => (agent.clone(), Some(harness.clone())),
    };
    let by = by.or_else(|| evidence.parent.as_ref().and_then(|parent| parent.agent.clone()));
    let record = ReviewRecord {
        id: open.mesh.new_run_id(),
        by,
        asked_from,
        parent: evidence.parent.as_ref().map(|parent| parent.id),
        top,
        subject: request.subject,
        reviewers,
        verify,
        time: request.time,
        report: request.report,
        supervisor: open.machine.this_process(),
        started: open.machine.now(),
        runs: Vec::new(),
        ended: None,
    };
    let folder = Reviews::of(&context.settings.dir.value).create(record.id)?;
    folder.keep(&record)?;
    Ok((folder, record))
}

/// Who asked for a review, for the process that works on it.
pub(super) fn evidence_of(runs: &Runs, record: &ReviewRecord) -> Evidence {
    let asker = match (&record.asked_from, &record.by) {
        (Some(harness), agent) => Asker::Session { harness: harness.clone(), agent: agent.clone() },
        (None, _) => Asker::User,
    };
    let parent = record.parent.and_then(|parent| runs.load(parent).ok()).map(|(_, parent)| parent);
    permission::Evidence { asker, parent }
}

async fn reviewers(
    open: &Open,
    runs: &Runs,
    evidence: &Evidence,
    request: &ReviewRequest,
) -> Result<Vec<String>, CommandError> {
    let mut named: Vec<String> = Vec::new();
    for typed in &request.by {
        let name = begin::harness(open, typed).await?.about().harness.clone();
        if !named.contains(&name) {
            named.push(name);
        }
    }
    if !named.is_empty() {
        return Ok(named);
    }
    let ran = match &request.subject {
        Subject::Run(id) => runs.load(*id).ok().map(|(_, run)| run.harness),
        Subject::Uncommitted | Subject::Base(_) | Subject::Commit(_) => None,
    };
    for name in others(ran.as_deref(), evidence) {
        if is_ready(open, name).await {
            return Ok(vec![name.to_owned()]);
        }
    }
    Err(Failure {
        what: "no harness is here and signed in that could review".to_owned(),
        hint: Some("name one by `--by HARNESS`; `relay-mesh harnesses` shows which are here".to_owned()),
        exit: Exit::NotFound,
        source: None,
    }
    .into())
}

/// The harnesses that may review if none is named: not the author's. That is the one whose run is reviewed; else the one
/// that asks, and the one whose run it asks from.
fn others(ran: Option<&str>, evidence: &Evidence) -> Vec<&'static str> {
    let asks = match &evidence.asker {
        Asker::Session { harness, .. } => Some(harness.as_str()),
        Asker::User => None,
    };
    let above = evidence.parent.as_ref().map(|parent| parent.harness.as_str());
    let authors = if ran.is_some() { [ran, None] } else { [asks, above] };
    USUAL.into_iter().filter(|name| !authors.contains(&Some(*name))).collect()
}

async fn is_ready(open: &Open, name: &str) -> bool {
    let Ok(harness) = begin::harness(open, name).await else { return false };
    let Ok(runner) = runner_of(harness.as_ref()) else { return false };
    runner.ready().await.is_ok_and(|ready| ready.login != Login::LoggedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_than_the_author_reviews() {
        let asks = |harness: &str| Asker::Session { harness: harness.to_owned(), agent: None };
        let check = |ran, asker, expected: &[&str]| {
            assert_eq!(others(ran, &Evidence { asker, parent: None }), expected);
        };
        check(None, Asker::User, &USUAL);
        check(None, asks("codex"), &["claude-code", "gemini-cli", "opencode"]);
        check(Some("codex"), Asker::User, &["claude-code", "gemini-cli", "opencode"]);
        // Whoever asks for a review of another's run may review it.
        check(Some("claude-code"), asks("codex"), &["codex", "gemini-cli", "opencode"]);
    }
}
