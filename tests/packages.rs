//! What people install relay-mesh from. That packing gives the same bytes each time is tested always, with a stand-in for
//! the binary. What `make dist` has packed is installed in a clean root and used there: `make dist` runs those tests.

#![cfg(target_os = "linux")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use test_support::{Program, isolated};

#[path = "packages/container.rs"]
mod container;
#[path = "packages/inside.rs"]
mod inside;
#[path = "packages/installed.rs"]
mod installed;
#[path = "packages/interpreters.rs"]
mod interpreters;
#[path = "packages/publishing.rs"]
mod publishing;
#[path = "packages/signing.rs"]
mod signing;
#[path = "packages/targets.rs"]
mod targets;

use installed::{CleanRoot, dist, named, names, read, root, stage};

/// The target of packages for this machine.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

/// Answers what the packer asks of the binary.
const STAND_IN: &str = r#"#!/bin/sh
case $1 in
    --version) echo relay-mesh VERSION ;;
    completions) echo "completions for $2" ;;
    man) echo ".TH relay-mesh 1" >"$3/relay-mesh.1"; echo ".TH relay-mesh-send 1" >"$3/relay-mesh-send.1" ;;
esac
"#;

#[test]
fn a_binary_is_packed_the_same_twice() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let binary = stand_in(folder.path(), env!("CARGO_PKG_VERSION"));
    let sums: Vec<String> = [("one", "022", "UTC"), ("two", "077", "Asia/Tokyo")]
        .into_iter()
        .map(|(name, mask, zone)| {
            let out = folder.path().join(name);
            let kinds = ["tarball", "npm", "npm-launcher", "wheel", "oci", "homebrew", "installer"];
            let kinds: Vec<&str> = kinds.into_iter().flat_map(|kind| ["--only", kind]).collect();
            Program::new("sh")
                .args(["-c", &format!("umask {mask}; exec \"$@\""), "packed"])
                .args(pack(&binary, &out))
                .args(["--target", TARGET])
                .args(kinds)
                .envs([("TZ", zone), ("SOURCE_DATE_EPOCH", "1795699023")])
                .succeed();
            read(&out.join("SHA256SUMS"))
        })
        .collect();
    let packed = "two archives, two npm packages, a wheel, an image, a formula, install.sh";
    assert_eq!(sums[0].lines().count(), 8, "{packed}\n{}", sums[0]);
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let script = stand_in(folder.path(), env!("CARGO_PKG_VERSION"));
    let older = folder.path().join("older");
    std::fs::create_dir(&older).expect("the folder is writable");
    let older = stand_in(&older, "0.0.1");
    let dynamic = PathBuf::from("/bin/sh");
    let missing = folder.path().join("missing");
    for (binary, target, epoch, said) in [
        (&missing, "", "0", "there is no "),
        (&script, "", "0", "is no 64-bit ELF or Mach-O program"),
        (&dynamic, "", "0", "needs a dynamic linker"),
        (&older, TARGET, "0", "says 'relay-mesh 0.0.1', and Cargo.toml has version"),
        (&script, "mips-unknown-linux-musl", "0", "mips-unknown-linux-musl is no target that is packed"),
        (&script, TARGET, "yesterday", "SOURCE_DATE_EPOCH is 'yesterday'"),
    ] {
        let out = folder.path().join("out");
        let target: &[&str] = if target.is_empty() { &[] } else { &["--target", target] };
        let outcome = Program::new("env").args(pack(binary, &out)).args(target).env("SOURCE_DATE_EPOCH", epoch).run();
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains(said), "{said}: {outcome:?}");
        assert!(!outcome.stderr.contains("Traceback"), "{outcome:?}");
        assert!(!out.exists(), "nothing was packed");
    }
}

#[test]
fn a_disk_that_is_full_is_named_and_holds_nothing_unfinished() {
    isolated(|| {
        let stage = stage();
        let binary = stand_in(&stage.folder, env!("CARGO_PKG_VERSION"));
        let out = stage.folder.join("full");
        std::fs::create_dir(&out).expect("the stage is writable");
        Program::new("mount").args(["-t", "tmpfs", "-o", "size=4k", "full"]).arg(&out).succeed();
        let outcome = Program::new("env")
            .args(pack(&binary, &out))
            .args(["--target", TARGET, "--only", "installer"])
            .environment_of_this_process()
            .env("SOURCE_DATE_EPOCH", "0")
            .run();
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(
            outcome.stderr.contains("install.sh could not be written: No space left on device\nhint: "),
            "{outcome:?}"
        );
        assert!(names(&out).is_empty(), "{:?}", names(&out));
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn everything_is_packed_the_same_again() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let binary = stage().binary().to_owned();
    let program = Program::new("env").args(pack(&binary, folder.path()));
    program.environment_of_this_process().succeed();
    assert_eq!(read(&folder.path().join("SHA256SUMS")), read(&dist().join("SHA256SUMS")));
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_archive_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        let holds =
            ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "THIRD-PARTY-LICENSES", "completions", "man", "relay-mesh"];
        for (ending, unpack) in [(".tar.gz", "tar -xzf"), (".tar.xz", "tar -xJf")] {
            place.bring(ending);
            let archive = named(ending);
            let stem = archive.trim_end_matches(ending);
            let command =
                format!("rm -rf /tmp/* && {unpack} /dist/{archive} -C /tmp && ln -sf /tmp/{stem}/relay-mesh /bin/");
            let seconds = place.install(&command);
            place.use_it(ending, seconds, "/usr/bin");
            assert_eq!(names(&place.folder.join("tmp").join(stem)), holds);
        }
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_installer_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        for file in [".tar.xz", "install.sh", "SHA256SUMS"] {
            place.bring(file);
        }
        let seconds = place.install("RELAY_MESH_URL=file:///dist RELAY_MESH_BIN=/bin sh /dist/install.sh");
        place.use_it("install.sh", seconds, "/usr/bin");
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_debian_package_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        let database = place.folder.join("var/lib/dpkg");
        for folder in ["info", "updates", "triggers"] {
            std::fs::create_dir_all(database.join(folder)).expect("the root is writable");
        }
        for file in ["status", "available"] {
            std::fs::write(database.join(file), "").expect("the root is writable");
        }
        let dpkg =
            |what: &[&str]| Program::new("dpkg").arg(format!("--root={}", place.folder.display())).args(what).succeed();
        let began = Instant::now();
        dpkg(&["--install", &dist().join(named(".deb")).display().to_string()]);
        place.use_it(".deb", began.elapsed().as_secs_f64(), "/usr/bin");
        dpkg(&["--verify", "relay-mesh"]);
        dpkg(&["--purge", "relay-mesh"]);
        assert!(!place.folder.join("usr/bin/relay-mesh").exists(), "it was removed");
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_rpm_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        let rpm = |what: &[&str]| {
            Program::new("rpm").args(["--root", &place.folder.display().to_string()]).args(what).succeed()
        };
        rpm(&["--initdb"]);
        let began = Instant::now();
        // Debian's rpm says that it should not be used to install.
        rpm(&["--install", "--force-debian", &dist().join(named(".rpm")).display().to_string()]);
        place.use_it(".rpm", began.elapsed().as_secs_f64(), "/usr/bin");
        rpm(&["--verify", "relay-mesh"]);
        rpm(&["--erase", "relay-mesh"]);
        assert!(!place.folder.join("usr/bin/relay-mesh").exists(), "it was removed");
    });
}

/// The packer's command line for this binary.
fn pack(binary: &Path, out: &Path) -> Vec<String> {
    let words = [
        "python3".into(),
        root().join("packaging/pack.py"),
        "--binary".into(),
        binary.into(),
        "--out".into(),
        out.into(),
    ];
    words.map(|word: PathBuf| word.display().to_string()).to_vec()
}

fn stand_in(folder: &Path, version: &str) -> PathBuf {
    let path = folder.join("relay-mesh");
    std::fs::write(&path, STAND_IN.replace("VERSION", version)).expect("the folder is writable");
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
    path
}
