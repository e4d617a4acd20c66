//! What time it is at the servers. Machines that share a mesh judge one another's times, a lease's end above
//! all, so a machine whose clock is wrong goes by the servers'.

use std::fmt::Debug;

use async_nats::datetime::parse_rfc3339;
use async_nats::jetstream::Context;
use serde::Deserialize;

/// Somebody who keeps a machine's time and may be told that of its servers.
pub trait Timekeeper: Debug + Send + Sync {
    /// Whether they would know it better than they do.
    fn asks(&self) -> bool;
    /// They are told it, in milliseconds since the Unix epoch.
    fn told(&self, servers: u64);
}

/// Tells a timekeeper who asks. What cannot be learned now is learned another time.
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

/// All that matters here of what the server says of a stream.
#[derive(Deserialize)]
struct StreamInfo {
    /// When it said so.
    ts: Option<String>,
}
