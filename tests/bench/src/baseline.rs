//! The smallest program that does something: what everything else is measured against.

use std::path::{Path, PathBuf};

use crate::{Failure, programs};

const SOURCE: &str = "#include <stdio.h>\nint main(void) { return puts(\"hello, world\") < 0; }\n";

/// Builds a static hello-world in a folder, with the machine's C compiler.
pub(crate) fn build(folder: &Path) -> Result<PathBuf, Failure> {
    let source = folder.join("hello.c");
    let program = folder.join("hello");
    std::fs::write(&source, SOURCE)?;
    let outcome = programs::command("cc").args(["-O2", "-static", "-o"]).arg(&program).arg(&source).status()?;
    if outcome.success() { Ok(program) } else { Err("cc could not build a static hello-world".into()) }
}
