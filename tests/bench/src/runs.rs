//! What `relay-mesh run` costs beside the harness that it runs: until the harness starts, in memory, for reading what it
//! prints, and for listing runs that are over. The harness is a small program in Claude Code's place.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Failure, Subject, baseline, programs};
use bench::process::{is_zombie, processor_time, proportional, resident};
use bench::report::Report;
use bench::sampling::{Compared, compare, median};

/// What `run` may add until its harness starts.
const LATEST_START: Duration = Duration::from_millis(5);
/// What `run` and its guard may keep in memory of their own beside the harness, in megabytes.
const MEMORY: f64 = 10.0;
/// Events of the long stream.
const EVENTS: usize = 100_000;
/// How fast it is read at least, in bytes in a second of one core.
const READING: f64 = 50e6;
/// Runs that are listed, and how long that may take.
const LISTED: (usize, Duration) = (50, Duration::from_millis(20));
/// Times that the long stream is read.
const ROUNDS: usize = 3;
/// How long a harness may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// A process that has not grown for so long has done what it does before it waits.
const STILL: Duration = Duration::from_millis(500);

pub(crate) fn runs(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let stand = Stand::new(subject)?;
    stand.say(&[])?;
    starting(&stand, report)?;
    memory(&stand, report)?;
    listing(&stand, report)?;
    reading(&stand, report)
}

/// The time until the harness starts, against starting it without us.
fn starting(stand: &Stand<'_>, report: &Report) -> Result<(), Failure> {
    let data = stand.subject.data_folder("runs-starting");
    let compared = compare(|| stand.until_begun(&mut stand.run(&data)), || stand.until_begun(&mut stand.bare()))?;
    report.difference("run, until its harness starts", compared.subject, compared.baseline, LATEST_START);
    let whole = compare(
        || stand.timed(&data),
        || programs::time(&mut programs::command(&stand.subject.baselines.hello), None),
    )?;
    report.figure("the whole of a run that takes no time", &whole);
    Ok(())
}

/// What the two processes of ours keep while the harness works. Pages of the program's file are told beside it: the system
/// maps as many of them at once as it likes, all processes of ours share them, and it takes them back when it wants.
fn memory(stand: &Stand<'_>, report: &Report) -> Result<(), Failure> {
    let data = stand.subject.data_folder("runs-memory");
    std::fs::write(stand.folder.join("stay"), "")?;
    let mut run = stand.run(&data).spawn()?;
    stand.wait_until_begun(&mut run)?;
    let guard = guard_of(&data)?;
    let keep = || Ok::<f64, Failure>(proportional(run.id())? + proportional(guard)?);
    let (mut most, mut still) = (keep()?, Instant::now());
    while still.elapsed() < STILL {
        let now = keep()?;
        if now > most {
            (most, still) = (now, Instant::now());
        }
        std::thread::yield_now();
    }
    let own = resident(run.id())?.own + resident(guard)?.own;
    programs::output(stand.relay(&data).args(["runs", "stop", "last"]), "")?;
    run.wait()?;
    std::fs::remove_file(stand.folder.join("stay"))?;
    let mapped = most - own;
    let remark =
        format!(" ({mapped:.1} MB beside that are mapped from the program's file, as in every process of ours)");
    report.size("run and its guard, beside the harness: their own", own, MEMORY, "MB", &remark);
    Ok(())
}

/// `runs list` with fifty runs that have ended.
fn listing(stand: &Stand<'_>, report: &Report) -> Result<(), Failure> {
    let data = stand.subject.data_folder("runs-listing");
    for _ in 0..LISTED.0 {
        stand.timed(&data)?;
    }
    let compared = compare(
        || programs::time(stand.relay(&data).args(["runs", "list"]), None),
        || programs::time(&mut programs::command(&stand.subject.baselines.hello), None),
    )?;
    report.figure("runs list, 50 finished runs", &compared);
    report.time("  and in itself", compared.subject, LISTED.1);
    Ok(())
}

/// A long stream of events: the processor time of the whole run, against parsing the same lines as JSON.
fn reading(stand: &Stand<'_>, report: &Report) -> Result<(), Failure> {
    let data = stand.subject.data_folder("runs-reading");
    let events: Vec<Value> = (0..EVENTS).map(event).collect();
    let length = stand.say(&events)?;
    let (mut reading, mut parsing) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut run = stand.run(&data).spawn()?;
        stand.wait_until_begun(&mut run)?;
        while !is_zombie(run.id())? {
            std::thread::sleep(Duration::from_millis(5));
        }
        reading.push(processor_time(run.id())?);
        let outcome = run.wait()?;
        if !outcome.success() {
            return Err(format!("a run of {EVENTS} events ended with {outcome}").into());
        }
        parsing.push(parsed(&stand.folder.join("output"))?);
    }
    let compared = Compared { subject: median(reading), baseline: median(parsing) };
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let length = length as f64;
    let name = format!("a stream of 100,000 events ({:.0} MB)", length / 1e6);
    report.time(&name, compared.subject, Duration::from_secs_f64(length / READING));
    report.figure("  against parsing its lines as JSON", &compared);
    report.amount("  of one core", length / 1e6 / compared.subject.as_secs_f64(), "MB/s", "");
    Ok(())
}

/// Parses each line of a file.
fn parsed(path: &Path) -> Result<Duration, Failure> {
    let text = std::fs::read_to_string(path)?;
    let began = Instant::now();
    for line in text.lines() {
        std::hint::black_box(serde_json::from_str::<Value>(line)?);
    }
    Ok(began.elapsed())
}

/// One event of Claude Code's stream: it speaks, calls a tool, and gets the tool's result, in turns.
fn event(number: usize) -> Value {
    let words = "The parser keeps the offsets of all lines that it has seen, so a second pass finds them at once. ";
    let content = match number % 3 {
        0 => json!({"type": "text", "text": format!("{number}. {}", words.repeat(2))}),
        1 => json!({
            "type": "tool_use", "id": format!("toolu_{number}"), "name": "Read",
            "input": {"file_path": format!("/project/src/module_{number}.rs")}
        }),
        _ => json!({"type": "tool_result", "tool_use_id": format!("toolu_{}", number - 1), "content": words.repeat(3)}),
    };
    let role = if number % 3 == 2 { "user" } else { "assistant" };
    let usage = json!({
        "input_tokens": 3, "cache_creation_input_tokens": 512, "cache_read_input_tokens": 18_000, "output_tokens": 64
    });
    json!({
        "type": role,
        "message": {
            "id": format!("msg_{number}"), "type": "message", "role": role, "model": "a-model", "content": [content],
            "stop_reason": null, "stop_sequence": null, "usage": usage
        },
        "parent_tool_use_id": null, "session_id": SESSION, "uuid": format!("00000000-0000-4000-8000-{number:012}")
    })
}

/// The session of every run here.
const SESSION: &str = "5e551011-0000-4000-8000-000000000001";

/// A folder with the harness, and a project in which it works.
struct Stand<'a> {
    subject: &'a Subject,
    folder: PathBuf,
    project: PathBuf,
    begun: UnixDatagram,
}

impl Stand<'_> {
    fn new(subject: &Subject) -> Result<Stand<'_>, Failure> {
        let folder = subject.scratch.path().join("runs");
        let project = folder.join("project");
        std::fs::create_dir_all(&project)?;
        baseline::harness(&folder, "claude")?;
        let begun = UnixDatagram::bind(folder.join("begun"))?;
        begun.set_read_timeout(Some(PATIENCE))?;
        Ok(Stand { subject, folder, project, begun })
    }

    /// What the harness will print: its beginning, these events, and its result. Returns the length in bytes.
    fn say(&self, events: &[Value]) -> Result<u64, Failure> {
        let begins = json!({
            "type": "system", "subtype": "init", "session_id": SESSION, "cwd": "/", "tools": [], "mcp_servers": [],
            "model": "a-model", "permissionMode": "default"
        });
        let used = json!({
            "input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 0
        });
        let ends = json!({
            "type": "result", "subtype": "success", "is_error": false, "result": "done", "session_id": SESSION,
            "num_turns": 1, "duration_ms": 1, "duration_api_ms": 1, "total_cost_usd": 0.001, "usage": used,
            "modelUsage": {}, "permission_denials": [], "uuid": "u"
        });
        let mut text = String::new();
        for line in std::iter::once(&begins).chain(events).chain(std::iter::once(&ends)) {
            text.push_str(&format!("{line}\n"));
        }
        std::fs::write(self.folder.join("output"), &text)?;
        Ok(text.len() as u64)
    }

    fn relay(&self, data: &Path) -> Command {
        let mut relay = programs::relay_mesh(&self.subject.relay_mesh, data);
        relay.current_dir(&self.project).env("PATH", format!("{}:/usr/bin:/bin", self.folder.display()));
        relay.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        relay
    }

    fn run(&self, data: &Path) -> Command {
        let mut run = self.relay(data);
        run.args(["run", "claude", "do it", "--json"]);
        run
    }

    fn bare(&self) -> Command {
        let mut bare = programs::command(self.folder.join("claude"));
        bare.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bare
    }

    /// Runs a program to its end and gives the time until the harness began.
    fn until_begun(&self, command: &mut Command) -> Result<Duration, Failure> {
        let began = Instant::now();
        let mut child = command.spawn()?;
        self.wait_until_begun(&mut child)?;
        let took = began.elapsed();
        let outcome = child.wait()?;
        if outcome.success() { Ok(took) } else { Err(format!("{command:?} ended with {outcome}").into()) }
    }

    fn wait_until_begun(&self, child: &mut Child) -> Result<(), Failure> {
        match self.begun.recv(&mut [0]) {
            Ok(_) => Ok(()),
            Err(error) => {
                let _ended = child.kill();
                Err(format!("the harness was not started: {error}").into())
            }
        }
    }

    /// A run to its end. The harness's word that it has begun is taken, so that it is not mistaken for a later one's.
    fn timed(&self, data: &Path) -> Result<Duration, Failure> {
        let took = programs::time(&mut self.run(data), None)?;
        self.begun.recv(&mut [0])?;
        Ok(took)
    }
}

/// The guard of the only run in a data folder.
fn guard_of(data: &Path) -> Result<u32, Failure> {
    for run in std::fs::read_dir(data.join("runs"))?.flatten() {
        let Ok(text) = std::fs::read(run.path().join("running-1")) else { continue };
        let running: Value = serde_json::from_slice(&text)?;
        let pid = running["guard"]["pid"].as_u64().ok_or("a run without a guard")?;
        return Ok(u32::try_from(pid)?);
    }
    Err("no run has a guard".into())
}
