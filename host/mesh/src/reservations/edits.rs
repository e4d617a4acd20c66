//! Files about to be written: which other agents hold them, what the editor is told, and automatic reservations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::path::Path;

use store::{Durability, StoreError};

use crate::agents;
use crate::agents::Presence;
use crate::agents::presence;
use crate::agents::presence::span;
use crate::core::Core;
use crate::messages::envelope::{one_line, timestamp};
use crate::names::AgentName;
use crate::ports::harness::Reading;
use crate::ports::machine::Instant;
use crate::reservations::glob::{Glob, Literally};
use crate::reservations::repository;
use crate::reservations::repository::{Checkout, PathKind, Repository};
use crate::reservations::reserve;
use crate::reservations::{Conflict, Ttl};
use crate::sessions::record;
use crate::sessions::{Principal, SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// What happens when an agent writes a file that another agent holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditMode {
    /// The edit goes on, and the agent is told who holds the file.
    Advise,
    /// The edit is refused.
    #[default]
    Enforce,
}

impl EditMode {
    /// The word that users write.
    pub fn as_str(self) -> &'static str {
        match self {
            EditMode::Advise => "advise",
            EditMode::Enforce => "enforce",
        }
    }
}

/// A repository's rules for edits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EditRules {
    /// What happens when an agent writes a file that another agent holds.
    pub mode: EditMode,
    /// For how long a file is reserved for the agent that writes it; none if it is not.
    pub auto_reserve: Option<Ttl>,
}

/// The reason of an automatic reservation.
pub const AUTO_REASON: &str = "auto: it is being edited";
/// The longest text about edits, in bytes: it must fit next to a harness's own text.
const LONGEST_TEXT: usize = 2_000;

/// The verdict on a hook's edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EditAdvice {
    /// Why the edit is refused.
    pub(crate) refusal: Option<String>,
    /// Advice beside an edit that goes on.
    pub(crate) advice: Option<String>,
}

#[derive(Clone, Debug)]
struct FileEdit {
    repository: Repository,
    pattern: Glob,
}

pub(crate) async fn held_by_others(
    core: &Core,
    caller: &Principal,
    repository: &Repository,
    paths: &[Glob],
) -> Result<Vec<Conflict>, StoreError> {
    let mut editors: BTreeSet<AgentName> = caller.agent().cloned().into_iter().collect();
    if let Some(session) = caller.session() {
        editors.extend(self::editors(core, session).await?);
    }
    held_from(core, &editors, repository, paths).await
}

/// Judges the edits of a hook. An error refuses nothing.
pub(crate) async fn judge_edits(core: &Core, reading: &Reading, speaker: Option<&SessionRef>) -> EditAdvice {
    if reading.edits.is_empty() {
        return EditAdvice::default();
    }
    match look_at_edits(core, reading, speaker).await {
        Ok(verdict) => verdict,
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "reservations could not be looked at; the edit goes on");
            EditAdvice::default()
        }
    }
}

async fn look_at_edits(core: &Core, reading: &Reading, speaker: Option<&SessionRef>) -> Result<EditAdvice, StoreError> {
    let workdir = reading.speaker.as_ref().map_or("", |session| session.workdir.as_str());
    let editors = match speaker {
        Some(session) => self::editors(core, session).await?,
        None => Vec::new(),
    };
    // The session's own agent comes first, its root session's after it.
    let (me, editors) = (editors.first().cloned(), editors.into_iter().collect::<BTreeSet<_>>());
    let mut held: Vec<Conflict> = Vec::new();
    let mut own: BTreeMap<Repository, Vec<Glob>> = BTreeMap::new();
    for (repository, patterns) in written(core, &reading.edits, workdir, &mut own) {
        held.extend(held_from(core, &editors, &repository, &patterns).await?);
    }
    if held.is_empty()
        && let (Some(ttl), Some(agent)) = (core.limits.edits.auto_reserve, &me)
    {
        // Another agent may have reserved a file since it was looked at, as when both edit it at once.
        held = reserve_in_passing(core, agent, (speaker, &editors), own, ttl).await?;
    }
    if held.is_empty() {
        return Ok(EditAdvice::default());
    }
    let kind = match core.limits.edits.mode {
        EditMode::Advise => "edit-advised",
        EditMode::Enforce => "edit-refused",
    };
    for conflict in &held {
        let details = serde_json::json!({
            "agent": me, "from": conflict.held.owner, "pattern": conflict.held.pattern, "path": conflict.at,
        });
        core.event_log.note(kind, details).await;
    }
    let text = worded(core.limits.edits.mode, &held, me.as_ref(), core.machine.now());
    Ok(match core.limits.edits.mode {
        EditMode::Advise => EditAdvice { advice: Some(text), refusal: None },
        EditMode::Enforce => EditAdvice { refusal: Some(text), advice: None },
    })
}

/// The agents for whom a session edits: its own, and its root session's.
async fn editors(core: &Core, session: &SessionRef) -> Result<Vec<AgentName>, StoreError> {
    let Some(record) = record::current_record(core, session).await? else { return Ok(Vec::new()) };
    let mut editors: Vec<AgentName> = record.agent.into_iter().collect();
    if let Some(parent) = record.parent {
        let parent = SessionRef { harness: session.harness.clone(), id: parent };
        editors.extend(record::agent_of(core, &parent).await?);
    }
    Ok(editors)
}

async fn held_from(
    core: &Core,
    editors: &BTreeSet<AgentName>,
    repository: &Repository,
    paths: &[Glob],
) -> Result<Vec<Conflict>, StoreError> {
    let Some(ledger) = reserve::ledger(core, repository).await? else { return Ok(Vec::new()) };
    without_gone(core, ledger.exclusive(editors, paths, core.machine.now())).await
}

/// The conflicts with agents that can still be asked.
async fn without_gone(core: &Core, mut held: Vec<Conflict>) -> Result<Vec<Conflict>, StoreError> {
    let mut gone: BTreeMap<AgentName, bool> = BTreeMap::new();
    for conflict in &held {
        let owner = &conflict.held.owner;
        if !gone.contains_key(owner) {
            let is_gone = self::is_gone(core, owner).await?;
            gone.insert(owner.clone(), is_gone);
        }
    }
    held.retain(|conflict| gone.get(&conflict.held.owner) != Some(&true));
    Ok(held)
}

/// Whether the owner cannot be asked any more. Silence alone is no proof of that.
async fn is_gone(core: &Core, owner: &AgentName) -> Result<bool, StoreError> {
    let Some(agent) = agents::list::load_agent(core, owner).await? else { return Ok(true) };
    Ok(match presence::presence(core, &agent).await? {
        Presence::Offline => true,
        Presence::Busy | Presence::NeedsInput | Presence::Idle | Presence::Away => false,
    })
}

/// The patterns of the files about to be written, by repository. Files that the editor itself would reserve are added
/// to `own`: under the repository of its folder if that contains them, else under the file's.
fn written(
    core: &Core,
    edits: &[String],
    workdir: &str,
    own: &mut BTreeMap<Repository, Vec<Glob>>,
) -> BTreeMap<Repository, Vec<Glob>> {
    let here = (!workdir.is_empty()).then(|| repository::known_everywhere(core, Path::new(workdir)).ok()).flatten();
    let mut all: BTreeMap<Repository, Vec<Glob>> = BTreeMap::new();
    for edit in edits {
        let path = Path::new(workdir).join(edit);
        match self::places(core, &path, here.as_ref()) {
            Ok(places) => {
                if let Some(FileEdit { repository, pattern }) = places.first().cloned() {
                    own.entry(repository).or_default().push(pattern);
                }
                for FileEdit { repository, pattern } in places {
                    all.entry(repository).or_default().push(pattern);
                }
            }
            Err(error) => tracing::warn!(path = %path.display(), %error, "the repository of this path is unknown"),
        }
    }
    all
}

/// The repositories that contain a file: that of the editor's folder, and the file's own if it is another one, such
/// as a submodule.
fn places(core: &Core, path: &Path, here: Option<&Checkout>) -> io::Result<Vec<FileEdit>> {
    let resolved = core.machine.resolve(path)?;
    let its_own = resolved.path.parent().and_then(|folder| repository::known_around(core, folder));
    // A worktree may be inside the working copy of the editor's folder: then the worktree's own paths count.
    let here = here.filter(|here| its_own.as_ref().is_none_or(|own| own.repository != here.repository));
    let mut places: Vec<FileEdit> = Vec::new();
    for checkout in here.into_iter().chain(its_own.as_ref()) {
        let Ok(within) = resolved.path.strip_prefix(&checkout.top) else { continue };
        let within = within.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        let pattern = match resolved.found {
            PathKind::Folder => Glob::of_path(within, Literally::WhatIsIn),
            PathKind::Nothing | PathKind::File => Glob::of_file(within),
        };
        let pattern = pattern.map_err(io::Error::other)?;
        places.push(FileEdit { repository: checkout.repository.clone(), pattern });
    }
    Ok(places)
}

/// Reserves exactly these files for an agent that is about to write them, unless another agent has a reservation there.
/// Returns the exclusive ones among those.
async fn reserve_in_passing(
    core: &Core,
    agent: &AgentName,
    (session, editors): (Option<&SessionRef>, &BTreeSet<AgentName>),
    files: BTreeMap<Repository, Vec<Glob>>,
    ttl: Ttl,
) -> Result<Vec<Conflict>, StoreError> {
    let mut held = Vec::new();
    for (repository, patterns) in files {
        let patterns = patterns.into_iter().filter(|pattern| !pattern.is_too_long());
        let ids: Vec<_> = patterns.map(|pattern| (core.new_id(core.machine.now()), pattern)).collect();
        let paths: Vec<Glob> = ids.iter().map(|(_, pattern)| pattern.clone()).collect();
        let (reserved, conflicts) = reserve::change_ledger(core, &repository, |ledger| {
            let now = core.machine.now();
            let reserved = ledger.reserve_in_passing(agent, session, &ids, ttl, now);
            (!reserved.is_empty(), (reserved, ledger.exclusive(editors, &paths, now)))
        })
        .await?;
        held.extend(without_gone(core, conflicts).await?);
        let new: Vec<&Glob> = reserved.iter().filter(|one| one.is_new).map(|one| &one.pattern).collect();
        if !new.is_empty() {
            let details = serde_json::json!({
                "agent": agent, "repository": repository, "patterns": new, "mode": "exclusive", "auto": true,
            });
            core.event_log.note("reserved", details).await;
        }
    }
    Ok(held)
}

/// Stores advice for the next answer that may show it to the session. A subagent that has not registered is shown
/// nothing, so its root session is told.
pub(crate) async fn advise(core: &Core, session: &SessionRef, advice: &str) -> Result<(), StoreError> {
    let reader = match record::current_record(core, session).await? {
        Some(SessionRecord { agent: None, parent: Some(parent), .. }) => {
            SessionRef { harness: session.harness.clone(), id: parent }
        }
        Some(record) => record.session,
        None => return Ok(()),
    };
    record::change_session(core, &reader, |record| record.advice = Some(advice.to_owned())).await
}

/// Takes the advice that is stored for a session, if there is any and it fits.
pub(crate) async fn take_advice(
    core: &Core,
    session: &SessionRef,
    max_bytes: usize,
) -> Result<Option<String>, StoreError> {
    let take = |old: Option<SessionRecord>| match old {
        Some(mut record) if record.advice.as_ref().is_some_and(|advice| advice.len() <= max_bytes) => {
            let advice = record.advice.take();
            (Next::Put(record), advice)
        }
        Some(_) | None => (Next::Keep, None),
    };
    records::update(core.local.as_ref(), &keys::session(session), Durability::Process, take).await
}

/// The text for the editor. A reservation's reason was written by a peer: it stands on one line, in quotes that it
/// cannot close.
fn worded(mode: EditMode, held: &[Conflict], me: Option<&AgentName>, now: Instant) -> String {
    let mut text = match mode {
        EditMode::Advise => {
            "relay-mesh: another agent has reserved what you have just written. It was not refused, \
             because this project only advises.\n"
        }
        EditMode::Enforce => "relay-mesh refused this edit: another agent has reserved what it would write.\n",
    }
    .to_owned();
    let mut owners: Vec<&AgentName> = Vec::new();
    for (at, conflict) in held.iter().enumerate() {
        let reservation = &conflict.held;
        if !owners.contains(&&reservation.owner) {
            owners.push(&reservation.owner);
        }
        if text.len() > LONGEST_TEXT {
            // Writing to a string does not fail.
            let _ = writeln!(text, "- and {} more", held.len() - at);
            break;
        }
        let because = reservation.reason.as_deref().map_or_else(String::new, |reason| format!(": {}", quoted(reason)));
        let _ = writeln!(
            text,
            "- {} is held by {} through {} ({}, {} left, until {}){because}",
            one_line(&conflict.at),
            reservation.owner,
            one_line(reservation.pattern.as_str()),
            reservation.mode.as_str(),
            span(reservation.left(now)),
            timestamp(reservation.expires),
        );
    }
    let owners: Vec<String> = owners.iter().take(5).map(ToString::to_string).collect();
    let (owners, join) = (owners.join(", "), if me.is_none() { "register_agent, then " } else { "" });
    let _ = match mode {
        EditMode::Advise => write!(text, "Tell {owners} what you changed and why ({join}send_message)."),
        EditMode::Enforce => write!(
            text,
            "Ask {owners} to release it ({join}send_message), do something else meanwhile, or wait until it lapses. \
             Do not write it by other means."
        ),
    };
    text
}

/// A peer's text in quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('"', "'"))
}
