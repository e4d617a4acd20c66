//! Atomic replacement of a file: readers see the old content or the new, also after a kill or a power failure.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use store::Durability;

use crate::process_info;
use crate::unix::{OpenOptionsExt, PermissionsExt};

/// Marks the temporary file. The process id follows it, the namespace in which that counts, and a counter.
const NEW: &str = ".relay-mesh-new.";
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Where this process's id counts; zero if the system does not tell.
fn namespace() -> u64 {
    process_info::own_space().map_or(0, |space| space.namespace)
}

/// Writes a temporary file with this mode beside the target and renames it. Also removes the temporary files that
/// killed processes left there.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    for left in left_behind(folder, name)? {
        // Another process may have removed it just now. A file that remains does no harm.
        let _ = fs::remove_file(left);
    }
    let before = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let new = folder.join(format!(".{}{NEW}{}-{}-{before}", name.display(), std::process::id(), namespace()));
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new)?;
        // Set again because the umask does not apply: the mode is that of the old file.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        match durability {
            Durability::Synced => file.sync_all()?,
            Durability::Process => {}
        }
        fs::rename(&new, path)
    };
    write().inspect_err(|_| {
        // The write error is what the caller needs; the next write removes a leftover.
        let _ = fs::remove_file(&new);
    })
}

/// The temporary files of processes that were killed while writing: here, or long ago in another PID namespace.
fn left_behind(folder: &Path, name: &OsStr) -> io::Result<Vec<PathBuf>> {
    let begins = format!(".{}{NEW}", name.display());
    let mut left = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.file_name();
        let Some(end) = found.to_str().and_then(|found| found.strip_prefix(&begins)) else { continue };
        let is_old = || entry.metadata().and_then(|about| about.modified()).is_ok_and(is_old);
        if is_of_the_killed(end) || (!is_of_here(end) && is_old()) {
            left.push(entry.path());
        }
    }
    Ok(left)
}

/// Whether the id of a temporary file's writer counts here, by the end of its name: `PID-NAMESPACE-COUNTER`. Earlier
/// versions left the namespace out.
fn is_of_here(end: &str) -> bool {
    match *end.split('-').collect::<Vec<&str>>().as_slice() {
        [_, space, _] => space.parse() == Ok(namespace()),
        _ => true,
    }
}

/// Whether the writer of a temporary file is gone. A process of another namespace may be writing just now.
fn is_of_the_killed(end: &str) -> bool {
    let pid = end.split('-').next().and_then(|pid| pid.parse().ok());
    is_of_here(end) && pid.is_some_and(|pid| process_info::process(pid).is_none())
}

/// Whether no process can still be writing what was begun then.
fn is_old(begun: SystemTime) -> bool {
    begun.elapsed().is_ok_and(|age| age > Duration::from_secs(24 * 60 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_killed_left_goes_and_what_others_write_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let beside = |name: &str| folder.path().join(name);
        // No process has the highest id, and process 1 always runs.
        let (killed, others) = (beside(".a.relay-mesh-new.4294967295-0"), beside(".a.relay-mesh-new.1-7"));
        let elsewhere = beside(&format!(".a.relay-mesh-new.4294967295-{}-0", namespace() + 1));
        let here = beside(&format!(".a.relay-mesh-new.4294967295-{}-0", namespace()));
        for path in [&killed, &others, &elsewhere, &here, &beside(".b.relay-mesh-new.4294967295-0"), &beside("a")] {
            fs::write(path, "old").expect("written");
        }
        replace(&beside("a"), b"new", 0o640, Durability::Synced).expect("written");
        assert_eq!(fs::read_to_string(beside("a")).expect("a file"), "new");
        assert_eq!(fs::metadata(beside("a")).expect("a file").permissions().mode() & 0o777, 0o640);
        assert!(!killed.exists() && !here.exists() && others.exists());
        assert!(elsewhere.exists(), "a process of another namespace may write it");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4);

        // Concurrent writers do not disturb each other.
        std::thread::scope(|scope| {
            for text in ["one", "two"] {
                let write = || replace(&beside("b"), text.as_bytes(), 0o600, Durability::Process).expect("written");
                scope.spawn(move || (0..200).for_each(|_| write()));
            }
        });
        fs::remove_file(beside("b")).expect("it is there");

        // If the rename fails, no temporary file is left.
        fs::create_dir(beside("c")).expect("made");
        assert!(replace(&beside("c"), b"new", 0o640, Durability::Process).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4);
    }
}
