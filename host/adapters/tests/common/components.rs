//! The components of `tests/hostile`, built from their sources once per run. Tests of other crates include this
//! file by its path.

#![allow(dead_code, reason = "a test file may need the components and not their folders")]

use std::path::{Path, PathBuf};

pub(crate) fn component(name: &str) -> Vec<u8> {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let folder = BUILT.get_or_init(build);
    let file = folder.join(name.replace('-', "_")).with_extension("wasm");
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile")
}

pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile")
}

/// Builds all of them in a separate target folder. Concurrent processes wait in turn.
fn build() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "the components are built by cargo, as their authors would")]
    let output = std::process::Command::new(env!("CARGO"))
        .args(["build", "--release", "--target", "wasm32-wasip2", "--target-dir"])
        .arg(target())
        .current_dir(sources())
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target().join("wasm32-wasip2/release")
}
