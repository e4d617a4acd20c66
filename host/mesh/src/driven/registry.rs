//! The driven agents of this machine, and what is asked of them.

use std::collections::BTreeSet;
use std::ops::RangeBounds;

use store::{Durability, Hold, Key, StoreError, Watch};

use super::permit::SpawnAsker;
use super::record::{DrivenEnd, DrivenId, DrivenRecord};
use super::request::{LONGEST_REQUEST, MOST_OUTCOMES, MOST_REQUESTS, Request, RequestKind, RequestOutcome};
use crate::Mesh;
use crate::allowances::DAY;
use crate::asks::LONGEST_PATIENCE;
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How many requests to stop it may wait behind as much text as may.
const SPARE_REQUESTS: usize = 8;

/// Why a driven agent could not be begun or found.
#[derive(Debug, thiserror::Error)]
pub enum DrivenError {
    /// A driven agent of that name is there.
    #[error("the name `{0}` belongs to a driven agent already")]
    Taken(AgentName),
    /// None has that name.
    #[error("no driven agent is named `{0}`")]
    Unknown(String),
    /// It has ended.
    #[error("`{name}` has ended: {why}")]
    Ended { name: String, why: String },
    /// The store failed.
    #[error("the record of a driven agent could not be read or written")]
    Store(#[from] StoreError),
}

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is no such agent.
    #[error(transparent)]
    Agent(#[from] DrivenError),
    /// The text is empty.
    #[error("the text is empty")]
    Empty,
    /// The text is too long.
    #[error("the text has {bytes} bytes, and {LONGEST_REQUEST} are the most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Too many wait already.
    #[error("{MOST_REQUESTS} requests wait for `{0}` already")]
    TooMany(String),
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> RequestError {
        RequestError::Agent(DrivenError::Store(error))
    }
}

impl Mesh {
    /// A new driven agent's id.
    pub fn new_driven_id(&self) -> DrivenId {
        DrivenId(self.core.new_id(self.core.machine.now()))
    }

    /// Keeps the record of a new driven agent. It is on disk when this returns.
    pub async fn begin_driven(&self, record: &DrivenRecord) -> Result<(), DrivenError> {
        let name = record.agent.name.as_str();
        let of_it = |other: &DrivenRecord| other.agent.name == name;
        if self.driven_agents().await?.iter().any(of_it) {
            let name = name.parse().map_err(|_| DrivenError::Unknown(name.to_owned()))?;
            return Err(DrivenError::Taken(name));
        }
        let key = keys::driven(record.id);
        let put = |_: Option<DrivenRecord>| (Next::Put(record.clone()), ());
        Ok(records::update(self.core.local.as_ref(), &key, Durability::Synced, put).await?)
    }

    /// The driven agents of this machine that have not ended, the oldest first. A record that cannot be read hides only
    /// itself. What this costs does not depend on how many have ended.
    pub async fn driven_agents(&self) -> Result<Vec<DrivenRecord>, StoreError> {
        let all = of_kind(&self.core, &keys::driven_agents(), |_| true).await?;
        let (live, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(|record| record.ended.is_none());
        for record in ended {
            put_aside(&self.core, &record).await?;
        }
        Ok(live)
    }

    /// The ids of what [`Mesh::driven_agents`] reads, also of those that it is about to put aside. Costs a look at a folder.
    pub async fn driven_ids(&self) -> Result<Vec<DrivenId>, StoreError> {
        let keys = self.core.local.list(&keys::driven_agents()).await?;
        Ok(keys.iter().filter_map(|key| key.leaf().parse().ok()).collect())
    }

    /// The ids of all that have a record, also of those that have ended. Costs a look at two folders.
    pub async fn known_driven_ids(&self) -> Result<BTreeSet<DrivenId>, StoreError> {
        // In this order, because one that is put aside in between is in both.
        let mut ids: BTreeSet<DrivenId> = self.driven_ids().await?.into_iter().collect();
        let ended = self.core.local.list(&keys::ended_driven()).await?;
        ids.extend(ended.iter().filter_map(|key| key.leaf().parse::<DrivenId>().ok()));
        Ok(ids)
    }

    /// Those that have ended within a week, the oldest first.
    pub async fn ended_driven_agents(&self) -> Result<Vec<DrivenRecord>, StoreError> {
        self.ended_driven_agents_made(..).await
    }

    /// Those of them whose ids were made at some time. No record of another is read.
    pub async fn ended_driven_agents_made(
        &self,
        when: impl RangeBounds<Instant> + Send + Sync,
    ) -> Result<Vec<DrivenRecord>, StoreError> {
        self.driven_agents().await?;
        of_kind(&self.core, &keys::ended_driven(), |id| when.contains(&id.made())).await
    }

    /// The records that decide whether a caller may have a further agent started: of the agents that have not ended, of
    /// those that began within a day, and of the first of each tree that a live agent or the caller is in. What this costs
    /// does not depend on how many ended earlier.
    pub async fn driven_agents_that_count(&self, asker: &SpawnAsker) -> Result<Vec<DrivenRecord>, StoreError> {
        // One that ends in between is in both, and not in neither.
        let mut records = self.driven_agents().await?;
        let roots: BTreeSet<DrivenId> = records.iter().chain(&asker.parent).map(|record| record.root).collect();
        // An agent that the user had to agree to has the id of the question. It begins within a day of their answer.
        let oldest = Instant(self.core.machine.now().0.saturating_sub(LONGEST_PATIENCE + 2 * DAY));
        let counts = |id: DrivenId| id.made() >= oldest || roots.contains(&id);
        records.extend(of_kind(&self.core, &keys::ended_driven(), counts).await?);
        let mut known = BTreeSet::new();
        records.retain(|record| known.insert(record.id));
        Ok(records)
    }

    /// One driven agent.
    pub async fn driven(&self, id: DrivenId) -> Result<Option<DrivenRecord>, StoreError> {
        for key in [keys::driven(id), keys::ended_driven_of(id)] {
            if let Some((_, record)) = records::load::<DrivenRecord>(self.core.local.as_ref(), &key).await? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The driven agent of an id, or of a name: the one that has not ended, else the last.
    pub async fn driven_named(&self, name: &str) -> Result<DrivenRecord, DrivenError> {
        if let Ok(id) = name.parse()
            && let Some(record) = self.driven(id).await?
        {
            return Ok(record);
        }
        let is_it = |record: &DrivenRecord| record.agent.name == name;
        if let Some(live) = self.driven_agents().await?.into_iter().find(is_it) {
            return Ok(live);
        }
        let ended = self.ended_driven_agents().await?.into_iter().rfind(is_it);
        ended.ok_or_else(|| DrivenError::Unknown(name.to_owned()))
    }

    /// Whether agents are to be driven: not after the user has stopped everything.
    pub async fn is_driving_wanted(&self) -> Result<bool, StoreError> {
        Ok(self.core.local.get(&keys::driving_off()).await?.is_none())
    }

    /// Notes whether agents are to be driven.
    pub async fn want_driving(&self, wanted: bool) -> Result<(), StoreError> {
        let decide = |old: Option<Instant>| match (wanted, old) {
            (true, Some(_)) => (Next::Remove, ()),
            (false, None) => (Next::Put(self.core.machine.now()), ()),
            (true, None) | (false, Some(_)) => (Next::Keep, ()),
        };
        records::update(self.core.local.as_ref(), &keys::driving_off(), Durability::Process, decide).await
    }

    /// Changes the record of a driven agent, and returns it as it is then; none if it is gone.
    pub async fn change_driven(
        &self,
        id: DrivenId,
        mut change: impl FnMut(&mut DrivenRecord) + Send,
    ) -> Result<Option<DrivenRecord>, StoreError> {
        let decide = |old: Option<DrivenRecord>| match old {
            None => (Next::Keep, None),
            Some(old) => {
                let mut record = old.clone();
                change(&mut record);
                let next = if record == old { Next::Keep } else { Next::Put(record.clone()) };
                (next, Some(record))
            }
        };
        records::update(self.core.local.as_ref(), &keys::driven(id), Durability::Process, decide).await
    }

    /// Asks something of a driven agent. It is kept until it is done, whatever becomes of this process.
    pub async fn ask_driven(
        &self,
        name: &str,
        kind: RequestKind,
        by: Option<&AgentName>,
    ) -> Result<(DrivenRecord, Request), RequestError> {
        self.ask_driven_with(name, (kind, None), by, |_| {}).await
    }

    /// The same, with a word on how things stand for its turn, and with what else changes in its record, in one write.
    pub async fn ask_driven_with(
        &self,
        name: &str,
        (kind, context): (RequestKind, Option<String>),
        by: Option<&AgentName>,
        mut also: impl FnMut(&mut DrivenRecord) + Send,
    ) -> Result<(DrivenRecord, Request), RequestError> {
        if let RequestKind::Prompt { text } | RequestKind::Steer { text } = &kind {
            match text.len() {
                _ if text.trim().is_empty() => return Err(RequestError::Empty),
                bytes if bytes > LONGEST_REQUEST => return Err(RequestError::TooLong { bytes }),
                _ => {}
            }
        }
        let record = self.driven_named(name).await?;
        let at = self.core.machine.now();
        let request = Request { id: self.new_uuid(), kind, by: by.cloned(), at, context, may_repeat: false };
        let mut full = false;
        let changed = self
            .change_driven(record.id, |record| {
                // However much waits, it can be stopped.
                let is_text = matches!(request.kind, RequestKind::Prompt { .. } | RequestKind::Steer { .. });
                let most = if is_text { MOST_REQUESTS } else { MOST_REQUESTS + SPARE_REQUESTS };
                full = record.requests.len() >= most;
                if !full && record.ended.is_none() {
                    record.requests.push(request.clone());
                    also(record);
                }
            })
            .await?;
        match changed {
            // It has ended, and was put aside.
            None => Err(match self.driven(record.id).await?.and_then(|record| record.ended) {
                Some(end) => DrivenError::Ended { name: name.to_owned(), why: end.why },
                None => DrivenError::Unknown(name.to_owned()),
            }
            .into()),
            Some(DrivenRecord { ended: Some(DrivenEnd { why, .. }), .. }) => {
                Err(DrivenError::Ended { name: name.to_owned(), why }.into())
            }
            Some(_) if full => Err(RequestError::TooMany(name.to_owned())),
            Some(record) => Ok((record, request)),
        }
    }

    /// Waits until a request is done, or its agent has ended. Cancel-safe.
    pub async fn request_outcome(&self, id: DrivenId, request: &str) -> Result<RequestOutcome, DrivenError> {
        // Watch before reading, so that no change is missed in between.
        let mut watch = self.watch_driven().await?;
        loop {
            let Some(record) = self.driven(id).await? else {
                return Err(DrivenError::Unknown(id.to_string()));
            };
            if let Some(outcome) = record.outcomes.iter().find(|outcome| outcome.id == request) {
                return Ok(outcome.clone());
            }
            if let Some(end) = record.ended {
                return Err(DrivenError::Ended { name: record.agent.name, why: end.why });
            }
            watch.changed().await?;
        }
    }

    /// Watches for changes of any driven agent's record.
    pub async fn watch_driven(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.core.local.watch(&[keys::driven_agents(), keys::ended_driven()]).await
    }

    /// Watches the record of one, and those of the agents that it hangs on: the one above it and the first of its tree.
    pub async fn watch_driven_agent(&self, record: &DrivenRecord) -> Result<Box<dyn Watch>, StoreError> {
        let of: Vec<Key> =
            [Some(record.id), record.parent, Some(record.root)].into_iter().flatten().map(keys::driven).collect();
        self.core.local.watch(&of).await
    }

    /// The right to drive the agents of this data folder, until dropped; none if another process has it.
    pub async fn hold_driving(&self) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.core.local.hold(&keys::driving()).await
    }
}

impl DrivenRecord {
    /// Notes what became of a request.
    pub fn done(&mut self, id: &str, failed: Option<String>, note: Option<String>) {
        self.requests.retain(|request| request.id != id);
        if self.outcomes.iter().any(|outcome| outcome.id == id) {
            return;
        }
        self.outcomes.push(RequestOutcome { id: id.to_owned(), failed, note });
        let surplus = self.outcomes.len().saturating_sub(MOST_OUTCOMES);
        self.outcomes.drain(..surplus);
    }
}

/// The records of a kind whose ids are `wanted`.
async fn of_kind(
    core: &Core,
    kind: &Key,
    wanted: impl Fn(DrivenId) -> bool + Send + Sync,
) -> Result<Vec<DrivenRecord>, StoreError> {
    let mut found = Vec::new();
    for key in core.local.list(kind).await? {
        if key.leaf().parse::<DrivenId>().is_ok_and(|id| !wanted(id)) {
            continue;
        }
        match records::load::<DrivenRecord>(core.local.as_ref(), &key).await {
            Ok(record) => found.extend(record.map(|(_, record)| record)),
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(%error, "the record of a driven agent cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    found.sort_by_key(|record| record.id);
    Ok(found)
}

/// Moves the record of an agent that has ended to the others. If this is killed half-way, the next does it again.
async fn put_aside(core: &Core, record: &DrivenRecord) -> Result<(), StoreError> {
    let put = |_: Option<DrivenRecord>| (Next::Put(record.clone()), ());
    records::update(core.local.as_ref(), &keys::ended_driven_of(record.id), Durability::Process, put).await?;
    remove(core, &keys::driven(record.id)).await
}

async fn remove(core: &Core, key: &Key) -> Result<(), StoreError> {
    let gone = |old: Option<DrivenRecord>| (if old.is_some() { Next::Remove } else { Next::Keep }, ());
    records::update(core.local.as_ref(), key, Durability::Process, gone).await
}
