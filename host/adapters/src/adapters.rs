//! All adapters that a process knows, as the mesh's [`Harnesses`]. Nothing is read, compiled or run before it is
//! needed: a hook loads only its own adapter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use mesh::ports::harness::{Harness, HarnessError, Harnesses};
use mesh::ports::machine::Machine;
use mesh::sessions::Caller;
use store::Store;
use tokio::sync::Mutex as AsyncMutex;

use crate::adapter::Adapter;
use crate::compiling::Compiler;
use crate::engine::Machinery;
use crate::faults::Faults;
use crate::foreign_settings::SettingsFolder;
use crate::grants::{Consents, Granted, Grants};
use crate::host_functions;
use crate::installed::{InstalledAdapters, Record};
use crate::loading::Version;
use crate::manifest::{Manifest, Requests};
use crate::matching;
use crate::sources::{Candidate, Problem, Source, Sources};
use crate::template::Surroundings;

pub struct Settings {
    /// This machine's own store: adapters' state and faults, which no other machine sees.
    pub store: Arc<dyn Store>,
    pub machine: Arc<dyn Machine>,
    /// The folder of compiled components. Created on demand, and safe to delete.
    pub cache: PathBuf,
    /// The folder that is used if nothing can be kept in that one.
    pub cache_aside: Option<PathBuf>,
    /// Who compiles them.
    pub compiler: Compiler,
    /// The folder of the install journals. Created on demand.
    pub installs: PathBuf,
    /// The folder in which all processes together count how often adapters use host functions. None if each counts for
    /// itself, as each does for built-in adapters. Created on demand.
    pub rates: Option<PathBuf>,
    /// Adapters that the user installed. None if this program manages none.
    pub installed: Option<Arc<InstalledAdapters>>,
    /// Folders with further adapters that are not installed.
    pub plugin_folders: Vec<PathBuf>,
    /// Home, project and variables, which fill the paths of manifests.
    pub surroundings: Surroundings,
    /// What the user granted to adapters that are not built in.
    pub consents: Arc<dyn Consents>,
    /// Limits of each host function.
    pub host_functions: host_functions::Settings,
}

impl Settings {
    /// The folders of compiled components, in the order in which they are tried.
    pub(crate) fn caches(&self) -> Vec<PathBuf> {
        let aside = self.cache_aside.iter().filter(|aside| **aside != self.cache);
        std::iter::once(&self.cache).chain(aside).cloned().collect()
    }
}

/// All adapters that this process knows.
pub struct Adapters {
    pub(crate) settings: Settings,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) sources: Sources,
    pub(crate) machinery: OnceLock<Result<Arc<Machinery>, String>>,
    // A std mutex: nothing is awaited while it is held.
    slots: Mutex<BTreeMap<String, Arc<Slot>>>,
}

/// The adapter of one name, in any version.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) faults: Arc<Faults>,
    /// Held while a version is loaded, so that concurrent callers load it once.
    pub(crate) loaded: AsyncMutex<Loaded>,
}

#[derive(Default)]
pub(crate) struct Loaded {
    /// The version that answers calls.
    pub(crate) current: Option<(Version, Arc<Adapter>)>,
    /// A later version that could not be loaded, and why. It is not tried again.
    pub(crate) refused: Option<(Version, String)>,
}

impl Adapters {
    /// Creates the set without loading anything.
    pub fn new(settings: Settings) -> Adapters {
        Adapters {
            sources: Sources::new(settings.installed.clone(), settings.plugin_folders.clone()),
            surroundings: Arc::new(settings.surroundings.clone()),
            machinery: OnceLock::new(),
            slots: Mutex::default(),
            settings,
        }
    }

    /// Knows only the adapters in the plugin folders, as if nothing were built in. The conformance kit uses it, because
    /// it also tests components that have the name of a built-in adapter.
    pub fn without_built_in(settings: Settings) -> Adapters {
        Adapters { sources: Sources::without_built_in(settings.plugin_folders.clone()), ..Adapters::new(settings) }
    }

    /// Loads an adapter by name or alias. None if there is no such adapter.
    pub async fn adapter(&self, name: &str) -> Result<Option<Arc<Adapter>>, HarnessError> {
        match self.resolve(name)? {
            Some(candidate) => self.load(&candidate).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same, also if the user has disabled it: what it has set up can still be taken out.
    pub async fn adapter_even_disabled(&self, name: &str) -> Result<Option<Arc<Adapter>>, HarnessError> {
        match self.resolve_even_disabled(name)? {
            Some(candidate) => self.load(&candidate).await.map(Some),
            None => Ok(None),
        }
    }

    fn resolve_even_disabled(&self, name: &str) -> Result<Option<Arc<Candidate>>, HarnessError> {
        match self.resolve(name)? {
            Some(found) => Ok(Some(found)),
            None => self.resolve_any(name),
        }
    }

    /// An adapter's manifest and grants, without loading it; also of one that is disabled.
    pub fn describe(&self, name: &str) -> Result<Option<(Manifest, Grants)>, HarnessError> {
        Ok(self.resolve_even_disabled(name)?.map(|candidate| (candidate.manifest.clone(), self.grants(&candidate))))
    }

    /// Whether the adapter of this name is part of the program, so that its words were reviewed.
    pub fn is_built_in(&self, name: &str) -> bool {
        let found = self.resolve_even_disabled(name).ok().flatten();
        found.is_some_and(|candidate| candidate.source == Source::BuiltIn)
    }

    /// Home, project and variables, which fill the paths of manifests.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    pub(crate) fn installs(&self) -> &Path {
        &self.settings.installs
    }

    /// The adapters that the user installed.
    pub fn installed(&self) -> Option<&InstalledAdapters> {
        self.settings.installed.as_deref()
    }

    /// The adapter that is used for each name, and the problems of those that are not.
    pub(crate) fn known(&self) -> (Vec<Arc<Candidate>>, Vec<Problem>) {
        let (others, mut problems) = self.sources.others();
        let mut chosen: BTreeMap<String, Arc<Candidate>> = BTreeMap::new();
        for other in others {
            let name = other.manifest.name.clone();
            match self.takes(&other, chosen.get(&name)) {
                Ok(true) => {
                    chosen.insert(name, other);
                }
                Ok(false) => {}
                Err(why) => {
                    let path = other.source.file().map(Path::to_owned).unwrap_or_default();
                    problems.push(Problem { path, why });
                }
            }
        }
        for name in self.sources.own_names() {
            if chosen.contains_key(name) {
                continue;
            }
            match self.sources.built_in(name) {
                Some(Ok(candidate)) => {
                    chosen.insert(name.to_owned(), candidate);
                }
                Some(Err(why)) => problems.push(Problem { path: PathBuf::from(name), why }),
                None => {}
            }
        }
        (chosen.into_values().collect(), problems)
    }

    /// Whether an adapter gets the names in its manifest. An error says why it is not used.
    fn takes(&self, other: &Candidate, holder: Option<&Arc<Candidate>>) -> Result<bool, String> {
        let name = &other.manifest.name;
        if let Some(holder) = holder {
            return Err(match &holder.source {
                Source::Installed(_) => format!(
                    "the name `{name}` belongs to an installed adapter; `relay-mesh plugin disable {name}` makes \
                     room for this one"
                ),
                Source::BuiltIn | Source::Plugin(_) => {
                    format!("the name `{name}` is already taken by {:?}", holder.source)
                }
            });
        }
        // The same component as the built-in one: `--plugins ./plugins` in our own repository.
        if matches!(other.source, Source::Plugin(_))
            && let Some(Ok(own)) = self.sources.built_in(name)
            && own.component == other.component
        {
            return Ok(false);
        }
        match self.sources.built_in_claims(&other.manifest).first() {
            Some((claimed, owner)) if !self.settings.consents.given(name, &other.digest).replaces_built_in => {
                Err(format!(
                    "the name `{claimed}` belongs to the built-in adapter `{owner}`; to put this one in its place run \
                     `relay-mesh plugin grant {name} replaces-built-in`"
                ))
            }
            Some(_) | None => Ok(true),
        }
    }

    /// The adapter with this name or alias.
    pub(crate) fn resolve(&self, name: &str) -> Result<Option<Arc<Candidate>>, HarnessError> {
        if let Some(found) = self.sources.by_own_name(name, self.settings.consents.as_ref()) {
            return found.map(Some).map_err(HarnessError::Failed);
        }
        // An alias, or a name that several manifests have: all manifests together decide whose it is.
        let (candidates, _) = self.known();
        let named = |candidate: &&Arc<Candidate>| candidate.manifest.name == name;
        let aliased = |candidate: &&Arc<Candidate>| candidate.manifest.aliases.iter().any(|alias| alias == name);
        // An adapter that took over a built-in one's alias did so with the user's consent.
        let others = candidates.iter().filter(|candidate| candidate.source != Source::BuiltIn);
        Ok(candidates
            .iter()
            .find(named)
            .or_else(|| others.clone().find(aliased))
            .or_else(|| candidates.iter().find(aliased))
            .cloned())
    }

    pub(crate) fn grants(&self, candidate: &Candidate) -> Grants {
        let requests = self.requests_beside_others(&candidate.manifest);
        self.grants_of(candidate, requests, self.given(candidate))
    }

    /// Grants that know whose settings lie around.
    pub(crate) fn grants_of(&self, candidate: &Candidate, requests: Requests, given: Granted) -> Grants {
        let grants = Grants::new(&candidate.manifest.name, requests, given);
        match candidate.source {
            Source::BuiltIn => grants,
            Source::Installed(_) | Source::Plugin(_) => grants.beside(self.earlier_settings(&candidate.manifest.name)),
        }
    }

    /// The settings of the adapters that were installed before this one.
    pub(crate) fn earlier_settings(&self, name: &str) -> Arc<[SettingsFolder]> {
        let installed = self.sources.all_installed(&mut Vec::new());
        let known: Vec<String> = Sources::built_in_names()
            .map(str::to_owned)
            .chain(installed.iter().map(|(record, _)| record.name.clone()))
            .collect();
        let earlier = Adapters::earlier_of(name, &installed);
        earlier.flat_map(|other| SettingsFolder::of_manifest(&other.manifest, &known)).collect()
    }

    /// The installed adapters that were there before this one.
    fn earlier_of<'i>(
        name: &'i str,
        installed: &'i [(Arc<Record>, Arc<Candidate>)],
    ) -> impl Iterator<Item = &'i Arc<Candidate>> {
        let own = installed.iter().find(|(record, _)| record.name == name).map(|(_, candidate)| candidate);
        let others = installed.iter().filter(move |(record, _)| record.name != name).map(|(_, other)| other);
        others.filter(move |other| own.is_none_or(|own| matching::is_earlier(other, own)))
    }

    /// What a manifest requests on this machine: what it names of another installed adapter's is a request too.
    pub(crate) fn requests_beside_others(&self, manifest: &Manifest) -> Requests {
        let mut requests = manifest.requests.clone();
        for other in Adapters::earlier_of(&manifest.name, &self.sources.all_installed(&mut Vec::new())) {
            requests.foreign.add_those_of(&manifest.matches, &other.manifest);
        }
        requests
    }

    pub(crate) fn given(&self, candidate: &Candidate) -> Granted {
        match candidate.source {
            Source::BuiltIn => Granted::BuiltIn,
            Source::Installed(_) | Source::Plugin(_) => {
                Granted::ByUser(self.settings.consents.given(&candidate.manifest.name, &candidate.digest).grants)
            }
        }
    }

    pub(crate) fn slot(&self, name: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(name.to_owned()).or_default())
    }
}

#[async_trait]
impl Harnesses for Adapters {
    fn names(&self) -> Vec<String> {
        if self.sources.are_built_in_alone() {
            return Sources::built_in_names().map(str::to_owned).collect();
        }
        let (candidates, _) = self.known();
        candidates.iter().map(|candidate| candidate.manifest.name.clone()).collect()
    }

    fn shell_of(&self, variables: &[(String, String)]) -> Option<String> {
        let own = self.sources.own_names_by(|own| matching::is_shell_of(own, variables)).next().map(str::to_owned);
        if own.is_some() || self.sources.are_built_in_alone() {
            return own;
        }
        let (known, _) = self.known();
        let is_it = |candidate: &&Arc<Candidate>| {
            candidate.source != Source::BuiltIn && matching::is_shell_of_foreign(candidate, &known, variables)
        };
        known.iter().find(is_it).map(|candidate| candidate.manifest.name.clone())
    }

    async fn get(&self, name: &str) -> Result<Option<Arc<dyn Harness>>, HarnessError> {
        Ok(self.adapter(name).await?.map(|adapter| adapter as Arc<dyn Harness>))
    }

    async fn candidates(&self, seen: &Caller) -> Vec<mesh::ports::candidate::Candidate> {
        let known = if self.sources.are_built_in_alone() {
            self.sources.own_by(|own| matching::may_match(own.clients, own.environment, seen))
        } else {
            self.known().0
        };
        let is_given = |candidate: &Candidate, grant: &str| match self.given(candidate) {
            Granted::BuiltIn => true,
            Granted::ByUser(grants) => grants.contains(grant),
        };
        let mut harnesses = Vec::new();
        for (candidate, owns_match) in matching::meant(&known, seen, is_given) {
            match self.load(candidate).await {
                Ok(adapter) => harnesses.push(mesh::ports::candidate::Candidate {
                    harness: adapter,
                    owns_match,
                    deadline: (candidate.source != Source::BuiltIn).then_some(matching::DEADLINE),
                }),
                Err(error) => {
                    tracing::warn!(adapter = candidate.manifest.name.as_str(), "it is passed over: {error}");
                }
            }
        }
        harnesses
    }
}
