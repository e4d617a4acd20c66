//! How a process starts the program that it is once more, also if the file of that was replaced since.

use std::io;
use std::path::{Path, PathBuf};

/// What starts this program once more: its path, which listings of processes show. If its file was replaced since, by an
/// upgrade, the path is another program's, and what the system has kept of this one is started.
pub fn this_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    if path.exists() { Ok(path) } else { this_binary() }
}

/// The binary that this process runs, also if its file was replaced since.
pub fn this_binary() -> io::Result<PathBuf> {
    let link = Path::new("/proc/self/exe");
    if link.exists() { Ok(link.to_owned()) } else { std::env::current_exe() }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "the test is a copy of itself")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Set for a copy of these tests that removes its own file.
    const GONE: &str = "RELAY_TEST_GONE";

    #[test]
    fn a_program_whose_file_was_replaced_starts_itself() {
        let own = std::env::current_exe().expect("its path");
        if std::env::var_os(GONE).is_some() {
            std::fs::remove_file(&own).expect("it is ours");
            std::fs::write(&own, "something else").expect("it takes its place");
            let again = this_program().expect("it is found");
            let status = Command::new(again).arg("--list").stdout(Stdio::null()).status();
            assert!(status.expect("it starts").success());
            return;
        }
        assert_eq!(this_program().expect("it is found"), own, "by its path, while it lies there");
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("copy");
        std::fs::copy(&own, &copy).expect("it can be copied");
        let words = ["--exact", "this_program::tests::a_program_whose_file_was_replaced_starts_itself"];
        let output = Command::new(&copy).args(words).env(GONE, "1").output().expect("it starts");
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    }
}
