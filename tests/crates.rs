//! The crates as crates.io takes them: that nothing is missing in what is packed is tested always. `make dist` builds the
//! program from the packed files alone, as `cargo install` does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use test_support::{Program, isolated};

/// The version that all of our crates have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn what_is_packed_needs_nothing_beside_it() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let packed = folder.path().join("crates");
    crates_py(&["--out", &folder.path().display().to_string()]).succeed();
    for file in names(&packed) {
        Program::new("tar").args(["-xzf", &file]).within(&packed).succeed();
        let manifest = read(&packed.join(file.trim_end_matches(".crate")).join("Cargo.toml"));
        assert!(!manifest.contains("\npath = \"..") && !manifest.contains("workspace = true"), "{file}: {manifest}");
        assert!(manifest.contains("\nlicense = ") && manifest.contains("\ndescription = "), "{file}: {manifest}");
    }
    let inside = |name: &str, path: &str| packed.join(format!("{name}-{VERSION}")).join(path);

    // The adapters as components, with the digests of what was built here.
    let sums = read(&inside("relay-mesh-adapters", "prebuilt/SHA256SUMS"));
    Program::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
        .within(&inside("relay-mesh-adapters", "prebuilt"))
        .succeed();
    let listed: BTreeSet<&str> =
        sums.lines().filter_map(|line| line.split_once("  ")?.1.strip_suffix(".wasm")).collect();
    let adapters: BTreeSet<String> = names(&root().join("plugins"))
        .into_iter()
        .filter(|name| root().join("plugins").join(name).join("adapter.toml").is_file())
        .collect();
    assert_eq!(listed, adapters.iter().map(String::as_str).collect());

    // What lies elsewhere in this repository is in the crate that embeds it, as files and not as links.
    let table = read(&inside("relay-mesh", "src/shapes/wake-table.json"));
    assert_eq!(table, read(&root().join("docs/wake-table.json")));
    for name in names(&root().join("wit/v0.1")) {
        let published = read(&root().join("wit/v0.1").join(&name));
        for (owner, folder) in
            [("relay-mesh-adapters", "wit"), ("relay-mesh-sdk", "wit"), ("relay-mesh", "templates/sdk/wit")]
        {
            assert_eq!(read(&inside(owner, folder).join(&name)), published, "{owner}");
        }
    }
    Program::new("diff")
        .args(["-r"])
        .arg(root().join("sdk/src"))
        .arg(inside("relay-mesh", "templates/sdk/src"))
        .succeed();
    assert_eq!(read(&inside("relay-mesh", "README.md")), read(&root().join("README.md")));

    // Nothing is left in the sources, and the same sources give the same bytes.
    assert!(!root().join("host/adapters/prebuilt").exists());
    let again = tempfile::tempdir().expect("a temporary folder can be made");
    crates_py(&["--out", &again.path().display().to_string()]).succeed();
    for file in names(&again.path().join("crates")) {
        let both =
            [&packed, &again.path().join("crates")].map(|folder| std::fs::read(folder.join(&file)).expect("packed"));
        assert!(both[0] == both[1], "{file} differs");
    }
}

#[test]
#[ignore = "`make dist` runs it, after packing: it builds everything"]
fn the_program_is_built_from_the_packed_crates_alone() {
    isolated(|| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        crates_py(&["--install", &folder.path().display().to_string()]).succeed();
        let run = || Program::new(folder.path().join("bin/relay-mesh")).env("HOME", folder.path());
        assert_eq!(run().arg("--version").succeed(), format!("relay-mesh {VERSION}\n"));
        let adapters = run().args(["plugin", "list"]).succeed();
        for name in ["claude-code", "codex", "opencode", "gemini-cli"] {
            assert!(adapters.lines().any(|line| line.starts_with(name) && line.contains("built-in")), "{adapters}");
        }
        run().args(["register", "alice"]).succeed();
        run().args(["send", "alice", "from crates", "--from", "alice"]).succeed();
        assert!(run().args(["read", "--agent", "alice"]).succeed().contains("from crates"));
    });
}

fn crates_py(words: &[&str]) -> Program {
    let script = root().join("packaging/crates.py");
    Program::new("python3").environment_of_this_process().arg(script).args(words).within(&root())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}
