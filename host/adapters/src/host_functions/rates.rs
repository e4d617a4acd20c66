//! Rate limits of host functions: per call, and per minute over all calls of an adapter. A grant says what a guest may
//! use, this says how often, so that no adapter fills a disk, floods a harness's server or starts endless programs.
//!
//! Most processes that call adapters are hooks, which live for milliseconds. So what is left is kept in a small file per
//! adapter, which is never synced: a power cut only fills the buckets again. Built-in adapters are counted in each
//! process alone, which costs their hooks nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mesh::ports::machine::Instant;

use super::{HostResult, failed};
use crate::bindings::relay::adapter::types::Error;
use crate::guest::Guest;
use crate::unix::{self, FileExt as _, OpenOptionsExt as _};

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
#[derive(Debug)]
pub(crate) struct Rates {
    /// The file in which all processes count together.
    file: Option<PathBuf>,
    // A std mutex: nothing is awaited while it is held, and the section is some arithmetic and a small file.
    left: Mutex<Buckets>,
}

type Buckets = [Option<Bucket>; USES];

/// Bytes of a bucket in the file: what is left, and since when.
const BUCKET: usize = 16;
/// How often a file is tried that another process has locked, and the time in between. A process that was stopped while
/// it held the lock is not waited for.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

impl Rates {
    pub(crate) fn new(file: Option<PathBuf>) -> Rates {
        Rates { file, left: Mutex::default() }
    }

    /// Takes one use. The error is the wait until the next one, in milliseconds.
    fn take(&self, of: Use, bound: Bound, now: Instant) -> Result<(), u32> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the file cannot be used, this process counts alone.
        let file = self.file.as_ref().and_then(|path| locked(path).ok());
        if let Some(kept) = file.as_ref().and_then(read) {
            *left = kept;
        }
        let (next, outcome) = take(left[of as usize], bound, now);
        left[of as usize] = Some(next);
        if let Some(file) = file {
            let _full_disk = file.write_all_at(&written(&left), 0);
        }
        outcome
    }
}

fn locked(path: &PathBuf) -> io::Result<File> {
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = open().or_else(|error| match path.parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => {
            unix::make_private_folder(folder)?;
            open()
        }
        Some(_) | None => Err(error),
    })?;
    for _ in 0..TRIES {
        if file.try_lock().is_ok() {
            return Ok(file);
        }
        std::thread::sleep(PAUSE);
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// What a file says; none if it is new or damaged.
fn read(file: &File) -> Option<Buckets> {
    let mut bytes = [0; BUCKET * USES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let mut buckets = Buckets::default();
    for (index, bucket) in buckets.iter_mut().enumerate() {
        let (left, at) = (number(index * BUCKET)?, number(index * BUCKET + 8)?);
        *bucket = (at > 0).then_some(Bucket { left, at: Instant(at) });
    }
    Some(buckets)
}

fn written(buckets: &Buckets) -> Vec<u8> {
    let words = buckets.iter().flat_map(|bucket| bucket.map_or([0, 0], |bucket| [bucket.left, bucket.at.0]));
    words.flat_map(u64::to_le_bytes).collect()
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
        let bound = self.host_side.settings.rates.bound(of);
        let spent = &mut self.spent.0[of as usize];
        if *spent >= bound.per_call {
            return Err(failed(format!("one call may use at most {} {}", bound.per_call, of.words())));
        }
        *spent += 1;
        let now = self.host_side.machine.now();
        self.host_side.rates.take(of, bound, now).map_err(|wait| {
            let adapter = self.host_side.name.as_str();
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

    #[test]
    fn processes_count_together_and_a_damaged_file_costs_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rates/toad");
        let bound = Bound { per_call: 100, burst: 2, per_minute: 60 };
        // A process of its own each time, as hooks are.
        let used = |of| Rates::new(Some(path.clone())).take(of, bound, Instant(1_000));
        assert_eq!([used(Use::Program), used(Use::Program)], [Ok(()), Ok(())]);
        assert_eq!(used(Use::Program), Err(1_000));
        assert_eq!(used(Use::Note), Ok(()), "each use has its own");
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), 112, "it never grows");
        std::fs::write(&path, "short").expect("written");
        assert_eq!(used(Use::Program), Ok(()));
        let held = locked(&path).expect("free");
        assert_eq!(used(Use::Program), Ok(()), "a process that holds it is not waited for");
        drop(held);
    }
}
