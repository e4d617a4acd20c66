//! Builds the adapters in `plugins/` as components and embeds them, so that the binary always matches their sources. A
//! folder in `plugins/` with a manifest is an adapter; adding one needs no change to the host's sources. Each component
//! is also written to `plugins/NAME/NAME.wasm`, where `--plugins ./plugins` finds it.
//!
//! They are built by a separate cargo in a separate target folder: sharing the outer folder would deadlock on the lock
//! that the outer cargo holds until this script ends.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script is told everything by variables, and has to start the compiler"
)]

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

const TARGET: &str = "wasm32-wasip2";

/// Settings of the outer build that would make the inner one fail or differ.
const NOT_PASSED_ON: [&str; 14] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTDOCFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_PROFILE_RELEASE_DEBUG",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN_SOURCE",
    "LLVM_PROFILE_FILE",
];

/// Small rather than fast: an adapter reads some JSON and is loaded at every hook. Function names are kept, although
/// they are a fifth of its size, so that the log says where a guest was stopped.
const PROFILE: [(&str, &str); 5] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
    ("CARGO_PROFILE_RELEASE_LTO", "fat"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo"),
];

struct Plugin {
    name: String,
    package: String,
    folder: PathBuf,
}

fn main() {
    if let Err(why) = embed() {
        // Cargo prints this in red and stops.
        println!("cargo::error={}", why.replace('\n', "\ncargo::error="));
    }
}

fn embed() -> Result<(), String> {
    let workspace = variable("CARGO_MANIFEST_DIR")?.join("../..");
    let workspace = workspace.canonicalize().map_err(|error| format!("{}: {error}", workspace.display()))?;
    let out = variable("OUT_DIR")?;
    let plugins = plugins(&workspace.join("plugins"))?;
    watch(&workspace, &plugins);
    let target = target_folder(&out);
    if !plugins.is_empty() {
        build(&workspace, &target, &plugins)?;
    }
    let mut listed = String::from(
        "/// Every adapter that is part of this program, by name.\npub(crate) static BUILT_IN: &[BuiltIn] = &[\n",
    );
    for plugin in &plugins {
        let file = format!("{}.wasm", plugin.package.replace('-', "_"));
        let component = target.join(TARGET).join("release").join(file);
        let bytes = fs::read(&component).map_err(|error| format!("{}: {error}", component.display()))?;
        keep(&plugin.folder.join(&plugin.name).with_extension("wasm"), &bytes);
        // A copy of our own: the build of another profile may replace the one in the target folder.
        let copy = out.join(&plugin.name).with_extension("wasm");
        fs::write(&copy, &bytes).map_err(|error| format!("{}: {error}", copy.display()))?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let manifest = plugin.folder.join("adapter.toml");
        let [clients, environment] = matches(&manifest)?;
        listed.push_str(&format!(
            "    BuiltIn {{ name: {:?}, manifest: include_str!({manifest:?}), component: include_bytes!({copy:?}), \
             digest: {digest:?}, clients: &{clients:?}, environment: &{environment:?} }},\n",
            plugin.name,
        ));
    }
    listed.push_str("];\n");
    fs::write(out.join("built_in.rs"), listed).map_err(|error| format!("built_in.rs: {error}"))
}

/// The clients and the variables by which an adapter matches its harness.
fn matches(manifest: &Path) -> Result<[Vec<String>; 2], String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", manifest.display());
    let text = fs::read_to_string(manifest).map_err(|error| told(&error))?;
    let table: toml::Table = text.parse().map_err(|error| told(&error))?;
    let listed = |name: &str| -> Vec<String> {
        let list = table.get("matches").and_then(|by| by.get(name)?.as_array());
        list.into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    Ok(["clients", "environment"].map(listed))
}

/// The folders of `plugins/` that have a manifest, by name.
fn plugins(folder: &Path) -> Result<Vec<Plugin>, String> {
    let told = |error: io::Error| format!("{}: {error}", folder.display());
    let mut plugins = Vec::new();
    for entry in fs::read_dir(folder).map_err(told)? {
        let folder = entry.map_err(told)?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !folder.join("adapter.toml").is_file() {
            continue;
        }
        let manifest = folder.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
        let package = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let package = package.ok_or_else(|| format!("{} has no line `name = \"…\"`", manifest.display()))?.to_owned();
        plugins.push(Plugin { name, package, folder });
    }
    plugins.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(plugins)
}

fn watch(workspace: &Path, plugins: &[Plugin]) {
    let mut watched = vec![
        workspace.join("plugins"),
        workspace.join("sdk/src"),
        workspace.join("sdk/assets"),
        workspace.join("sdk/Cargo.toml"),
        workspace.join("wit"),
    ];
    watched.retain(|path| path.is_dir() && !path.ends_with("plugins") || path.is_file());
    for plugin in plugins {
        let parts = ["src", "assets", "adapter.toml", "Cargo.toml"].map(|part| plugin.folder.join(part));
        // Cargo would rerun this every time for a path that does not exist.
        watched.extend(parts.into_iter().filter(|part| part.exists()));
    }
    watched.push(workspace.join("host/adapters/build.rs"));
    for path in watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    // The workspace lists its plugins, so a new one shows here.
    println!("cargo::rerun-if-changed={}", workspace.join("Cargo.toml").display());
}

/// `wasm` in the outer target folder, for all of its profiles and triples: two builds at once make the adapters once.
fn target_folder(out: &Path) -> PathBuf {
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE/out, with the triple before the profile if the build names one. Cargo
    // marks the target folder, and the triple's in it.
    let is_marked = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let nearest = out.ancestors().find(is_marked).unwrap_or(out);
    nearest.parent().filter(is_marked).unwrap_or(nearest).join("wasm")
}

fn build(workspace: &Path, target: &Path, plugins: &[Plugin]) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace)
        .args(["build", "--release", "--lib", "--target", TARGET, "--target-dir"])
        .arg(target);
    for plugin in plugins {
        command.args(["-p", &plugin.package]);
    }
    for name in NOT_PASSED_ON {
        command.env_remove(name);
    }
    command.envs(PROFILE);
    let output = command.output().map_err(|error| format!("cargo could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("target may not be installed") || told.contains("can't find crate for `core`") {
        return Err(format!(
            "the target for adapters is missing\nhint: run `rustup target add {TARGET}` in this folder, or `make toolchain`"
        ));
    }
    Err(format!("the adapters in plugins/ do not build:\n{told}"))
}

/// Writes a file only if its content differs, so that no watcher sees a change without one. In a read-only source tree
/// the write fails, and `--plugins ./plugins` just finds nothing.
fn keep(path: &Path, bytes: &[u8]) {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return;
    }
    let temporary = path.with_extension("wasm.tmp");
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        println!("cargo::warning={} was not written: {error}", path.display());
    }
}

fn variable(name: &str) -> Result<PathBuf, String> {
    env::var_os(name).map(PathBuf::from).ok_or_else(|| format!("cargo did not set {name}"))
}
