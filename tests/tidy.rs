//! Checks that a reviewer would otherwise do by hand: dependencies between crates, who may name which dependency, the
//! length of files, a first paragraph in each, no printing outside the printer, no Unix outside its modules, frozen
//! interfaces, and documents short enough to be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use test_support::Program;

/// Which of our crates a crate may depend on. One way only: the binary, then the crates for the outside world, then the
/// views that both use, then the mesh, then the store. Only the binary knows the store on servers.
const ARROWS: &[(&str, &[&str])] = &[
    ("relay-mesh-store", &[]),
    ("relay-mesh-store-nats", &["relay-mesh-store"]),
    ("relay-mesh-mesh", &["relay-mesh-store"]),
    ("relay-mesh-processes", &[]),
    ("relay-mesh-adapters", &["relay-mesh-mesh", "relay-mesh-processes", "relay-mesh-store"]),
    ("relay-mesh-conformance", &["relay-mesh-adapters", "relay-mesh-mesh", "relay-mesh-store"]),
    ("relay-mesh-fetch", &[]),
    ("relay-mesh-view", &["relay-mesh-mesh", "relay-mesh-store"]),
    ("relay-mesh-mcp", &["relay-mesh-mesh", "relay-mesh-store", "relay-mesh-view"]),
    ("relay-mesh-ui", &["relay-mesh-mesh", "relay-mesh-store", "relay-mesh-view"]),
    ("relay-mesh-web", &["relay-mesh-mesh", "relay-mesh-store", "relay-mesh-view"]),
    (
        "relay-mesh",
        &[
            "relay-mesh-adapters",
            "relay-mesh-conformance",
            "relay-mesh-fetch",
            "relay-mesh-mcp",
            "relay-mesh-mesh",
            "relay-mesh-processes",
            "relay-mesh-store",
            "relay-mesh-store-nats",
            "relay-mesh-ui",
            "relay-mesh-view",
            "relay-mesh-web",
        ],
    ),
    ("relay-mesh-sdk", &[]),
    ("adapter-acp", &["relay-mesh-sdk"]),
    ("adapter-claude-code", &["relay-mesh-sdk"]),
    ("adapter-cursor", &["relay-mesh-sdk"]),
    ("adapter-codex", &["relay-mesh-sdk"]),
    ("adapter-copilot", &["relay-mesh-sdk"]),
    ("adapter-gemini-cli", &["relay-mesh-sdk"]),
    ("adapter-generic", &["relay-mesh-sdk"]),
    ("adapter-opencode", &["relay-mesh-sdk"]),
    ("bench", &["relay-mesh-mesh", "relay-mesh-store", "relay-mesh-store-nats", "test-support"]),
    ("test-support", &[]),
];

/// Dependencies that only these crates may name, so that the reasons for a crate stay its own.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("wasmtime", &["relay-mesh-adapters"]),
    ("wasmtime-wasi", &["relay-mesh-adapters"]),
    ("cap-std", &["relay-mesh-adapters"]),
    ("rmcp", &["relay-mesh-mcp"]),
    ("ratatui", &["relay-mesh-ui"]),
    ("schemars", &["relay-mesh-mcp", "relay-mesh-view"]),
    ("axum", &["relay-mesh-mcp", "relay-mesh-web", "test-support"]),
    ("clap", &["relay-mesh"]),
    ("mimalloc", &["relay-mesh"]),
    ("jsonschema", &["relay-mesh"]),
    ("clap_complete", &["relay-mesh"]),
    ("clap_mangen", &["relay-mesh"]),
    ("tracing-subscriber", &["relay-mesh"]),
    ("toml", &["relay-mesh-adapters", "relay-mesh"]),
    ("docker_credential", &["relay-mesh-fetch"]),
    ("ring", &["relay-mesh-adapters"]),
    ("tokio-rustls", &["relay-mesh-fetch"]),
    ("notify", &["relay-mesh-store"]),
    ("sysinfo", &["relay-mesh-processes"]),
    ("async-nats", &["bench", "relay-mesh-store-nats"]),
    ("wit-bindgen", &["relay-mesh-sdk"]),
];

/// The most lines of code in a file, without tests.
const LONGEST: usize = 600;
/// Half of all files are at most this long.
const MEDIAN: usize = 150;
/// 90 % of all files are at most this long.
const NINTH_TENTH: usize = 400;
/// The most lines of a document that is meant to be read in one go.
const DOCUMENT: usize = 250;

#[test]
fn the_arrows_between_our_crates_point_one_way() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours, listed, "ARROWS in tests/tidy.rs names every crate of the workspace and no other");
    for (name, allowed) in ARROWS {
        for (other, kind) in &packages[*name].dependencies {
            // A crate names itself to switch on its own features for its tests.
            let for_tests = kind == "dev" && (other == "test-support" || other == name);
            let may = allowed.contains(&other.as_str()) || for_tests;
            assert!(!ours.contains(other.as_str()) || may, "{name} may not build on {other}");
        }
    }
}

#[test]
fn a_dependency_is_named_only_where_it_belongs() {
    for (name, package) in packages() {
        for (dependency, kind) in &package.dependencies {
            let homes = ONLY_IN.iter().find(|(only, _)| only == dependency).map(|(_, homes)| *homes);
            let may = homes.is_none_or(|homes| homes.contains(&name.as_str())) || kind == "dev";
            assert!(may, "{name} may not name {dependency}; it belongs to {homes:?}");
        }
    }
}

#[test]
fn the_binary_and_the_tests_share_one_build() {
    let alone = features(&["--package", "relay-mesh", "--edges", "normal,build"]);
    let together = features(&["--workspace", "--edges", "all"]);
    let twice: Vec<_> = alone.difference(&together).collect();
    assert!(
        twice.is_empty(),
        "`cargo build -p relay-mesh` and `cargo nextest run --workspace` each compile their own {twice:#?}, and all that \
         stands on them. Something in the workspace asks these for further features: ask for the same at \
         `[workspace.dependencies]` in Cargo.toml, or ask it for less"
    );
}

#[test]
fn every_test_of_the_product_is_listed() {
    let targets: BTreeSet<PathBuf> = packages().into_values().flat_map(|package| package.tests).collect();
    for file in std::fs::read_dir(root().join("tests")).expect("tests/ can be read") {
        let path = file.expect("tests/ can be read").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            assert!(targets.contains(&path), "{} is in no Cargo.toml as [[test]], so it never runs", path.display());
        }
    }
}

#[test]
fn files_are_short() {
    let mut lengths: Vec<(usize, PathBuf)> = product_files().map(|path| (code_lines(&read(&path)), path)).collect();
    lengths.sort();
    let too_long: Vec<_> = lengths.iter().filter(|(lines, _)| *lines > LONGEST).collect();
    assert!(too_long.is_empty(), "one idea per file; these have more than {LONGEST} lines: {too_long:?}");
    let at = |tenths: usize| lengths[(lengths.len() - 1) * tenths / 10].0;
    assert!(at(5) <= MEDIAN, "the median file has {} lines, and {MEDIAN} are the aim", at(5));
    assert!(at(9) <= NINTH_TENTH, "a tenth of the files have more than {} lines, and {NINTH_TENTH} are the aim", at(9));
}

/// A command is what somebody types; what several parts of the program do stands beside the commands.
#[test]
fn nothing_below_the_commands_uses_one() {
    let commands = root().join("host/relay-mesh/src/commands");
    let below = rust_files()
        .filter(|file| file.starts_with(root().join("host/relay-mesh/src")) && !file.starts_with(&commands));
    let uses: Vec<PathBuf> = below.filter(|file| code(&read(file)).contains("crate::commands::")).collect();
    // The command line itself names each command.
    let names = |file: &PathBuf| file.ends_with("cli.rs") || file.ends_with("main.rs");
    assert_eq!(uses.into_iter().filter(|file| !names(file)).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

#[test]
fn every_file_begins_by_saying_what_it_is() {
    for path in rust_files() {
        assert!(read(&path).starts_with("//! "), "{} does not begin with a `//!` paragraph", path.display());
    }
}

#[test]
fn only_the_printer_prints() {
    const PRINTERS: [&str; 4] = ["println!(", "eprintln!(", "print!(", "eprint!("];
    // Examples and the bench exist for their output, and a build script talks to cargo by printing.
    let may_print = |path: &PathBuf| {
        path.ends_with("render.rs")
            || path.ends_with("build.rs")
            || path.starts_with(root().join("tests"))
            || path.iter().any(|part| part == "examples")
    };
    for path in product_files().filter(|path| !may_print(path)) {
        for (number, line) in code(&read(&path)).lines().enumerate() {
            let prints = PRINTERS.iter().any(|printer| line.contains(printer)) && !line.trim_start().starts_with("//");
            assert!(!prints, "{}:{} prints; only render.rs may", path.display(), number + 1);
        }
    }
}

/// Another system needs these modules written again, and nothing else that names one of Unix's interfaces. All of
/// `processes` is such a module.
#[test]
fn only_one_module_per_crate_names_what_only_unix_has() {
    const NAMES: [&str; 6] =
        ["std::os::", "rustix::", "libc::", "tokio::net::Unix", "tokio::net::unix", "signal::unix"];
    let host = root().join("host");
    let may_name = |path: &PathBuf| {
        let Ok(inside) = path.strip_prefix(&host) else { return true };
        let parts: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
        match parts.as_slice() {
            ["processes", ..] | [_, "src", "unix" | "unix.rs", ..] => true,
            [_, "src", ..] => false,
            _ => true,
        }
    };
    for path in product_files().filter(|path| !may_name(path)) {
        for (number, line) in code(&read(&path)).lines().enumerate() {
            let one_of_many = line.contains("tokio::net::{") && line.contains("Unix");
            let names = one_of_many || NAMES.iter().any(|name| line.contains(name));
            assert!(!names, "{}:{} names what only Unix has; only the crate's `unix` may", path.display(), number + 1);
        }
    }
}

#[test]
fn a_published_interface_does_not_change() {
    let frozen = read(&root().join("wit/FROZEN"));
    let frozen: BTreeMap<&str, &str> = frozen.lines().filter_map(|line| line.split_once(' ')).collect();
    for folder in std::fs::read_dir(root().join("wit")).expect("wit/ can be read") {
        let folder = folder.expect("wit/ can be read").path();
        let version = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !folder.is_dir() {
            continue;
        }
        let digest = digest_of(&folder);
        assert_eq!(
            frozen.get(version.as_str()),
            Some(&digest.as_str()),
            "wit/{version} is not what wit/FROZEN says. If {version} has shipped, lay a new folder beside it and leave \
             this one as it was; components out there were built against it. If it has not, put this line in \
             wit/FROZEN: {version} {digest}"
        );
    }
}

/// What docs/security.md says is worth what its tests are: each entry and each paragraph names some, but for the first
/// paragraph, those that only begin a list, and those that say what is not promised.
#[test]
fn every_sentence_about_security_names_a_test() {
    let text = read(&root().join("docs/security.md"));
    let (_, sections) = text.split_once("\n## ").expect("sections");
    let blocks = sections.split("\n\n").flat_map(|block| block.split("\n- ")).map(str::trim);
    let begins_a_list = |block: &str| block.lines().count() == 1 && block.ends_with(':');
    let is_heading = |block: &str| !block.contains(['.', ':']) && block.lines().count() == 1;
    let entries: Vec<&str> = blocks
        .filter(|block| !is_heading(block) && !begins_a_list(block) && !block.starts_with("Not promised: "))
        .collect();
    assert!(entries.len() > 50, "the list is there: {entries:?}");
    for entry in entries {
        // (`file.rs: name_of_the_test`), as many as it takes.
        let named: Vec<(&str, &str)> = entry.split('`').filter_map(|part| part.split_once(".rs: ")).collect();
        assert!(!named.is_empty(), "names no test: {entry}");
        for (file, test) in named {
            let text = std::fs::read_to_string(root().join(format!("{file}.rs"))).unwrap_or_default();
            assert!(is_test(&text, test), "{file}.rs has no test {test}: {entry}");
        }
    }
}

/// Whether a file has a test of this name: a function below `#[test]` or its like, with other attributes and comments in
/// between.
fn is_test(text: &str, name: &str) -> bool {
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let above = before.trim_end_matches(|last: char| last == ' ' || last.is_ascii_lowercase());
    let lines = above.lines().rev().map(str::trim).take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    lines.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

#[test]
fn a_function_is_a_test_by_what_stands_above_it() {
    for (text, expected) in [
        ("#[test]\nfn it() {", true),
        ("    #[tokio::test(start_paused = true)]\n    async fn it() {", true),
        ("#[test]\n#[cfg(target_os = \"linux\")]\n// why\nfn it() {", true),
        ("#[test]\nfn other() {}\n\nfn it() {", false),
        ("fn it() {", false),
        ("#[test]\nfn it_is_not() {", false),
    ] {
        assert_eq!(is_test(text, "it"), expected, "{text}");
    }
}

#[test]
fn documents_can_be_read_in_one_go() {
    for name in ["ARCHITECTURE.md", "CHANGELOG.md"] {
        let lines = read(&root().join(name)).lines().count();
        assert!(lines <= DOCUMENT, "{name} has {lines} lines, and {DOCUMENT} are the aim");
    }
}

/// One of our crates, from `cargo metadata`.
struct Package {
    /// Names of dependencies, each with its kind: normal, build or dev.
    dependencies: Vec<(String, String)>,
    /// The files of its integration tests.
    tests: BTreeSet<PathBuf>,
}

fn packages() -> BTreeMap<String, Package> {
    let listing = Program::new(env!("CARGO"))
        .environment_of_this_process()
        .args(["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"])
        .within(&root())
        .succeed();
    let listing: Value = serde_json::from_str(&listing).expect("cargo writes JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut packages = BTreeMap::new();
    for package in list(&listing["packages"]) {
        let dependencies = list(&package["dependencies"])
            .iter()
            .map(|one| (text(&one["name"]), one["kind"].as_str().unwrap_or("normal").to_owned()))
            .collect();
        let tests = list(&package["targets"])
            .iter()
            .filter(|target| list(&target["kind"]).contains(&Value::from("test")))
            .map(|target| normal(Path::new(&text(&target["src_path"]))))
            .collect();
        packages.insert(text(&package["name"]), Package { dependencies, tests });
    }
    packages
}

/// Each third-party crate that a set of packages builds, with its features.
fn features(choice: &[&str]) -> BTreeSet<String> {
    let listing = Program::new(env!("CARGO"))
        .environment_of_this_process()
        .args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p} [{f}]"])
        .args(choice)
        .within(&root())
        .succeed();
    // Our own crates are listed with their folder; a star marks a crate whose tree was already printed.
    let foreign = listing.lines().filter(|line| !line.is_empty() && !line.contains('/'));
    foreign.map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// Every Rust file that git tracks or would add.
fn rust_files() -> impl Iterator<Item = PathBuf> {
    let listing = Program::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .env("HOME", "/nonexistent")
        .within(&root())
        .succeed();
    let files: BTreeSet<PathBuf> = listing.lines().map(|line| root().join(line)).collect();
    files.into_iter().filter(|path| path.is_file())
}

/// The Rust files that are not tests.
fn product_files() -> impl Iterator<Item = PathBuf> {
    rust_files().filter(|path| {
        let inside = path.strip_prefix(root()).unwrap_or(path);
        let folders: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
        let is_test = folders[1..].iter().any(|part| matches!(*part, "tests" | "tests.rs" | "hostile"));
        let is_product_test = folders[0] == "tests" && folders.len() == 2;
        !is_test && !is_product_test
    })
}

/// A file without the tests at its end.
fn code(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text)
}

fn code_lines(text: &str) -> usize {
    code(text).lines().count()
}

/// The digest of a folder: of each file's name and bytes, in the order of names.
fn digest_of(folder: &Path) -> String {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        digest.update([0]);
        digest.update(read(&file));
        digest.update([0]);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The workspace's folder.
fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

fn normal(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
