//! The daily cleanup: when it is due, and how it starts.
//!
//! The time of the last one is that of a file in the data folder. A command that finds it due sets it first, so that
//! others that come meanwhile see it, and then leaves a process behind that cleans up and that nobody waits for. The
//! server does the same in its own process. The two never run at once: see [`super::turn`].
//!
//! A clock that jumps ahead makes everything look old. So after a gap of days, or a time in the future, a cleanup waits
//! until an hour has passed by the new time.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mesh::{DryRun, Scope};
use store::StoreError;

use crate::clock::Clock;
use crate::compose::Open;
use crate::config::{AutoCleanup, Settings, Shared};
use crate::machine::ThisMachine;
use crate::server::background;
use crate::setup::doctor::data_folder;
use crate::unix::{self, MetadataExt, OpenOptionsExt};

/// The file whose time is that of the last cleanup.
const STAMP: &str = "last-cleanup";
/// Time between two cleanups.
const EVERY: Duration = Duration::from_secs(24 * 3_600);
/// After this time without one, the clock may have jumped.
const GAP: Duration = Duration::from_secs(3 * 24 * 3_600);
/// How long the time must have gone on since.
const SETTLES: Duration = Duration::from_secs(3_600);
/// How often the server looks whether one is due.
const LOOK: Duration = Duration::from_secs(3_600);

/// Starts a cleanup if the last one was a day ago. Costs one look at a file on every other occasion. Errors are only
/// logged: the command that was asked for has done its work.
pub(crate) fn start_if_due(settings: &Settings) {
    match settings.auto_cleanup.value {
        AutoCleanup::On => {}
        AutoCleanup::Off => return,
    }
    let dir = &settings.dir.value;
    let outcome = match due(dir) {
        Ok(Due::Jumped) => set(dir, EVERY.saturating_sub(SETTLES)),
        Ok(Due::Now) => set(dir, Duration::ZERO).and_then(|()| background::leave(&arguments(settings))),
        // In a new folder, the first one is due in a day.
        Ok(Due::Never) if ThisMachine::is_named_in(dir) && is_ours(dir) => set(dir, Duration::ZERO),
        Ok(Due::Later | Due::Never) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "no cleanup was started");
    }
}

/// Cleans up once a day, for as long as the server runs.
pub(crate) async fn keep_cleaning_up(open: Arc<Open>, settings: Settings) {
    let dir = &settings.dir.value;
    loop {
        match due(dir) {
            Ok(Due::Now | Due::Never) => {
                note(&settings);
                if let Err(error) = in_turn(&open, &settings).await {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the cleanup failed");
                }
            }
            Ok(Due::Jumped) => {
                if let Err(error) = set(dir, EVERY.saturating_sub(SETTLES)) {
                    tracing::debug!(%error, "the time of the cleanup is not noted");
                }
            }
            Ok(Due::Later) => {}
            Err(error) => tracing::warn!(%error, "it is not known whether a cleanup is due"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Cleans up everything, unless another process is doing so. Returns whether it did.
pub(crate) async fn in_turn(open: &Open, settings: &Settings) -> Result<bool, StoreError> {
    let Some(_turn) = super::turn(open, Duration::ZERO).await? else { return Ok(false) };
    super::clean_up(open, settings, (Scope::Everything, DryRun::No, None)).await?;
    let dir = settings.dir.value.clone();
    // A defect in it must not stop the cleanup of the next day.
    let _checked = tokio::task::spawn_blocking(move || data_folder::check_logs(&dir, CHECKED_A_DAY)).await;
    Ok(true)
}

/// Notes that everything is being cleaned up now.
pub(crate) fn note(settings: &Settings) {
    if let Err(error) = set(&settings.dir.value, Duration::ZERO) {
        tracing::debug!(%error, "the time of the cleanup is not noted");
    }
}

/// How much of the logs each cleanup checks, in bytes: more than busy agents write in a day, and little to read.
const CHECKED_A_DAY: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Now,
    Later,
    /// The time since the last one says nothing.
    Jumped,
    /// There was none in this folder.
    Never,
}

fn due(dir: &Path) -> io::Result<Due> {
    let found = match fs::metadata(stamp(dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Due::Never),
        found => found?,
    };
    // Another user, such as root for once, must not leave files of their own in the folder.
    if !is_own(&found) {
        return Ok(Due::Later);
    }
    Ok(match now(dir).duration_since(found.modified()?) {
        Ok(age) if age < EVERY => Due::Later,
        Ok(age) if age < GAP => Due::Now,
        Ok(_) | Err(_) => Due::Jumped,
    })
}

fn is_ours(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|found| is_own(&found))
}

fn is_own(found: &fs::Metadata) -> bool {
    found.uid() == unix::user()
}

/// Sets the time of the last cleanup to that long ago. Fails in a folder that may only be read.
fn set(dir: &Path, ago: Duration) -> io::Result<()> {
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(stamp(dir))?;
    file.set_modified(now(dir) - ago)
}

fn stamp(dir: &Path) -> PathBuf {
    dir.join(STAMP)
}

fn now(dir: &Path) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(Clock::kept_in(dir).own())
}

/// The command line of the cleanup.
fn arguments(settings: &Settings) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["gc".into(), "--background".into()].to_vec();
    arguments.extend(stores(settings));
    arguments
}

/// The flags that name the stores, so that a process that is left behind looks at no others.
pub(crate) fn stores(settings: &Settings) -> Vec<OsString> {
    let dir = settings.dir.value.as_os_str();
    let mut arguments: Vec<OsString> = ["--dir".into(), dir.to_owned()].to_vec();
    let store = match &settings.shared.value {
        Shared::InTheFolder => {
            let mut store = OsString::from("files:");
            store.push(dir);
            store
        }
        Shared::Nats(servers) => servers.addresses().join(",").into(),
    };
    arguments.extend(["--store".into(), store]);
    for option in settings.nats_by_flags.as_options() {
        arguments.extend(["--nats-option".into(), option.into()]);
    }
    arguments
}
