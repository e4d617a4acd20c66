//! What a cleanup deletes of the data folder by file: wake files and locks of sessions that have no record, indexes
//! without a segment, and files that killed processes were writing.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use mesh::DryRun;
use mesh::ports::data_files::Amount;

use super::data_files::{DataFolder, forget_hold, forget_log, gone};
use crate::process_info;

/// A file that a process is writing is younger than this.
const WRITTEN_IN: Duration = Duration::from_secs(3_600);

/// What was deleted by file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeletedFiles {
    /// Wake files whose session has no record.
    pub(crate) wake_files: Amount,
    /// Locks of such sessions.
    pub(crate) locks: Amount,
    /// Indexes of segments that are gone.
    pub(crate) indexes: Amount,
    /// Files that killed processes were writing.
    pub(crate) drafts: Amount,
}

/// Deletes what nobody can need, or only counts it. What cannot be deleted stays for the next run.
pub(crate) fn delete(folder: &DataFolder, keep: Duration, now: SystemTime, dry_run: DryRun) -> DeletedFiles {
    let mut deleted = DeletedFiles::default();
    for top in ["wakes", "deliveries", "running"] {
        for harness in entries(&folder.root.join(top)) {
            let records = ["sessions", "ended"].map(|kind| folder.root.join(kind).join(harness.file_name()));
            for file in entries(&harness.path()) {
                sessionless(&records, &file, (keep, now), dry_run, &mut deleted);
            }
        }
    }
    let homes = entries(&folder.root.join("agents")).map(|home| home.path());
    for place in homes.chain([folder.root.clone(), folder.root.join("wake")]) {
        for file in entries(&place) {
            abandoned(&place, &file, now, dry_run, &mut deleted);
        }
    }
    deleted
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// A file of a session, which goes if the session has no record and the file is old.
fn sessionless(
    records: &[PathBuf],
    file: &DirEntry,
    (keep, now): (Duration, SystemTime),
    dry_run: DryRun,
    deleted: &mut DeletedFiles,
) {
    let name = file.file_name();
    let Some((leaf, what)) = name.to_str().and_then(file_of_session) else { return };
    let folder = file.path().parent().map(Path::to_owned).unwrap_or_default();
    if records.iter().any(|records| records.join(format!("{leaf}.json")).exists()) {
        return;
    }
    let is_young = |name: String| age(&folder.join(name), now).is_some_and(|age| age < keep);
    // The whole log has the age of its youngest file.
    if is_young(format!("{leaf}.jsonl")) || is_young(format!(".{leaf}.lock")) || is_young(format!(".{leaf}.hold")) {
        return;
    }
    let Ok(found) = file.metadata() else { return };
    let outcome = match (dry_run, what) {
        (DryRun::Yes, _) => Ok(()),
        (DryRun::No, FileOfSession::Hold) => forget_hold(&folder, leaf),
        (DryRun::No, FileOfSession::Log | FileOfSession::Lock) => {
            forget_log(&folder, leaf).and_then(|()| gone(&file.path()))
        }
    };
    if counts(&file.path(), outcome) {
        match what {
            FileOfSession::Log => deleted.wake_files.add(found.len()),
            FileOfSession::Lock | FileOfSession::Hold => deleted.locks.add(found.len()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileOfSession {
    Log,
    Lock,
    Hold,
}

/// The session that a file belongs to, as its record's file is named.
fn file_of_session(name: &str) -> Option<(&str, FileOfSession)> {
    let Some(dotted) = name.strip_prefix('.') else {
        let (leaf, segment) = name.rsplit_once(".jsonl")?;
        let is_segment =
            segment.is_empty() || segment.strip_prefix('.').is_some_and(|number| number.parse::<u64>().is_ok());
        return is_segment.then_some((leaf, FileOfSession::Log));
    };
    if let Some(leaf) = dotted.strip_suffix(".hold") {
        return Some((leaf, FileOfSession::Hold));
    }
    let lock = [".lock", ".synced", ".gate"].iter().find_map(|ending| dotted.strip_suffix(ending));
    lock.map(|leaf| (leaf, FileOfSession::Lock))
}

/// An index without its segment, or a file that a killed process was writing.
fn abandoned(place: &Path, file: &DirEntry, now: SystemTime, dry_run: DryRun, deleted: &mut DeletedFiles) {
    let name = file.file_name();
    let Some(name) = name.to_str() else { return };
    let is_index = match index_of(name) {
        Some((_, "draft")) => false,
        Some((leaf, "all")) => !place.join(format!(".{leaf}.lock")).exists(),
        Some((leaf, number)) => !place.join(format!("{leaf}.jsonl.{number}")).exists(),
        None => false,
    };
    let is_old = || age(&file.path(), now).is_some_and(|age| age >= WRITTEN_IN);
    let is_draft = is_draft(name) && is_old();
    if !is_index && !is_draft {
        return;
    }
    let Ok(found) = file.metadata().map(|found: Metadata| found.len()) else { return };
    let outcome = match dry_run {
        DryRun::Yes => Ok(()),
        DryRun::No => gone(&file.path()),
    };
    if counts(&file.path(), outcome) {
        if is_index { deleted.indexes.add(found) } else { deleted.drafts.add(found) }
    }
}

/// The log and the segment of an index: `.inbox.index.3`; `all` is the catalog of a log.
fn index_of(name: &str) -> Option<(&str, &str)> {
    let (leaf, number) = name.strip_prefix('.')?.rsplit_once(".index.")?;
    (number == "draft" || number == "all" || number.parse::<u64>().is_ok()).then_some((leaf, number))
}

fn is_draft(name: &str) -> bool {
    let is_unnamed = |name: &str| {
        let digits = name.strip_prefix("machine.").or_else(|| name.strip_prefix("host."));
        digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    // As `atomic_write` names them.
    let writer = name.rsplit_once(".relay-mesh-new.").and_then(|(_, rest)| rest.split('-').next()?.parse().ok());
    writer.is_some_and(|pid| process_info::process(pid).is_none())
        || matches!(index_of(name), Some((_, "draft")))
        || is_unnamed(name)
}

/// How long ago a file was changed; none if it is not there.
fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    let changed = fs::metadata(path).and_then(|found| found.modified()).ok()?;
    Some(now.duration_since(changed).unwrap_or_default())
}

fn counts(path: &Path, outcome: io::Result<()>) -> bool {
    if let Err(error) = &outcome {
        tracing::debug!(path = %path.display(), %error, "a file stays until the next cleanup");
    }
    outcome.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_no_session_and_is_old_goes() {
        let temporary = tempfile::tempdir().expect("a folder");
        let root = temporary.path();
        let folder = DataFolder { root: root.to_owned(), shared: true };
        let write = |path: &str, days: u64| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, "{}\n").expect("written");
            let then =
                fs::metadata(&path).expect("there").modified().expect("a time") - Duration::from_secs(days * 86_400);
            fs::File::options().write(true).open(&path).expect("there").set_modified(then).expect("set");
        };
        let stays = [
            "sessions/claude/here.json",
            "sessions/claude/.values.lock",
            "wakes/claude/here.jsonl",
            "wakes/claude/.here.lock",
            "deliveries/claude/.here.hold",
            "agents/bob/inbox.jsonl.3",
            "agents/bob/.inbox.index.3",
            "agents/bob/.inbox.index.all",
            "agents/bob/.inbox.lock",
            "agents/bob/meta.json",
            "global.jsonl",
            "machine",
            ".a.relay-mesh-new.1-7",
        ];
        let goes = [
            "wakes/claude/gone.jsonl",
            "wakes/claude/gone.jsonl.0",
            "wakes/claude/.gone.lock",
            "wakes/claude/.gone.synced",
            "deliveries/claude/.gone.hold",
            "running/claude/.gone.hold",
            "agents/bob/.inbox.index.2",
            "agents/bob/.sent.index.draft",
            ".global.index.0",
            "agents/bob/.sent.index.all",
            ".a.relay-mesh-new.4294967295-0",
            "machine.0123456789abcdef",
        ];
        for path in stays.iter().chain(&goes) {
            write(path, 8);
        }
        write("wakes/claude/young.jsonl", 6);
        write("wakes/claude/.young.lock", 8);
        write("wakes/claude/busy.jsonl", 8);
        write("wakes/claude/.busy.lock", 8);
        let busy = fs::File::open(root.join("wakes/claude/.busy.lock")).expect("there");
        busy.lock().expect("locked");
        let now = fs::metadata(root).expect("there").modified().expect("a time");
        let week = Duration::from_secs(7 * 86_400);
        let all = |_: ()| goes.iter().filter(|path| root.join(path).exists()).count();
        let would = delete(&folder, week, now, DryRun::Yes);
        assert_eq!(all(()), goes.len(), "a dry run deletes nothing");
        assert_eq!((would.indexes.count, would.drafts.count), (3, 3));
        let deleted = delete(&folder, week, now, DryRun::No);
        assert_eq!((deleted.indexes, deleted.drafts), (would.indexes, would.drafts));
        assert_eq!(all(()), 0, "{:?}", goes.iter().filter(|path| root.join(path).exists()).collect::<Vec<_>>());
        for path in stays.iter().chain(&["wakes/claude/young.jsonl", "wakes/claude/busy.jsonl"]) {
            assert!(root.join(path).exists(), "{path}");
        }
        drop(busy);
        delete(&folder, week, now, DryRun::No);
        assert!(!root.join("wakes/claude/busy.jsonl").exists(), "nobody has it any more");
    }
}
