//! Hooks that are there twice: by `relay-mesh install`, and by a plugin that the harness itself has installed. The harness
//! starts both for each event, at once and with the same payload, and one of them is enough: of a pair, the second one
//! stands aside. Which of them is the second does not matter, and one whose partner does not run never does.
//!
//! Where only one of the two ways is used, this costs a look for one file. Where both are, the first hook leaves a claim:
//! a link named after the call, which is made at once or not at all and says who made it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mesh::ports::harness::HookCall;
use sha2::{Digest as _, Sha256};

use crate::unix::{self, symlink};

/// Below the data folder.
const FOLDER: &str = "hook-pairs";
/// How long a claim waits for its partner. The harness starts both within milliseconds; what is older belongs to a call
/// whose partner never ran.
const PARTNER_WITHIN: Duration = Duration::from_secs(30);
/// At these events old claims are removed: once or twice in a session.
const SWEEPING: [&str; 2] = ["SessionStart", "SessionEnd"];

/// Who has had the harness call a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookSource {
    Install,
    Plugin,
}

impl HookSource {
    /// As a claim says it, and the mark that says that hooks of this source run.
    fn word(self) -> &'static str {
        match self {
            HookSource::Install => "install",
            HookSource::Plugin => "plugin",
        }
    }

    fn other(self) -> HookSource {
        match self {
            HookSource::Install => HookSource::Plugin,
            HookSource::Plugin => HookSource::Install,
        }
    }
}

/// Whether the partner answers this very call. If that cannot be told, the hook does its work.
pub(crate) fn stands_aside(data: &Path, source: HookSource, harness: &str, call: &HookCall) -> bool {
    let folder = data.join(FOLDER).join(digest(&[harness]));
    pair(&folder, source, call).unwrap_or_else(|error| {
        tracing::warn!(%error, "whether this hook runs twice cannot be told");
        false
    })
}

fn pair(folder: &Path, source: HookSource, call: &HookCall) -> io::Result<bool> {
    let mark = |of: HookSource| folder.join(of.word());
    let has_partner = mark(source.other()).symlink_metadata().is_ok();
    // The plugin says first that it is there, so that those who have none never write here.
    if source == HookSource::Plugin || has_partner {
        leave_mark(folder, &mark(source))?;
    }
    if !has_partner {
        return Ok(false);
    }
    if SWEEPING.contains(&call.name.as_str()) {
        sweep(folder)?;
    }
    let claim = folder.join(digest(&[&call.name, &call.payload]));
    // Another process may take or leave a claim in between; then this one looks again.
    for _ in 0..3 {
        match symlink(source.word(), &claim) {
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let Ok(by) = fs::read_link(&claim) else { continue };
        let is_old = is_old(folder, &claim)?;
        if by == Path::new(source.word()) && !is_old {
            return Ok(false);
        }
        // Only one process removes it.
        match fs::remove_file(&claim) {
            Ok(()) if !is_old => return Ok(true),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn leave_mark(folder: &Path, mark: &Path) -> io::Result<()> {
    if mark.symlink_metadata().is_ok() {
        return Ok(());
    }
    unix::make_private_folder(folder)?;
    match symlink("here", mark) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether a claim is older than its partner would need, by the file system's own clock.
fn is_old(folder: &Path, claim: &Path) -> io::Result<bool> {
    let made = match claim.symlink_metadata() {
        Ok(found) => found.modified()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(now(folder)?.duration_since(made).is_ok_and(|age| age > PARTNER_WITHIN))
}

fn now(folder: &Path) -> io::Result<std::time::SystemTime> {
    let probe = folder.join(format!("now-{}", std::process::id()));
    let _left_by_another = fs::remove_file(&probe);
    symlink("now", &probe)?;
    let now = probe.symlink_metadata().and_then(|found| found.modified());
    fs::remove_file(&probe)?;
    now
}

fn sweep(folder: &Path) -> io::Result<()> {
    let now = now(folder)?;
    let marks = [HookSource::Install, HookSource::Plugin].map(|source| folder.join(source.word()));
    let claims = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    for claim in claims.filter(|claim| !marks.contains(claim)) {
        let made = claim.symlink_metadata().and_then(|found| found.modified());
        if made.is_ok_and(|made| now.duration_since(made).is_ok_and(|age| age > PARTNER_WITHIN)) {
            let _taken = fs::remove_file(claim);
        }
    }
    Ok(())
}

fn digest(words: &[&str]) -> PathBuf {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.as_bytes());
        hash.update([0]);
    }
    hex::encode(&hash.finalize()[..16]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls as `source payload`, and which of them stand aside.
    #[track_caller]
    fn check(calls: &[&str], expected: &[bool]) {
        let data = tempfile::tempdir().expect("a folder");
        let asked: Vec<bool> = calls.iter().map(|call| ask(data.path(), call)).collect();
        assert_eq!(asked, expected, "{calls:?}");
    }

    fn ask(data: &Path, call: &str) -> bool {
        let (source, payload) = call.split_once(' ').expect("a source and a payload");
        let source = if source == "plugin" { HookSource::Plugin } else { HookSource::Install };
        let (name, payload) = ("FileChanged".to_owned(), payload.to_owned());
        stands_aside(data, source, "toad", &HookCall { name, payload, environment: Vec::new(), process: None })
    }

    #[test]
    fn of_two_hooks_for_one_call_one_does_the_work() {
        // The first pair shows each of them that the other one is there.
        let met = ["plugin 0", "install 0", "plugin 0"];
        check(&met, &[false, false, true]);
        for (further, expected) in [
            (["install 1", "plugin 1"], [false, true]),
            (["plugin 1", "install 1"], [false, true]),
            (["plugin 1", "install 2"], [false, false]),
            (["install 1", "install 1"], [false, false]),
        ] {
            check(&[&met[..], &further].concat(), &[&[false, false, true][..], &expected].concat());
        }
    }

    #[test]
    fn the_same_call_comes_again_and_again() {
        let data = tempfile::tempdir().expect("a folder");
        for call in ["plugin 0", "install 0", "plugin 0"] {
            ask(data.path(), call);
        }
        // In whatever order the four of two calls come, at least two of them work, and not all.
        for calls in [
            ["install 1", "plugin 1", "install 1", "plugin 1"],
            ["install 1", "install 1", "plugin 1", "plugin 1"],
            ["plugin 1", "install 1", "install 1", "plugin 1"],
        ] {
            let work = calls.iter().filter(|call| !ask(data.path(), call)).count();
            assert!((2..4).contains(&work), "{calls:?}: {work}");
        }
    }

    #[test]
    fn who_has_one_of_them_writes_nothing_or_one_mark() {
        for (call, expected) in [("install 1", 0), ("plugin 1", 1)] {
            let data = tempfile::tempdir().expect("a folder");
            assert!(!ask(data.path(), call) && !ask(data.path(), call), "{call}");
            let folder = data.path().join(FOLDER).join(digest(&["toad"]));
            assert_eq!(fs::read_dir(folder).into_iter().flatten().count(), expected, "{call}");
        }
    }

    #[test]
    fn a_claim_whose_partner_never_ran_holds_nobody_back() {
        let data = tempfile::tempdir().expect("a folder");
        for call in ["plugin 0", "install 0", "plugin 0", "plugin 1"] {
            ask(data.path(), call);
        }
        let claim = data.path().join(FOLDER).join(digest(&["toad"])).join(digest(&["FileChanged", "1"]));
        let old = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: old, last_modification: old };
        let (at, flags) = (rustix::fs::CWD, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        rustix::fs::utimensat(at, &claim, &times, flags).expect("it is ours");
        assert!(!ask(data.path(), "install 1"), "the claim is of another call");
        assert!(ask(data.path(), "plugin 1"), "and this is its partner");
    }
}
