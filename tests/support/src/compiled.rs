//! The machine code of the adapters that are part of the program. A user's machine compiles each once; here it is once for
//! all stages of a binary, and a stage finds it in its cache.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Stage;
use crate::programs::Program;

/// The cache in a home.
const CACHE: &str = ".cache/relay-mesh/adapters";
/// The file that says that a binary's adapters have all been compiled.
const WHOLE: &str = "whole";

impl Stage {
    /// Puts links to the compiled adapters into the cache of this stage. One whose binary is not there runs none.
    pub(crate) fn share_compiled_adapters(&self) {
        if !self.binary().exists() {
            return;
        }
        let shared = compiled_by(self.binary(), &self.build_folder().join("compiled"));
        let own = self.home.join(CACHE);
        private(&own);
        for entry in std::fs::read_dir(shared.join(CACHE)).expect("they are compiled").flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "cwasm" || extension == "crc32") {
                symlink(entry.path(), own.join(entry.file_name())).expect("the stage is writable");
            }
        }
    }

    /// Lets this stage have compiled no adapter yet, as a user whose first command is the next one.
    ///
    /// # Panics
    /// If its cache cannot be emptied.
    pub fn forget_compiled_adapters(&self) {
        for entry in std::fs::read_dir(self.home.join(CACHE)).expect("it has a cache").flatten() {
            std::fs::remove_file(entry.path()).expect("the cache can be deleted at any time");
        }
    }
}

/// The home in whose cache all adapters of a binary are compiled.
fn compiled_by(binary: &Path, folder: &Path) -> PathBuf {
    let about = std::fs::metadata(binary).expect("there is a binary");
    let home = folder.join(format!("{}-{}-{}", about.len(), about.mtime(), about.mtime_nsec()));
    if home.join(WHOLE).exists() {
        return home;
    }
    private(&home);
    let lock = File::open(&home).expect("it was made");
    lock.lock().expect("tests wait for each other");
    if !home.join(WHOLE).exists() {
        let relay = |words: &[&str]| {
            let variables = [("HOME", home.clone()), ("RELAY_DIR", home.join("data"))];
            Program::new(binary).args(words).envs(variables).within(&home).succeed()
        };
        let listed: Value = serde_json::from_str(&relay(&["plugin", "list", "--json"])).expect("JSON");
        for adapter in listed["adapters"].as_array().expect("a list") {
            relay(&["plugin", "verify", adapter["name"].as_str().expect("a name")]);
        }
        std::fs::write(home.join(WHOLE), "").expect("it is writable");
    }
    home
}

/// Makes a folder that only its owner can enter.
fn private(folder: &Path) {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("the folder can be made");
}
