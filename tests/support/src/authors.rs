//! Adapters that lie outside of the workspace, built as their authors build them.

use std::path::{Path, PathBuf};

use crate::programs::Program;
use crate::stage::Stage;

impl Stage {
    /// Builds the Rust adapter in a folder and gives its component. Without a network: what it stands on was
    /// fetched for the workspace. All of them share a target folder, which outlives the test.
    pub fn component(&self, folder: &Path, name: &str) -> PathBuf {
        let target = self.build_folder().join("components");
        Program::new("cargo")
            .environment_of_this_process()
            .args(["build", "--release", "--offline", "--target", "wasm32-wasip2", "--target-dir"])
            .arg(&target)
            .within(folder)
            .succeed();
        target.join("wasm32-wasip2/release").join(name)
    }

    /// The sdk as it would be published: packaged, and unpacked elsewhere, so that whatever it needs from outside
    /// of its own folder is missing.
    pub fn published_sdk(&self) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = self.build_folder().join("published");
        Program::new("cargo")
            .environment_of_this_process()
            .args([
                "package",
                "--package",
                "relay-mesh-sdk",
                "--no-verify",
                "--allow-dirty",
                "--offline",
                "--target-dir",
            ])
            .arg(&folder)
            .within(&root)
            .succeed();
        let package = concat!("relay-mesh-sdk-", env!("CARGO_PKG_VERSION"));
        let unpacked = folder.join(package);
        if unpacked.exists() {
            std::fs::remove_dir_all(&unpacked).expect("the build's folder is writable");
        }
        // A package's files bear the time of no day; with it cargo would not notice that they are others.
        Program::new("tar").args(["-xmzf", &format!("package/{package}.crate")]).within(&folder).succeed();
        unpacked
    }

    /// A folder of the build that outlives the tests.
    pub fn build_folder(&self) -> PathBuf {
        let profile = self.binary().parent().expect("the binary lies in a folder");
        profile.parent().expect("profiles lie in the target folder").join("tmp")
    }
}
