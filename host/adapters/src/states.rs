//! The condition and the faults of each adapter, for `plugin list` and `doctor`. Loads nothing.

use std::path::PathBuf;

use crate::adapters::Adapters;
use crate::cache::Compilation;
use crate::digest::Digest;
use crate::faults::{Counters, noted};
use crate::grants::Grant;
use crate::sources::{Candidate, Problem, Source};

/// The condition of an adapter's component in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It is installed and was disabled: it is not used.
    Disabled,
    /// It was not needed yet.
    Unloaded,
    /// It answers calls.
    Loaded(Compilation),
    /// It answers calls in an older version, because the file's present one cannot be loaded.
    Outdated(String),
    /// It cannot be loaded.
    Broken(String),
}

/// One adapter, for `plugin list` and `doctor`.
#[derive(Clone, Debug)]
pub struct AdapterState {
    /// What people type.
    pub name: String,
    /// What people read.
    pub title: String,
    /// The adapter's own version.
    pub version: String,
    /// Where it comes from.
    pub source: Source,
    /// What consent is pinned to.
    pub digest: Digest,
    /// What it asks for, and whether that is given.
    pub grants: Vec<Grant>,
    /// What became of its component.
    pub condition: Condition,
    /// Its faults.
    pub counters: Counters,
}

/// A file in a plugin folder that is not used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The file, or the folder.
    pub path: PathBuf,
    /// Why, in one sentence.
    pub why: String,
}

impl Adapters {
    /// Every adapter with its condition, and every plugin file that is not used.
    pub async fn states(&self) -> (Vec<AdapterState>, Vec<Unused>) {
        let (candidates, problems) = self.known();
        let mut states = Vec::new();
        for candidate in candidates {
            states.push(self.state(&candidate).await);
        }
        // The problems of installed adapters are listed already.
        for (record, candidate) in self.sources.all_installed(&mut Vec::new()) {
            if !record.is_enabled() {
                let state = self.state(&candidate).await;
                states.push(AdapterState { condition: Condition::Disabled, ..state });
            }
        }
        states.sort_by(|one, other| one.name.cmp(&other.name));
        (states, problems.into_iter().map(|Problem { path, why }| Unused { path, why }).collect())
    }

    async fn state(&self, candidate: &Candidate) -> AdapterState {
        let name = candidate.manifest.name.clone();
        let slot = self.slot(&name);
        let condition = {
            let loaded = slot.loaded.lock().await;
            match (&loaded.current, &loaded.refused) {
                (Some(_), Some((_, why))) => Condition::Outdated(why.clone()),
                (Some((_, adapter)), None) => Condition::Loaded(adapter.compilation()),
                (None, Some((_, why))) => Condition::Broken(why.clone()),
                (None, None) => Condition::Unloaded,
            }
        };
        // What cannot be read is not worth a list without the rest.
        let noted = noted(self.settings.store.as_ref(), &name).await.unwrap_or_default();
        let now = self.settings.machine.now();
        let counters = Counters {
            calls: slot.faults.calls(),
            faults: noted.faults,
            last_fault: noted.last,
            paused_until: noted.paused_until.filter(|until| now < *until),
        };
        AdapterState {
            title: candidate.manifest.title.clone(),
            version: candidate.manifest.version.clone(),
            source: candidate.source.clone(),
            digest: candidate.digest,
            grants: self.grants(candidate).list(),
            condition,
            counters,
            name,
        }
    }
}
