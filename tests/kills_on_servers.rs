//! The same kills as in kills.rs, of every client, on a mesh that is kept on a NATS server: each
//! message comes again here too, and the table of evidence has no row of its own for it.

#[path = "kills/asked.rs"]
mod asked;
#[path = "kills/claude_code.rs"]
mod claude_code;
#[path = "kills/codex.rs"]
mod codex;
#[path = "kills/gemini.rs"]
mod gemini;
#[path = "kills/opencode.rs"]
mod opencode;

use std::sync::{Arc, Mutex};

use asked::{QUIETLY, TEXT, is_missed, only};
use test_support::{Deployment, NatsServer, Stage};

/// The server of this test's stage. It ends with the test, which has a network of its own.
static SERVERS: Mutex<Vec<NatsServer>> = Mutex::new(Vec::new());

fn stage() -> Arc<Stage> {
    let Deployment { stage, servers } = Deployment::on_one_server(env!("CARGO_BIN_EXE_relay-mesh"));
    SERVERS.lock().expect("no test panics here").extend(servers);
    Arc::new(stage)
}
