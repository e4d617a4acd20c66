//! The path by which this program is still found after an upgrade.
//!
//! Package managers keep each version in a folder of its own and have a link on the PATH lead to the newest. The system
//! tells a process the former, which is gone after an upgrade; what is written into settings has to be the link.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// The path of this program. `search` is the PATH.
pub(crate) fn own_path(search: Option<&str>) -> io::Result<PathBuf> {
    let program = own_file()?;
    let called = std::env::args_os().next();
    Ok(lasting(&program, called.as_deref(), search.unwrap_or_default()))
}

/// The file of this program, with links followed. If another one took its place since, that one's path.
pub(crate) fn own_file() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    // Linux has followed the links already; macOS says the path by which it was called.
    Ok(replaced(&program).unwrap_or_else(|| program.canonicalize().unwrap_or(program)))
}

/// Where a program was whose file has been removed or replaced: Linux says so behind its path.
fn replaced(program: &Path) -> Option<PathBuf> {
    let text = program.to_str().filter(|_| !program.exists())?;
    text.strip_suffix(" (deleted)").map(PathBuf::from)
}

/// The link that leads to a program: as it was called, or as the PATH has it; else the program's own path.
fn lasting(program: &Path, called: Option<&OsStr>, search: &str) -> PathBuf {
    let Ok(real) = program.canonicalize() else { return program.to_owned() };
    let called = called.map(Path::new);
    let name = called.and_then(Path::file_name).or_else(|| program.file_name()).unwrap_or_default();
    // A relative path depends on the folder that it was called in.
    let as_called = called.filter(|path| path.is_absolute()).map(Path::to_owned);
    let on_path = std::env::split_paths(search).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    let leads_here = |path: &PathBuf| path.canonicalize().is_ok_and(|found| found == real);
    on_path.chain(as_called).find(leads_here).unwrap_or_else(|| program.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_written_down_outlives_an_upgrade() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("its path");
        let (old, new) = (root.join("cellar/1/bin/relay-mesh"), root.join("cellar/2/bin/relay-mesh"));
        for program in [&old, &new] {
            fs::create_dir_all(program.parent().expect("a folder")).expect("made");
            fs::write(program, "").expect("written");
        }
        let (bin, opt) = (root.join("bin"), root.join("opt"));
        for folder in [&bin, &opt] {
            fs::create_dir(folder).expect("made");
            symlink(&old, folder.join("relay-mesh")).expect("linked");
        }
        let search = format!("/usr/bin:relative:{}", bin.display());
        let found = |called: &str, search: &str| lasting(&old, Some(OsStr::new(called)), search);
        assert_eq!(found("relay-mesh", &search), bin.join("relay-mesh"), "by the PATH");
        assert_eq!(found("./relay-mesh", &search), bin.join("relay-mesh"), "from where it lies");
        let called = opt.join("relay-mesh").display().to_string();
        assert_eq!(found(&called, "/usr/bin"), opt.join("relay-mesh"), "as it was called");
        assert_eq!(found("relay-mesh", "/usr/bin"), old, "no link leads to it");
        // Another version on the PATH is another program.
        assert_eq!(lasting(&new, Some(OsStr::new("relay-mesh")), &search), new);
    }
}
