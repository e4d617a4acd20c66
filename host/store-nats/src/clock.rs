//! The servers' time. Machines that share a mesh compare times, above all the ends of leases, so a machine whose clock
//! is wrong uses the servers' clock.

use std::fmt::Debug;

use async_nats::datetime::parse_rfc3339;
use async_nats::jetstream::Context;
use serde::Deserialize;

/// Keeps a machine's time, and may correct it by the servers' clock.
pub trait Timekeeper: Debug + Send + Sync {
    /// Whether it wants the servers' time now.
    fn asks(&self) -> bool;
    /// Takes the servers' time, in milliseconds since the Unix epoch.
    fn told(&self, servers: u64);
}

/// Gives a timekeeper the servers' time if it wants it. A failure is ignored: the next connection tries again.
pub(crate) async fn tell(timekeeper: &dyn Timekeeper, jetstream: &Context, stream: &str) {
    if !timekeeper.asks() {
        return;
    }
    let answer: Result<StreamInfo, _> = jetstream.request(format!("STREAM.INFO.{stream}"), &()).await;
    let time = answer.ok().and_then(|answer| answer.ts).and_then(|text| parse_rfc3339(&text).ok());
    if let Some(time) = time.and_then(|time| u64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok()) {
        timekeeper.told(time);
    }
}

/// The only field needed from a stream's info.
#[derive(Deserialize)]
struct StreamInfo {
    /// The server's time when it answered.
    ts: Option<String>,
}
