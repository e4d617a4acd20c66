//! Who watches a file. A test that rings a bell before the client listens would test its own haste.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether a program whose command line begins with `program` watches a file or the folder that it
/// lies in. Read from what the kernel says of inotify.
pub(crate) fn is_watched(path: &Path, program: &Path) -> bool {
    let places = [Some(path), path.parent()];
    let inodes: Vec<String> = places
        .into_iter()
        .flatten()
        .filter_map(|place| std::fs::metadata(place).ok())
        .map(|metadata| format!(" ino:{:x} ", metadata.ino()))
        .collect();
    let name = program.display().to_string();
    entries(Path::new("/proc")).any(|process| {
        let line = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        let watches = || {
            entries(&process.join("fdinfo")).any(|descriptor| {
                let text = std::fs::read_to_string(descriptor).unwrap_or_default();
                text.lines().any(|line| line.starts_with("inotify ") && inodes.iter().any(|inode| line.contains(inode)))
            })
        };
        line.starts_with(&name) && watches()
    })
}

/// What lies in a folder; nothing where it is gone by now, as processes and descriptors may be.
fn entries(folder: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
