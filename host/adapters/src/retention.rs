//! Deletes what belonged to adapters that are gone: their compiled code, and what they noted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use mesh::DryRun;
use mesh::ports::data_files::Amount;
use store::{Durability, StoreError, SwapError};

use crate::adapters::Adapters;
use crate::host_functions::state;

/// What was deleted of adapters that are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftByAdapters {
    /// Files of compiled code.
    pub compiled: Amount,
    /// Values that adapters noted, and records of their faults.
    pub notes: Amount,
}

impl Adapters {
    /// Deletes compiled code of other adapters and of other versions of this program that was not used for `keep`, and
    /// values of adapters that this program does not know and whose files in `data` are that old. Another data folder
    /// may have other adapters and share the code; it then compiles once more.
    pub async fn clean_up(
        &self,
        data: &Path,
        (keep, now): (Duration, SystemTime),
        dry_run: DryRun,
    ) -> Result<LeftByAdapters, StoreError> {
        let mut problems = Vec::new();
        let installed = self.sources.all_installed(&mut problems);
        let (known, more) = self.known();
        problems.extend(more);
        // What cannot be read may be an adapter that is only damaged: then nothing is known to be gone.
        if !problems.is_empty() {
            return Ok(LeftByAdapters::default());
        }
        let candidates: Vec<_> =
            known.into_iter().chain(installed.into_iter().map(|(_, candidate)| candidate)).collect();
        let names: BTreeSet<&str> = candidates.iter().map(|candidate| candidate.manifest.name.as_str()).collect();
        let digests: BTreeSet<String> = candidates.iter().map(|candidate| candidate.component.to_string()).collect();
        Ok(LeftByAdapters {
            compiled: self.clean_up_code(&digests, (keep, now), dry_run),
            notes: self.clean_up_notes(&names, data, (keep, now), dry_run).await?,
        })
    }

    fn clean_up_code(
        &self,
        digests: &BTreeSet<String>,
        (keep, now): (Duration, SystemTime),
        dry_run: DryRun,
    ) -> Amount {
        let mut amount = Amount::default();
        let engine = self.machinery().map(|machinery| format!("{:016x}", machinery.fingerprint)).ok();
        let caches = self.settings.caches();
        let entries = caches.iter().filter_map(|cache| fs::read_dir(cache).ok()).flatten().flatten();
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let Some((stem, _)) = name.to_str().and_then(|name| name.rsplit_once('.')) else { continue };
            let Some((digest, of)) = stem.split_once('-') else { continue };
            let Ok(found) = entry.metadata() else { continue };
            let used = [found.modified(), found.accessed()].into_iter().flatten().max();
            let is_old = used.is_some_and(|used| now.duration_since(used).is_ok_and(|age| age >= keep));
            let is_ours = digests.contains(digest) && engine.as_deref().is_none_or(|engine| engine == of);
            if is_ours || !is_old {
                continue;
            }
            let outcome = match dry_run {
                DryRun::Yes => Ok(()),
                DryRun::No => fs::remove_file(path),
            };
            if outcome.is_ok() {
                amount.add(found.len());
            }
        }
        amount
    }

    async fn clean_up_notes(
        &self,
        names: &BTreeSet<&str>,
        data: &Path,
        (keep, now): (Duration, SystemTime),
        dry_run: DryRun,
    ) -> Result<Amount, StoreError> {
        let mut amount = Amount::default();
        let store = self.settings.store.as_ref();
        let Ok(all) = state::all_homes() else { return Ok(amount) };
        for key in store.list(&all).await? {
            let adapter = key.segments().nth(1).map(store::Key::decode).unwrap_or_default();
            if names.contains(adapter.as_ref()) {
                continue;
            }
            let file = data.join(format!("{key}.json"));
            let Ok(found) = fs::metadata(&file) else { continue };
            let changed = found.modified().ok();
            let is_old = changed.is_some_and(|then| now.duration_since(then).is_ok_and(|age| age >= keep));
            let Some(value) = store.get(&key).await?.filter(|_| is_old) else { continue };
            let outcome = match dry_run {
                DryRun::Yes => Ok(None),
                DryRun::No => store.swap(&key, Some(value.revision), None, Durability::Process).await,
            };
            match outcome {
                Ok(_) => amount.add(found.len()),
                Err(SwapError::Changed { .. }) => {}
                Err(SwapError::Store(error)) => return Err(error),
            }
        }
        Ok(amount)
    }
}
