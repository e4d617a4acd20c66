//! A model that answers by script, on loopback, in the dialect that a client asks in: Messages or chat
//! completions. It decides by what it is
//! told, never by time, and keeps every request: what stands there is what reached the model.

mod chat;
mod heard;
mod script;
mod server;
mod wire;

pub use heard::Heard;
pub use script::{Answer, Script};
pub use server::Model;
