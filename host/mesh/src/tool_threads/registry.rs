//! The registry of threads: one row each, under `threads/DAY` of the local store, so that a change rewrites one day and a
//! list reads few values. What a thread summed up at its end is a value of its own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use store::{Durability, Key, StoreError};

use super::retention;
use crate::Mesh;
use crate::core::Core;
use crate::driven::{DrivenId, DrivenRecord};
use crate::names::AgentName;
use crate::ports::driver::{Approvals, Tailoring};
use crate::ports::machine::Instant;
use crate::ports::runner::Reach;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// The longest summary that is kept, in bytes.
const LONGEST_SUMMARY: usize = 16 * 1024;

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadStatus {
    /// A turn runs.
    Active,
    /// It waits for its next prompt, with a live agent or without one.
    Idle,
    /// Its server ended in good order, and it has summed itself up.
    Closed,
    /// It ended otherwise. It can be gone on with all the same.
    Interrupted,
}

impl ThreadStatus {
    /// One word.
    pub fn as_str(self) -> &'static str {
        match self {
            ThreadStatus::Active => "active",
            ThreadStatus::Idle => "idle",
            ThreadStatus::Closed => "closed",
            ThreadStatus::Interrupted => "interrupted",
        }
    }
}

/// A thread in the registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// The harness's own id of it.
    pub thread: String,
    /// The harness, by its adapter's name.
    pub harness: String,
    /// The driven agent that is or was last the thread.
    pub driven: DrivenId,
    /// That agent's name.
    pub agent: AgentName,
    /// The name that was asked for.
    pub identity: String,
    /// The agent that it answers; none if that is the user.
    pub by: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The top folder of its working copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The repository's name.
    #[serde(default, rename = "name", skip_serializing_if = "Option::is_none")]
    pub repository_name: Option<String>,
    /// What is checked out there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The folder that it works in.
    pub cwd: PathBuf,
    /// When it began.
    pub started: Instant,
    /// When its last turn began or ended.
    pub last_active: Instant,
    /// Where it stands.
    pub status: ThreadStatus,
    /// What its caller calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The role of the settings that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it may change.
    pub reach: Reach,
    /// Who answers what it asks.
    pub approvals: Approvals,
    /// What only some harnesses take.
    #[serde(default, skip_serializing_if = "Tailoring::is_none")]
    pub tailoring: Tailoring,
    /// The caller's own instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Whether a summary of it is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summed_up: bool,
    /// The thread that took its place, because its harness had it no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_by: Option<String>,
    /// How its program ended while nobody waited for it. Told at its next call, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died: Option<String>,
}

impl ThreadRow {
    /// Whether it works in the repository of that name, or in that folder.
    pub fn is_in(&self, repository: &str) -> bool {
        let last = |text: &str| text.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
        let mut named = [&self.repository, &self.repository_name].into_iter().flatten();
        named.any(|own| own == repository.trim_end_matches('/') || last(own).as_deref() == Some(repository))
    }

    fn of(record: &DrivenRecord, status: ThreadStatus) -> Option<ThreadRow> {
        let tool = record.tool.as_ref()?;
        Some(ThreadRow {
            thread: record.session.clone()?,
            harness: record.harness.clone(),
            driven: record.id,
            agent: record.agent.name.parse().ok()?,
            identity: tool.identity.clone(),
            by: record.by.clone(),
            team: tool.team.clone(),
            repository: tool.place.repository.clone(),
            repository_name: tool.place.name.clone(),
            branch: tool.place.branch.clone(),
            cwd: record.agent.folder.clone(),
            started: tool.began,
            last_active: tool.last_active,
            status,
            tag: tool.tag.clone(),
            role: tool.role.clone(),
            model: record.agent.model.clone(),
            reach: record.agent.reach,
            approvals: record.agent.approvals,
            tailoring: record.agent.tailoring.clone(),
            instructions: tool.instructions.clone(),
            summed_up: false,
            continued_by: None,
            died: None,
        })
    }
}

impl Mesh {
    /// Writes a live thread's row. A summary that is kept stays.
    pub async fn note_thread(&self, record: &DrivenRecord, status: ThreadStatus) -> Result<(), StoreError> {
        let Some(row) = ThreadRow::of(record, status) else { return Ok(()) };
        // The thread whose place this one took leads to it.
        if let Some(tool) = &record.tool
            && let Some(before) = tool.continues.as_ref().filter(|before| **before != row.thread)
        {
            let to = row.thread.clone();
            self.change_thread(before, |before| before.continued_by = Some(to.clone())).await?;
        }
        let day = keys::threads_of(row.started);
        let write = |old: Option<Vec<ThreadRow>>| {
            let mut rows = old.unwrap_or_default();
            // A harness that is run for each prompt gives its session an id of its own at the first one.
            rows.retain(|old| old.thread == row.thread || old.thread != record.agent.id);
            match rows.iter_mut().find(|old| old.thread == row.thread) {
                Some(old) => *old = ThreadRow { summed_up: old.summed_up, died: old.died.take(), ..row.clone() },
                None => rows.push(row.clone()),
            }
            (Next::Put(rows), ())
        };
        records::update(self.core.local.as_ref(), &day, Durability::Process, write).await
    }

    /// Changes a thread's row, and returns it as it is then; none if there is none.
    pub async fn change_thread(
        &self,
        thread: &str,
        mut change: impl FnMut(&mut ThreadRow) + Send,
    ) -> Result<Option<ThreadRow>, StoreError> {
        let Some(row) = self.thread(thread).await? else { return Ok(None) };
        let day = keys::threads_of(row.started);
        let decide = |old: Option<Vec<ThreadRow>>| {
            let mut rows = old.unwrap_or_default();
            let changed = rows.iter_mut().find(|row| row.thread == thread).map(|row| {
                change(row);
                row.clone()
            });
            match changed {
                Some(row) => (Next::Put(rows), Some(row)),
                None => (Next::Keep, None),
            }
        };
        records::update(self.core.local.as_ref(), &day, Durability::Process, decide).await
    }

    /// Every thread of this machine, the last active first. A value that cannot be read hides only its day.
    pub async fn threads(&self) -> Result<Vec<ThreadRow>, StoreError> {
        let mut rows = rows(&self.core, |_| true).await?;
        rows.sort_by_key(|row| std::cmp::Reverse(row.last_active));
        Ok(rows)
    }

    /// One thread, by its harness's id or by the id of the driven agent that is or was it.
    pub async fn thread(&self, id: &str) -> Result<Option<ThreadRow>, StoreError> {
        let is_it = |row: &ThreadRow| row.thread == id || row.driven.to_string() == id;
        // Those that are gone on with are mostly young.
        for key in self.core.local.list(&keys::threads()).await?.into_iter().rev() {
            if let Some(row) = day(&self.core, &key).await?.into_iter().find(is_it) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Keeps what a thread summed up.
    pub async fn keep_thread_summary(&self, thread: &str, summary: &str) -> Result<(), StoreError> {
        let text = summary[..summary.floor_char_boundary(LONGEST_SUMMARY)].to_owned();
        let put = |_: Option<String>| (Next::Put(text.clone()), ());
        records::update(self.core.local.as_ref(), &keys::thread_summary(thread), Durability::Process, put).await?;
        self.change_thread(thread, |row| row.summed_up = true).await.map(|_| ())
    }

    /// What a thread summed up at its last end.
    pub async fn thread_summary(&self, thread: &str) -> Result<Option<String>, StoreError> {
        let kept = records::load::<String>(self.core.local.as_ref(), &keys::thread_summary(thread)).await?;
        Ok(kept.map(|(_, summary)| summary))
    }

    /// Removes the rows of threads that are not live and were last active before a time, and of which `which` holds. What
    /// the harness keeps of them stays. Returns how many.
    pub async fn prune_threads(
        &self,
        before: Instant,
        which: impl Fn(&ThreadRow) -> bool + Send + Sync,
    ) -> Result<usize, StoreError> {
        let live: Vec<DrivenId> = self.driven_agents().await?.iter().map(|record| record.id).collect();
        let goes = |row: &ThreadRow| !live.contains(&row.driven) && which(row);
        retention::remove(&self.core, before, goes).await
    }
}

/// The rows of threads that were last active before a time. No thread that began on a later day is read.
pub(super) async fn rows_before(core: &Core, before: Instant) -> Result<Vec<ThreadRow>, StoreError> {
    let last = keys::threads_of(before);
    let mut old = rows(core, |day| *day <= last).await?;
    old.retain(|row| row.last_active < before);
    Ok(old)
}

/// The rows of the days that are wanted.
async fn rows(core: &Core, wanted: impl Fn(&Key) -> bool + Send + Sync) -> Result<Vec<ThreadRow>, StoreError> {
    let mut found = Vec::new();
    for key in core.local.list(&keys::threads()).await? {
        if wanted(&key) {
            found.extend(day(core, &key).await?);
        }
    }
    Ok(found)
}

async fn day(core: &Core, key: &Key) -> Result<Vec<ThreadRow>, StoreError> {
    match records::load::<Vec<ThreadRow>>(core.local.as_ref(), key).await {
        Ok(rows) => Ok(rows.map(|(_, rows)| rows).unwrap_or_default()),
        Err(error @ StoreError::Damaged { .. }) => {
            tracing::warn!(%error, "the threads of a day cannot be read");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}
