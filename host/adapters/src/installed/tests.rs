//! What readers and writers of the installed adapters can rely on.

use std::os::unix::fs::PermissionsExt;

use mesh::ports::machine::Instant;

use super::*;
use crate::package::Package;

/// Installed adapters in a folder of their own, and packages that differ only in their version.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        Stage { folder: tempfile::tempdir().expect("a folder") }
    }

    fn installed(&self) -> InstalledAdapters {
        InstalledAdapters::new(self.folder.path().join("plugins"))
    }

    fn package(&self, version: &str) -> Package {
        let file = self.folder.path().join("toy.wasm");
        std::fs::write(&file, format!("\0asm\x0d\0\x01\0{version}")).expect("written");
        let manifest = format!("name = \"toy\"\ntitle = \"Toy\"\nversion = \"{version}\"\nwit = \"0.1\"\n");
        std::fs::write(file.with_extension("toml"), manifest).expect("written");
        Package::open(&file).expect("a package")
    }

    fn install(&self, version: &str, found: FoundVersion) -> Result<Record, InstalledError> {
        let package = self.package(version);
        let consent = Consent { grants: [format!("state.{version}")].into(), replaces_built_in: false };
        let install = Install {
            package: &package,
            publishers: &[],
            consent: &consent,
            standing: Enablement::Enabled,
            at: Instant(1),
        };
        self.installed().install(install, found)
    }

    /// The installed files by path, without the lock.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.path().join("plugins")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with(".lock") {
                    let short = path.strip_prefix(self.folder.path()).expect("below").display().to_string();
                    files.push(short);
                }
            }
        }
        files.sort();
        files
    }
}

/// The state of `toy`, in words.
fn told(installed: &InstalledAdapters) -> String {
    match installed.held("toy") {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(InstalledEntry { record, candidate })) => match candidate {
            None => "consents alone".to_owned(),
            Some(Ok(candidate)) if record.is_enabled() => candidate.manifest.version.clone(),
            Some(Ok(candidate)) => format!("{} disabled", candidate.manifest.version),
            Some(Err(why)) => why,
        },
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_installed_is_found_updated_and_removed() {
    let stage = Stage::new();
    let installed = stage.installed();
    assert_eq!((told(&installed), installed.names().expect("no folder yet")), ("nothing".to_owned(), Vec::new()));
    let first = stage.install("1.0.0", FoundVersion::default()).expect("installed");
    assert_eq!(told(&installed), "1.0.0");
    assert_eq!(installed.names().expect("names"), ["toy"]);
    let digest = first.installed.as_ref().expect("installed").digest;
    assert_eq!(installed.given("toy", &digest).grants, ["state.1.0.0".to_owned()].into());
    stage.install("1.1.0", FoundVersion::of(Some(&first))).expect("updated");
    assert_eq!(told(&installed), "1.1.0");
    assert_eq!(stage.files().len(), 3, "nothing of the older version is left: {:?}", stage.files());
    assert_eq!(installed.stand("toy", Enablement::Disabled).expect("disabled"), Enablement::Enabled);
    assert_eq!(told(&installed), "1.1.0 disabled");
    assert_eq!(installed.stand("toy", Enablement::Enabled).expect("enabled"), Enablement::Disabled);
    installed.remove("toy").expect("removed");
    assert_eq!(told(&installed), "nothing");
    assert_eq!(stage.files(), [""; 0], "its files and its consents are gone");
    assert!(matches!(installed.remove("toy"), Err(InstalledError::Absent(_))));
    assert!(matches!(installed.stand("toy", Enablement::Enabled), Err(InstalledError::Absent(_))));
}

#[test]
fn nothing_is_readable_or_writable_to_others() {
    let stage = Stage::new();
    stage.install("1.0.0", FoundVersion::default()).expect("installed");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let plugins = stage.folder.path().join("plugins");
    assert_eq!((mode(&plugins), mode(&plugins.join("toy"))), (0o700, 0o700));
    for file in stage.files() {
        assert_eq!(mode(&stage.folder.path().join(&file)), 0o600, "{file}");
    }
}

#[test]
fn of_two_installs_that_saw_the_same_one_is_told() {
    let stage = Stage::new();
    stage.install("1.0.0", FoundVersion::default()).expect("installed");
    let error = stage.install("2.0.0", FoundVersion::default()).expect_err("it was another's");
    assert!(matches!(error, InstalledError::Changed(_)), "{error}");
    assert_eq!(told(&stage.installed()), "1.0.0");
}

/// While an update downloads and asks, its user takes something back in another terminal.
#[test]
fn what_was_taken_back_during_an_update_stays_taken_back() {
    let stage = Stage::new();
    let first = stage.install("1.0.0", FoundVersion::default()).expect("installed");
    let digest = first.installed.as_ref().expect("installed").digest;
    let found = FoundVersion::of(Some(&first));
    let installed = stage.installed();
    installed.consent("toy", digest, Instant(2), |consent| consent.grants.clear()).expect("revoked");
    let refused = stage.install("1.1.0", found);
    assert!(matches!(refused, Err(InstalledError::Changed(_))), "{refused:?}");
    let now = FoundVersion::of(installed.record("toy").expect("whole").as_deref());
    installed.stand("toy", Enablement::Disabled).expect("disabled");
    assert!(matches!(stage.install("1.1.0", now), Err(InstalledError::Changed(_))));
    assert_eq!(told(&installed), "1.0.0 disabled");
}

#[test]
fn a_name_is_no_path() {
    let stage = Stage::new();
    stage.install("1.0.0", FoundVersion::default()).expect("installed");
    for name in ["../plugins/toy", "toy/../toy", "", ".", "/toy", "TOY"] {
        assert!(stage.installed().held(name).expect("no failure").is_none(), "{name}");
    }
}

/// Damages an installed adapter and compares its state afterwards.
fn check(damage: impl Fn(&Path, &Path), expected: &str) {
    let stage = Stage::new();
    let record = stage.install("1.0.0", FoundVersion::default()).expect("installed");
    let installed = stage.installed();
    let component = installed.component_of("toy", &record.installed.expect("installed").digest);
    damage(&installed.path_of("toy"), &component);
    let told = told(&installed);
    assert!(told.contains(expected), "{told}");
    // Whatever the damage: installing again repairs it, unless other users could have written to it.
    if !expected.contains("no adapter is taken from it") {
        let found = FoundVersion::of(installed.record("toy").ok().flatten().as_deref());
        stage.install("1.0.0", found).expect("installed again");
        assert_eq!(self::told(&stage.installed()), "1.0.0");
    }
}

#[test]
fn what_was_changed_behind_our_back_is_refused_and_mended_by_installing_again() {
    let write = |text: &'static str| move |path: &Path| std::fs::write(path, text).expect("written");
    check(|record, _| write("{ \"name\": \"toy\"")(record), "is damaged: EOF");
    check(|record, _| write("")(record), "is damaged");
    check(|record, _| write("{ \"name\": \"other\" }")(record), "it is about `other`");
    check(|_, component| write("\0asm\x0d\0\x01\0evil")(component), "its component is not the one that was installed");
    check(|_, component| write("")(component), "its component is not the one that was installed");
    check(|_, component| std::fs::remove_file(component).expect("removed"), "its component cannot be read");
    let manifest = |component: &Path| component.with_file_name("adapter.toml");
    check(|_, component| write("name = \"toy\"")(&manifest(component)), "its manifest is not the one");
    check(|_, component| std::fs::remove_file(manifest(component)).expect("removed"), "its manifest cannot be read");
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    };
    check(|record, _| open(record, 0o666), "can be written to by others, so no adapter is taken from it");
    check(|record, _| open(record.parent().expect("a folder"), 0o777), "so no adapter is taken from it");
    let link = |record: &Path, _: &Path| {
        let elsewhere = record.with_extension("elsewhere");
        std::fs::rename(record, &elsewhere).expect("moved");
        std::os::unix::fs::symlink(elsewhere, record).expect("linked");
    };
    check(link, "is a symbolic link, so no adapter is taken from it");
}

#[test]
fn a_file_that_was_copied_elsewhere_and_back_is_still_the_same() {
    check(
        |_, component| {
            let bytes = std::fs::read(component).expect("read");
            std::fs::remove_file(component).expect("removed");
            std::fs::write(component, bytes).expect("written");
        },
        "1.0.0",
    );
}

#[test]
fn what_a_killed_install_left_is_cleared_away_by_the_next_change() {
    let stage = Stage::new();
    stage.install("1.0.0", FoundVersion::default()).expect("installed");
    let plugins = stage.folder.path().join("plugins");
    for left in ["toy/0123456789abcdef.new", "toy/fedcba9876543210", "other/0123456789abcdef"] {
        std::fs::create_dir_all(plugins.join(left)).expect("made");
        std::fs::write(plugins.join(left).join("half.wasm"), "half").expect("written");
    }
    assert_eq!(told(&stage.installed()), "1.0.0");
    stage.installed().stand("toy", Enablement::Enabled).expect("enabled");
    assert_eq!(stage.files().len(), 3, "{:?}", stage.files());
    assert_eq!(told(&stage.installed()), "1.0.0");
}

#[test]
fn consents_of_what_nobody_installed_are_kept_too() {
    let stage = Stage::new();
    let (installed, digest) = (stage.installed(), Digest::of(b"a build"));
    let consent = Consent { grants: ["state".to_owned()].into(), replaces_built_in: false };
    let give = |given: &mut Consent| given.grants.extend(consent.grants.clone());
    assert_eq!(installed.consent("toy", digest, Instant(1), give).expect("noted"), consent);
    assert_eq!((told(&installed), installed.given("toy", &digest)), ("consents alone".to_owned(), consent));
    assert_eq!(installed.given("toy", &Digest::of(b"another build")), Consent::default());
}
