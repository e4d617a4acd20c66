//! Components for the tests, built from `tests/hostile` as their authors would build them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::programs::Program;

/// A component of `tests/hostile` by its name. Pass `env!("CARGO_TARGET_TMPDIR")`, where all tests of a run share the
/// build; concurrent processes wait for each other.
///
/// # Panics
/// If the build fails.
pub fn component(target: &str, name: &str) -> Vec<u8> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| build(&Path::new(target).join("hostile")));
    let file = folder.join(name.replace('-', "_")).with_extension("wasm");
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The manifest of a component of `tests/hostile`.
///
/// # Panics
/// If there is none of this name.
pub fn manifest(name: &str) -> String {
    let file = sources().join(name).join("adapter.toml");
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Puts a component and its manifest into a folder, as its author would ship it.
///
/// # Panics
/// If the folder cannot be written.
pub fn ship(folder: &Path, name: &str, component: &[u8], manifest: &str) -> PathBuf {
    std::fs::create_dir_all(folder).expect("the stage is writable");
    std::fs::write(folder.join("adapter.toml"), manifest).expect("the stage is writable");
    // By rename, as a build does: the file is new even if the clock's resolution hides the change.
    let draft = folder.join("draft");
    std::fs::write(&draft, component).expect("the stage is writable");
    std::fs::rename(draft, folder.join(name).with_extension("wasm")).expect("the stage is writable");
    folder.to_owned()
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hostile")
}

fn build(target: &Path) -> PathBuf {
    // Removed, because this test's build settings would make the inner build differ and run twice.
    let outer = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER"];
    Program::new("env")
        .args(outer.iter().flat_map(|name| ["-u", name]))
        .args([env!("CARGO"), "build", "--release", "--target", "wasm32-wasip2", "--target-dir"])
        .arg(target)
        .environment_of_this_process()
        .within(&sources())
        .succeed();
    target.join("wasm32-wasip2/release")
}
