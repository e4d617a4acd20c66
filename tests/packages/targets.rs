//! What is packed for each platform, and what comes of several. No Mac is needed: programs for macOS are written here as
//! far as their headers go, and a script stands in for one that can be asked.

use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::{Outcome, Program};

use crate::{names, pack, read, root, stand_in};

const ARM: u32 = 0x0100_000c;
const INTEL: u32 = 0x0100_0007;
const LINUX: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];
const MACOS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-apple-darwin"];

/// Prints the target of a program, the platform that its wheel is for, and what is in the section of the list of crates.
const READER: &str = r#"
import sys
from pathlib import Path
from types import SimpleNamespace
from binary import section
from targets import target_of
from wheel import platforms
program = Path(sys.argv[1]).read_bytes()
target = target_of(program, "it")
print(target.triple, platforms(SimpleNamespace(program=program, target=target, binary="it")))
print(section(program, "__DATA", ".dep-v0"))
"#;

#[test]
fn a_program_for_macos_is_told_by_its_header() {
    let system = loads("/usr/lib/libSystem.B.dylib");
    let framework = loads("/System/Library/Frameworks/Security.framework/Versions/A/Security");
    for (processor, commands, expected) in [
        (ARM, vec![built_for(11, 0), system.clone(), signed()], "aarch64-apple-darwin macosx_11_0_arm64\nNone\n"),
        (ARM, vec![built_for(11, 3), system.clone(), signed()], "aarch64-apple-darwin macosx_12_0_arm64\nNone\n"),
        (ARM, vec![signed(), framework, built_for(15, 0)], "aarch64-apple-darwin macosx_15_0_arm64\nNone\n"),
        (INTEL, vec![built_for(10, 12), system.clone()], "x86_64-apple-darwin macosx_10_12_x86_64\nNone\n"),
        // As older linkers say it.
        (INTEL, vec![min_version(10, 13), system], "x86_64-apple-darwin macosx_10_13_x86_64\nNone\n"),
        (
            INTEL,
            vec![built_for(10, 12), section("__DATA", ".dep-v0", 4)],
            "x86_64-apple-darwin macosx_10_12_x86_64\nb'\\xcf\\xfa\\xed\\xfe'\n",
        ),
    ] {
        let place = Place::new();
        let program = place.file(&mach_o(processor, &commands));
        let reader = Program::new("python3").args(["-c", READER]).arg(&program);
        assert_eq!(reader.env("PYTHONPATH", root().join("packaging")).succeed(), expected);
    }
}

#[test]
fn what_does_not_run_on_another_mac_is_refused() {
    let fine = [built_for(11, 0), signed()];
    let with = |command: Vec<u8>| mach_o(ARM, &[fine.to_vec(), vec![command]].concat());
    let mut cut_off = with(loads("/usr/lib/libSystem.B.dylib"));
    cut_off.truncate(cut_off.len() - 1);
    for (program, said) in [
        (
            with(loads("/opt/homebrew/lib/x.dylib")),
            "loads /opt/homebrew/lib/x.dylib, which other Macs do not have\nhint: ",
        ),
        (with(loads("@rpath/x.dylib")), "loads @rpath/x.dylib, which other Macs do not have"),
        (
            mach_o(ARM, &[built_for(11, 0)]),
            "is not signed, and a Mac with an ARM processor starts no such program\nhint: ",
        ),
        (mach_o(ARM, &[signed()]), "does not say on which versions of macOS it runs"),
        (mach_o(7, &fine), "is for Mach-O machine 7, which is not packed"),
        (cut_off, "is cut off: "),
        (mach_o(ARM, &fine)[..20].to_vec(), "is cut off: "),
        (b"#!/bin/sh\n".to_vec(), "is no 64-bit ELF or Mach-O program"),
    ] {
        let place = Place::new();
        let outcome = Program::new("env").args(pack(&place.file(&program), &place.out("none"))).run();
        refused(&outcome, said);
    }
}

#[test]
fn on_macos_only_what_is_of_it_is_packed() {
    for (target, npm, wheel) in
        [(MACOS[0], "darwin-arm64", "macosx_11_0_arm64"), (MACOS[1], "darwin-x64", "macosx_10_12_x86_64")]
    {
        let place = Place::new();
        let outcome = place.pack(target, "mac", &[]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let version = env!("CARGO_PKG_VERSION");
        let mut expected = vec![
            "SHA256SUMS".to_owned(),
            format!("relay-mesh-npm-{npm}-{version}.tgz"),
            format!("relay_mesh-{version}-py3-none-{wheel}.whl"),
        ];
        expected
            .extend(["cdx.json", "tar.gz", "tar.xz"].map(|ending| format!("relay-mesh-{version}-{target}.{ending}")));
        expected.sort();
        assert_eq!(names(&place.out("mac")), expected);
        let bill = read(&place.out("mac").join(format!("relay-mesh-{version}-{target}.cdx.json")));
        assert!(bill.contains("pkg:generic/rust-std@") && !bill.contains("pkg:generic/musl"), "musl is of Linux");
        assert!(bill.contains("pkg:generic/wasi-libc@"), "each platform has the adapters");
        for kind in ["deb", "oci", "npm-launcher", "installer"] {
            refused(&place.pack(target, "none", &[kind]), &format!("{kind} is not packed for {target}\nhint: "));
        }
    }
}

#[test]
fn what_several_machines_packed_is_joined() {
    let place = Place::new();
    for target in LINUX {
        place.pack_all(target, &["tarball", "npm", "npm-launcher", "oci", "homebrew"]);
    }
    for target in MACOS {
        place.pack_all(target, &["tarball", "npm"]);
    }
    let joined = place.join("joined", &[LINUX, MACOS].concat());
    assert_eq!(place.join("in-another-order", &[MACOS, LINUX].concat()), joined);
    let formula = read(&place.out("joined").join("relay-mesh.rb"));
    for target in [LINUX, MACOS].concat() {
        assert!(formula.contains(&format!("-{target}.tar.xz\"")), "{target}: {formula}");
    }
    assert_eq!(formula.matches("on_macos do").count(), 2, "{formula}");

    // One tag, and below it an image for each processor.
    let version = env!("CARGO_PKG_VERSION");
    let layout = place.out("layout");
    std::fs::create_dir(&layout).expect("the folder is writable");
    let image = place.out("joined").join(format!("relay-mesh-{version}-oci.tar"));
    Program::new("tar").arg("-xf").arg(image).arg("-C").arg(&layout).succeed();
    let tagged = manifests(&layout.join("index.json"));
    assert_eq!(tagged.len(), 1, "{tagged:?}");
    assert_eq!(tagged[0]["annotations"]["org.opencontainers.image.ref.name"], version);
    let images = manifests(&blob(&layout, &tagged[0]));
    let processors: Vec<&Value> = images.iter().map(|image| &image["platform"]["architecture"]).collect();
    assert_eq!(processors, ["amd64", "arm64"]);
    for image in &images {
        assert_eq!(image["platform"]["os"], "linux");
        let manifest: Value = serde_json::from_str(&read(&blob(&layout, image))).expect("it is JSON");
        for part in manifest["layers"].as_array().into_iter().flatten().chain([&manifest["config"]]) {
            let size = std::fs::metadata(blob(&layout, part)).expect("each blob is in it").len();
            assert_eq!(part["size"], size);
        }
    }
}

#[test]
fn the_image_of_one_processor_is_left_as_it_is() {
    let place = Place::new();
    place.pack_all(LINUX[0], &["oci"]);
    place.join("joined", &LINUX[..1]);
    let image = format!("relay-mesh-{}-oci-{}.tar", env!("CARGO_PKG_VERSION"), LINUX[0]);
    assert_eq!(names(&place.out("joined")), ["SHA256SUMS", image.as_str(), "relay-mesh.rb"]);
}

#[test]
fn the_launcher_says_which_package_is_missing() {
    let place = Place::new();
    place.pack_all(LINUX[0], &["npm-launcher"]);
    let packed = place.out(LINUX[0]).join(format!("relay-mesh-npm-{}.tgz", env!("CARGO_PKG_VERSION")));
    Program::new("tar").arg("-xzf").arg(packed).arg("-C").arg(place.0.path()).succeed();
    for (platform, processor, said) in [
        ("darwin", "arm64", "error: the package @relay-mesh/darwin-arm64, which has the program for this machine, is "),
        ("linux", "x64", "error: the package @relay-mesh/linux-x64, which has the program for this machine, is not "),
        ("win32", "x64", "error: there is no package of relay-mesh for win32-x64, only for linux-x64, linux-arm64, "),
        (
            "freebsd",
            "x64",
            "error: there is no package of relay-mesh for freebsd-x64, only for linux-x64, linux-arm64, ",
        ),
    ] {
        let pretend = format!(
            "Object.defineProperties(process, {{ platform: {{ value: '{platform}' }}, arch: {{ value: '{processor}' }} }})"
        );
        std::fs::write(place.0.path().join("pretend.js"), pretend).expect("the folder is writable");
        let launcher = ["--require", "./pretend.js", "package/bin/relay-mesh.js", "--version"];
        let outcome = Program::new("node").args(launcher).within(place.0.path()).run();
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.starts_with(said) && outcome.stderr.contains("\nhint: "), "{said}: {outcome:?}");
    }
}

/// A folder with a stand-in for the program, and what is packed from it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        stand_in(folder.path(), env!("CARGO_PKG_VERSION"));
        Place(folder)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, content: &[u8]) -> PathBuf {
        let path = self.out("program");
        std::fs::write(&path, content).expect("the folder is writable");
        path
    }

    /// Packs these kinds for a target into the folder of this name; without any, all of them.
    fn pack(&self, target: &str, name: &str, kinds: &[&str]) -> Outcome {
        Program::new("env")
            .args(pack(&self.out("relay-mesh"), &self.out(name)))
            .args(["--target", target])
            .args(kinds.iter().flat_map(|&kind| ["--only", kind]))
            .env("SOURCE_DATE_EPOCH", "1795699023")
            .run()
    }

    /// Packs into the folder of the target's name.
    fn pack_all(&self, target: &str, kinds: &[&str]) {
        let outcome = self.pack(target, target, kinds);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }

    /// Joins what was packed for these targets, and returns the digests.
    fn join(&self, name: &str, targets: &[&str]) -> String {
        Program::new("python3")
            .arg(root().join("packaging/join.py"))
            .args(targets.iter().map(|target| self.out(target)))
            .arg("--out")
            .arg(self.out(name))
            .succeed();
        read(&self.out(name).join("SHA256SUMS"))
    }
}

pub(crate) fn refused(outcome: &Outcome, said: &str) {
    assert_eq!(outcome.code, Some(1), "{said}: {outcome:?}");
    assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains(said), "{said}: {outcome:?}");
    assert!(!outcome.stderr.contains("Traceback"), "{outcome:?}");
}

/// What an index of an image names.
fn manifests(index: &Path) -> Vec<Value> {
    let index: Value = serde_json::from_str(&read(index)).expect("an index is JSON");
    index["manifests"].as_array().cloned().unwrap_or_default()
}

/// The file of a layout that a descriptor names.
fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
    layout.join("blobs").join(descriptor["digest"].as_str().expect("it names a digest").replace(':', "/"))
}

/// A program for macOS with these load commands, and nothing to be run.
fn mach_o(processor: u32, commands: &[Vec<u8>]) -> Vec<u8> {
    let executable = 2;
    let inside = commands.concat();
    let mut program =
        words(&[0xfeed_facf, processor, 0, executable, number(commands.len()), number(inside.len()), 0, 0]);
    program.extend(inside);
    program
}

/// The command by which a program loads a library.
fn loads(library: &str) -> Vec<u8> {
    let mut name = library.as_bytes().to_vec();
    name.resize(library.len() / 8 * 8 + 8, 0);
    [words(&[0xc, number(24 + name.len()), 24, 0, 0, 0]), name].concat()
}

/// The oldest macOS that a program is for.
fn built_for(major: u32, minor: u32) -> Vec<u8> {
    let macos = 1;
    words(&[0x32, 24, macos, (major << 16) | (minor << 8), 0, 0])
}

/// The same, as it was said before macOS 10.14.
fn min_version(major: u32, minor: u32) -> Vec<u8> {
    words(&[0x24, 16, (major << 16) | (minor << 8), 0])
}

fn signed() -> Vec<u8> {
    words(&[0x1d, 16, 0, 0])
}

/// A segment with one section, of which the first bytes of the file are the content.
fn section(segment: &str, name: &str, length: u32) -> Vec<u8> {
    let padded = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(16, 0);
        bytes
    };
    let mut command = [words(&[0x19, 72 + 80]), padded(segment), words(&[0; 10]), words(&[1, 0])].concat();
    command.extend([padded(name), padded(segment), words(&[0, 0, length, 0]), words(&[0; 8])].concat());
    command
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn number(length: usize) -> u32 {
    length.try_into().expect("it is small")
}
