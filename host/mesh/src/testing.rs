//! A machine and a harness for tests: the test sets the clock, the processes and the sessions.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::messages::Priority;
use crate::messages::receipt::DeliveryStatus;
use crate::names::MessageId;
use crate::ports::candidate::Candidate;
use crate::ports::harness::{
    About, Carries, ClientTraces, Delivered, Finding, Findings, HandedOver, Harness, HarnessError, HarnessEvidence,
    Harnesses, HookCall, HookHost, Mail, Occasion, OptionalInterfaces, Plan, Reading, Reply, Route, Setup, Verdict,
};
use crate::ports::machine::{Instant, Machine, Process, ProcessSpace, Terminal};
use crate::reservations::repository::{Checkout, PathKind, Repository, Resolved};
use crate::sessions::{Activity, Call, Caller, Certainty, ConnectionId, Detection, Session, Transport};

/// A machine whose clock and processes the test sets.
#[derive(Debug)]
pub struct FakeMachine {
    now: AtomicU64,
    dice: AtomicU64,
    processes: Mutex<BTreeMap<u32, u64>>,
    space: AtomicU64,
    boot: AtomicU64,
    /// The marks of folders. Others have none.
    marks: Mutex<BTreeMap<PathBuf, String>>,
    /// The files that each process has open.
    open_files: Mutex<BTreeMap<u32, Vec<String>>>,
    /// The processes that run in terminals, each with its arguments. All are in `/work`.
    terminals: Mutex<BTreeMap<u32, Vec<String>>>,
    host: &'static str,
}

impl Default for FakeMachine {
    fn default() -> FakeMachine {
        FakeMachine {
            now: AtomicU64::new(1_700_000_000_000),
            dice: AtomicU64::new(1),
            processes: Mutex::new(BTreeMap::from([(1, 1)])),
            space: AtomicU64::new(1),
            boot: AtomicU64::new(1),
            marks: Mutex::default(),
            open_files: Mutex::default(),
            terminals: Mutex::default(),
            host: "here",
        }
    }
}

impl FakeMachine {
    /// A machine with another name, whose random ids differ from those of the default one.
    pub fn named(host: &'static str) -> FakeMachine {
        let dice = host.bytes().fold(1_u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(u64::from(byte)));
        FakeMachine { host, dice: AtomicU64::new(dice << 20), ..FakeMachine::default() }
    }

    /// Advances the clock.
    pub fn pass(&self, milliseconds: u64) {
        self.now.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Sets the clock back.
    pub fn go_back(&self, milliseconds: u64) {
        self.now.fetch_sub(milliseconds, Ordering::Relaxed);
    }

    /// Looks at processes from another container from now on. All containers have processes with the same ids.
    pub fn enter_space(&self, space: u64) {
        self.space.store(space, Ordering::Relaxed);
    }

    /// Starts again. Its processes have the same ids as before.
    pub fn reboot(&self) {
        self.boot.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a folder a mark, as every folder has one; takes it from the path that it had before.
    pub fn mark_folder(&self, folder: &str, mark: &str) {
        let mut marks = self.marks.lock().expect("no test panics while it holds this");
        marks.retain(|_, known| known != mark);
        marks.insert(PathBuf::from(folder), mark.to_owned());
    }

    /// Makes a marked folder appear at another path too, as a mount does.
    pub fn mark_folder_also(&self, folder: &str, mark: &str) {
        self.marks.lock().expect("no test panics while it holds this").insert(PathBuf::from(folder), mark.to_owned());
    }

    /// Starts a process.
    pub fn start(&self, pid: u32) {
        self.processes.lock().expect("no test panics while it holds this").insert(pid, u64::from(pid) + 1);
    }

    /// Starts a process in a terminal.
    pub fn start_terminal(&self, pid: u32, arguments: &[&str]) {
        self.start(pid);
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        self.terminals.lock().expect("no test panics while it holds this").insert(pid, arguments);
    }

    /// A process has these files open from now on.
    pub fn opens(&self, pid: u32, files: &[&str]) {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        self.open_files.lock().expect("no test panics while it holds this").insert(pid, files);
    }

    /// Ends a process.
    pub fn kill(&self, pid: u32) {
        self.processes.lock().expect("no test panics while it holds this").remove(&pid);
    }
}

impl FakeMachine {
    fn is_top(&self, folder: &Path) -> bool {
        self.checkout(folder).is_ok_and(|checkout| checkout.top == folder)
    }
}

impl Machine for FakeMachine {
    fn now(&self) -> Instant {
        Instant(self.now.load(Ordering::Relaxed))
    }

    fn process(&self, pid: u32) -> Option<Process> {
        let processes = self.processes.lock().expect("no test panics while it holds this");
        processes.get(&pid).map(|start| Process { pid, start: *start, space: self.process_space() })
    }

    fn this_process(&self) -> Process {
        Process { pid: 1, start: 1, space: self.process_space() }
    }

    fn process_space(&self) -> Option<ProcessSpace> {
        let (boot, namespace) = (self.boot.load(Ordering::Relaxed), self.space.load(Ordering::Relaxed));
        Some(ProcessSpace { system: 1, boot, namespace })
    }

    fn open_files(&self, pid: u32) -> Vec<String> {
        let files = self.open_files.lock().expect("no test panics while it holds this");
        files.get(&pid).cloned().unwrap_or_default()
    }

    fn terminals(&self, _program: &str) -> Vec<Terminal> {
        let terminals = self.terminals.lock().expect("no test panics while it holds this");
        let living = terminals.iter().filter_map(|(pid, arguments)| Some((self.process(*pid)?, arguments)));
        let terminal = |(process, arguments): (Process, &Vec<String>)| Terminal {
            process,
            folder: PathBuf::from("/work"),
            arguments: arguments.clone(),
        };
        living.map(terminal).collect()
    }

    fn name(&self) -> &str {
        self.host
    }

    fn checkout(&self, folder: &Path) -> io::Result<Checkout> {
        // A folder `submodule` is a repository inside another one; a folder `worktree` is another working copy of the
        // repository around it.
        let up_to = |end: usize| folder.components().take(end).collect::<PathBuf>();
        let within = folder.components().position(|part| part.as_os_str() == "submodule");
        let worktree = folder.components().position(|part| part.as_os_str() == "worktree");
        let top = up_to(within.or(worktree).map_or(2, |at| at + 1));
        let repository = up_to(within.map_or(2, |at| at + 1));
        // A repository below `/clone` has a remote.
        let everywhere =
            repository.to_str().filter(|top| top.starts_with("/clone")).map(|_| "example.org/it".to_owned());
        Ok(Checkout { repository: Repository::named(&repository.to_string_lossy()), everywhere, top })
    }

    fn folder_mark(&self, folder: &Path) -> Option<String> {
        self.marks.lock().expect("no test panics while it holds this").get(folder).cloned()
    }

    fn file_mark(&self, file: &Path) -> Option<String> {
        self.marks.lock().expect("no test panics while it holds this").get(file).cloned()
    }

    fn resolve(&self, path: &Path) -> io::Result<Resolved> {
        let mut resolved = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    resolved.pop();
                }
                Component::CurDir => {}
                // A symlink that leaves every repository.
                Component::Normal(name) if name == "away" => resolved = PathBuf::from("/elsewhere"),
                // A symlink that stays inside.
                Component::Normal(name) if name == "link" => resolved.push("src"),
                other => resolved.push(other),
            }
        }
        // A plausible name without a dot is a folder. There are also a file `[id].tsx` and a folder `[slug]`.
        let name = resolved.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = match name.as_str() {
            "[id].tsx" => PathKind::File,
            "[slug]" => PathKind::Folder,
            ".git" if resolved.parent().is_some_and(|folder| self.is_top(folder)) => PathKind::File,
            name if !name.contains(['.', '*', '?', '[', '{', '}']) => PathKind::Folder,
            _ => PathKind::Nothing,
        };
        Ok(Resolved { path: resolved, found })
    }

    fn random(&self) -> [u8; 16] {
        // Tests only need the numbers to differ.
        u128::from(self.dice.fetch_add(1, Ordering::Relaxed))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
            .to_be_bytes()
    }
}

/// A harness named `fake`: its MCP client is named `fake`, and `_meta` holds the session's id.
///
/// Its hooks are JSON of the shape `{"session":"s1","did":"start|resume|compact|prompt|tool|few-bytes|stop|full-stop|interrupt|nothing|ask|end|clear:OLD|edit:PATH"}`.
/// Its reply on standard output is mail, or the reason why the edit is refused.
#[derive(Debug)]
pub struct FakeHarness {
    about: About,
    /// How many times `routes` was called.
    pub asked_for_routes: AtomicUsize,
    /// What `routes` answers.
    pub routes: Mutex<Vec<Route>>,
    /// What `discover` answers.
    pub discovered: Mutex<Vec<Session>>,
    /// The calls of `deliver`: route, session, text.
    pub delivered: Mutex<Vec<(String, String, String)>>,
    /// What `deliver` answers; by default the best status that the route proves.
    pub answer: Mutex<Option<Result<Delivered, HarnessError>>>,
    /// What its evidence says; by default it has none.
    pub evidence: Mutex<Option<Vec<(MessageId, Verdict)>>>,
    /// What it says that every session does.
    pub does: Mutex<Option<Activity>>,
    /// What its client's processes show; by default nothing.
    pub traces: Mutex<ClientTraces>,
    /// Whether its user sees a notice in the next answers; by default in none.
    pub shows: Mutex<Option<bool>>,
    /// What its user was told.
    pub told: Mutex<Vec<String>>,
}

impl Default for FakeHarness {
    fn default() -> FakeHarness {
        FakeHarness {
            about: About {
                harness: "fake".to_owned(),
                title: "Fake".to_owned(),
                version: "1".to_owned(),
                aliases: Vec::new(),
                connection_per_session: true,
            },
            asked_for_routes: AtomicUsize::default(),
            routes: Mutex::default(),
            discovered: Mutex::default(),
            delivered: Mutex::default(),
            answer: Mutex::default(),
            evidence: Mutex::default(),
            does: Mutex::default(),
            traces: Mutex::default(),
            shows: Mutex::default(),
            told: Mutex::default(),
        }
    }
}

/// A route for idle and for busy sessions.
pub fn route(name: &str, carries: Carries, proves: DeliveryStatus, timeout: u32) -> Route {
    let when = vec![Activity::Idle, Activity::Busy];
    Route { name: name.to_owned(), carries, proves, when, least: Priority::Normal, max_bytes: 10_000, timeout }
}

#[async_trait]
impl Harness for FakeHarness {
    fn about(&self) -> &About {
        &self.about
    }

    fn traces(&self) -> ClientTraces {
        self.traces.lock().expect("no test panics while it holds this").clone()
    }

    async fn detect(&self, seen: &Caller) -> Result<Option<Detection>, HarnessError> {
        let of = |id: &str, certainty| {
            let (id, parent) = match id.split_once('<') {
                Some((id, parent)) => (id, Some(parent.to_owned())),
                None => (id, None),
            };
            let session =
                Session { id: id.to_owned(), parent, workdir: "/work".to_owned(), process: None, route_hint: None };
            Detection { session, certainty }
        };
        let inherited = seen.environment.iter().find(|(name, _)| name == "FAKE_SESSION");
        Ok(match (&seen.meta, inherited) {
            (Some(meta), _) => Some(of(meta, Certainty::Certain)),
            (None, Some((_, id))) => Some(of(id, Certainty::Inherited)),
            (None, None) => None,
        })
    }

    async fn discover(&self) -> Result<Vec<Session>, HarnessError> {
        Ok(self.discovered.lock().expect("no test panics while it holds this").clone())
    }

    async fn activity_of(&self, session: &str) -> Result<Activity, HarnessError> {
        let does = *self.does.lock().expect("no test panics while it holds this");
        does.ok_or_else(|| HarnessError::NotFound(session.to_owned()))
    }

    async fn protocol(&self, base: &str, _: Occasion, _: Option<&str>) -> Result<Option<String>, HarnessError> {
        Ok(Some(base.to_owned()))
    }

    async fn routes(&self, _: &Session) -> Result<Vec<Route>, HarnessError> {
        self.asked_for_routes.fetch_add(1, Ordering::Relaxed);
        Ok(self.routes.lock().expect("no test panics while it holds this").clone())
    }

    async fn deliver(&self, to: &Session, route: &str, mail: &Mail) -> Result<Delivered, HarnessError> {
        let delivery = (route.to_owned(), to.id.clone(), mail.text.clone());
        self.delivered.lock().expect("no test panics while it holds this").push(delivery);
        if let Some(answer) = &*self.answer.lock().expect("no test panics while it holds this") {
            return answer.clone();
        }
        let routes = self.routes.lock().expect("no test panics while it holds this");
        let proves = routes.iter().find(|known| known.name == route).map(|known| known.proves);
        Ok(Delivered { status: proves.unwrap_or(DeliveryStatus::Notified), evidence: Some("{\"turn\":1}".to_owned()) })
    }

    async fn confirm(&self, _: &Session, _: &str, sent: &Delivered) -> Result<Delivered, HarnessError> {
        Ok(sent.clone())
    }

    async fn present(&self) -> Result<Option<String>, HarnessError> {
        Ok(Some("1".to_owned()))
    }

    async fn propose(&self, _: &Setup) -> Result<Plan, HarnessError> {
        Ok(Plan::default())
    }

    async fn check(&self, _: &Setup) -> Result<Vec<Finding>, HarnessError> {
        Ok(Vec::new())
    }

    fn optional(&self) -> OptionalInterfaces<'_> {
        let has_evidence = self.evidence.lock().expect("no test panics while it holds this").is_some();
        OptionalInterfaces { evidence: has_evidence.then_some(self as &dyn HarnessEvidence), ..Default::default() }
    }

    fn shows_notices(&self) -> bool {
        self.shows.lock().expect("no test panics while it holds this").is_some()
    }

    fn put_notice(&self, _: &str, _: &mut Reply, notice: &str) -> bool {
        let shows = *self.shows.lock().expect("no test panics while it holds this") == Some(true);
        if shows {
            self.told.lock().expect("no test panics while it holds this").push(notice.to_owned());
        }
        shows
    }

    async fn hook(&self, call: &HookCall, hook_host: &mut dyn HookHost) -> Result<Reply, HarnessError> {
        let payload: serde_json::Value =
            serde_json::from_str(&call.payload).map_err(|error| HarnessError::Failed(error.to_string()))?;
        let field = |name: &str| payload[name].as_str().map(str::to_owned);
        let (Some(id), Some(did)) = (field("session"), field("did")) else {
            return Err(HarnessError::Failed("the payload has another shape".to_owned()));
        };
        let findings: Findings = hook_host.look_up(read(&id, &did, payload["pid"].as_u64())).await;
        Ok(Reply {
            shows_mail: findings.mail.is_some(),
            stdout: findings.mail.map(|mail| mail.text).or(findings.refusal),
            stderr: findings.protocol,
            exit_code: 0,
        })
    }
}

#[async_trait]
impl HarnessEvidence for FakeHarness {
    async fn look(&self, _: &HookCall, _: &[HandedOver]) -> Result<Vec<(MessageId, Verdict)>, HarnessError> {
        Ok(self.evidence.lock().expect("no test panics while it holds this").clone().unwrap_or_default())
    }
}

fn read(id: &str, did: &str, pid: Option<u64>) -> Reading {
    use crate::ports::harness::HookEvent;
    let activity = |activity| vec![HookEvent::Activity { session: id.to_owned(), activity }];
    let session = Session {
        id: id.to_owned(),
        // `s1.a` is a subagent in `s1`.
        parent: id.split_once('.').map(|(root, _)| root.to_owned()),
        workdir: "/work".to_owned(),
        process: pid.and_then(|pid| u32::try_from(pid).ok()),
        route_hint: None,
    };
    let edits = did.strip_prefix("edit:").map(str::to_owned).into_iter().collect();
    let (events, occasion, max_bytes, attended) = match did {
        "start" => (activity(Activity::Idle), Some(Occasion::Start), 0, true),
        // Reports no activity.
        "resume" => (Vec::new(), Some(Occasion::Resume), 0, true),
        "compact" => (Vec::new(), Some(Occasion::Compaction), 0, false),
        "nothing" => (Vec::new(), None, 9_000, false),
        "prompt" => {
            let mut events = activity(Activity::Busy);
            events.push(HookEvent::UserSpoke(id.to_owned()));
            (events, None, 9_000, true)
        }
        "tool" => (activity(Activity::Busy), None, 9_000, false),
        "few-bytes" => (activity(Activity::Busy), None, 100, false),
        "ask" => (activity(Activity::NeedsInput), None, 9_000, false),
        "stop" => (activity(Activity::Idle), None, 9_000, false),
        "full-stop" => (activity(Activity::Idle), None, 0, false),
        "interrupt" => (vec![HookEvent::Stopped(id.to_owned())], None, 0, false),
        "end" => (vec![HookEvent::Ended(id.to_owned())], None, 0, false),
        other => match other.split_once(':') {
            Some(("clear", old)) => {
                let moved = HookEvent::Rebound { from: old.to_owned(), to: id.to_owned() };
                (vec![moved], Some(Occasion::Compaction), 0, true)
            }
            Some(_) | None => (Vec::new(), None, 0, false),
        },
    };
    Reading {
        speaker: Some(session),
        events,
        occasion,
        max_bytes,
        attended,
        watches_wake_file: occasion.is_some(),
        edits,
    }
}

#[async_trait]
impl Harnesses for FakeHarnesses {
    fn names(&self) -> Vec<String> {
        vec!["fake".to_owned()]
    }

    async fn get(&self, name: &str) -> Result<Option<Arc<dyn Harness>>, HarnessError> {
        Ok((name == "fake").then(|| Arc::clone(&self.0) as Arc<dyn Harness>))
    }

    async fn candidates(&self, seen: &Caller) -> Vec<Candidate> {
        let meant = seen.client_name.as_deref() == Some("fake") || !seen.environment.is_empty();
        if meant { vec![Candidate::owner(Arc::clone(&self.0) as Arc<dyn Harness>)] } else { Vec::new() }
    }
}

/// The set of harnesses in a test: only the fake one.
#[derive(Clone, Debug, Default)]
pub struct FakeHarnesses(pub Arc<FakeHarness>);

impl FakeHarnesses {
    /// A fake harness with several sessions per connection.
    pub fn of_many_sessions_per_connection() -> FakeHarnesses {
        let mut harness = FakeHarness::default();
        harness.about.connection_per_session = false;
        FakeHarnesses(Arc::new(harness))
    }
}

/// A call over stdio by a client that no adapter knows.
pub fn call(connection: &str) -> Call {
    Call {
        caller: Caller {
            transport: Transport::Stdio,
            client_name: None,
            client_version: None,
            meta: None,
            headers: Vec::new(),
            tool: None,
            arguments: None,
            environment: Vec::new(),
            workdir: Some("/work".to_owned()),
        },
        connection: Some(ConnectionId(connection.to_owned())),
        ticket: None,
        key: None,
        claims_to_be: None,
    }
}

/// A call from a session that the fake harness detects with certainty.
pub fn session_call(connection: &str, session: &str) -> Call {
    let mut call = call(connection);
    call.caller.client_name = Some("fake".to_owned());
    call.caller.meta = Some(session.to_owned());
    call
}

/// A call from a command line, with or without `--from`.
pub fn shell_call(from: Option<&str>) -> Call {
    let mut call = call("");
    call.caller.transport = Transport::CommandLine;
    call.connection = None;
    call.claims_to_be = from.map(|name| name.parse().expect("a name"));
    call
}
