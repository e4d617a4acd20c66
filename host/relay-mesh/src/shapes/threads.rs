//! Threads of tools: `codex`.

use mesh::tool_threads::ThreadRow;
use serde::Serialize;
use view::Timestamp;

use super::counted;
use crate::render::{Show, printable, printable_line, table};

/// One thread.
#[derive(Debug, Serialize)]
struct ThreadShape {
    thread_id: String,
    harness: String,
    agent: String,
    identity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    cwd: String,
    started_at: Timestamp,
    last_active: Timestamp,
    /// active, idle, closed or interrupted
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Whether `codex summary` has one.
    summed_up: bool,
}

/// Threads in a list.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadsShape {
    threads: Vec<ThreadShape>,
}

impl ThreadsShape {
    pub(crate) fn of(rows: &[ThreadRow]) -> ThreadsShape {
        let shape = |row: &ThreadRow| ThreadShape {
            thread_id: row.thread.clone(),
            harness: row.harness.clone(),
            agent: row.agent.to_string(),
            identity: row.identity.clone(),
            by: row.by.as_ref().map(ToString::to_string),
            team: row.team.clone(),
            repo_root: row.repository.clone(),
            repo_name: row.repository_name.clone(),
            branch: row.branch.clone(),
            cwd: row.cwd.display().to_string(),
            started_at: Timestamp(row.started),
            last_active: Timestamp(row.last_active),
            status: row.status.as_str(),
            tag: row.tag.clone(),
            role: row.role.clone(),
            summed_up: row.summed_up,
        };
        ThreadsShape { threads: rows.iter().map(shape).collect() }
    }
}

impl Show for ThreadsShape {
    fn text(&self) -> String {
        if self.threads.is_empty() {
            return String::new();
        }
        let row = |thread: &ThreadShape| {
            let place = thread.repo_name.as_deref().unwrap_or(&thread.cwd);
            let branch = thread.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
            vec![
                thread.thread_id.clone(),
                thread.agent.clone(),
                thread.status.to_owned(),
                printable_line(&format!("{place}{branch}")),
                printable_line(thread.tag.as_deref().unwrap_or_default()),
            ]
        };
        table(&["THREAD", "AGENT", "STATUS", "WHERE", "TAG"], &self.threads.iter().map(row).collect::<Vec<_>>())
    }
}

/// How many were forgotten.
#[derive(Debug, Serialize)]
pub(crate) struct PrunedShape {
    pub(crate) removed: usize,
}

impl Show for PrunedShape {
    fn text(&self) -> String {
        format!("{} forgotten", counted(self.removed, "thread"))
    }
}

/// What a thread summed up.
#[derive(Debug, Serialize)]
pub(crate) struct SummaryShape {
    pub(crate) thread_id: String,
    pub(crate) summary: String,
}

impl Show for SummaryShape {
    fn text(&self) -> String {
        printable(&self.summary)
    }
}
