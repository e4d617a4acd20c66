//! The environment of a test: the real sandbox, with its own home, project and data folder, and nothing of the user's
//! or the machine's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adapters::grants::{Granted, Grants};
use adapters::manifest::Manifest;
use adapters::{
    Adapter, Adapters, Compiler, Consent, Consents, Digest, Grant, OwnInstallation, Package, Settings, Surroundings,
    Usage, host_functions,
};
use mesh::ports::harness::HarnessError;
use mesh::ports::machine::{Instant, Machine, Process};
use store::memory::MemoryStore;

use crate::unix;

/// The time of a scratch clock that stands still.
const NOON: Instant = Instant(1_700_000_000_000);
/// The longest wait for a peer: fake peers answer at once or never.
const PATIENCE: Duration = Duration::from_millis(300);
/// The longest time for one call, with all its waits.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// The component under test, and the folder in which stages are set up.
pub(crate) struct Scratch {
    folder: PathBuf,
    pub(crate) manifest: Manifest,
    compiler: Compiler,
    stages: AtomicU64,
    // A std mutex: nothing is awaited while it is held.
    usage: std::sync::Mutex<Usage>,
}

/// A home, a project and an adapter that has never been called.
pub(crate) struct Stage<'s> {
    scratch: &'s Scratch,
    /// The user's home. The project is a folder in it.
    pub(crate) home: PathBuf,
    /// The folder of scripted programs, which is all of `PATH`.
    pub(crate) programs: PathBuf,
    /// Only the component under test.
    pub(crate) adapters: Adapters,
    surroundings: Surroundings,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StageOptions {
    /// A grant to withhold.
    pub(crate) without: Option<String>,
    pub(crate) clock: Clock,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clock {
    /// It stands still, so that the same call gives the same answer.
    #[default]
    Still,
    /// It runs, for adapters that wait for an answer with a deadline.
    Running,
}

impl Scratch {
    /// Copies the component and its manifest into the scratch folder.
    pub(crate) fn new(folder: &Path, package: &Package, compiler: &Compiler) -> std::io::Result<Scratch> {
        let manifest = package.manifest.clone();
        let plugin = folder.join("plugins").join(&manifest.name);
        std::fs::create_dir_all(&plugin)?;
        std::fs::write(plugin.join("adapter.toml"), &package.text)?;
        std::fs::write(plugin.join(&manifest.name).with_extension("wasm"), &package.bytes)?;
        let (stages, usage) = (AtomicU64::new(0), std::sync::Mutex::default());
        Ok(Scratch { folder: folder.to_owned(), manifest, compiler: compiler.clone(), stages, usage })
    }

    pub(crate) fn grants(&self) -> Vec<Grant> {
        Grants::new(&self.manifest.name, self.manifest.requests.clone(), Granted::BuiltIn).list()
    }

    /// A fresh stage with every grant.
    pub(crate) fn stage(&self) -> std::io::Result<Stage<'_>> {
        self.stage_on(&StageOptions::default())
    }

    pub(crate) fn stage_on(&self, options: &StageOptions) -> std::io::Result<Stage<'_>> {
        let number = self.stages.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join("stages").join(number.to_string());
        let [home, project, programs] = ["home", "home/project", "programs"].map(|name| folder.join(name));
        for made in [&home, &project, &programs] {
            std::fs::create_dir_all(made)?;
        }
        let surroundings = Surroundings {
            home: Some(home.clone()),
            project: Some(project),
            main_worktree: None,
            environment: BTreeMap::from([("PATH".to_owned(), programs.display().to_string())]),
            in_place_of_root: Some(folder.join("machine")),
            private: Vec::new(),
            own: OwnInstallation::default(),
        };
        let mut grants: BTreeSet<String> = self.grants().into_iter().map(|grant| grant.name).collect();
        if let Some(without) = &options.without {
            grants.remove(without);
        }
        let adapters = Adapters::without_built_in(Settings {
            store: Arc::new(MemoryStore::new()),
            machine: Arc::new(ScratchMachine { clock: options.clock, began: std::time::Instant::now() }),
            installed: None,
            cache: self.folder.join("cache"),
            cache_aside: None,
            compiler: self.compiler.clone(),
            installs: folder.join("data/installs"),
            rates: None,
            plugin_folders: vec![self.folder.join("plugins")],
            surroundings: surroundings.clone(),
            consents: Arc::new(AllButOne(grants)),
            host_functions: timeout(),
        });
        Ok(Stage { scratch: self, home, programs, adapters, surroundings })
    }

    /// The most that one call used on any stage so far.
    pub(crate) fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Stage<'_> {
    pub(crate) async fn adapter(&self) -> Result<Arc<Adapter>, HarnessError> {
        let name = &self.scratch.manifest.name;
        let adapter = self.adapters.adapter(name).await?;
        adapter.ok_or_else(|| HarnessError::Failed(format!("the component was copied and `{name}` is not found")))
    }

    /// The folder of a root of the manifest on this stage.
    pub(crate) fn root(&self, name: &str) -> Option<PathBuf> {
        let root = self.scratch.manifest.requests.roots.get(name)?;
        adapters::template::fill_path(&root.path, &self.surroundings).ok()
    }

    /// Puts a program where the adapter's programs are looked for. It does nothing.
    pub(crate) fn place_program(&self, program: &str) -> std::io::Result<()> {
        let place = self.programs.join(program.rsplit('/').next().unwrap_or(program));
        std::fs::write(&place, "#!/bin/sh\n")?;
        unix::make_executable(&place)
    }

    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// Adds up the usage of this stage's calls and deletes its folder. Call it once the checks are done.
    pub(crate) async fn close(self) -> std::io::Result<()> {
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

/// Short waits, so that a peer that never answers does not cost minutes.
fn timeout() -> host_functions::Settings {
    let mut settings = host_functions::Settings { longest_call: LONGEST_CALL, ..host_functions::Settings::default() };
    settings.http.timeout = PATIENCE;
    settings.programs.timeout = PATIENCE;
    settings.channels.timeout = PATIENCE;
    settings.channels.longest_wait = PATIENCE;
    settings.notices.timeout = PATIENCE;
    // The kit plays an hour of a harness in a second, on a clock that stands still. So it bounds each call as usual,
    // but lifts the bounds over many calls.
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

/// Consents to every grant, or to all but one.
struct AllButOne(BTreeSet<String>);

impl Consents for AllButOne {
    fn given(&self, _adapter: &str, _digest: &Digest) -> Consent {
        Consent { grants: self.0.clone(), replaces_built_in: true }
    }
}

/// A machine without other processes.
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
        Process { pid: 1, start: 1, space: None }
    }

    fn name(&self) -> &str {
        "scratch"
    }

    fn random(&self) -> [u8; 16] {
        [7; 16]
    }
}
