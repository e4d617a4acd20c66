//! The files backend's changes to a disk, one function per system call that a power loss can tear or undo. Tests
//! substitute a disk that remembers the order, or fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::unix::{self, DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};

/// The permissions of every file of the store.
const FILE_MODE: u32 = 0o600;
/// The permissions of every folder of the store.
const FOLDER_MODE: u32 = 0o700;

/// A disk. Each method has the operating system's behaviour unless a test replaces it.
pub trait Disk: Send + Sync + 'static {
    /// Creates a new file, for reading and appending.
    fn create(&self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new().read(true).append(true).create_new(true).mode(FILE_MODE).open(path)?;
        // The umask may have removed bits that we need ourselves.
        restrict(&file, path)?;
        Ok(file)
    }

    /// Adds bytes to the end of a file; returns the number of bytes written, like `write`.
    fn append(&self, mut file: &File, path: &Path, bytes: &[u8]) -> io::Result<usize> {
        let _ = path;
        file.write(bytes)
    }

    /// Replaces bytes of a file that is written in place.
    fn overwrite(&self, file: &File, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let _ = path;
        file.write_all_at(bytes, 0)
    }

    /// Reserves disk space for the first bytes of a file, whose length does not change. If the system does not support
    /// this, nothing is reserved.
    fn reserve(&self, file: &File, path: &Path, bytes: u64) -> io::Result<()> {
        let _ = path;
        unix::reserve(file, bytes)
    }

    /// Cuts a file back to a length.
    fn truncate(&self, file: &File, path: &Path, length: u64) -> io::Result<()> {
        let _ = path;
        file.set_len(length)
    }

    /// Returns once the bytes and the length of a file are on disk.
    fn sync(&self, file: &File, path: &Path) -> io::Result<()> {
        let _ = path;
        file.sync_data()
    }

    /// Returns once the names in a folder are on disk.
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// Renames a file in its folder, replacing any file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Removes a file's name.
    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Creates one folder whose parent exists.
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(FOLDER_MODE).create(path)?;
        if fs::metadata(path)?.mode() & 0o777 != FOLDER_MODE {
            fs::set_permissions(path, fs::Permissions::from_mode(FOLDER_MODE))?;
        }
        Ok(())
    }
}

/// The operating system's disk.
#[derive(Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {}

/// Opens a file of the store for reading and writing, creating it and its folders if they are missing.
pub(super) fn open_or_create(disk: &dyn Disk, root: &Path, path: &Path, access: Access) -> io::Result<File> {
    loop {
        match open(path, access) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match disk.create(path) {
            Ok(file) if matches!(access, Access::Append) => return Ok(file),
            // Opened again, because a file opened for appending cannot be written in place.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folders(disk, path.parent().unwrap_or(root))?;
            }
            // Another process or task created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    /// Reading, and appending.
    Append,
    /// Reading, and writing in place.
    InPlace,
}

/// Opens an existing file, and removes other users' permissions.
pub(super) fn open(path: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match access {
        Access::Append => options.read(true).append(true),
        Access::InPlace => options.read(true).write(true),
    };
    let file = options.open(path)?;
    tighten(&file, path);
    Ok(file)
}

/// Creates a folder below the root, with its parents. The root is also created again if it was removed while the store
/// was open.
pub(super) fn make_folders(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    match disk.make_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = folder.parent() else { return Err(error) };
            make_folders(disk, parent)?;
            match disk.make_folder(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                made => made,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }
}

/// Opens the root: creates it if it is missing, and removes other users' permissions.
pub(super) fn open_root(disk: &dyn Disk, root: &Path) -> io::Result<()> {
    let there = match fs::metadata(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_folders(disk, root)?;
            fs::metadata(root)?
        }
        found => found?,
    };
    if !there.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    // Asks the system, because the mode bits do not say which of them apply to this user.
    unix::check_listable(root)?;
    if there.mode() & 0o077 != 0 {
        let repaired = fs::set_permissions(root, fs::Permissions::from_mode(FOLDER_MODE));
        report_repair(root, there.mode(), repaired);
    }
    Ok(())
}

/// Makes sure that every name between the root's parent and a file is on disk.
pub(super) fn sync_folders(disk: &dyn Disk, root: &Path, folder: &Path) -> io::Result<()> {
    let mut at = folder;
    loop {
        disk.sync_folder(at)?;
        if at == root {
            break;
        }
        match at.parent() {
            Some(parent) => at = parent,
            None => break,
        }
    }
    match root.parent() {
        // A parent that we may not open was not created by us, so it is on disk already.
        Some(parent) if !parent.as_os_str().is_empty() => match disk.sync_folder(parent) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        },
        _ => Ok(()),
    }
}

/// Writes all bytes to a file's end, continuing after a partial write.
pub(super) fn append_all(disk: &dyn Disk, file: &File, path: &Path, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match disk.append(file, path, bytes) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn restrict(file: &File, path: &Path) -> io::Result<()> {
    let _ = path;
    if file.metadata()?.mode() & 0o777 != FILE_MODE {
        file.set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
    }
    Ok(())
}

/// Removes other users' permissions; logs it if that fails.
fn tighten(file: &File, path: &Path) {
    if let Ok(found) = file.metadata()
        && found.mode() & 0o077 != 0
    {
        report_repair(path, found.mode(), file.set_permissions(fs::Permissions::from_mode(FILE_MODE)));
    }
}

fn report_repair(path: &Path, mode: u32, repaired: io::Result<()>) {
    let (path, mode) = (path.display(), format!("{:03o}", mode & 0o777));
    match repaired {
        Ok(()) => tracing::warn!(%path, %mode, "others could reach this; their permissions were taken away"),
        Err(error) => tracing::warn!(%path, %mode, %error, "others can reach this, and that could not be changed"),
    }
}
