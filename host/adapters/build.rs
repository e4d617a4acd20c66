//! Builds the adapters in `plugins/` as components and embeds them, so that the binary always matches their sources. A
//! folder in `plugins/` with a manifest is an adapter; adding one needs no change to the host's sources. Each component
//! is also written to `plugins/NAME/NAME.wasm`, where `--plugins ./plugins` finds it.
//!
//! They are built by a separate cargo in a separate target folder: sharing the outer folder would deadlock on the lock
//! that the outer cargo holds until this script ends.
//!
//! A packed crate has neither `plugins/` nor the sdk beside it. There the components come from `prebuilt/`, which
//! `packaging/crates.py` fills before it packs, and each has to have the digest that is written beside it.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script is told everything by variables, and has to start the compiler"
)]

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use lzma_rust2::{LzmaOptions, LzmaWriter};
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

/// What becomes part of the program.
struct Embedded {
    name: String,
    manifest: PathBuf,
    bytes: Vec<u8>,
}

fn main() {
    if let Err(why) = embed() {
        // Cargo prints this in red and stops.
        println!("cargo::error={}", why.replace('\n', "\ncargo::error="));
    }
}

fn embed() -> Result<(), String> {
    let own = variable("CARGO_MANIFEST_DIR")?;
    let out = variable("OUT_DIR")?;
    println!("cargo::rerun-if-changed={}", own.join("build.rs").display());
    let workspace = own.join("../..");
    let adapters = match workspace.join("plugins").is_dir() && workspace.join("sdk").is_dir() {
        true => from_sources(&workspace, &out)?,
        false => prebuilt(&own.join("prebuilt"))?,
    };
    // All of them as one: they have much in common, and take half of what they would take one by one.
    let mut all = Vec::new();
    let packed = out.join("adapters.lzma");
    let mut listed = format!(
        "/// The components of all adapters, one behind the other, by LZMA.\nstatic PACKED: &[u8] = include_bytes!({packed:?});\n\n"
    );
    listed.push_str(
        "/// Every adapter that is part of this program, by name.\npub(crate) static BUILT_IN: &[BuiltIn] = &[\n",
    );
    for Embedded { name, manifest, bytes } in &adapters {
        let begins = all.len();
        all.extend_from_slice(bytes);
        let at = format!("{begins}..{}", all.len());
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let [clients, environment, shells] = matches(manifest)?;
        listed.push_str(&format!(
            "    BuiltIn {{ name: {name:?}, manifest: include_str!({manifest:?}), at: {at}, \
             digest: {digest:?}, clients: &{clients:?}, environment: &{environment:?}, \
             shells: &{shells:?} }},\n",
        ));
    }
    listed.push_str("];\n");
    pack(&all).and_then(|bytes| fs::write(&packed, bytes)).map_err(|error| format!("{}: {error}", packed.display()))?;
    fs::write(out.join("built_in.rs"), listed).map_err(|error| format!("built_in.rs: {error}"))
}

/// Builds every adapter of the workspace.
fn from_sources(workspace: &Path, out: &Path) -> Result<Vec<Embedded>, String> {
    let workspace = workspace.canonicalize().map_err(|error| format!("{}: {error}", workspace.display()))?;
    let plugins = plugins(&workspace.join("plugins"))?;
    watch(&workspace, &plugins);
    let target = target_folder(out);
    if !plugins.is_empty() {
        build(&workspace, &target, &plugins)?;
    }
    let mut adapters = Vec::new();
    for Plugin { name, package, folder } in plugins {
        let file = format!("{}.wasm", package.replace('-', "_"));
        let bytes = read(&target.join(TARGET).join("release").join(file))?;
        keep(&folder.join(&name).with_extension("wasm"), &bytes);
        adapters.push(Embedded { name, manifest: folder.join("adapter.toml"), bytes });
    }
    Ok(adapters)
}

/// The adapters of a packed crate: `NAME.toml` and `NAME.wasm`, as `SHA256SUMS` lists them.
fn prebuilt(folder: &Path) -> Result<Vec<Embedded>, String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let sums = read(&folder.join("SHA256SUMS"))?;
    let mut adapters = Vec::new();
    for line in String::from_utf8_lossy(&sums).lines() {
        let (digest, file) = line.split_once("  ").ok_or_else(|| format!("SHA256SUMS: {line:?} names no file"))?;
        let path = folder.join(file);
        let bytes = read(&path)?;
        if hex::encode(Sha256::digest(&bytes)) != digest {
            return Err(format!(
                "{} is not the file that was packed: its digest differs from SHA256SUMS",
                path.display()
            ));
        }
        if let Some(name) = file.strip_suffix(".wasm") {
            let manifest = folder.join(name).with_extension("toml");
            adapters.push(Embedded { name: name.to_owned(), manifest, bytes });
        }
    }
    Ok(adapters)
}

/// As the program holds components: a ninth of their size, and only unpacked where one is compiled.
fn pack(components: &[u8]) -> io::Result<Vec<u8>> {
    let mut options = LzmaOptions::with_preset(9);
    // What unpacks it needs as much memory as this.
    options.dict_size = u32::try_from(components.len().next_power_of_two()).unwrap_or(u32::MAX).clamp(1 << 16, 1 << 26);
    let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(components.len() as u64))?;
    writer.write_all(components)?;
    writer.finish()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The clients and the variables by which an adapter matches its harness, and those of its agents' shells.
fn matches(manifest: &Path) -> Result<[Vec<String>; 3], String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", manifest.display());
    let text = fs::read_to_string(manifest).map_err(|error| told(&error))?;
    let table: toml::Table = text.parse().map_err(|error| told(&error))?;
    let listed = |name: &str| -> Vec<String> {
        let list = table.get("matches").and_then(|by| by.get(name)?.as_array());
        list.into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    Ok(["clients", "environment", "shells"].map(listed))
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
    command.envs(PROFILE).env("CARGO_ENCODED_RUSTFLAGS", without_folders(workspace, target).join("\x1f"));
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

/// Names no folder of this machine in a component, so that its bytes are the same wherever it is built.
fn without_folders(workspace: &Path, target: &Path) -> Vec<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let mut folders = vec![(target.to_owned(), "/target"), (workspace.to_owned(), "/relay-mesh")];
    folders.extend(home.map(|home| (home, "/cargo")));
    folders.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect()
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
