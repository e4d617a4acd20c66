//! Invalid adapter packages: the real binary refuses each with what is wrong, where, and how to fix it, and nothing is
//! half-installed.

use std::fs::File;
use std::path::{Path, PathBuf};

use test_support::Stage;
use test_support::components::{component, manifest, ship};

/// Installs a package with every grant it might request, and expects a refusal.
fn check(make: impl Fn(&Stage) -> PathBuf, expected: &[&str]) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let path = make(&stage).display().to_string();
    let arguments = ["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"];
    let outcome = stage.relay(&arguments).env("XDG_CACHE_HOME", cache()).run();
    assert!(outcome.code.is_some_and(|code| (1..=5).contains(&code)), "{expected:?}: {outcome:?}");
    for words in expected {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("error: ") && outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let left = stage.data.join("plugins").is_dir().then(|| stage.tree(&stage.data.join("plugins")));
    let left: Vec<_> = left.unwrap_or_default().into_keys().filter(|file| !file.ends_with(".lock")).collect();
    assert_eq!(left, [] as [PathBuf; 0], "{expected:?}: nothing is half-installed");
}

/// A package of these bytes, with the polite adapter's manifest.
fn of_bytes(bytes: Vec<u8>) -> impl Fn(&Stage) -> PathBuf {
    move |stage| ship(&stage.folder.join("package"), "polite", &bytes, &manifest("polite"))
}

/// The polite adapter with another manifest.
fn of_manifest(change: impl Fn(String) -> String) -> impl Fn(&Stage) -> PathBuf {
    move |stage| ship(&stage.folder.join("package"), "polite", &built("polite"), &change(manifest("polite")))
}

#[test]
fn what_is_no_component_is_refused() {
    check(|stage| stage.folder.join("nowhere.wasm"), &["nowhere.wasm` is no adapter", "it does not exist"]);
    check(|stage| stage.project.clone(), &["there is no component in it"]);
    check(of_bytes(b"#!/bin/sh".to_vec()), &["it is not a WebAssembly component", "wasm32-wasip2"]);
    check(of_bytes(Vec::new()), &["it is not a WebAssembly component"]);
    check(of_bytes(b"\0asm\x01\0\0\0".to_vec()), &["it is a core module, not a component", "wasm32-wasip2"]);
    check(of_bytes(b"\0asm\x0d\0\x01\0".to_vec()), &["does not fit the interface 0.1"]);
    check(of_bytes(b"\0asm\x0d\0\x01\0garbage".to_vec()), &["it is not a component that can be run"]);
    let whole = built("polite");
    check(of_bytes(whole[..whole.len() / 2].to_vec()), &["it is cut short", "download it again"]);
    let two = |stage: &Stage| {
        let folder = ship(&stage.folder.join("package"), "one", &built("polite"), &manifest("polite"));
        ship(&folder, "two", &built("polite"), &manifest("polite"))
    };
    check(two, &["there are several components in it: one.wasm, two.wasm", "name the one that you mean"]);
    let pipe = |stage: &Stage| {
        let path = stage.folder.join("pipe.wasm");
        test_support::Program::new("mkfifo").arg(&path).succeed();
        path
    };
    check(pipe, &["it is not a WebAssembly component"]);
}

#[test]
fn what_is_written_for_something_else_is_refused() {
    let other = |name: &'static str| {
        move |stage: &Stage| ship(&stage.folder.join("package"), name, &built(name), &manifest(name))
    };
    check(other("too-new"), &["is written for interface 0.2.0, and this relay-mesh supports 0.1"]);
    check(other("stuck"), &["failed in `describe`: it ran for more than"]);
    let misnamed = |text: String| text.replace("\"polite\"", "\"impolite\"");
    check(of_manifest(misnamed), &["the adapter `impolite` says that it is for `polite`"]);
}

#[test]
fn what_is_far_too_large_is_refused() {
    let sparse = |stage: &Stage| {
        let path = ship(&stage.folder.join("package"), "polite", b"\0asm\x0d\0\x01\0", &manifest("polite"));
        let file = File::options().write(true).open(path.join("polite.wasm")).expect("the stage is writable");
        file.set_len(65 << 20).expect("the stage is writable");
        path
    };
    check(sparse, &["has 68157440 bytes, and at most 67108864 are read"]);
}

/// The header of a component's section.
fn head_of_section(kind: u8, mut length: usize) -> Vec<u8> {
    let mut bytes = vec![kind];
    loop {
        let low = (length & 0x7f) as u8;
        length >>= 7;
        bytes.push(if length == 0 { low } else { low | 0x80 });
        if length == 0 {
            return bytes;
        }
    }
}

fn section(kind: u8, contents: &[u8]) -> Vec<u8> {
    [head_of_section(kind, contents.len()), contents.to_vec()].concat()
}

#[test]
fn bombs_of_sections_are_refused_unread() {
    const HEAD: &[u8] = b"\0asm\x0d\0\x01\0";
    // A million empty custom sections.
    let many = section(0, b"\x01x").repeat(1_000_000);
    check(of_bytes([HEAD, &many].concat()), &["it has more than 100000 sections"]);
    // Nested components: each one's header, and the section that contains the next.
    let (mut heads, mut length) = (Vec::new(), HEAD.len());
    for _ in 0..200_000 {
        let head = [HEAD, &head_of_section(4, length)].concat();
        length += head.len();
        heads.push(head);
    }
    heads.reverse();
    check(of_bytes([heads.concat(), HEAD.to_vec()].concat()), &["its components are nested more than 8 deep"]);
    // A manifest of megabytes, in the section where a component embeds its own.
    let name = b"relay:adapter/manifest";
    let large = [&[name.len() as u8][..], name, &b"#".repeat(8 << 20)].concat();
    let bare = move |stage: &Stage| {
        let path = stage.folder.join("bare.wasm");
        std::fs::write(&path, [HEAD, &section(0, &large)].concat()).expect("the stage is writable");
        path
    };
    check(bare, &["its manifest has 8388608 bytes, and at most 65536 are read"]);
}

#[test]
fn a_manifest_is_refused_where_it_is_wrong() {
    let with = |rest: &'static str| of_manifest(move |text| format!("{text}\n{rest}"));
    let root = |path: &str| format!("[grants.roots.config]\npath = \"{path}\"\n");
    check(with("[grant]\n"), &["its manifest is wrong in line", "unknown field `grant`"]);
    for (path, expected) in [
        ("~/../../etc", "advances by `..`"),
        ("${HOME:-~/..}/x", "advances by `..`"),
        ("/", "is the whole file system"),
        ("relative/path", "is not an absolute path"),
        ("~root/.ssh", "is not an absolute path"),
    ] {
        let text = root(path);
        check(of_manifest(move |manifest| format!("{manifest}\n{text}")), &["its manifest is wrong in line", expected]);
    }
    check(with("[grants.origins]\na = \"https://example.com\"\n"), &["is not a loopback origin"]);
    check(with("[limits]\nmemory-mb = 100000\n"), &["memory-mb is 100000, and may be 1 to"]);
    check(
        of_manifest(|text| text.replace("0.1.0", "one")),
        &["the version `one` of the adapter `polite` cannot be read"],
    );
    check(of_manifest(|text| text.replace("wit = \"0.1\"", "wit = \"0.9\"")), &["is written for interface 0.9"]);
    let not_text = |stage: &Stage| {
        let folder = ship(&stage.folder.join("package"), "polite", &built("polite"), "");
        std::fs::write(folder.join("adapter.toml"), b"name = \"\xff\"").expect("the stage is writable");
        folder
    };
    check(not_text, &["its manifest is not text", "UTF-8"]);
    let none = |stage: &Stage| {
        let path = stage.folder.join("polite.wasm");
        std::fs::write(&path, built("polite")).expect("the stage is writable");
        path
    };
    check(none, &["it has no manifest", "adapter.toml beside it"]);
}

#[test]
fn a_root_that_is_a_file_is_no_root() {
    let rooted = |stage: &Stage| {
        std::fs::write(stage.home.join(".polite"), "a file").expect("the home is writable");
        let text = format!("{}\n[grants.roots.config]\npath = \"~/.polite\"\n", manifest("polite"));
        ship(&stage.folder.join("package"), "polite", &built("polite"), &text)
    };
    check(rooted, &["the root `config` asks for ~/.polite", "is not a folder"]);
}

#[test]
fn a_root_that_nobody_may_have_is_refused_at_the_install() {
    for (path, expected) in [
        ("${UNSET:-~}", "it is your whole home, or holds it"),
        ("~/.relay-mesh/inboxes", "where relay-mesh keeps mail and keys"),
        ("/proc/self", "it is the system's"),
        ("~/.claude", "a root for these is named `claude-code`"),
        ("${project}/.claude", "a root for these is named `claude-code`"),
        ("~/.config", "it holds the settings of every program"),
    ] {
        let rooted = |stage: &Stage| {
            let text = format!("{}\n[grants.roots.config]\npath = \"{path}\"\n", manifest("polite"));
            std::fs::create_dir_all(stage.home.join(".claude")).expect("the home is writable");
            ship(&stage.folder.join("package"), "polite", &built("polite"), &text)
        };
        check(rooted, &["the root `config` asks for", expected]);
    }
}

#[test]
fn a_socket_that_nobody_may_have_is_refused_at_the_install() {
    for (path, expected) in [
        ("~/.relay-mesh/events.sock", "where relay-mesh keeps mail and keys"),
        ("~/.relay-mesh/{name}.sock", "where relay-mesh keeps mail and keys"),
        ("/run/docker.sock", "it is the system's"),
        ("~/.codex/app-server-control/app-server-control.sock", "an endpoint for these is named `codex`"),
    ] {
        let asks = |stage: &Stage| {
            let text = format!(
                "{}\n[grants.endpoints]\nrpc = {{ unix = \"{path}\", framing = \"lines\" }}\n",
                manifest("polite")
            );
            ship(&stage.folder.join("package"), "polite", &built("polite"), &text)
        };
        check(asks, &["the endpoint `rpc` asks for", expected]);
    }
}

#[test]
fn the_settings_of_an_installed_adapter_are_its_own() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let install = |name: &str, text: String| {
        let path = ship(&stage.folder.join(name), name, &built(name), &text).display().to_string();
        let arguments = ["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"];
        stage.relay(&arguments).env("XDG_CACHE_HOME", cache()).run()
    };
    let rooted = |root: &str| {
        let text = format!("{}\n[grants.roots.{root}]\npath = \"~/.hostile/inner\"\n", manifest("polite"));
        install("polite", text)
    };
    assert_eq!(install("hostile", manifest("hostile")).code, Some(0));
    let refused = rooted("config");
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(refused.stderr.contains("a root for these is named `hostile`"), "{}", refused.stderr);
    assert_eq!(rooted("hostile").code, Some(0));
}

#[test]
fn two_adapters_have_no_name_in_common() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let install = |folder: &str, bytes: Vec<u8>, text: String| {
        let path = ship(&stage.folder.join(folder), folder, &bytes, &text).display().to_string();
        let arguments = ["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"];
        stage.relay(&arguments).env("XDG_CACHE_HOME", cache()).run()
    };
    let aliased = manifest("polite").replace("title =", "aliases = [\"kind\"]\ntitle =");
    assert_eq!(install("polite", built("polite"), aliased).code, Some(0));
    let same = manifest("hostile").replace("title =", "aliases = [\"kind\"]\ntitle =");
    let refused = install("hostile", built("hostile"), same);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(refused.stderr.contains("the name `kind` belongs to the installed adapter `polite`"), "{}", refused.stderr);
    assert!(!stage.data.join("plugins/hostile.json").exists());
    let other = install("another", built("polite"), manifest("polite").replace("0.1.0", "0.2.0"));
    assert_eq!(other.code, Some(4), "{}", other.stderr);
    assert!(other.stderr.contains("relay-mesh plugin update polite"), "{}", other.stderr);
}

#[test]
fn a_shelf_that_cannot_be_written_is_told() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["register", "alice"]);
    std::fs::write(stage.data.join("plugins"), "a file").expect("the home is writable");
    let path =
        ship(&stage.folder.join("package"), "polite", &built("polite"), &manifest("polite")).display().to_string();
    let refused = stage
        .relay(&["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"])
        .env("XDG_CACHE_HOME", cache())
        .run();
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("plugins`") && refused.stderr.contains("hint: "), "{}", refused.stderr);
    // What blocks an install does not block the built-in adapters.
    let hook = stage.relay(&["hook", "claude-code", "Stop"]).env("XDG_CACHE_HOME", cache()).input("{}").run();
    assert!(!hook.stderr.contains("no adapter is named"), "{}", hook.stderr);
}

fn built(name: &str) -> Vec<u8> {
    component(env!("CARGO_TARGET_TMPDIR"), name)
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}
