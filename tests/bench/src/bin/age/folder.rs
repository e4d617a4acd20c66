//! An aged data folder, or a machine's folder with an aged server: written, checked, and the commands that run on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bench::{Failure, programs};
use store::Durability;
use store::files::{FilesOptions, FilesStore};
use store_nats::{NatsOptions, NatsStore};
use test_support::NatsServer;

use crate::check;
use crate::filling::{self, SPEAKER, Stores};
use crate::options::{Age, Options};
use crate::records::agent;
use crate::samples::Samples;
use crate::traffic::Span;

/// How old a kept folder may be, in milliseconds.
const REUSED_FOR: u64 = 6 * 3_600_000;
/// By how much the volume is divided on NATS, where each message takes a round trip.
const NATS_DIVISOR: u64 = 10;

/// Where agents and mail are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// In the data folder.
    Files,
    /// On a NATS server; sessions stay in the data folder.
    Nats,
}

impl Backend {
    /// The chosen ones.
    pub(crate) fn of(options: &Options) -> Vec<Backend> {
        let all = [(options.files, Backend::Files), (options.nats, Backend::Nats)];
        all.into_iter().filter(|(is_chosen, _)| *is_chosen).map(|(_, backend)| backend).collect()
    }

    /// What its table is about.
    pub(crate) fn title(self, options: &Options) -> String {
        let store = match self {
            Backend::Files => "Growth with age, files store",
            Backend::Nats => "Growth with age, NATS",
        };
        match self.divisor(options) {
            1 => store.to_owned(),
            divisor => format!("{store}, with 1/{divisor} of the volume in every column"),
        }
    }

    /// The file of its plot.
    pub(crate) fn plot_path(self, chosen: &Path) -> PathBuf {
        match self {
            Backend::Files => chosen.to_owned(),
            Backend::Nats => {
                let stem = chosen.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                chosen.with_file_name(format!("{stem}-nats.svg"))
            }
        }
    }

    fn divisor(self, options: &Options) -> u64 {
        let default = match self {
            Backend::Files => 1,
            Backend::Nats => NATS_DIVISOR,
        };
        options.divide.unwrap_or(default)
    }

    fn word(self) -> &'static str {
        match self {
            Backend::Files => "files",
            Backend::Nats => "nats",
        }
    }
}

/// One of them, ready to be measured.
#[derive(Clone)]
pub(crate) struct AgedFolder {
    /// How old it is.
    pub(crate) age: Age,
    /// The ids to ask about.
    pub(crate) samples: Arc<Samples>,
    path: PathBuf,
    program: PathBuf,
    span: Span,
    server: Option<Arc<NatsServer>>,
    /// Whether it is to stay as it is.
    is_kept: bool,
    was_reused: bool,
}

impl AgedFolder {
    /// Writes and checks a folder, or takes the one that was kept.
    pub(crate) async fn ready(
        backend: Backend,
        age: Age,
        program: &Path,
        root: &Path,
        options: &Options,
    ) -> Result<AgedFolder, Failure> {
        let divisor = backend.divisor(options);
        let path = root.join(format!("{}-{}-{divisor}", backend.word(), age.word()));
        // What `gc` did on a server cannot be undone.
        let is_kept = options.keep.is_some() && (backend == Backend::Files || !options.gc);
        let mut folder = AgedFolder {
            age,
            samples: Arc::default(),
            path,
            program: program.to_owned(),
            span: Span::of(age, divisor, now()),
            server: None,
            is_kept,
            was_reused: false,
        };
        if let Some(samples) = Samples::read(&folder.notes()).filter(|samples| is_kept && folder.fits(samples)) {
            folder.span = Span::of(age, divisor, samples.filled);
            folder.samples = Arc::new(samples);
            folder.was_reused = true;
            folder.start_server(backend);
        } else {
            folder.fill(backend).await?;
        }
        folder.warm()?;
        Ok(folder)
    }

    fn fits(&self, samples: &Samples) -> bool {
        samples.messages == self.span.messages
            && self.span.end().saturating_sub(samples.filled) < REUSED_FOR
            && !samples.are_worn()
    }

    async fn fill(&mut self, backend: Backend) -> Result<(), Failure> {
        if self.path.exists() {
            std::fs::remove_dir_all(&self.path)?;
        }
        std::fs::create_dir_all(self.project())?;
        self.start_server(backend);
        // The product makes the folder, names the machine, and makes the streams.
        programs::output(&mut self.relay(&["status"]), "")?;
        let machine = std::fs::read_to_string(self.data().join("machine"))?.trim().to_owned();
        let project = self.project().display().to_string();
        let stores = stores(&self.data(), machine, project, self.server.as_deref())?;
        let samples = filling::fill(&stores, self.span).await?;
        check::count(&stores, &samples).await?;
        if self.is_kept {
            samples.write(&self.notes())?;
        }
        self.samples = Arc::new(samples);
        check::ask(self)
    }

    fn start_server(&mut self, backend: Backend) {
        self.server = match backend {
            Backend::Files => None,
            Backend::Nats if self.is_kept => Some(Arc::new(NatsServer::kept_in(&self.path.join("nats")))),
            Backend::Nats => Some(Arc::new(NatsServer::start())),
        };
    }

    /// Does what a machine has done by then: the adapters are compiled, the command line's agent is registered, and the
    /// daily cleanups have checked the logs.
    fn warm(&self) -> Result<(), Failure> {
        programs::output(&mut self.relay(&["plugin", "list", "--load"]), "")?;
        programs::output(&mut self.relay(&["doctor", "--store", "--all"]), "")?;
        programs::output(&mut self.relay(&["register", &agent(0)]), "").map(drop)
    }

    /// What a report says of it.
    pub(crate) fn told(&self, took: Duration) -> String {
        let size = programs::output(programs::command("du").arg("-sm").arg(self.data()), "").unwrap_or_default();
        format!(
            "{}: {} messages, {} sessions, {} MB in the data folder, {} in {:.0} s",
            self.age.title(),
            self.samples.messages,
            self.samples.sessions,
            size.split_whitespace().next().unwrap_or("?"),
            if self.was_reused { "reused" } else { "written and checked" },
            took.as_secs_f64()
        )
    }

    /// Notes the ids that were used so far, because the next run on a kept folder goes on with others.
    pub(crate) fn note_what_was_used(&self) -> Result<(), Failure> {
        if self.is_kept { self.samples.write(&self.notes()) } else { Ok(()) }
    }

    /// The folder to run `gc` on: a copy, if this one is to be used again.
    pub(crate) fn copy_to_collect(&self) -> Result<AgedFolder, Failure> {
        if !self.is_kept {
            return Ok(self.clone());
        }
        let path = self.path.with_extension("collected");
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        programs::output(programs::command("cp").args(["-a", "--reflink=auto"]).arg(&self.path).arg(&path), "")?;
        let copy = AgedFolder { path, is_kept: false, ..self.clone() };
        // Its files are new ones, which no daily cleanup has checked.
        copy.warm()?;
        Ok(copy)
    }

    /// Deletes a copy that [`AgedFolder::copy_to_collect`] made.
    pub(crate) fn discard_copy(self) -> Result<(), Failure> {
        match self.path.extension() {
            Some(_) => Ok(std::fs::remove_dir_all(&self.path)?),
            None => Ok(()),
        }
    }

    /// A command of the user's.
    pub(crate) fn relay(&self, arguments: &[&str]) -> Command {
        let mut relay = programs::relay_mesh(&self.program, &self.data());
        if let Some(server) = &self.server {
            relay.env("RELAY_STORE", server.url());
        }
        relay.current_dir(self.project()).args(arguments);
        relay
    }

    /// The same with a setting that keeps a day more than the default does: what a cleanup of the day before left.
    pub(crate) fn relay_keeping_eight_days(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let settings = self.path.join("eight-days");
        std::fs::create_dir_all(settings.join("relay-mesh"))?;
        std::fs::write(settings.join("relay-mesh/config.toml"), "[retention]\nkeep = \"8d\"\n")?;
        let mut relay = self.relay(arguments);
        relay.env("XDG_CONFIG_HOME", settings);
        Ok(relay)
    }

    /// A command that the harness runs in a session.
    pub(crate) fn relay_in(&self, session: &str, arguments: &[&str]) -> Command {
        let mut relay = self.relay(arguments);
        relay.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", session).env("CLAUDE_PROJECT_DIR", self.project());
        relay
    }

    /// The session that the MCP rows speak from.
    pub(crate) fn speaker_session(&self) -> String {
        filling::live_session(&self.span, SPEAKER)
    }

    /// The folder that sessions work in.
    pub(crate) fn project(&self) -> PathBuf {
        self.path.join("project")
    }

    fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    fn notes(&self) -> PathBuf {
        self.path.join("rig.json")
    }
}

/// The stores of a folder, for a writer that need not wait for the disk.
pub(crate) fn stores(
    data: &Path,
    machine: String,
    project: String,
    server: Option<&NatsServer>,
) -> Result<Stores, Failure> {
    let rule = Some(Arc::new(mesh::MeshIndexRule) as _);
    let options = FilesOptions { durability: Durability::Process, rule, ..FilesOptions::default() };
    let local: Arc<dyn store::Store> = Arc::new(FilesStore::open(data, options.clone())?);
    let shared = match server {
        None => Arc::clone(&local),
        Some(server) => {
            let nats = NatsOptions { servers: vec![server.url()], machine: machine.clone(), ..NatsOptions::default() };
            Arc::new(NatsStore::with_rules(nats, Some(Arc::new(mesh::AgentOwnership)), Arc::new(mesh::MeshIndexRule)))
        }
    };
    let sealing: Option<Arc<dyn store::Store>> = match server {
        None => Some(Arc::new(FilesStore::open(data, FilesOptions { rotate_at: 1, ..options })?)),
        Some(_) => None,
    };
    Ok(Stores { shared, local, machine, project, one_by_one: server.is_some(), sealing })
}

/// Writes what the system still holds back, so that it is not written while something is measured.
pub(crate) fn settle_disk() -> Result<(), Failure> {
    programs::output(&mut programs::command("sync"), "").map(drop)
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the last day of a folder is today")]
    let now = std::time::SystemTime::now();
    u64::try_from(now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
