//! Checks that the data folder can be written and read back, is private, and has room.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mesh::ports::harness::{Finding, Severity};
use store::Key;

use crate::config::{Origin, Setting};
use crate::owner;

use super::checked_logs::{self, CheckedLogs, DamagedLog, Depth, UnfinishedLog, is_log};
use super::{broken, fine, shown};
use crate::unix::{self, MetadataExt};

/// A slower synced write is noticeable in every message sent.
const SLOW: Duration = Duration::from_millis(50);

/// Free bytes below which writes may fail.
const FULL: u64 = 8 * 1024 * 1024;
/// Free bytes below which the user is warned.
const SCARCE: u64 = 256 * 1024 * 1024;

/// Checks the folder's owner and mode, then writes a file, syncs it, reads it back and removes it.
pub(crate) fn prove(folder: &Path, nonce: &str) -> Vec<Finding> {
    let about = match fs::metadata(folder) {
        Ok(about) => about,
        Err(error) => return vec![unreadable(folder, &error)],
    };
    vec![privacy(folder, about.uid(), about.mode(), unix::starter()), round_trip(folder, nonce)]
}

/// Which folder is used, and default folders beside it that are not.
pub(crate) fn place(used: &Setting<PathBuf>, unused: &[PathBuf]) -> Vec<Finding> {
    let path = used.value.display();
    let mut findings = vec![fine(match &used.origin {
        Origin::Default => format!("{path} is used, the default"),
        origin => format!("{path} is used, by the {origin}"),
    })];
    findings.extend(unused.iter().map(|other| Finding {
        severity: Severity::Warning,
        what: format!("{} is there too and is not used", other.display()),
        fix: Some(format!(
            "move what you need by `relay-mesh store copy files:{} files:{path}`, and remove it",
            other.display()
        )),
    }));
    findings
}

/// Files of the folder that belong to another user, who was root perhaps: this user cannot read them.
pub(crate) fn owners(root: &Path, us: u32) -> Option<Finding> {
    let (mut count, mut first) = (0_usize, None);
    let _unreadable = each_file(root, &mut |path, _| {
        if is_foreign(path, us) {
            count += 1;
            first.get_or_insert_with(|| path.to_owned());
        }
    });
    let first = first?;
    let owner = fs::symlink_metadata(&first).map_or(0, |found| found.uid());
    let (path, first) = (root.display(), first.display());
    Some(broken(
        format!("{count} files in {path} belong to another user and are passed over, such as {first} of user {owner}"),
        format!("sudo chown -R {us} {path}"),
    ))
}

fn is_foreign(path: &Path, us: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.uid() != us)
}

/// Free space on the folder's disk.
pub(crate) fn room(folder: &Path) -> Finding {
    let path = folder.display();
    match unix::free_bytes(folder) {
        Err(error) => {
            broken(format!("the free space of {path} cannot be read: {error}"), "check the disk that it lies on")
        }
        Ok(left) => scarce(left, &path.to_string()),
    }
}

fn scarce(left: u64, path: &str) -> Finding {
    let megabytes = left / (1024 * 1024);
    let what = format!("{megabytes} MB are free on the disk of {path}");
    let fix = "make room, or choose a folder on another disk by `--dir` or RELAY_DIR";
    match left {
        0..FULL => broken(what, fix),
        FULL..SCARCE => Finding { severity: Severity::Warning, what, fix: Some(fix.to_owned()) },
        SCARCE.. => fine(what),
    }
}

/// Folders whose content nobody misses: notes for waking, sessions that ended, and locks. A year of them is not worth
/// reading.
const DISPOSABLE: [&str; 5] = ["wakes", "ended", "deliveries", "running", SET_ASIDE];
/// The folder for damaged values.
const SET_ASIDE: &str = "damaged";

/// Whether damaged values are set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mending {
    Look,
    SetAside,
}

/// Damaged lines in the folder's logs, and damaged values. Each costs only itself.
pub(crate) fn damage(root: &Path, mending: Mending, depth: Depth) -> Vec<Finding> {
    let mut damaged = Vec::new();
    let (mut logs, mut values) = (Vec::new(), 0);
    let us = owner::us();
    damaged.extend(owners(root, us));
    each_file(root, &mut |path, is_folder| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if is_foreign(path, us) && us != 0 {
            // Its owner reads it, and setting it aside would lose it.
        } else if !is_folder && is_log(name) {
            logs.push(path.to_owned());
        } else if name.ends_with(".json") && is_value(root, path) {
            match value(path, is_folder) {
                Ok(()) => values += 1,
                Err(why) => damaged.push(of_value(root, path, &why, mending)),
            }
        }
    })
    .into_iter()
    .for_each(|finding| damaged.push(finding));
    let CheckedLogs { whole, damaged: bad, unfinished, unreadable, unchecked } = checked_logs::check(root, logs, depth);
    damaged.extend(bad.iter().map(of_lines));
    damaged.extend(checked_logs::torn(unfinished).iter().map(of_torn_end));
    damaged.extend(unreadable.iter().map(|(path, why)| {
        broken(format!("{} cannot be read: {why}", path.display()), "mend its permissions, and check the disk")
    }));
    let mut findings = damaged;
    if findings.is_empty() {
        findings.push(fine(format!("{whole} lines of the logs and {values} values were read, and all are whole")));
    }
    if unchecked > 0 {
        let megabytes = unchecked.div_ceil(1_000_000);
        findings.push(Finding {
            severity: Severity::Warning,
            what: format!("{megabytes} MB of older logs were not checked yet"),
            fix: Some(
                "the daily cleanup goes on with them; `relay-mesh doctor --store --all` reads everything".to_owned(),
            ),
        });
    }
    findings
}

/// Checks what of the logs was not checked before: what the daily cleanup does.
pub(crate) fn check_logs(root: &Path, most: u64) {
    let mut logs = Vec::new();
    let _unreadable = each_file(root, &mut |path, is_folder| {
        if !is_folder && is_log(path.file_name().and_then(|name| name.to_str()).unwrap_or_default()) {
            logs.push(path.to_owned());
        }
    });
    for DamagedLog { path, lines, first } in checked_logs::check(root, logs, Depth::New(most)).damaged {
        tracing::warn!(path = %path.display(), lines, first, "lines of a log are damaged");
    }
}

/// Calls a function for each file of the folder, and for each folder that is named like a value. Returns the findings
/// about folders that cannot be read.
fn each_file(root: &Path, take: &mut dyn FnMut(&Path, bool)) -> Vec<Finding> {
    let mut unreadable = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                unreadable.push(self::unreadable(&folder, &error));
                continue;
            }
        };
        for entry in entries.flatten() {
            let (path, is_folder) = (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
            if !is_folder || path.extension().is_some_and(|ending| ending == "json") {
                take(&path, is_folder);
            } else if folder != *root || !DISPOSABLE.iter().any(|name| entry.file_name() == *name) {
                folders.push(path);
            }
        }
    }
    unreadable
}

/// Whether a file is the value of a key. Adapters and their grants have files of their own.
fn is_value(root: &Path, path: &Path) -> bool {
    let key = path.strip_prefix(root).ok().and_then(|path| path.with_extension("").to_str()?.parse::<Key>().ok());
    let first = key.as_ref().and_then(|key| key.segments().next().map(str::to_owned));
    first.is_some_and(|first| KEPT_IN_STORE.contains(&first.as_str()))
}

/// The first segments of the keys of the store's values.
const KEPT_IN_STORE: [&str; 21] = [
    "agents",
    "asks",
    "commands",
    "driven",
    "driven-ended",
    "event-hooks",
    "folders",
    "invitations",
    "listeners",
    "offline",
    "offline-notices",
    "outbox",
    "paused",
    "reservations",
    "roster",
    "sessions",
    "speakers",
    "stores",
    "thread-summaries",
    "threads",
    "work",
];

/// Whether a value's file is whole, as the store reads it.
fn value(path: &Path, is_folder: bool) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Value {
        #[serde(rename = "revision")]
        _revision: u64,
        #[serde(rename = "value")]
        _value: serde::de::IgnoredAny,
    }
    if is_folder {
        return Err("is a folder".to_owned());
    }
    match fs::read(path) {
        // It is being removed, or was never synced before a power loss.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(bytes) if bytes.is_empty() => Ok(()),
        Ok(bytes) => serde_json::from_slice::<Value>(&bytes).map(drop).map_err(|error| format!("is damaged: {error}")),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Names a damaged value, or sets it aside. What it was can be looked at there.
fn of_value(root: &Path, path: &Path, why: &str, mending: Mending) -> Finding {
    let what = format!("{} {why}", path.display());
    match mending {
        Mending::Look => not_set_aside(what),
        Mending::SetAside => match set_aside(root, path) {
            Ok(to) => is_aside(&what, &to),
            Err(error) => broken(format!("{what}, and could not be set aside: {error}"), "move it away by hand"),
        },
    }
}

pub(super) fn not_set_aside(what: String) -> Finding {
    broken(what, "everything else goes on without it; `relay-mesh doctor --store --fix` sets it aside")
}

pub(super) fn is_aside(what: &str, to: &Path) -> Finding {
    let what = format!("{what}; it is now {}", to.display());
    Finding { severity: Severity::Warning, what, fix: Some("look at it for what it was".to_owned()) }
}

fn set_aside(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let to = place_aside(root, &name)?;
    fs::rename(path, &to)?;
    Ok(to)
}

/// A free name for what is set aside. The folder is made.
pub(super) fn place_aside(root: &Path, name: &str) -> io::Result<PathBuf> {
    let folder = root.join(SET_ASIDE);
    unix::make_private_folder(&folder)?;
    let name = name.replace('/', "-");
    let free = (0..u32::MAX).map(|number| folder.join(format!("{name}.{number}"))).find(|to| !to.exists());
    Ok(free.ok_or(io::ErrorKind::AlreadyExists)?)
}

/// Damaged lines stay where they are, also with `--fix`: other processes append to the file meanwhile, and positions in
/// it are kept elsewhere. So they are no more than a warning, which stays.
fn of_lines(DamagedLog { path, lines, first }: &DamagedLog) -> Finding {
    let (path, first) = (path.display(), first.map(|first| format!("line {first}")));
    let what = match (lines, first) {
        (1, None) => format!("{path} has a line that is no JSON, and is read without it"),
        (1, Some(first)) => format!("{path} has a line that is no JSON, {first}, and is read without it"),
        (_, None) => format!("{path} has {lines} lines that are no JSON, and is read without them"),
        (_, Some(first)) => {
            format!("{path} has {lines} lines that are no JSON, the first is {first}, and is read without them")
        }
    };
    let fix = "what stood there is lost, and nothing else; lines of logs are passed over where they are, and `--fix` moves none";
    Finding { severity: Severity::Warning, what, fix: Some(fix.to_owned()) }
}

/// A file may also have been cut after its last line was stored, so nothing is said of whether its writer knew.
fn of_torn_end(log: &UnfinishedLog) -> Finding {
    let (path, length) = (log.path.display(), log.length());
    let what = format!("{path} ends within a line: its last {length} bytes are torn, and it is read without them");
    let fix = match log.is_sealed() {
        true => "what stood in that line is lost, and nothing else; look at the end of the file for what it was",
        false => {
            "what stood in that line is lost, and nothing else; the next append cuts these bytes off, so look at the end \
             of the file first if you want to know what it was"
        }
    };
    Finding { severity: Severity::Warning, what, fix: Some(fix.to_owned()) }
}

fn unreadable(folder: &Path, error: &io::Error) -> Finding {
    let fix = match error.kind() {
        io::ErrorKind::NotFound => "it is made by the first command that stores something; try `relay-mesh status`",
        _ => "choose another one by `--dir` or RELAY_DIR, or mend its permissions",
    };
    broken(format!("{} cannot be read: {error}", folder.display()), fix)
}

/// Checks that only its owner may read the folder: it holds the agents' mail.
fn privacy(folder: &Path, owner: u32, mode: u32, us: u32) -> Finding {
    let path = folder.display();
    let others = mode & 0o077;
    if owner != us {
        broken(format!("{path} belongs to user {owner} and not to you"), format!("sudo chown -R {us} {path}"))
    } else if others != 0 {
        let what = format!("{path} is open to other users (mode {:o})", mode & 0o777);
        Finding { severity: Severity::Warning, what, fix: Some(format!("chmod 700 {path}")) }
    } else {
        fine(format!("{path} is yours alone (mode {:o})", mode & 0o777))
    }
}

fn round_trip(folder: &Path, nonce: &str) -> Finding {
    let file = folder.join(format!(".doctor-{nonce}"));
    let began = Instant::now();
    let written = write_synced(&file, nonce);
    let took = began.elapsed();
    let read = written.and_then(|()| fs::read_to_string(&file));
    // The file may not exist; a failed removal says nothing about the folder.
    let _gone = fs::remove_file(&file);
    let path = folder.display();
    match read {
        Err(error) => broken(
            format!("{path} did not take a file: {error}"),
            "free some space, mend its permissions, or choose another folder by `--dir` or RELAY_DIR",
        ),
        Ok(text) if text != nonce => {
            broken(format!("{path} returned other bytes than were written"), "check the disk that it lies on")
        }
        Ok(_) if took > SLOW => Finding {
            severity: Severity::Warning,
            what: format!("a synced write takes {}, which is slow", shown(took)),
            fix: Some("put the data folder on a local disk, or use `--durability process`".to_owned()),
        },
        Ok(_) => fine(format!("a file was written, synced and read back in {}", shown(took))),
    }
}

fn write_synced(file: &Path, text: &str) -> io::Result<()> {
    let mut opened = unix::create_private_file(file)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn check(owner: u32, mode: u32, severity: Severity, expected: &str) {
        let finding = privacy(Path::new("/data"), owner, mode, 1000);
        assert_eq!(finding.severity, severity, "{}", finding.what);
        assert!(finding.what.contains(expected), "{}", finding.what);
    }

    #[test]
    fn a_data_folder_is_its_owners_alone() {
        check(1000, 0o40700, Severity::Ok, "yours alone");
        check(1000, 0o40755, Severity::Warning, "open to other users (mode 755)");
        check(0, 0o40700, Severity::Broken, "belongs to user 0");
    }

    #[test]
    fn a_folder_that_takes_a_file_is_proven_by_one_that_is_gone_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("its mode is set");
        let findings = prove(folder.path(), "n1");
        assert!(findings.iter().all(|finding| finding.severity == Severity::Ok), "{findings:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_disk_that_fills_up_is_told_in_time() {
        for (left, severity) in [(0, Severity::Broken), (FULL, Severity::Warning), (SCARCE, Severity::Ok)] {
            assert_eq!(scarce(left, "/data").severity, severity);
        }
    }

    #[test]
    fn a_damaged_value_is_named_and_set_aside_and_the_rest_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let good = "{\"revision\":1,\"value\":{}}";
        for (path, text) in [
            ("agents/bob/meta.json", good),
            ("agents/bob/cursor.json", "{\"revision\":1,\"val"),
            ("work/bob.json", "{}"),
            ("sessions/fake/s1.json/", ""),
            ("ended/fake/s2.json", "not looked at"),
            ("settings.json", "no value of the store"),
            ("plugins/x/grants.json", "nor this"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            match text {
                "" => fs::create_dir(&path).expect("made"),
                text => fs::write(&path, text).expect("written"),
            }
        }
        let worst = |findings: &[Finding]| findings.iter().map(|finding| finding.severity).max();
        let found = damage(root, Mending::Look, Depth::All);
        assert_eq!((found.len(), worst(&found)), (3, Some(Severity::Broken)), "{found:?}");
        let mended = damage(root, Mending::SetAside, Depth::All);
        assert_eq!((mended.len(), worst(&mended)), (3, Some(Severity::Warning)), "{mended:?}");
        let left = damage(root, Mending::Look, Depth::All);
        assert_eq!(worst(&left), Some(Severity::Ok), "{left:?}");
        assert_eq!(fs::read_dir(root.join(SET_ASIDE)).expect("readable").count(), 3, "kept for a look");
        assert!(root.join("plugins/x/grants.json").exists() && root.join("agents/bob/meta.json").exists());
    }

    #[test]
    fn a_log_with_a_bad_line_or_a_torn_end_is_named_and_is_not_whole() {
        let good = "{\"body\":\"hello\"}\n";
        for (name, text, what, fix) in [
            (
                "inbox.jsonl",
                format!("{good}{{\"broken\": nul\n{good}"),
                "a line that is no JSON, line 2, ",
                "`--fix` moves none",
            ),
            ("inbox.jsonl", format!("[\n{good}[\n"), "2 lines that are no JSON, the first is line 1, ", "is lost"),
            ("inbox.jsonl", format!("{good}{}", &good[..6]), "its last 6 bytes are torn", "the next append cuts"),
            ("inbox.jsonl.2", format!("{good}{}", &good[..6]), "its last 6 bytes are torn", "look at the end"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join(name), &text).expect("written");
            for mending in [Mending::Look, Mending::SetAside] {
                let found = damage(folder.path(), mending, Depth::New(1000));
                let [finding] = &found[..] else { panic!("{text}: {found:?}") };
                assert_eq!(finding.severity, Severity::Warning, "{finding:?}");
                let named = finding.what.contains(what) && finding.what.contains(&format!("{name} "));
                assert!(named && finding.fix.as_ref().is_some_and(|told| told.contains(fix)), "{finding:?}");
            }
            assert_eq!(fs::read_to_string(folder.path().join(name)).expect("text"), text, "it stays as it is");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let findings = prove(Path::new("/nowhere/at/all"), "n1");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("/nowhere/at/all"), "{findings:?}");
        assert_eq!(findings[0].severity, Severity::Broken);
    }
}
