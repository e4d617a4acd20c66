//! A model that answers by script, on loopback, in the Messages dialect. It decides by what it is
//! told, never by time, and keeps every request: what stands there is what reached the model.

mod heard;
mod script;
mod server;
mod wire;

pub use heard::Heard;
pub use script::{Answer, Script};
pub use server::Model;
