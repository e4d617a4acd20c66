//! A scripted model on loopback that speaks the clients' dialects. It decides by the request's text, never by time, and
//! records every request: the record is what reached the model.

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
pub use script::{ModelAnswer, Script};
pub use server::{Behaviour, Ears, Model};
