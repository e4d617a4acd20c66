//! The real clients, each killed between the hand-over of a message and the request to its model that would have held
//! it, at every route. Opened again, each brings the message to its model, marked as perhaps repeated if its text had
//! gone out, and no status said "shown" before. What is seen here is the table of evidence in docs/receipts.md.

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

use std::sync::Arc;

use asked::{QUIETLY, TEXT, is_missed, only};
use test_support::Stage;

fn stage() -> Arc<Stage> {
    Arc::new(Stage::new(env!("CARGO_BIN_EXE_relay-mesh")))
}
