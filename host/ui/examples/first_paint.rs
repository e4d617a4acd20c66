//! Measures what the first paint of the terminal view costs, part by part, over a data folder of files.
//!
//! `cargo run --profile rig -p relay-mesh-ui --example first_paint [MESSAGES [AGENTS]]`; 100,000 messages of 1,000 agents if nothing is
//! said. The budget is 50 ms until the agents are on screen.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mesh::messages::receipt::DeliveryStatus;
use mesh::testing::{FakeHarnesses, FakeMachine, call};
use mesh::{Fetch, Limits, Mesh, MeshIndexRule, NewestThreads, Parts, Registration};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, Store};
use ui::{Palette, Screen, draw};
use view::live::{Live, News, Overview, Press, Tab};
use view::{AgentDetail, ThreadSummaryView};

/// The time of the view.
const NOW: mesh::ports::machine::Instant = mesh::ports::machine::Instant(1_800_000_000_000);
/// So many conversations are listed.
const THREADS: usize = 5_000;
/// How often each is measured; the fastest counts, since other programs only add.
const ROUNDS: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|number| number.parse::<usize>().ok());
    let (messages, agents) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(1_000));
    let folder = tempfile::tempdir().expect("a folder");
    let options = || FilesOptions {
        durability: Durability::Process,
        rule: Some(Arc::new(MeshIndexRule)),
        ..FilesOptions::default()
    };
    let store: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path(), options()).expect("a store"));
    fill(&mesh_over(&store), store.as_ref(), messages, agents).await;
    println!("{messages} messages of {agents} agents");

    let mut terminal = Terminal::new(TestBackend::new(160, 48)).expect("a terminal");
    let mut paint = |live: &Live| {
        let mut screen = Screen::of(Palette::Coloured);
        let drawn = terminal.draw(|frame| {
            draw(frame, live, &mut screen);
        });
        drawn.expect("drawn");
    };
    told("the first frame, before anything is read", fastest(async || paint(&Live::default())).await);
    let until_agents = fastest(async || {
        // A process of its own each time, as on the command line.
        let store: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path(), options()).expect("a store"));
        let mesh = mesh_over(&store);
        let mut live = Live::default();
        let agents = mesh.agents_without_mail().await.expect("read");
        live.take(News::Agents(NOW, agents.iter().map(AgentDetail::from).collect()));
        paint(&live);
    })
    .await;
    told("the store opened, the agents read and on screen", until_agents);
    told("their mail counted, which comes after that", {
        let store: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path(), options()).expect("a store"));
        fastest(async || drop(overview(&mesh_over(&store)).await)).await
    });
    let mesh = mesh_over(&store);
    let threads = async || {
        let found = mesh_over(&store).newest_threads(&mut NewestThreads::of(THREADS)).await.expect("listed");
        found.iter().map(ThreadSummaryView::from).collect::<Vec<_>>()
    };
    told("the conversations read, which come after that", fastest(async || drop(threads().await)).await);
    let mut newest = NewestThreads::of(THREADS);
    // The first round reads everything, and the fastest counts.
    told("the conversations read again, as whenever a message has come", {
        fastest(async || {
            let found = mesh.newest_threads(&mut newest).await.expect("listed");
            drop(found.iter().map(ThreadSummaryView::from).collect::<Vec<_>>());
        })
        .await
    });
    let mut live = Live::default();
    live.take(News::Overview(Box::new(overview(&mesh).await)));
    live.take(News::Threads(threads().await));
    told("a frame with all of it", fastest(async || paint(&live)).await);
    live.press(Press::ShowTab(Tab::Threads));
    let mut by = 1;
    told("a key and the frame after it", {
        fastest(async || {
            by = -by;
            live.press(Press::Move(by));
            paint(&live);
        })
        .await
    });
}

fn told(what: &str, took: Duration) {
    println!("{:>8.2} ms  {what}", took.as_secs_f64() * 1e3);
}

async fn overview(mesh: &Mesh) -> Overview {
    let status = mesh.status().await.expect("read");
    Overview { agents: status.agents.iter().map(AgentDetail::from).collect(), ..Overview::default() }
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

/// Registers the agents and fills their inboxes as `send` does; all but the last messages are read.
async fn fill(mesh: &Mesh, store: &dyn Store, messages: usize, agents: usize) {
    for agent in 0..agents {
        let caller = mesh.identify(&call(&format!("connection-{agent}"))).await.expect("identified");
        let name = Some(format!("agent-{agent}").parse().expect("a name"));
        mesh.register(&caller, Registration { name, ..Registration::default() }).await.expect("registered");
        let (mut inbox, mut receipts): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for number in (agent..messages).step_by(agents) {
            let at = 1_700_000_000_000 + number as u64;
            let id = format!("01HF{number:022}");
            let from = format!("agent-{}", (number / agents + agent) % agents);
            let line = json!({
                "id": id, "at": at, "from": from, "to": format!("agent-{agent}"), "subject": "The server at the other end",
                "body": "The server at the other end answers with a status that nobody expected.".repeat(1 + number % 5),
                "thread": format!("thread-{}", number % 2_000), "priority": "normal", "trace": {"root": id, "hops": 0},
            });
            inbox.push(line.to_string().into_bytes());
            if number + 100 < messages {
                let read = json!({"message": id, "at": at, "event": "status", "status": "read", "route": "fetch"});
                receipts.push(read.to_string().into_bytes());
            }
        }
        for (leaf, entries) in [("inbox", inbox), ("receipts", receipts)] {
            let log = format!("agents/agent-{agent}/{leaf}").parse().expect("a key");
            for some in entries.chunks(500) {
                store.append(&log, some, Expect::Any, Durability::Process).await.expect("appended");
            }
        }
    }
    // Whoever reads an inbox leaves a cursor, as in normal use.
    for agent in 0..agents {
        let name = format!("agent-{agent}").parse().expect("a name");
        let fetched = mesh.fetch(&name, &Fetch { limit: 1, ..Fetch::default() }).await.expect("fetched");
        if let Some(lease) = &fetched.lease {
            mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
        }
    }
}

async fn fastest(mut work: impl AsyncFnMut()) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        work().await;
        fastest = fastest.min(began.elapsed());
    }
    fastest
}
