//! Measures what looking back costs: the list of threads, a search, one thread and what one sent, over so many messages in
//! a data folder of files, beside reading the same bytes alone.
//!
//! `cargo run --profile rig -p relay-mesh-view --example looking_back [MESSAGES [AGENTS]]`; 100,000 messages of 40 agents if nothing is
//! said. Exits with 1 if a search of 100,000 messages takes longer than 200 ms: then it needs an index.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mesh::messages::receipt::DeliveryStatus;
use mesh::testing::{FakeHarnesses, FakeMachine, call};
use mesh::{Fetch, Limits, MailReader, Mesh, MeshIndexRule, Parts, Registration, Search, ThreadFilter};
use serde_json::json;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, Position, Store};

/// What a search of 100,000 messages may take before it needs an index.
const BUDGET: Duration = Duration::from_millis(200);
/// How often each is measured; the fastest counts, since other programs only add.
const ROUNDS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter_map(|number| number.parse::<usize>().ok());
    let (messages, agents) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(40));
    let folder = tempfile::tempdir().expect("a folder");
    let options = FilesOptions {
        durability: Durability::Process,
        rule: Some(Arc::new(MeshIndexRule)),
        ..FilesOptions::default()
    };
    let store: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path(), options).expect("a store"));
    let mesh = mesh_over(&store);
    let bytes = fill(&mesh, store.as_ref(), messages, agents).await;
    // Whoever reads an inbox leaves a cursor, as in normal use.
    for agent in 0..agents {
        let name = format!("agent-{agent}").parse().expect("a name");
        let fetched = mesh.fetch(&name, &Fetch { limit: 1, ..Fetch::default() }).await.expect("fetched");
        if let Some(lease) = &fetched.lease {
            mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
        }
    }
    println!("{messages} messages of {agents} agents, {} MB in their inboxes", bytes / 1_000_000);

    let reading = fastest(async || {
        for agent in 0..agents {
            let log = format!("agents/agent-{agent}/inbox").parse().expect("a key");
            let mut at = Position::START;
            loop {
                let batch = store.read(&log, at, 1 << 20).await.expect("read");
                at = batch.next;
                if batch.at_end {
                    break;
                }
            }
        }
    })
    .await;
    let user = MailReader::User;
    let searched = |words: &[&str]| Search {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        limit: 20,
        ..Search::default()
    };
    let (rare, common, both) = (searched(&["needle"]), searched(&["server"]), searched(&["größe"]));
    let mut all = vec![("reading alone", reading)];
    for (name, search) in [("search, a rare word", rare), ("a word of every message", common), ("not of ASCII", both)] {
        // A process of its own each time, as on the command line.
        all.push((name, fastest(async || drop(mesh_over(&store).search(&user, &search).await.expect("found"))).await));
    }
    let filter = ThreadFilter::default();
    let threads = async || drop(mesh_over(&store).mail_threads(&user, &filter).await.expect("listed"));
    all.push(("threads", fastest(threads).await));
    let thread = async || drop(mesh_over(&store).mail_thread(&user, "thread-7", 50).await.expect("found"));
    all.push(("one thread, by a word", fastest(thread).await));
    let agent = MailReader::Agent("agent-3".parse().expect("a name"));
    let own = async || drop(mesh_over(&store).search(&agent, &searched(&["server"])).await.expect("found"));
    all.push(("search as an agent", fastest(own).await));
    for (name, took) in &all {
        println!("{:>8.1} ms  {name}", took.as_secs_f64() * 1e3);
    }
    // An index would not help with a word that every message has: each has to be ranked.
    let worst = all[1].1.max(all[3].1);
    if messages == 100_000 && worst > BUDGET { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn mesh_over(store: &Arc<dyn Store>) -> Mesh {
    Mesh::new(Parts {
        shared: Arc::clone(store),
        local: Arc::clone(store),
        machine: Arc::new(FakeMachine::default()),
        harnesses: Arc::new(FakeHarnesses::default()),
        limits: Limits::default(),
    })
}

/// Registers the agents and fills their inboxes as `send` does, each message read by its recipient but for the last ones.
async fn fill(mesh: &Mesh, store: &dyn Store, messages: usize, agents: usize) -> usize {
    for agent in 0..agents {
        let caller = mesh.identify(&call(&format!("connection-{agent}"))).await.expect("identified");
        let name = Some(format!("agent-{agent}").parse().expect("a name"));
        mesh.register(&caller, Registration { name, ..Registration::default() }).await.expect("registered");
    }
    let body = "The server at the other end answers with a status that nobody expected, so the tests were changed. ";
    let mut bytes = 0;
    for agent in 0..agents {
        let (mut inbox, mut receipts): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for number in (agent..messages).step_by(agents) {
            let at = 1_700_000_000_000 + number as u64;
            let id = format!("01HF{number:022}");
            let needle = if number % 10_000 == 0 { "a needle and its Größe" } else { "" };
            let from = format!("agent-{}", (number / agents + agent) % agents);
            let line = json!({
                "id": id, "at": at, "from": from, "to": format!("agent-{agent}"), "subject": "The server at the other end",
                "body": format!("{}{needle}", body.repeat(1 + number % 5)), "thread": format!("thread-{}", number % 2_000),
                "priority": "normal", "trace": {"root": id, "hops": 0},
            });
            inbox.push(line.to_string().into_bytes());
            if number + 100 < messages {
                let read = json!({"message": id, "at": at, "event": "status", "status": "read", "route": "fetch"});
                receipts.push(read.to_string().into_bytes());
            }
        }
        bytes += inbox.iter().map(Vec::len).sum::<usize>();
        for (leaf, entries) in [("inbox", inbox), ("receipts", receipts)] {
            let log = format!("agents/agent-{agent}/{leaf}").parse().expect("a key");
            for some in entries.chunks(500) {
                store.append(&log, some, Expect::Any, Durability::Process).await.expect("appended");
            }
        }
    }
    bytes
}

async fn fastest(work: impl AsyncFn()) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        work().await;
        fastest = fastest.min(began.elapsed());
    }
    fastest
}
