//! Examines an adapter: what it imports and exports, what objections there are to installing it, and whether it can be
//! loaded. To say what it is, nothing of it is compiled or run.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use mesh::ports::harness::HarnessError;
use store::memory::MemoryStore;

use crate::adapter::Adapter;
use crate::adapters::Adapters;
use crate::cache::{self, CacheCondition, Compilation};
use crate::compiling::Attempt;
use crate::digest::Digest;
use crate::faults::Faults;
use crate::grants::{Consent, Granted};
use crate::loading::{Unmade, linked, versions};
use crate::manifest::Manifest;
use crate::outline::outline;
use crate::package::Package;
use crate::places::{self, Asker, Requested};
use crate::sources::{Candidate, Source};
use crate::template::{FillError, Surroundings, fill_path};

/// What an adapter is, as far as it can be told without running it.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The manifest, with the grants that it requests.
    pub manifest: Manifest,
    /// Where it comes from.
    pub source: Source,
    /// Digest of component and manifest.
    pub digest: Digest,
    /// The component's size in bytes.
    pub size: u64,
    /// What it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// The versions of our interface that it names: normally one.
    pub interfaces: BTreeSet<String>,
    /// Whether its machine code is in the cache.
    pub machine_code: CacheCondition,
}

/// An adapter to which the user may give grants.
#[derive(Clone, Debug)]
pub struct Grantee {
    /// The manifest, with the grants that it requests.
    pub manifest: Manifest,
    /// Digest of component and manifest.
    pub digest: Digest,
    /// What the user granted it.
    pub consent: Consent,
}

/// The result of auditing an adapter.
#[derive(Clone, Debug)]
pub enum Audit {
    /// No adapter has this name.
    Unknown,
    /// It is unchanged since the install, and it can be loaded.
    Looked {
        /// The condition of its cached machine code.
        kept: CacheCondition,
        /// Where the machine code came from with which it was loaded.
        compilation: Compilation,
        version: String,
    },
}

/// Why an otherwise valid adapter cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum Objection {
    /// A root is not a folder.
    #[error("the root `{root}` asks for {path}, and `{place}` is not a folder")]
    NotAFolder {
        /// The root's name.
        root: String,
        /// Its path in the manifest.
        path: String,
        /// Where that path leads now.
        place: PathBuf,
    },
    /// A folder or a socket that no adapter may have.
    #[error("the {grant} asks for {path}, and no adapter may have `{place}`: {why}")]
    Forbidden {
        /// What kind of grant it is, and its name.
        grant: String,
        /// Its path in the manifest.
        path: String,
        /// Where that path leads now.
        place: PathBuf,
        why: String,
    },
    /// Another installed adapter has the name or the alias.
    #[error("the name `{claimed}` belongs to the installed adapter `{owner}`")]
    Taken {
        /// The name.
        claimed: String,
        /// The adapter that has it.
        owner: String,
    },
}

impl Objection {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Objection::NotAFolder { place, .. } => {
                format!("move `{}` away where it is not needed, or tell the adapter's author", place.display())
            }
            Objection::Forbidden { .. } => "ask its author to name the harness's own folder".to_owned(),
            Objection::Taken { owner, .. } => format!("`relay-mesh plugin remove {owner}` frees the name"),
        }
    }
}

impl Adapters {
    /// Loads a package with no grants, and calls its `describe`. What that leaves is its machine code in the cache.
    pub async fn try_out(&self, package: &Package) -> Result<(), HarnessError> {
        self.tried(&Arc::new(Candidate::of_package(package)), Attempt::Trial).await.map(drop)
    }

    /// What a package is.
    pub fn examine(&self, package: &Package) -> Result<Examination, HarnessError> {
        self.examined(&Candidate::of_package(package))
    }

    /// What a known adapter is, by name or alias.
    pub fn look_over(&self, name: &str) -> Result<Option<Examination>, HarnessError> {
        self.resolve_any(name)?.map(|candidate| self.examined(&candidate)).transpose()
    }

    /// The adapter of this name, whether it is enabled or not.
    pub(crate) fn resolve_any(&self, name: &str) -> Result<Option<Arc<Candidate>>, HarnessError> {
        if let Some(held) = self.installed().map(|installed| installed.held(name)) {
            let held = held.map_err(|error| HarnessError::Failed(format!("{error}; {}", error.hint())))?;
            if let Some(candidate) = held.and_then(|held| held.candidate) {
                return candidate.map(Some).map_err(HarnessError::Failed);
            }
        }
        self.resolve(name)
    }

    fn examined(&self, candidate: &Candidate) -> Result<Examination, HarnessError> {
        let failed = |why: String| {
            HarnessError::Failed(format!("the adapter `{}` cannot be read: {why}", candidate.manifest.name))
        };
        let bytes = candidate.bytes().map_err(|error| failed(error.to_string()))?;
        let outline = outline(&bytes).map_err(|why| failed(format!("it is not a component that can be run: {why}")))?;
        let machinery = self.machinery()?;
        Ok(Examination {
            manifest: self.manifest_beside_others(&candidate.manifest),
            source: candidate.source.clone(),
            digest: candidate.digest,
            size: bytes.len() as u64,
            interfaces: versions(outline.imports.iter().chain(&outline.exports)),
            imports: outline.imports,
            exports: outline.exports,
            machine_code: cache::look(&machinery, &self.settings.caches(), &candidate.component),
        })
    }

    /// Loads an adapter with no grants, and calls its `describe`.
    async fn tried(&self, candidate: &Arc<Candidate>, attempt: Attempt) -> Result<Compilation, HarnessError> {
        let machinery = self.machinery()?;
        let (component, compilation) = self.compiled(&machinery, candidate, attempt).await.map_err(Unmade::told)?;
        let pre = linked(&candidate.manifest.name, &machinery, &component).map_err(Unmade::told)?;
        // A failure here is reported to the user, and not counted against it later.
        let host_side = self.host_side(candidate, Granted::ByUser(BTreeSet::new()), Arc::new(MemoryStore::new()));
        Adapter::load(pre, machinery, host_side, Arc::new(Faults::default()), compilation).await?;
        Ok(compilation)
    }

    /// A package with everything that it requests on this machine: what it names of another installed adapter's too.
    pub fn beside_others(&self, package: Package) -> Package {
        Package { manifest: self.manifest_beside_others(&package.manifest), ..package }
    }

    fn manifest_beside_others(&self, manifest: &Manifest) -> Manifest {
        Manifest { requests: self.requests_beside_others(manifest), ..manifest.clone() }
    }

    /// The names in a manifest that a built-in adapter has too, each with that adapter. Taking them over needs the
    /// grant [`crate::grants::REPLACES_BUILT_IN`].
    pub fn built_in_claims(&self, manifest: &Manifest) -> Vec<(String, &'static str)> {
        self.sources.built_in_claims(manifest)
    }

    /// The manifest of the installed adapter of this name; none if it cannot be read.
    pub fn installed_manifest(&self, name: &str) -> Option<Manifest> {
        let held = self.installed()?.held(name).ok()??;
        Some(self.manifest_beside_others(&held.candidate?.ok()?.manifest))
    }

    /// The adapter to which the user gives grants by this name: an installed one, or one in a plugin folder, whether it
    /// is in use or waits for its first grant. None if it is built in.
    pub fn grantee(&self, name: &str) -> Result<Option<Grantee>, HarnessError> {
        let installed = self.installed().map(|installed| installed.held(name)).transpose();
        let installed = installed.map_err(|error| HarnessError::Failed(format!("{error}; {}", error.hint())))?;
        let enabled = installed.flatten().filter(|held| held.candidate.is_some());
        let is_idle = enabled.as_ref().is_some_and(|held| !held.record.is_enabled());
        let all_installed = enabled.and_then(|held| held.candidate).transpose().map_err(HarnessError::Failed)?;
        let named = |candidate: &&Arc<Candidate>| candidate.manifest.name == name;
        let loose = self.sources.plugins().0.iter().find(named).cloned();
        let meant = if is_idle { loose.or(all_installed) } else { all_installed.or(loose) };
        Ok(meant.map(|candidate| Grantee {
            consent: self.settings.consents.given(name, &candidate.digest),
            manifest: self.manifest_beside_others(&candidate.manifest),
            digest: candidate.digest,
        }))
    }

    /// Checks an installed adapter's files, its machine code and its interface. Reads everything through.
    pub async fn audit(&self, name: &str) -> Result<Audit, HarnessError> {
        let all = self.installed();
        let record = all.map(|all| all.record(name)).transpose();
        let record = record.map_err(|error| HarnessError::Failed(format!("{error}; {}", error.hint())))?.flatten();
        let installed = record.as_ref().and_then(|record| record.installed.as_ref());
        let candidate = match (all, installed) {
            (Some(all), Some(installed)) => Some(Arc::new(all.audit(name, installed).map_err(HarnessError::Failed)?)),
            (Some(_) | None, _) => self.resolve(name)?,
        };
        let Some(candidate) = candidate else { return Ok(Audit::Unknown) };
        let machinery = self.machinery()?;
        let kept = cache::audit(&machinery, &self.settings.caches(), &candidate.component);
        let compilation = self.tried(&candidate, self.settings.compiler.usually()).await?;
        Ok(Audit::Looked { kept, compilation, version: candidate.manifest.version.clone() })
    }

    /// The folders in which compiled components are kept, in the order in which they are tried, up to the first in which
    /// they can be kept; each other one with the reason why not.
    pub fn caches(&self) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        for cache in self.settings.caches() {
            let fault = cache::fault(&cache);
            let is_last = fault.is_none();
            found.push((cache, fault));
            if is_last {
                break;
            }
        }
        found
    }

    /// Where a path of a manifest leads now, with links followed; none if that is where it says.
    pub fn leads_now(&self, template: &str) -> Option<PathBuf> {
        let place = fill_path(template, &self.surroundings).ok()?;
        let found = places::real(&place);
        // A home that is a link itself is no news.
        let home = self.surroundings.home.as_deref().map(places::real);
        let said = fill_path(template, &Surroundings { home, ..(*self.surroundings).clone() }).unwrap_or(place);
        (template.contains("${") || found != said).then_some(found)
    }

    /// The objection, if any, to installing an adapter with this manifest on this machine now.
    pub fn objection(&self, manifest: &Manifest) -> Option<Objection> {
        let place = || self.forbidden_root(manifest).or_else(|| self.forbidden_endpoint(manifest));
        self.stray_root(manifest).or_else(place).or_else(|| self.taken(manifest))
    }

    fn stray_root(&self, manifest: &Manifest) -> Option<Objection> {
        manifest.requests.roots.iter().find_map(|(root, asked)| {
            // A path that does not exist yet, or depends on a project, is checked when it is opened.
            let place = fill_path(&asked.path, &self.surroundings).ok()?;
            let is_other = std::fs::metadata(&place).is_ok_and(|metadata| !metadata.is_dir());
            is_other.then(|| Objection::NotAFolder { root: root.clone(), path: asked.path.clone(), place })
        })
    }

    fn forbidden_root(&self, manifest: &Manifest) -> Option<Objection> {
        let asker = self.stranger(manifest);
        manifest.requests.roots.iter().find_map(|(root, asked)| {
            let fill = |surroundings: &Surroundings| fill_path(&asked.path, surroundings);
            let (place, why) = self.judged(&asker, Requested::Root(root), &asked.path, fill)?;
            Some(Objection::Forbidden { grant: format!("root `{root}`"), path: asked.path.clone(), place, why })
        })
    }

    fn forbidden_endpoint(&self, manifest: &Manifest) -> Option<Objection> {
        let asker = self.stranger(manifest);
        manifest.requests.endpoints.iter().find_map(|(endpoint, asked)| {
            let path = asked.address.to_string();
            let fill = |surroundings: &Surroundings| asked.address.socket_of_any_value(surroundings);
            let (place, why) = self.judged(&asker, Requested::Endpoint(endpoint), &path, fill)?;
            Some(Objection::Forbidden { grant: format!("endpoint `{endpoint}`"), path, place, why })
        })
    }

    /// Where a path leads and why that is refused. What a project's folder is depends on the command: there only
    /// settings are compared, and the rest when it is opened.
    fn judged(
        &self,
        asker: &Asker,
        requested: Requested<'_>,
        template: &str,
        fill: impl Fn(&Surroundings) -> Result<PathBuf, FillError>,
    ) -> Option<(PathBuf, String)> {
        if ["${project}", "${main-worktree}"].iter().any(|project| template.contains(project)) {
            let why = places::objection_in_projects(asker, requested, fill, &self.surroundings)?;
            return Some((PathBuf::from(template), why));
        }
        let place = fill(&self.surroundings).ok()?;
        let why = places::objection(asker, requested, &place, &self.surroundings)?;
        Some((place, why))
    }

    fn stranger(&self, manifest: &Manifest) -> Asker {
        Asker::Stranger { name: manifest.name.clone(), earlier: self.earlier_settings(&manifest.name) }
    }

    fn taken(&self, manifest: &Manifest) -> Option<Objection> {
        let claims: Vec<&String> = std::iter::once(&manifest.name).chain(&manifest.aliases).collect();
        let all_installed = self.sources.all_installed(&mut Vec::new());
        let others = all_installed.iter().filter(|(record, _)| record.name != manifest.name);
        others.into_iter().find_map(|(record, other)| {
            let names = || std::iter::once(&other.manifest.name).chain(&other.manifest.aliases);
            let claimed = claims.iter().find(|claim| names().any(|name| name == **claim))?;
            Some(Objection::Taken { claimed: (*claimed).clone(), owner: record.name.clone() })
        })
    }
}
