//! Where a component is tried: a folder with a home, a project and a data folder of its own, the
//! real sandbox, and nothing of the person's or the machine's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mesh::harness::HarnessError;
use mesh::machine::{Instant, Machine, Process};
use store::memory::MemoryStore;

use crate::adapter::{Adapter, Usage};
use crate::adapters::{Adapters, Settings};
use crate::digest::Digest;
use crate::grants::{Consent, Consents, Given, Grant, Grants};
use crate::lent;
use crate::manifest::Manifest;
use crate::parcel::Parcel;
use crate::template::Surroundings;

/// When the scratch clock stands still, it stands here.
const NOON: Instant = Instant(1_700_000_000_000);
/// Waits that a person would have patience for are cut down to this: scripts answer at once or never.
const PATIENCE: Duration = Duration::from_millis(300);
/// The longest that one call may take, its waits together.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// The component under test, and the folder in which stages are set up.
pub(super) struct Scratch {
    folder: PathBuf,
    /// What the component says of itself.
    pub(super) manifest: Manifest,
    stages: AtomicU64,
    // A std mutex: nothing is awaited while it is held.
    usage: std::sync::Mutex<Usage>,
}

/// A home, a project and an adapter that has never been called.
pub(super) struct Stage<'s> {
    scratch: &'s Scratch,
    /// The person's home. The project is a folder in it.
    pub(super) home: PathBuf,
    /// Where scripted programs lie: the whole of `PATH`.
    pub(super) programs: PathBuf,
    /// The component, and no other.
    pub(super) adapters: Adapters,
    surroundings: Surroundings,
}

/// How a stage differs from the usual one.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    /// A grant that is withheld.
    pub(super) without: Option<String>,
    /// Whether time passes.
    pub(super) clock: Clock,
}

/// Whether time passes on a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Clock {
    /// It stands still, so that the same call gives the same answer.
    #[default]
    Still,
    /// It runs, for adapters that wait for an answer until some time.
    Running,
}

impl Scratch {
    /// With the component and its manifest copied into a folder that is ours alone.
    pub(super) fn new(folder: &Path, parcel: &Parcel) -> std::io::Result<Scratch> {
        let manifest = parcel.manifest.clone();
        let plugin = folder.join("plugins").join(&manifest.name);
        std::fs::create_dir_all(&plugin)?;
        std::fs::write(plugin.join("adapter.toml"), &parcel.text)?;
        std::fs::write(plugin.join(&manifest.name).with_extension("wasm"), &parcel.bytes)?;
        let (stages, usage) = (AtomicU64::new(0), std::sync::Mutex::default());
        Ok(Scratch { folder: folder.to_owned(), manifest, stages, usage })
    }

    /// Every grant that the manifest asks for.
    pub(super) fn grants(&self) -> Vec<Grant> {
        Grants::new(&self.manifest.name, self.manifest.asks.clone(), Given::BuiltIn).list()
    }

    /// A fresh stage with every grant.
    pub(super) fn stage(&self) -> std::io::Result<Stage<'_>> {
        self.stage_on(&Terms::default())
    }

    /// A fresh stage.
    pub(super) fn stage_on(&self, terms: &Terms) -> std::io::Result<Stage<'_>> {
        let number = self.stages.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join("stages").join(number.to_string());
        let [home, project, programs] = ["home", "home/project", "programs"].map(|name| folder.join(name));
        for made in [&home, &project, &programs] {
            std::fs::create_dir_all(made)?;
        }
        let surroundings = Surroundings {
            home: Some(home.clone()),
            project: Some(project),
            environment: BTreeMap::from([("PATH".to_owned(), programs.display().to_string())]),
            in_place_of_root: Some(folder.join("machine")),
        };
        let mut grants: BTreeSet<String> = self.grants().into_iter().map(|grant| grant.name).collect();
        if let Some(without) = &terms.without {
            grants.remove(without);
        }
        let adapters = Adapters::without_built_in(Settings {
            store: Arc::new(MemoryStore::new()),
            machine: Arc::new(ScratchMachine { clock: terms.clock, began: std::time::Instant::now() }),
            shelf: None,
            cache: self.folder.join("cache"),
            installs: folder.join("data/installs"),
            plugin_folders: vec![self.folder.join("plugins")],
            surroundings: surroundings.clone(),
            consents: Arc::new(AllButOne(grants)),
            lent: patience(),
        });
        Ok(Stage { scratch: self, home, programs, adapters, surroundings })
    }

    /// The most that calls took on all stages so far.
    pub(super) fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Stage<'_> {
    /// The adapter, loaded.
    pub(super) async fn adapter(&self) -> Result<Arc<Adapter>, HarnessError> {
        let name = &self.scratch.manifest.name;
        let adapter = self.adapters.adapter(name).await?;
        adapter.ok_or_else(|| HarnessError::Failed(format!("the component was copied and `{name}` is not found")))
    }

    /// Where a root of the manifest lies on this stage.
    pub(super) fn root(&self, name: &str) -> Option<PathBuf> {
        let root = self.scratch.manifest.asks.roots.get(name)?;
        crate::template::fill_path(&root.path, &self.surroundings).ok()
    }

    /// What paths are filled from here.
    pub(super) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// Notes what this stage's calls took, and clears it away. Called once its checks are done.
    pub(super) async fn strike(self) -> std::io::Result<()> {
        if let Ok(adapter) = self.adapter().await {
            let here = adapter.usage();
            let mut all = self.scratch.usage.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.calls += here.calls;
            all.largest = all.largest.max(here.largest);
            if here.slowest_us >= all.slowest_us {
                (all.slowest_us, all.slowest) = (here.slowest_us, here.slowest);
            }
        }
        match self.home.parent() {
            Some(folder) => std::fs::remove_dir_all(folder),
            None => Ok(()),
        }
    }
}

/// Every wait short, so that an endpoint that never answers costs no minutes.
fn patience() -> lent::Settings {
    let mut settings = lent::Settings { longest_call: LONGEST_CALL, ..lent::Settings::default() };
    settings.http.patience = PATIENCE;
    settings.programs.patience = PATIENCE;
    settings.channels.patience = PATIENCE;
    settings.channels.longest_wait = PATIENCE;
    settings.notices.patience = PATIENCE;
    // A harness's hour is played in a second, on a clock that stands still: what one call may use is
    // bounded as ever, and what many may use together is not.
    let rates = &mut settings.rates;
    for bound in [
        &mut rates.reads,
        &mut rates.requests,
        &mut rates.channels,
        &mut rates.frames,
        &mut rates.programs,
        &mut rates.notes,
        &mut rates.notices,
    ] {
        bound.burst = u32::MAX;
    }
    settings
}

/// A person who gave all that was asked but one grant.
struct AllButOne(BTreeSet<String>);

impl Consents for AllButOne {
    fn given(&self, _adapter: &str, _digest: &Digest) -> Consent {
        Consent { grants: self.0.clone(), replaces_built_in: true }
    }
}

/// A machine on which nothing else happens.
struct ScratchMachine {
    clock: Clock,
    began: std::time::Instant,
}

impl Machine for ScratchMachine {
    fn now(&self) -> Instant {
        match self.clock {
            Clock::Still => NOON,
            Clock::Running => NOON.plus(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)),
        }
    }

    fn process(&self, _pid: u32) -> Option<Process> {
        None
    }

    fn this_process(&self) -> Process {
        Process { pid: 1, start: 1 }
    }

    fn host(&self) -> &str {
        "scratch"
    }

    fn random(&self) -> [u8; 16] {
        [7; 16]
    }
}
