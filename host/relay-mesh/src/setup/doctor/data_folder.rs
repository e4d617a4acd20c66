//! Proves that the data folder takes what is written to it, gives it back, and is nobody else's.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use mesh::harness::{Finding, Severity};

use super::{broken, fine, shown};

/// A synced write that takes longer than this is felt in every message that is sent.
const SLOW: Duration = Duration::from_millis(50);

/// Looks at the folder's owner and mode, then writes a file, syncs it, reads it back and removes it.
pub(crate) fn prove(folder: &Path, nonce: &str) -> Vec<Finding> {
    let about = match fs::metadata(folder) {
        Ok(about) => about,
        Err(error) => return vec![unreadable(folder, &error)],
    };
    vec![privacy(folder, about.uid(), about.mode(), rustix::process::getuid().as_raw()), round_trip(folder, nonce)]
}

fn unreadable(folder: &Path, error: &io::Error) -> Finding {
    let fix = match error.kind() {
        io::ErrorKind::NotFound => "it is made by the first command that stores something; try `relay-mesh status`",
        _ => "choose another one by `--dir` or RELAY_DIR, or mend its permissions",
    };
    broken(format!("{} cannot be read: {error}", folder.display()), fix)
}

/// Whether only its owner reaches the folder. What lies in it is the agents' mail.
fn privacy(folder: &Path, owner: u32, mode: u32, us: u32) -> Finding {
    let path = folder.display();
    let others = mode & 0o077;
    if owner != us {
        broken(format!("{path} belongs to user {owner} and not to you"), format!("chown -R {us} {path}"))
    } else if others != 0 {
        let what = format!("{path} is open to other users (mode {:o})", mode & 0o777);
        Finding { severity: Severity::Warning, what, fix: Some(format!("chmod 700 {path}")) }
    } else {
        fine(format!("{path} is yours alone (mode {:o})", mode & 0o777))
    }
}

fn round_trip(folder: &Path, nonce: &str) -> Finding {
    let file = folder.join(format!(".doctor-{nonce}"));
    let began = Instant::now();
    let written = write_synced(&file, nonce);
    let took = began.elapsed();
    let read = written.and_then(|()| fs::read_to_string(&file));
    // The file may never have come to be; whether it goes says nothing about the folder.
    let _gone = fs::remove_file(&file);
    let path = folder.display();
    match read {
        Err(error) => broken(
            format!("{path} did not take a file: {error}"),
            "free some space, mend its permissions, or choose another folder by `--dir` or RELAY_DIR",
        ),
        Ok(text) if text != nonce => {
            broken(format!("{path} gave back something else than was written"), "check the disk that it lies on")
        }
        Ok(_) if took > SLOW => Finding {
            severity: Severity::Warning,
            what: format!("a synced write takes {}, which is slow", shown(took)),
            fix: Some("put the data folder on a local disk, or use `--durability process`".to_owned()),
        },
        Ok(_) => fine(format!("a file was written, synced and read back in {}", shown(took))),
    }
}

fn write_synced(file: &Path, text: &str) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn check(owner: u32, mode: u32, severity: Severity, expected: &str) {
        let finding = privacy(Path::new("/data"), owner, mode, 1000);
        assert_eq!(finding.severity, severity, "{}", finding.what);
        assert!(finding.what.contains(expected), "{}", finding.what);
    }

    #[test]
    fn a_data_folder_is_its_owners_alone() {
        check(1000, 0o40700, Severity::Ok, "yours alone");
        check(1000, 0o40755, Severity::Warning, "open to other users (mode 755)");
        check(0, 0o40700, Severity::Broken, "belongs to user 0");
    }

    #[test]
    fn a_folder_that_takes_a_file_is_proven_by_one_that_is_gone_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("its mode is set");
        let findings = prove(folder.path(), "n1");
        assert!(findings.iter().all(|finding| finding.severity == Severity::Ok), "{findings:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let findings = prove(Path::new("/nowhere/at/all"), "n1");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("/nowhere/at/all"), "{findings:?}");
        assert_eq!(findings[0].severity, Severity::Broken);
    }
}
