//! Files and folders that no other user may read. The other crates keep some outside of the store too.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::unix::{DirBuilderExt as _, OpenOptionsExt as _};

/// Creates a folder and its parents, for this user alone. One that exists stays as it is.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a file to write, for this user alone. An error if it exists.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::unix::MetadataExt as _;

    #[test]
    fn no_other_user_may_read_what_is_made_here() {
        let place = tempfile::tempdir().expect("a folder");
        let (folder, file) = (place.path().join("a/b"), place.path().join("a/b/c"));
        make_private_folder(&folder).expect("made");
        create_private_file(&file).expect("created");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!([&place.path().join("a"), &folder, &file].map(|path| mode(path)), [0o700, 0o700, 0o600]);
        make_private_folder(&folder).expect("it stays");
        let again = create_private_file(&file).expect_err("it exists");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }
}
