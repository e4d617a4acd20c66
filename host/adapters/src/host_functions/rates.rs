//! Rate limits of host functions: per call, and per minute over all calls of an adapter in this process. A grant says
//! what a guest may use, this says how often, so that no adapter fills a disk, floods a harness's server or starts
//! endless programs.

use std::sync::{Mutex, PoisonError};

use mesh::ports::machine::Instant;

use super::{HostResult, failed};
use crate::bindings::relay::adapter::types::Error;
use crate::guest::Guest;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A file or a folder is read.
    Read,
    /// A request is made.
    Request,
    /// A channel is opened.
    Channel,
    /// A frame is sent over a channel.
    Frame,
    /// A program is run.
    Program,
    /// A state value is written or removed.
    Note,
    /// A notification is shown.
    Notice,
}

/// Number of variants of [`Use`].
const USES: usize = 7;

/// How often one kind of use may happen.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Times in one call.
    pub per_call: u32,
    /// Times in quick succession, over all calls.
    pub burst: u32,
    /// Times a minute, once the burst is used up.
    pub per_minute: u32,
}

/// How often each kind of use may happen.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Files and folders read.
    pub reads: Bound,
    /// Requests.
    pub requests: Bound,
    /// Channels opened.
    pub channels: Bound,
    /// Frames sent.
    pub frames: Bound,
    /// Programs run.
    pub programs: Bound,
    /// State values written.
    pub notes: Bound,
    /// Notifications shown.
    pub notices: Bound,
}

impl Default for Settings {
    /// Far above what an adapter of a busy harness needs, and far below what harms the machine.
    fn default() -> Settings {
        let bound = |per_call, burst, per_minute| Bound { per_call, burst, per_minute };
        Settings {
            reads: bound(4_096, 20_000, 60_000),
            requests: bound(128, 1_000, 6_000),
            channels: bound(16, 200, 1_200),
            frames: bound(1_024, 10_000, 60_000),
            programs: bound(16, 100, 600),
            notes: bound(512, 2_000, 6_000),
            notices: bound(3, 10, 20),
        }
    }
}

impl Settings {
    fn bound(&self, of: Use) -> Bound {
        match of {
            Use::Read => self.reads,
            Use::Request => self.requests,
            Use::Channel => self.channels,
            Use::Frame => self.frames,
            Use::Program => self.programs,
            Use::Note => self.notes,
            Use::Notice => self.notices,
        }
    }
}

impl Use {
    /// The plural, for messages.
    fn words(self) -> &'static str {
        match self {
            Use::Read => "reads of files",
            Use::Request => "requests",
            Use::Channel => "channels",
            Use::Frame => "frames",
            Use::Program => "runs of programs",
            Use::Note => "writes of notes",
            Use::Notice => "notifications",
        }
    }
}

/// The uses of one call.
#[derive(Debug, Default)]
pub(crate) struct Spent([u32; USES]);

/// The remaining uses of one adapter, over all of its calls.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    // A std mutex: nothing is awaited while it is held, and the section is some arithmetic.
    left: Mutex<[Option<Bucket>; USES]>,
}

/// A token bucket, refilled over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    /// The remaining uses, multiplied by the milliseconds of a minute, so that nothing is lost by rounding.
    left: u64,
    /// The time at which `left` was computed.
    at: Instant,
}

const MINUTE: u64 = 60_000;

impl Guest {
    /// Counts one use. An error if this call, or all calls together, have reached the limit.
    pub(crate) fn spend(&mut self, of: Use) -> HostResult<()> {
        let bound = self.lender.settings.rates.bound(of);
        let spent = &mut self.spent.0[of as usize];
        if *spent >= bound.per_call {
            return Err(failed(format!("one call may use at most {} {}", bound.per_call, of.words())));
        }
        *spent += 1;
        let now = self.lender.machine.now();
        let mut left = self.lender.rates.left.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = &mut left[of as usize];
        let (next, outcome) = take(*bucket, bound, now);
        *bucket = Some(next);
        outcome.map_err(|wait| {
            let adapter = self.lender.name.as_str();
            tracing::warn!(adapter, "it asks for more than {} {} a minute", bound.per_minute, of.words());
            Error::Busy(wait)
        })
    }
}

/// Takes one use out of a bucket. The error is the wait until the next one, in milliseconds.
fn take(bucket: Option<Bucket>, bound: Bound, now: Instant) -> (Bucket, Result<(), u32>) {
    let full = u64::from(bound.burst) * MINUTE;
    let left = bucket.map_or(full, |bucket| {
        let filled = now.since(bucket.at).saturating_mul(bound.per_minute.into());
        bucket.left.saturating_add(filled).min(full)
    });
    match left.checked_sub(MINUTE) {
        Some(left) => (Bucket { left, at: now }, Ok(())),
        None => {
            let wait = (MINUTE - left).div_ceil(u64::from(bound.per_minute).max(1));
            (Bucket { left, at: now }, Err(u32::try_from(wait).unwrap_or(u32::MAX)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses at these milliseconds, and the result of each: `.`, or how long to wait.
    fn check(times: &[u64], expected: &str) {
        let bound = Bound { per_call: 100, burst: 2, per_minute: 60 };
        let mut bucket = None;
        let told: Vec<String> = times
            .iter()
            .map(|time| {
                let (next, outcome) = take(bucket, bound, Instant(*time));
                bucket = Some(next);
                outcome.map_or_else(|wait| wait.to_string(), |()| ".".to_owned())
            })
            .collect();
        assert_eq!(told.join(" "), expected, "{times:?}");
    }

    #[test]
    fn a_burst_is_lent_and_then_as_much_as_comes_in() {
        check(&[0, 0, 0], ". . 1000");
        check(&[0, 0, 400, 1_000, 1_000], ". . 600 . 1000");
        check(&[0, 0, 100_000, 100_000, 100_000], ". . . . 1000");
        check(&[5_000, 5_000, 0, 6_000], ". . 1000 .");
    }
}
