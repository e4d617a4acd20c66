//! Adapters outside the workspace, built as their authors build them.

use std::path::{Path, PathBuf};

use crate::programs::Program;
use crate::stage::Stage;

impl Stage {
    /// Builds the Rust adapter in a folder and returns its component. Offline: its dependencies were fetched for the
    /// workspace. All adapters share a target folder that survives the test.
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

    /// The sdk as it would be published: packaged and unpacked elsewhere, so that files it needs from outside its own
    /// folder are missing.
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
        // `-m`: files in a package have a fixed time, by which cargo would not notice that they changed.
        Program::new("tar").args(["-xmzf", &format!("package/{package}.crate")]).within(&folder).succeed();
        unpacked
    }

    /// A build folder that survives the tests.
    pub fn build_folder(&self) -> PathBuf {
        let profile = self.binary().parent().expect("the binary lies in a folder");
        profile.parent().expect("profiles lie in the target folder").join("tmp")
    }
}
