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
    /// It is installed, but disabled.
    Disabled,
    /// It has not been needed yet.
    Unloaded,
    /// It answers calls.
    Loaded(Compilation),
    /// It answers calls in an older version, because the current one cannot be loaded.
    Outdated(String),
    /// It cannot be loaded.
    Broken(String),
}

/// One adapter, for `plugin list` and `doctor`.
#[derive(Clone, Debug)]
pub struct AdapterState {
    /// The name that users type.
    pub name: String,
    /// The name for display.
    pub title: String,
    /// The adapter's own version.
    pub version: String,
    /// Where it comes from.
    pub source: Source,
    /// Digest of component and manifest: consent is pinned to it.
    pub digest: Digest,
    /// The grants that it requests, and whether they are given.
    pub grants: Vec<Grant>,
    /// The condition of its component.
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
        // Unreadable faults are left out, so that the list is still shown.
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
