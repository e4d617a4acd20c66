//! Threads of tools: `codex`.

use std::borrow::Cow;

use mesh::names::AgentName;
use mesh::tool_threads::ThreadRow;
use serde::Serialize;
use view::Timestamp;

use super::counted;
use crate::render::{Show, printable, printable_line, table};

/// One thread.
#[derive(Debug, Serialize)]
struct ThreadShape<'a> {
    thread_id: &'a str,
    harness: &'a str,
    agent: &'a str,
    identity: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_root: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    cwd: Cow<'a, str>,
    started_at: Timestamp,
    last_active: Timestamp,
    /// active, idle, closed or interrupted
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    /// Whether `codex summary` has one.
    summed_up: bool,
}

/// Threads in a list.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadsShape<'a> {
    threads: Vec<ThreadShape<'a>>,
}

impl ThreadsShape<'_> {
    pub(crate) fn of(rows: &[ThreadRow]) -> ThreadsShape<'_> {
        fn shape(row: &ThreadRow) -> ThreadShape<'_> {
            ThreadShape {
                thread_id: &row.thread,
                harness: &row.harness,
                agent: row.agent.as_str(),
                identity: &row.identity,
                by: row.by.as_ref().map(AgentName::as_str),
                team: row.team.as_deref(),
                repo_root: row.repository.as_deref(),
                repo_name: row.repository_name.as_deref(),
                branch: row.branch.as_deref(),
                cwd: row.cwd.to_string_lossy(),
                started_at: Timestamp(row.started),
                last_active: Timestamp(row.last_active),
                status: row.status.as_str(),
                tag: row.tag.as_deref(),
                role: row.role.as_deref(),
                summed_up: row.summed_up,
            }
        }
        ThreadsShape { threads: rows.iter().map(shape).collect() }
    }
}

impl Show for ThreadsShape<'_> {
    fn text(&self) -> String {
        if self.threads.is_empty() {
            return String::new();
        }
        let row = |thread: &ThreadShape| {
            let place = thread.repo_name.unwrap_or(&thread.cwd);
            let branch = thread.branch.map(|branch| format!(" ({branch})")).unwrap_or_default();
            vec![
                thread.thread_id.to_owned(),
                thread.agent.to_owned(),
                thread.status.to_owned(),
                printable_line(&format!("{place}{branch}")),
                printable_line(thread.tag.unwrap_or_default()),
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
