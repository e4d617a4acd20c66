//! A process that is killed while it changes the installed adapters leaves the version before or the one after, whole,
//! and nothing that blocks the next change.

use std::path::Path;
use std::process::{Child, Stdio};

use adapters::installed::{Enablement, FoundVersion, Install};
use adapters::{Consent, InstalledAdapters, Package};
use mesh::ports::machine::Instant;

/// Often enough that a kill happens between any two of its steps.
const KILLS: usize = 30;

#[test]
fn whoever_is_killed_while_installing_leaves_nothing_half() {
    let folder = tempfile::tempdir().expect("a folder");
    let installed = InstalledAdapters::new(folder.path().join("plugins"));
    let (mut seen_absent, mut seen_whole) = (0, 0);
    for kill in 0..KILLS {
        let mut child = churning(folder.path());
        wait_for_changes(folder.path(), kill % 7);
        // At a different place each time: a few thousand steps of this loop take some microseconds.
        for step in 0..kill * 4_000 {
            std::hint::black_box(step);
        }
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        match installed.record("toy").expect("a record is whole or not there") {
            None => seen_absent += 1,
            Some(record) => {
                assert!(installed.is_sound("toy"), "{record:?}");
                let installed = record.installed.as_ref().expect("a version");
                assert_eq!(record.consent(&installed.digest).grants, [installed.version.clone()].into());
                seen_whole += 1;
            }
        }
        change(&installed, folder.path(), "9.9.9");
        assert_eq!(files(&folder.path().join("plugins")), 3, "what was left half is cleared away");
        installed.remove("toy").expect("removed");
        assert_eq!(files(&folder.path().join("plugins")), 0);
    }
    assert!(seen_whole > 0, "it was killed in {seen_absent} and {seen_whole}");
}

/// Installs, updates and removes in an endless loop, in the current folder.
#[test]
#[ignore = "run by the other test, and killed by it"]
fn churn() {
    let folder = std::env::current_dir().expect("a folder");
    let installed = InstalledAdapters::new(folder.join("plugins"));
    for number in 0_u64.. {
        change(&installed, &folder, &format!("1.0.{number}"));
        if number % 3 == 2 {
            installed.remove("toy").expect("removed");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "only a process of its own can be killed")]
fn churning(folder: &Path) -> Child {
    std::process::Command::new(std::env::current_exe().expect("a test has a program"))
        .args(["--exact", "churn", "--ignored"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// Waits until this many different versions have been installed.
fn wait_for_changes(folder: &Path, changes: usize) {
    let look = || std::fs::read(folder.join("plugins/toy.json")).ok();
    let mut last = look();
    let mut seen = 0;
    while seen <= changes {
        let now = look();
        if now != last {
            (last, seen) = (now, seen + 1);
        }
        std::thread::yield_now();
    }
}

/// Installs a version of `toy`, in place of the current one.
fn change(installed: &InstalledAdapters, folder: &Path, version: &str) {
    let file = folder.join("toy.wasm");
    std::fs::write(&file, format!("\0asm\x0d\0\x01\0{version}")).expect("written");
    let manifest = format!("name = \"toy\"\ntitle = \"Toy\"\nversion = \"{version}\"\nwit = \"0.1\"\n");
    std::fs::write(file.with_extension("toml"), manifest).expect("written");
    let package = Package::open(&file).expect("a package");
    let consent = Consent { grants: [version.to_owned()].into(), replaces_built_in: false };
    let install = Install {
        package: &package,
        publishers: &[],
        consent: &consent,
        standing: Enablement::Enabled,
        at: Instant(1),
    };
    let found = FoundVersion::of(installed.record("toy").expect("whole").as_deref());
    installed.install(install, found).expect("installed");
}

/// The number of installed files, without the lock.
fn files(folder: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            count += files(&path);
        } else if !path.ends_with(".lock") {
            count += 1;
        }
    }
    count
}
