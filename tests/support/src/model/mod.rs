//! A model that answers by script, on loopback, in the dialects of the clients. It decides by what it is
//! told, never by time, and keeps every request: what stands there is what reached the model.

mod chat;
mod dialect;
mod generate;
mod heard;
mod messages;
mod responses;
mod script;
mod server;

pub use dialect::Dialect;
pub use heard::Heard;
pub use script::{Answer, Script};
pub use server::Model;
