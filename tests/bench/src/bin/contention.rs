//! Measures many processes that append to one log concurrently, against the least that any program could do: a bare
//! open, flock, append, close.
//!
//! `cargo run --profile rig -p bench --bin contention -- [PROCESSES [MESSAGES [FOLDER]]]` prints a line for each way, all in one
//! run, with its ratio to the bare loop. The store indexes as the product's does. The processes are this program, started again; they wait for a
//! common start, so that only appending is measured.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark starts processes of itself")]

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, Key, Position, Store};
use ulid::Ulid;

/// The budgets of the design: seconds for 20,000 synced messages, and times the bare loop without.
const SYNCED_BUDGET: f64 = 1.0;
const UNSYNCED_BUDGET: f64 = 3.0;

/// Number of runs of each way; the best run counts, being the least disturbed.
const ROUNDS: usize = 3;

/// A way to append.
#[derive(Clone, Copy)]
enum Way {
    /// Open, flock, append, close.
    Bare,
    /// The store, acknowledging once the operating system has the bytes.
    Unsynced,
    /// The store, acknowledging once the bytes are on disk.
    Synced,
}

impl Way {
    const ALL: [Way; 3] = [Way::Bare, Way::Unsynced, Way::Synced];

    fn word(self) -> &'static str {
        match self {
            Way::Bare => "bare",
            Way::Unsynced => "unsynced",
            Way::Synced => "synced",
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [marker, way, folder, messages] = &words[..]
        && marker == "--child"
    {
        let way = Way::ALL.into_iter().find(|known| known.word() == way).ok_or("no such way")?;
        return child(way, Path::new(folder), messages.parse()?);
    }
    let processes: usize = words.first().map_or(Ok(20), |word| word.parse())?;
    let messages: usize = words.get(1).map_or(Ok(1000), |word| word.parse())?;
    let folder = words.get(2).map_or_else(std::env::temp_dir, PathBuf::from);
    let mut best = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        for (way, best) in Way::ALL.into_iter().zip(&mut best) {
            *best = measure(way, processes, messages, &folder)?.min(*best);
        }
    }
    let bare = best[0].as_secs_f64();
    let sync = one_sync(&folder)?.as_secs_f64();
    println!("sync      one fdatasync after one message, alone: {:>7.1} us", sync * 1_000_000.0);
    let scale = (processes * messages) as f64 / 20_000.0;
    for (way, taken) in Way::ALL.into_iter().zip(best) {
        let seconds = taken.as_secs_f64();
        let budget = match way {
            Way::Bare => String::new(),
            Way::Unsynced => format!(", budget {UNSYNCED_BUDGET:.1}, {}", word(seconds / bare <= UNSYNCED_BUDGET)),
            // The disk's speed is outside our control. With one message in flight per process, a sync serves at most
            // one message of each; the ratio shows how close the store comes to that.
            Way::Synced => format!(
                ", budget {SYNCED_BUDGET:.1} s, {}; {:.2} x a lone sync per round of messages",
                word(seconds <= SYNCED_BUDGET * scale),
                seconds / (messages as f64 * sync)
            ),
        };
        println!(
            "{:<9} {processes} x {messages}: {:>7.1} ms, {:>7.0} messages/s, ratio to bare {:.2}{budget}",
            way.word(),
            seconds * 1000.0,
            (processes * messages) as f64 / seconds,
            seconds / bare,
        );
    }
    Ok(())
}

/// How long this disk takes to sync one message without contention.
fn one_sync(folder: &Path) -> Result<Duration, Box<dyn Error>> {
    const TIMES: u32 = 200;
    let path = folder.join(format!("relay-mesh-sync-{}", std::process::id()));
    let mut file = File::create(&path)?;
    let started = Instant::now();
    for _ in 0..TIMES {
        file.write_all(&entry())?;
        file.sync_data()?;
    }
    let taken = started.elapsed() / TIMES;
    fs::remove_file(&path)?;
    Ok(taken)
}

fn word(kept: bool) -> &'static str {
    if kept { "kept" } else { "MISSED" }
}

/// Starts the processes, releases them together, and waits for the last.
fn measure(way: Way, processes: usize, messages: usize, folder: &Path) -> Result<Duration, Box<dyn Error>> {
    let folder = folder.join(format!("relay-mesh-contention-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut children: Vec<(Child, ChildStdin, ChildStdout)> = Vec::new();
    for _ in 0..processes {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child", way.word()])
            .arg(&folder)
            .arg(messages.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no standard input")?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        children.push((child, stdin, stdout));
    }
    for (_, _, stdout) in &mut children {
        stdout.read_exact(&mut [0])?;
    }
    let started = Instant::now();
    for (_, stdin, _) in &mut children {
        stdin.write_all(b"!")?;
    }
    for (_, _, stdout) in &mut children {
        stdout.read_exact(&mut [0])?;
    }
    let taken = started.elapsed();
    for (child, _, _) in &mut children {
        if !child.wait()?.success() {
            return Err("a process failed".into());
        }
    }
    count(way, &folder, processes * messages)?;
    fs::remove_dir_all(&folder)?;
    Ok(taken)
}

/// Checks that all measured appends really happened.
fn count(way: Way, folder: &Path, expected: usize) -> Result<(), Box<dyn Error>> {
    let found = match way {
        Way::Bare => fs::read(folder.join("bare.jsonl"))?.split(|byte| *byte == b'\n').count() - 1,
        Way::Unsynced | Way::Synced => runtime()?.block_on(async {
            let store = FilesStore::open(folder, FilesOptions::default())?;
            let (mut found, mut at) = (0, Position::START);
            loop {
                let batch = store.read(&log()?, at, 1 << 20).await?;
                found += batch.entries.len();
                at = batch.next;
                if batch.at_end {
                    return Ok::<usize, Box<dyn Error>>(found);
                }
            }
        })?,
    };
    if found == expected { Ok(()) } else { Err(format!("{found} of {expected} messages are there").into()) }
}

fn child(way: Way, folder: &Path, messages: usize) -> Result<(), Box<dyn Error>> {
    match way {
        Way::Bare => {
            let path = folder.join("bare.jsonl");
            await_start()?;
            for _ in 0..messages {
                let mut line = entry();
                line.push(b'\n');
                let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
                flock(&file, FlockOperation::LockExclusive)?;
                file.write_all(&line)?;
            }
        }
        Way::Unsynced => append(folder, messages, Durability::Process)?,
        Way::Synced => append(folder, messages, Durability::Synced)?,
    }
    say_done()
}

fn append(folder: &Path, messages: usize, durability: Durability) -> Result<(), Box<dyn Error>> {
    runtime()?.block_on(async {
        let rule = Some(Arc::new(mesh::MeshIndexRule) as _);
        let store = FilesStore::open(folder, FilesOptions { rule, ..FilesOptions::default() })?;
        let log = log()?;
        await_start()?;
        for _ in 0..messages {
            store.append(&log, &[entry()], Expect::Any, durability).await?;
        }
        Ok(())
    })
}

/// A message of about 300 bytes, with an id and a time of its own.
fn entry() -> Vec<u8> {
    let id = Ulid::generate();
    let message = json!({
        "id": id.to_string(), "at": id.timestamp_ms(), "from": "alice", "to": "bob", "body": "x".repeat(180),
    });
    message.to_string().into_bytes()
}

fn log() -> Result<Key, Box<dyn Error>> {
    Ok("agents/bob/inbox".parse()?)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn await_start() -> std::io::Result<()> {
    say()?;
    std::io::stdin().read_exact(&mut [0])
}

fn say_done() -> Result<(), Box<dyn Error>> {
    say()?;
    Ok(())
}

/// Writes one byte to the parent process.
fn say() -> std::io::Result<()> {
    let mut out = File::options().write(true).open("/dev/stdout")?;
    out.write_all(b".")
}
