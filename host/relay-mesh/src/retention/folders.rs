//! Deletes the folders of runs, reviews, pipelines and driven agents that are over.

use std::fs;
use std::path::Path;

use mesh::DryRun;
use mesh::ports::data_files::Amount;

/// Deletes a folder and adds it with its bytes to what was freed, or only adds it. One that cannot be deleted is not added,
/// and stays for the next cleanup.
pub(crate) fn delete(folder: &Path, dry_run: DryRun, freed: &mut Amount) {
    let bytes = size(folder);
    let outcome = match dry_run {
        DryRun::Yes => Ok(()),
        DryRun::No => fs::remove_dir_all(folder),
    };
    match outcome {
        Ok(()) => freed.add(bytes),
        Err(error) => tracing::debug!(%error, folder = %folder.display(), "a folder stays until the next cleanup"),
    }
}

/// The bytes of the files below a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let found = entry.metadata().ok()?;
            Some(if found.is_dir() { size(&entry.path()) } else { found.len() })
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deleted_counts_with_its_bytes_and_what_stays_does_not() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("over");
        fs::create_dir_all(folder.join("files")).expect("made");
        fs::write(folder.join("record.json"), "12345").expect("written");
        fs::write(folder.join("files/one"), "123").expect("written");
        let mut freed = Amount::default();
        delete(&folder, DryRun::Yes, &mut freed);
        assert_eq!((freed, folder.exists()), (Amount { count: 1, bytes: 8 }, true));
        delete(&folder, DryRun::No, &mut freed);
        assert_eq!((freed, folder.exists()), (Amount { count: 2, bytes: 16 }, false));
        delete(&folder, DryRun::No, &mut freed);
        assert_eq!(freed.count, 2, "it was gone already");
    }
}
