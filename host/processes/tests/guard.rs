//! The guard against real shells that start children in every way that harnesses do: nothing of them is left, whoever
//! is killed.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use processes::guard::{Cause, Ended, Limits, Order, Running, Step, StepSignal, Streams};
use processes::{Guard, ProcessId, end_marked, is_alive};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// How long to wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

struct Stage {
    folder: tempfile::TempDir,
    mark: String,
}

impl Stage {
    fn new() -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = folder.path().file_name().expect("a name").to_string_lossy().into_owned();
        Stage { folder, mark }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn files(&self, input: String) -> Streams {
        Streams::Files { input, output: self.path("output") }
    }

    fn order(&self, script: &str) -> Order {
        Order {
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            environment: [("PATH", "/usr/bin:/bin"), ("RELAY_RUN", &self.mark)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            folder: self.folder.path().to_owned(),
            streams: self.files(String::new()),
            stop: vec![Step { signal: StepSignal::Terminate, grace: 200 }],
            limits: Limits::default(),
            errors: self.path("errors"),
            running: self.path("running.json"),
            ended: self.path("ended.json"),
        }
    }

    async fn start(&self, order: &Order) -> Guard {
        Guard::start(&guard_binary(), order).await.expect("the guard starts")
    }

    async fn run(&self, order: &Order) -> Ended {
        let ended = self.start(order).await.ended().await.expect("it ends");
        self.nothing_is_left();
        ended
    }

    fn output(&self) -> String {
        std::fs::read_to_string(self.path("output")).expect("an output")
    }

    /// The processes whose environment has the mark of this stage.
    fn ours(&self) -> Vec<String> {
        let line = format!("RELAY_RUN={}", self.mark).into_bytes();
        let all = std::fs::read_dir("/proc").expect("a list").flatten();
        let marked = |process: &Path| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|found| found == line)
        };
        let named = |process: PathBuf| {
            let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).replace('\0', " ")
        };
        all.map(|entry| entry.path()).filter(|path| marked(path)).map(named).collect()
    }

    fn nothing_is_left(&self) {
        assert_eq!(self.ours(), [""; 0], "a process of the run is left");
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.ours());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn guard_binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    test.parent().and_then(Path::parent).expect("a folder of the build").join("examples/guard")
}

fn kill(process: ProcessId) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).expect("a number");
    kill_process(pid, Signal::KILL).expect("it lives");
}

/// A shell that starts a child in its own group, one in a session of its own, and one that has lost its parent.
const CHILDREN: &str = "sleep 300 & setsid sleep 300 & (setsid nohup sleep 300 >/dev/null 2>&1 &) ; echo started; ";

#[tokio::test]
async fn a_program_ends_by_itself_with_all_that_it_said() {
    let stage = Stage::new();
    let ended = stage.run(&stage.order("echo out; echo err >&2; exit 3")).await;
    assert_eq!((ended.cause, ended.code, ended.signal), (Cause::Itself, Some(3), None));
    assert_eq!((stage.output().as_str(), ended.stderr_end.as_str()), ("out\n", "err\n"));
    let ended = Stage::new();
    let ended = ended.run(&ended.order("kill -9 $$")).await;
    assert_eq!((ended.cause, ended.code, ended.signal), (Cause::Itself, None, Some(9)), "a signal is no exit code");
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_killed_after_a_natural_end_too() {
    let stage = Stage::new();
    let ended = stage.run(&stage.order(&format!("{CHILDREN} trap '' TERM; exit 0"))).await;
    assert_eq!((ended.cause, ended.code), (Cause::Itself, Some(0)));
    let stage = Stage::new();
    let stubborn = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & sleep 0.2; exit 0";
    let ended = stage.run(&stage.order(stubborn)).await;
    assert!(ended.killed > 0 && ended.left == 0, "{ended:?}");
}

#[tokio::test]
async fn the_host_talks_with_a_program_and_sees_when_either_end_is_closed() {
    let stage = Stage::new();
    let talking = |script: &str| Order { streams: Streams::Pipes, ..stage.order(script) };
    let (mut guard, mut input, output) =
        Guard::talk(&guard_binary(), &talking("cat; echo end >&2")).await.expect("the guard starts");
    assert!(guard.started().await.is_some_and(|started| started.program.is_some()));
    let mut lines = BufReader::new(output).lines();
    for word in ["one", "two"] {
        input.write_all(format!("{word}\n").as_bytes()).await.expect("it reads");
        assert_eq!(lines.next_line().await.expect("it answers").as_deref(), Some(word));
    }
    drop(input);
    assert_eq!(lines.next_line().await.expect("its end"), None);
    let ended = guard.ended().await.expect("it ends");
    assert_eq!((ended.cause, ended.code, ended.stderr_end.as_str()), (Cause::Itself, Some(0), "end\n"));

    let (mut guard, mut input, output) =
        Guard::talk(&guard_binary(), &talking("exec <&-; echo deaf; exec >&-; sleep 300")).await.expect("it starts");
    let mut lines = BufReader::new(output).lines();
    assert_eq!(lines.next_line().await.expect("it speaks").as_deref(), Some("deaf"));
    assert_eq!(lines.next_line().await.expect("its end"), None, "the guard holds no end of its own");
    assert!(input.write_all(b"lost\n").await.is_err(), "nobody reads");
    guard.stop().await;
    assert_eq!(guard.ended().await.expect("it ends").cause, Cause::Stopped);

    let (guard, input, output) =
        Guard::talk(&guard_binary(), &talking(&format!("{CHILDREN} cat"))).await.expect("it starts");
    let mut lines = BufReader::new(output).lines();
    assert_eq!(lines.next_line().await.expect("it speaks").as_deref(), Some("started"));
    drop((guard, input, lines));
    stage.until("the leash broke", || stage.ours().is_empty()).await;
}

#[tokio::test]
async fn input_of_any_length_arrives_and_ends() {
    let stage = Stage::new();
    let input = "0123456789abcdef".repeat(200 * 64);
    let ended = stage.run(&Order { streams: stage.files(input.clone()), ..stage.order("cat; echo; echo end") }).await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(stage.output(), format!("{input}\nend\n"));
    let stage = Stage::new();
    let ended = stage.run(&Order { streams: stage.files(input), ..stage.order("exit 0") }).await;
    assert_eq!(ended.code, Some(0), "a program may ignore its input");
}

#[tokio::test]
async fn a_program_is_ended_when_its_limit_is_reached() {
    for (limits, script, cause) in [
        (Limits { time: Some(300), ..Limits::default() }, "while :; do echo x; sleep 0.05; done", Cause::Time),
        (Limits { silence: Some(300), ..Limits::default() }, "echo x; sleep 300", Cause::Silence),
        (Limits { output: Some(100_000), ..Limits::default() }, "yes", Cause::Output),
    ] {
        let stage = Stage::new();
        let order = Order { limits, ..stage.order(&format!("{CHILDREN} {script}")) };
        assert_eq!(stage.run(&order).await.cause, cause, "{script}");
    }
}

#[tokio::test]
async fn a_program_is_asked_in_its_own_order_and_killed_if_it_does_not_listen() {
    let stage = Stage::new();
    let stop = [StepSignal::Interrupt, StepSignal::Terminate].map(|signal| Step { signal, grace: 2_000 }).to_vec();
    let polite =
        "trap 'echo interrupted; exit 5' INT; trap 'echo terminated' TERM; echo ready; while :; do sleep 0.05; done";
    let order = Order { stop: stop.clone(), ..stage.order(polite) };
    let mut guard = stage.start(&order).await;
    stage.until("it is ready", || stage.path("output").exists() && stage.output().contains("ready")).await;
    guard.stop().await;
    let ended = guard.ended().await.expect("it ends");
    assert_eq!((ended.cause, ended.code), (Cause::Stopped, Some(5)));
    assert_eq!(stage.output(), "ready\ninterrupted\n");

    let stage = Stage::new();
    let stop = stop.into_iter().map(|step| Step { grace: 100, ..step }).collect();
    let deaf = Order { stop, ..stage.order(&format!("trap '' INT TERM; {CHILDREN} while :; do sleep 0.05; done")) };
    let mut guard = stage.start(&deaf).await;
    stage.until("it has started", || stage.path("output").exists() && stage.output().contains("started")).await;
    guard.stop().await;
    let ended = guard.ended().await.expect("it ends");
    assert_eq!((ended.cause, ended.code, ended.signal), (Cause::Stopped, None, Some(9)));
    stage.nothing_is_left();
}

#[tokio::test]
async fn a_host_that_is_gone_leaves_nothing_running() {
    let stage = Stage::new();
    let order = stage.order(&format!("{CHILDREN} sleep 300"));
    let mut guard = stage.start(&order).await;
    guard.started().await.expect("it has started");
    stage.until("its children run", || stage.ours().len() >= 5).await;
    // The kernel closes the leash of a host that is killed, as this does.
    drop(guard);
    stage.until("everything has ended", || stage.path("ended.json").exists()).await;
    stage.nothing_is_left();
    let ended = processes::ended_as_written(&order.ended, &order.errors);
    assert_eq!((ended.cause, ended.signal), (Cause::Leash, Some(15)));
}

#[tokio::test]
async fn a_guard_that_is_killed_takes_the_program_along_and_the_mark_finds_the_rest() {
    let stage = Stage::new();
    let order = stage.order(&format!("{CHILDREN} sleep 300"));
    let mut guard = stage.start(&order).await;
    let Running { guard: pid, program } = guard.started().await.expect("it has started");
    let program = program.expect("it has started");
    stage.until("its children run", || stage.ours().len() >= 5).await;
    kill(pid);
    let ended = guard.ended().await.expect("it ends");
    assert_eq!(ended.cause, Cause::GuardLost);
    stage.until("the system has killed the program", || !is_alive(program)).await;
    assert!(end_marked("RELAY_RUN", &stage.mark) > 0, "what has a session of its own was left");
    stage.nothing_is_left();
    assert_eq!(end_marked("RELAY_RUN", &stage.mark), 0);
}

#[tokio::test]
async fn a_program_that_is_killed_leaves_nothing_running() {
    let stage = Stage::new();
    let order = stage.order(&format!("{CHILDREN} sleep 300"));
    let mut guard = stage.start(&order).await;
    let running = guard.started().await.expect("it has started");
    stage.until("its children run", || stage.ours().len() >= 5).await;
    kill(running.program.expect("it has started"));
    let ended = guard.ended().await.expect("it ends");
    assert_eq!((ended.cause, ended.signal), (Cause::Itself, Some(9)));
    stage.nothing_is_left();
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    for (command, folder, expected) in [
        (vec!["/nonexistent/program".to_owned()], "/", "No such file"),
        (vec!["/etc/passwd".to_owned()], "/", "denied"),
        (vec!["/bin/true".to_owned()], "/nonexistent", "No such file"),
        (vec!["/bin/true".to_owned()], "/etc/passwd", "a directory"),
    ] {
        let stage = Stage::new();
        let order = Order { command, folder: folder.into(), ..stage.order("") };
        let ended = stage.run(&order).await;
        assert!(ended.not_started.as_ref().is_some_and(|why| why.contains(expected)), "{ended:?}");
    }
}

#[tokio::test]
async fn standard_error_is_kept_at_its_beginning_and_its_end() {
    let stage = Stage::new();
    let ended = stage.run(&stage.order("echo first >&2; yes | head -c 3000000 >&2; echo last >&2")).await;
    let begin = std::fs::read_to_string(stage.path("errors")).expect("a file");
    assert!(begin.starts_with("first\n") && begin.len() == 64 * 1024, "{}", begin.len());
    assert!(ended.stderr_end.ends_with("last\n") && ended.stderr_end.len() <= 64 * 1024);
}
