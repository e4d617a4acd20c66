//! Whose a folder is: a file that one user writes into the data folder of another is one that this other cannot read.

use std::fs;
use std::path::Path;

use crate::unix::{self, MetadataExt as _};

/// Root's id.
const ROOT: u32 = 0;

/// The owner of a folder that is another user's; none if this user may have a data folder there. Root could write
/// anywhere, so for root the nearest folder that exists counts.
pub(crate) fn foreign(folder: &Path, us: u32) -> Option<u32> {
    let owner = |path: &Path| fs::metadata(path).ok().map(|found| found.uid());
    let owner = match us {
        ROOT => folder.ancestors().find_map(owner),
        _ => owner(folder),
    };
    owner.filter(|owner| *owner != us)
}

/// This user.
pub(crate) fn us() -> u32 {
    unix::user()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_owners_and_one_to_be_made_for_root_is_that_of_the_folder_above() {
        let folder = tempfile::tempdir().expect("a folder");
        let owner = fs::metadata(folder.path()).expect("there").uid();
        let missing = folder.path().join("not/there");
        assert_eq!(foreign(folder.path(), owner), None);
        assert_eq!(foreign(folder.path(), owner + 1), Some(owner));
        assert_eq!(foreign(&missing, owner + 1), None, "whether it can be made is for the system to say");
        // What root makes below the folder of another user, that user cannot read.
        assert_eq!(foreign(&missing, ROOT), (owner != ROOT).then_some(owner));
    }
}
