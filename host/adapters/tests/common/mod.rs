//! A stage for adapters: a home, a plugin folder, a store in memory, and the components of
//! `tests/hostile`, built from their sources.

#![allow(dead_code, reason = "each test file uses a part of the stage")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::compiling::{Attempt, Limits};
use adapters::{Adapters, Compiler, Consent, Consents, Digest, Settings, Surroundings};
use async_trait::async_trait;
use mesh::messages::Priority;
use mesh::ports::harness::{Findings, HarnessError, HookCall, HookHost, Mail, Reading, Reply};
use store::memory::MemoryStore;

mod components;
mod still;

pub(crate) use components::{component, target};
pub(crate) use still::Still;

use components::sources;

/// A home, a plugin folder and everything else that adapters need.
pub(crate) struct Stage {
    /// Deleted when the stage is dropped.
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) consents: Arc<TestConsents>,
}

/// Consents that a test sets. Everything may be said in answers to hooks, by which components report to their tests.
#[derive(Default)]
pub(crate) struct TestConsents(Mutex<Consent>, AtomicBool);

impl Consents for TestConsents {
    fn given(&self, _adapter: &str, _digest: &Digest) -> Consent {
        let mut consent = self.0.lock().expect("no test panics here").clone();
        if !self.1.load(Ordering::Relaxed) {
            let answers = ["context", "refuse", "stop", "own-words"];
            consent.grants.extend(answers.map(|kind| format!("answers.{kind}")));
        }
        consent
    }
}

impl Stage {
    /// A stage with these components of `tests/hostile` in its plugin folder.
    pub(crate) fn with(components: &[&str]) -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["home/.hostile", "plugins"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        let stage = Stage { folder, store: Arc::new(MemoryStore::new()), consents: Arc::new(TestConsents::default()) };
        for name in components {
            stage.put(name, &component(name));
        }
        stage
    }

    /// Writes bytes as the component of this name, beside its manifest.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let folder = self.plugins().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let manifest = sources().join(name).join("adapter.toml");
        if manifest.is_file() {
            std::fs::copy(manifest, folder.join("adapter.toml")).expect("copied");
        }
        // By rename, as a build does: a new inode, whatever the clock's resolution.
        let temporary = folder.join("new");
        std::fs::write(&temporary, bytes).expect("written");
        std::fs::rename(temporary, folder.join(name).with_extension("wasm")).expect("renamed");
    }

    pub(crate) fn plugins(&self) -> PathBuf {
        self.folder.path().join("plugins")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Gives these grants to every adapter, and none for answers to hooks that they do not name.
    pub(crate) fn grant_only(&self, grants: &[&str]) {
        self.consents.1.store(true, Ordering::Relaxed);
        self.grant(grants);
    }

    /// Gives these grants to every adapter.
    pub(crate) fn grant(&self, grants: &[&str]) {
        let mut consent = self.consents.0.lock().expect("no test panics here");
        consent.grants = grants.iter().map(|grant| (*grant).to_owned()).collect();
        consent.replaces_built_in = grants.contains(&"replaces-built-in");
    }

    pub(crate) fn adapters(&self) -> Adapters {
        self.adapters_with(|_| {})
    }

    pub(crate) fn adapters_with(&self, change: impl FnOnce(&mut Settings)) -> Adapters {
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        let mut settings = Settings {
            store: self.store.clone(),
            machine: Arc::new(Still),
            // Shared by all tests of a run, as all processes of a user share it.
            cache: target().join("cwasm"),
            cache_aside: None,
            compiler: compiler(Limits::default(), Attempt::InUse),
            installs: self.folder.path().join("installs"),
            rates: Some(self.folder.path().join("rates")),
            installed: None,
            plugin_folders: vec![self.plugins()],
            surroundings: Surroundings {
                home: Some(self.home()),
                project: None,
                environment: [("PATH".to_owned(), path), ("SECRET".to_owned(), "s".to_owned())].into(),
                main_worktree: None,
                in_place_of_root: None,
                private: Vec::new(),
                own: adapters::OwnInstallation::default(),
            },
            consents: self.consents.clone(),
            host_functions: adapters::host_functions::Settings {
                longest_call: Duration::from_secs(20),
                ..Default::default()
            },
        };
        change(&mut settings);
        Adapters::new(settings)
    }
}

/// Compiles in a process of its own, as the binary does.
pub(crate) fn compiler(limits: Limits, usually: Attempt) -> Compiler {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_compiler-of-tests"));
    Compiler::Apart { binary, limits, usually }
}

/// A hook host that found a message and nothing else.
#[derive(Default)]
pub(crate) struct TestHookHost {
    pub(crate) read: Option<Reading>,
}

#[async_trait]
impl HookHost for TestHookHost {
    async fn look_up(&mut self, reading: Reading) -> Findings {
        self.read = Some(reading);
        // A real host waits for its disk several times.
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        Findings {
            agent: Some("alice".to_owned()),
            mail: Some(Mail { ids: Vec::new(), text: "you have mail".to_owned(), priority: Priority::High }),
            protocol: None,
            refusal: Some("no".to_owned()),
            wake_file: "/wake-file".to_owned(),
            ticket: "ticket".to_owned(),
        }
    }
}

/// Calls a hook by its name.
pub(crate) async fn hook(adapters: &Adapters, adapter: &str, name: &str) -> Result<Reply, HarnessError> {
    use mesh::ports::harness::Harness as _;
    let adapter = adapters.adapter(adapter).await?.expect("it is known");
    let environment = ["HOSTILE_SESSION", "SECRET"].map(|name| (name.to_owned(), "1".to_owned())).to_vec();
    let call = HookCall { name: name.to_owned(), payload: "session".to_owned(), environment, process: None };
    adapter.hook(&call, &mut TestHookHost::default()).await
}

/// A setup as on a user's machine.
pub(crate) fn setup() -> mesh::ports::harness::Setup {
    mesh::ports::harness::Setup {
        action: mesh::ports::harness::Action::Install,
        scope: mesh::ports::harness::Scope::User,
        server: mesh::ports::harness::Server::Stdio(vec!["relay-mesh".to_owned()]),
        server_name: "relay".to_owned(),
        program: vec!["relay-mesh".to_owned()],
        environment: Vec::new(),
    }
}
