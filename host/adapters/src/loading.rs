//! Loads an adapter: compiles it or takes it from the cache, links it, and calls its `describe`. A version is loaded
//! once, and again if its component or its grants changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use mesh::ports::harness::HarnessError;
use store::Store;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::adapter::Adapter;
use crate::adapters::{Adapters, Loaded, Slot};
use crate::bindings::AdapterPre;
use crate::cache::{self, Compilation, LoadError};
use crate::compiling::Attempt;
use crate::digest::Digest;
use crate::engine::Machinery;
use crate::grants::Granted;
use crate::guest::HostSide;
use crate::host_functions;
use crate::host_functions::rates::Rates;
use crate::manifest::{FULL_WIT, Manifest, WIT};
use crate::sources::Candidate;

/// The digest and grants with which an adapter was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    digest: Digest,
    given: Granted,
}

/// Why a version could not be loaded.
pub(crate) enum Unmade {
    /// It can never be loaded by this program.
    Never(String),
    /// It could not be loaded this time.
    Now(HarnessError),
}

impl Unmade {
    pub(crate) fn told(self) -> HarnessError {
        match self {
            Unmade::Never(why) => HarnessError::Failed(why),
            Unmade::Now(error) => error,
        }
    }
}

impl Adapters {
    /// The adapter in the candidate's version, or in an older one if that version is broken.
    pub(crate) async fn load(&self, candidate: &Arc<Candidate>) -> Result<Arc<Adapter>, HarnessError> {
        let slot = self.slot(&candidate.manifest.name);
        let version = Version { digest: candidate.digest, given: self.given(candidate) };
        let mut loaded = slot.loaded.lock().await;
        let refused = loaded.refused.as_ref().filter(|(tried, _)| *tried == version).map(|(_, why)| why.clone());
        match &loaded.current {
            Some((current, adapter)) if *current == version || refused.is_some() => return Ok(Arc::clone(adapter)),
            // It would keep the grants that the user revoked.
            Some((current, _)) if current.digest == version.digest => loaded.current = None,
            Some(_) | None => {}
        }
        if let Some(why) = refused {
            return Err(HarnessError::Failed(why));
        }
        match self.make(candidate, &slot, &version.given).await {
            Ok(adapter) => {
                let adapter = Arc::new(adapter);
                *loaded = Loaded { current: Some((version, Arc::clone(&adapter))), refused: None };
                Ok(adapter)
            }
            Err(Unmade::Never(why)) => {
                tracing::error!(adapter = candidate.manifest.name.as_str(), "{why}");
                loaded.refused = Some((version, why.clone()));
                match &loaded.current {
                    Some((_, older)) => Ok(Arc::clone(older)),
                    None => Err(HarnessError::Failed(why)),
                }
            }
            Err(Unmade::Now(error)) => match &loaded.current {
                Some((_, older)) => {
                    let older = Arc::clone(older);
                    loaded.refused = Some((version, error.to_string()));
                    Ok(older)
                }
                None => Err(error),
            },
        }
    }

    async fn make(&self, candidate: &Arc<Candidate>, slot: &Slot, given: &Granted) -> Result<Adapter, Unmade> {
        let machinery = self.machinery().map_err(Unmade::Now)?;
        let name = &candidate.manifest.name;
        slot.faults.recall(self.settings.store.as_ref(), name).await;
        let (component, compilation) = self.compiled(&machinery, candidate, self.settings.compiler.usually()).await?;
        let host_side = self.host_side(candidate, given.clone(), Arc::clone(&self.settings.store));
        let pre = linked(name, &machinery, &component)?;
        Adapter::load(pre, machinery, host_side, Arc::clone(&slot.faults), compilation).await.map_err(Unmade::Now)
    }

    /// What the calls of a candidate share. Its state and its faults go to this store.
    pub(crate) fn host_side(&self, candidate: &Candidate, given: Granted, store: Arc<dyn Store>) -> Arc<HostSide> {
        let Manifest { name, requests, limits, traces, .. } = &candidate.manifest;
        let counted_in = match given {
            Granted::BuiltIn => None,
            Granted::ByUser(_) => self.settings.rates.as_ref().map(|folder| folder.join(name)),
        };
        Arc::new(HostSide {
            name: name.clone(),
            grants: self.grants_of(candidate, requests.clone(), given),
            traces: traces.clone(),
            limits: *limits,
            store,
            machine: Arc::clone(&self.settings.machine),
            surroundings: Arc::clone(&self.surroundings),
            settings: self.settings.host_functions,
            rates: Rates::new(counted_in),
        })
    }

    /// The engine, created when it is first needed.
    pub(crate) fn machinery(&self) -> Result<Arc<Machinery>, HarnessError> {
        self.machinery
            .get_or_init(|| {
                Machinery::new().map(Arc::new).map_err(|error| format!("the engine does not start: {error:#}"))
            })
            .clone()
            .map_err(HarnessError::Failed)
    }

    /// The candidate's machine code, from the cache if it is there.
    pub(crate) async fn compiled(
        &self,
        machinery: &Arc<Machinery>,
        candidate: &Arc<Candidate>,
        attempt: Attempt,
    ) -> Result<(Component, Compilation), Unmade> {
        let caches = self.settings.caches();
        if let Some(component) = cache::find(machinery, &caches, &candidate.component) {
            return Ok((component, Compilation::Cached));
        }
        let machinery = Arc::clone(machinery);
        let name = &candidate.manifest.name;
        let candidate = Arc::clone(candidate);
        let compiler = self.settings.compiler.clone();
        // Compiling takes seconds, which must not block other calls.
        let work = move || {
            let bytes = || candidate.bytes();
            cache::load(&machinery, &caches, &candidate.component, bytes, (&compiler, attempt))
        };
        let compiled = tokio::task::spawn_blocking(work).await;
        let compiled = compiled.map_err(|error| Unmade::Never(format!("compiling `{name}` broke off: {error}")))?;
        compiled.map_err(|error: LoadError| {
            let why = format!("the adapter `{name}` cannot be loaded: {}", store::reasons(&error));
            if error.is_final() { Unmade::Never(why) } else { Unmade::Now(HarnessError::Failed(why)) }
        })
    }
}

/// A component with everything that it imports, ready to be instantiated.
pub(crate) fn linked(
    name: &str,
    machinery: &Machinery,
    component: &Component,
) -> Result<AdapterPre<crate::guest::Guest>, Unmade> {
    machinery
        .linker
        .instantiate_pre(component)
        .and_then(AdapterPre::new)
        .map_err(|error| Unmade::Never(unlinkable(name, machinery, component, &error)))
}

/// The names of a component's imports and exports.
fn interfaces(machinery: &Machinery, component: &Component) -> (Vec<String>, Vec<String>) {
    let parts = component.component_type();
    let names = |items: Vec<(String, ComponentItem)>| items.into_iter().map(|(name, _)| name).collect();
    let imports = parts.imports(&machinery.engine).map(|(name, item)| (name.to_owned(), item.ty)).collect();
    let exports = parts.exports(&machinery.engine).map(|(name, item)| (name.to_owned(), item.ty)).collect();
    (names(imports), names(exports))
}

/// The versions of our interface that a component names.
pub(crate) fn versions<'n>(names: impl Iterator<Item = &'n String>) -> BTreeSet<String> {
    names
        .filter_map(|name| name.strip_prefix("relay:adapter/")?.split_once('@').map(|(_, version)| version.to_owned()))
        .collect()
}

/// Why a component cannot be linked, in one sentence: usually it is written for another interface version.
fn unlinkable(name: &str, machinery: &Machinery, component: &Component, error: &wasmtime::Error) -> String {
    let (imports, exports) = interfaces(machinery, component);
    let versions = versions(imports.iter().chain(&exports));
    // The latest version that it names tells what it needs.
    match versions.iter().rfind(|version| *version != FULL_WIT) {
        Some(version) => format!(
            "the adapter `{name}` is written for interface {version}, and this relay-mesh supports {FULL_WIT}: update \
             relay-mesh to one that supports {version} or later, or build the adapter against an older sdk"
        ),
        None => {
            let why = host_functions::log::plain(&format!("{error:#}"));
            format!("the adapter `{name}` does not fit the interface {WIT}: {why}")
        }
    }
}
