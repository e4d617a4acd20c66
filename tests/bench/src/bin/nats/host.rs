//! A machine of the mesh within this process: with a connection of its own and a local store of its own.

use std::sync::Arc;

use async_trait::async_trait;
use bench::Failure;
use mesh::names::AgentName;
use mesh::ports::candidate::Candidate;
use mesh::ports::harness::{Harness, HarnessError, Harnesses};
use mesh::ports::machine::{Instant, Machine, Process};
use mesh::sessions::{Call, Caller, Principal};
use mesh::{Limits, LoopLimits, Mesh, Parts, Registration, Served};
use store::Store;
use store::files::{FilesOptions, FilesStore};
use store_nats::{NatsOptions, NatsStore};
use tempfile::TempDir;
use test_support::NatsServer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A machine with one agent, whose long-lived process runs.
pub(crate) struct Host {
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) caller: Principal,
    parts: [Arc<dyn Store>; 2],
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

impl Host {
    /// Starts one and registers its agent.
    pub(crate) async fn start(server: &NatsServer, agent: &str) -> Result<Host, Failure> {
        let folder = tempfile::tempdir()?;
        let local: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path(), FilesOptions::default())?);
        let options =
            NatsOptions { servers: vec![server.url()], machine: format!("of-{agent}"), ..NatsOptions::default() };
        let shared: Arc<dyn Store> = Arc::new(NatsStore::with_rules(
            options,
            Some(Arc::new(mesh::AgentOwnership)),
            Arc::new(mesh::MeshIndexRule),
        ));
        let parts = [shared, local];
        let mesh = Arc::new(mesh_of(&parts, agent));
        let caller = mesh.identify(&shell(None)).await?;
        let name: AgentName = agent.parse()?;
        mesh.register(&caller, Registration { name: Some(name.clone()), ..Registration::default() }).await?;
        let caller = mesh.identify(&shell(Some(name))).await?;
        let stop = CancellationToken::new();
        let serving = tokio::spawn(Arc::clone(&mesh).deliver(Served::Everyone, stop.clone()));
        Ok(Host { mesh, caller, parts, stop, serving, _folder: folder })
    }

    /// The same mesh over the same connection, as a process that has read nothing yet.
    pub(crate) fn fresh_mesh(&self) -> Mesh {
        mesh_of(&self.parts, self.mesh.machine().name().trim_start_matches("of-"))
    }

    /// A command line that speaks for nobody yet.
    pub(crate) async fn caller_of_nobody(&self) -> Result<Principal, Failure> {
        Ok(self.mesh.identify(&shell(None)).await?)
    }

    /// Ends its process, having written what it still had to write.
    pub(crate) async fn end(self) -> Result<(), Failure> {
        self.stop.cancel();
        self.serving.await?;
        Ok(())
    }
}

fn mesh_of([shared, local]: &[Arc<dyn Store>; 2], agent: &str) -> Mesh {
    Mesh::new(Parts {
        shared: Arc::clone(shared),
        local: Arc::clone(local),
        machine: Arc::new(BenchMachine { host: format!("of-{agent}") }),
        harnesses: Arc::new(NoHarnesses),
        limits: Limits {
            loops: LoopLimits { pair: u32::MAX, agent: u32::MAX, ..LoopLimits::default() },
            ..Limits::default()
        },
    })
}

fn shell(claims_to_be: Option<AgentName>) -> Call {
    let caller = Caller::of_command_line(Vec::new(), None);
    Call { caller, connection: None, ticket: None, key: None, claims_to_be }
}

/// A machine that has a clock and a name.
struct BenchMachine {
    host: String,
}

impl Machine for BenchMachine {
    fn now(&self) -> Instant {
        #[expect(clippy::disallowed_methods, reason = "what is measured goes by the real clock")]
        let now = std::time::SystemTime::now();
        let since_epoch = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Instant(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }

    fn process(&self, pid: u32) -> Option<Process> {
        Some(Process { pid, start: 0, space: None })
    }

    fn this_process(&self) -> Process {
        Process { pid: std::process::id(), start: 0, space: None }
    }

    fn name(&self) -> &str {
        &self.host
    }

    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        bytes
    }
}

/// Nobody here has a harness.
struct NoHarnesses;

#[async_trait]
impl Harnesses for NoHarnesses {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn get(&self, _: &str) -> Result<Option<Arc<dyn Harness>>, HarnessError> {
        Ok(None)
    }

    async fn candidates(&self, _: &Caller) -> Vec<Candidate> {
        Vec::new()
    }
}
