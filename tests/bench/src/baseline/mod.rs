//! The smallest programs that do something: what everything else is measured against.

use std::path::{Path, PathBuf};

use crate::{Failure, programs};

/// Prints one line: the smallest process there is.
const HELLO: &str = include_str!("hello.c");
/// Does what `status` asks of the file system, and nothing else.
const CROWD: &str = include_str!("crowd.c");
/// Stands in for a harness.
const HARNESS: &str = include_str!("harness.c");

/// Static programs, built by the machine's C compiler.
pub(crate) struct Baselines {
    /// Prints one line.
    pub(crate) hello: PathBuf,
    /// Reads everybody's record in the folder that it is given.
    pub(crate) crowd: PathBuf,
}

impl Baselines {
    /// Builds them in a folder.
    pub(crate) fn build(folder: &Path) -> Result<Baselines, Failure> {
        Ok(Baselines { hello: build(folder, "hello", HELLO)?, crowd: build(folder, "crowd", CROWD)? })
    }
}

/// Builds the program that stands in for a harness, under the name by which that one is found.
pub(crate) fn harness(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    build(folder, name, HARNESS)
}

fn build(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let source = folder.join(format!("{name}.c"));
    let program = folder.join(name);
    std::fs::write(&source, text)?;
    let outcome = programs::command("cc").args(["-O2", "-static", "-o"]).arg(&program).arg(&source).status()?;
    if outcome.success() { Ok(program) } else { Err(format!("cc could not build a static {name}").into()) }
}
