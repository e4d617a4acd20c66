//! What the packed binary says of its crates, and that all packages hold that binary and the licences of those crates.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::Program;

use crate::installed::{dist, named, names, read, root, stage};

/// Prints the list in a program, as any reader of `cargo auditable`'s section does it.
const READER: &str = r#"
import struct, sys, zlib
program = open(sys.argv[1], "rb").read()
(table,) = struct.unpack_from("<Q", program, 0x28)
size, count, names = struct.unpack_from("<HHH", program, 0x3a)
places = [struct.unpack_from("<I20xQQ", program, table + size * one) for one in range(count)]
for name, at, length in places:
    begin = places[names][1] + name
    if program[begin:program.index(b"\0", begin)] == b".dep-v0":
        print(zlib.decompress(program[at:at + length]).decode())
"#;

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_binary_names_the_crates_that_the_sbom_names() {
    let place = unpacked();
    let list = Program::new("python3").args(["-c", READER]).arg(place.program()).succeed();
    let list: Value = serde_json::from_str(&list).expect("the list is JSON");
    let packages = list["packages"].as_array().expect("it names packages");
    let named_in_binary: BTreeSet<String> = packages.iter().map(|one| part(one, "name")).collect();
    let bill: Value = serde_json::from_str(&read(&dist().join(named(".cdx.json")))).expect("the SBOM is JSON");
    // Rust's standard library and the C libraries are no crates.
    let (crates, others): (Vec<&Value>, Vec<&Value>) = bill["components"]
        .as_array()
        .into_iter()
        .flatten()
        .partition(|one| one["purl"].as_str().is_some_and(|url| url.starts_with("pkg:cargo/")));
    let others: Vec<String> = others.into_iter().map(|one| part(one, "name")).collect();
    let expected = ["musl 1.", "rust-std 1.", "wasi-libc wasi-sdk-"];
    assert_eq!(others.len(), expected.len(), "{others:?}");
    assert!(others.iter().zip(expected).all(|(part, begins)| part.starts_with(begins)), "{others:?}");
    let mut named_in_bill: BTreeSet<String> = crates.into_iter().map(|one| part(one, "name")).collect();
    let program = &bill["metadata"]["component"];
    named_in_bill.insert(part(program, "name"));
    assert_eq!(named_in_binary, named_in_bill);
    let roots: Vec<&Value> = packages.iter().filter(|one| one["root"] == true).collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    assert_eq!(roots[0]["name"], "relay-mesh");
    let digest = Program::new("sha256sum").arg(place.program()).succeed();
    assert_eq!(program["hashes"][0]["content"], digest.split(' ').next().unwrap_or_default(), "of the packed binary");

    // Each crate from elsewhere has its licence in the package, and so do the C libraries.
    let licences = read(&place.folder().join("THIRD-PARTY-LICENSES"));
    let foreign = packages.iter().filter(|one| one["source"] != "local").map(|one| part(one, "name"));
    let c_libraries = others.iter().filter(|part| !part.starts_with("rust-std ")).cloned();
    for part in foreign.chain(c_libraries) {
        let texts = licences.lines().filter(|line| *line == part).count();
        assert!(licences.contains(&format!("\n{part}: ")) && texts > 0, "{part} has no licence");
    }
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn what_is_loaded_of_the_binary_is_what_was_built() {
    let place = unpacked();
    let built = std::fs::read(stage().binary()).expect("the binary can be read");
    let packed = std::fs::read(place.program()).expect("the binary can be read");
    assert!(packed.len() > built.len());
    let changed: Vec<usize> = (0..built.len()).filter(|&at| built[at] != packed[at]).collect();
    // Where the section table lies, and how many sections there are.
    let allowed = |at: usize| (0x28..0x30).contains(&at) || (0x3c..0x3e).contains(&at);
    assert!(changed.iter().all(|&at| allowed(at)), "{changed:?}");
    assert!(!changed.is_empty(), "the list is in it");
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn every_package_holds_the_same_binary_and_the_licences_of_its_crates() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let digest = |path: &Path| Program::new("sha256sum").arg(path).succeed()[..64].to_owned();
    let expected = digest(&unpacked().program());
    for (package, unpack, licences) in PACKAGES {
        let inside = folder.path().join(package.trim_start_matches('.').trim_end_matches('*'));
        std::fs::create_dir(&inside).expect("the folder is writable");
        let files: Vec<String> = names(&dist()).into_iter().filter(|name| fits(package, name)).collect();
        assert_eq!(files.len(), 1, "{package}: {files:?}");
        Program::new("sh")
            .args(["-ec", unpack])
            .env("FILE", absolute(&dist().join(&files[0])))
            .within(&inside)
            .succeed();
        let found = Program::new("find").args([".", "-type", "f", "-name", "relay-mesh", "-size", "+1M"]);
        let found = found.within(&inside).succeed();
        assert_eq!(digest(&inside.join(found.trim())), expected, "{package}: {found}");
        let found = Program::new("find").args([".", "-name", "THIRD-PARTY-LICENSES*"]).within(&inside).succeed();
        assert!(found.trim().ends_with(licences), "{package}: {found}");
    }
}

/// Each: a package by the end of its name, how it is unpacked without its own tools where that can be, and where the
/// licences are.
const PACKAGES: &[(&str, &str, &str)] = &[
    (".tar.xz", "tar -xJf $FILE", "/THIRD-PARTY-LICENSES"),
    (".deb", "dpkg-deb -x $FILE .", "usr/share/doc/relay-mesh/THIRD-PARTY-LICENSES.gz"),
    (".rpm", "rpm2cpio $FILE | cpio -id --quiet", "usr/share/licenses/relay-mesh/THIRD-PARTY-LICENSES"),
    (".tgz", "tar -xzf $FILE", "package/THIRD-PARTY-LICENSES"),
    (".whl", "python3 -m zipfile -e $FILE .", ".dist-info/licenses/THIRD-PARTY-LICENSES"),
    (
        ".tar",
        "tar -xf $FILE; tar -xzf $(ls -S blobs/sha256/* | head -n 1) usr",
        "usr/share/licenses/relay-mesh/THIRD-PARTY-LICENSES",
    ),
];

/// Of npm's packages, the one with the binary.
fn fits(ending: &str, name: &str) -> bool {
    name.ends_with(ending) && (ending != ".tgz" || name.contains("npm-linux"))
}

fn absolute(path: &Path) -> PathBuf {
    root().canonicalize().expect("it is there").join("dist").join(path.file_name().expect("it is a file"))
}

fn part(package: &Value, name: &str) -> String {
    let text = |field: &str| package[field].as_str().expect("it is a text").to_owned();
    format!("{} {}", text(name), text("version"))
}

/// The archive, unpacked.
struct Unpacked(tempfile::TempDir);

impl Unpacked {
    fn folder(&self) -> PathBuf {
        self.0.path().join(named(".tar.xz").trim_end_matches(".tar.xz"))
    }

    fn program(&self) -> PathBuf {
        self.folder().join("relay-mesh")
    }
}

fn unpacked() -> Unpacked {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    Program::new("tar").arg("-xJf").arg(dist().join(named(".tar.xz"))).arg("-C").arg(folder.path()).succeed();
    Unpacked(folder)
}
