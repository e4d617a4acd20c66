//! Changing the shelf: one command at a time, and each change takes effect by one rename.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use mesh::machine::Instant;

use super::{Installed, Record, Shelf, ShelfError, Standing, io, own};
use crate::cache::state_of;
use crate::digest::Digest;
use crate::grants::Consent;
use crate::parcel::Parcel;

/// What is put on the shelf.
#[derive(Clone, Copy, Debug)]
pub struct Install<'p> {
    /// The component and its manifest.
    pub parcel: &'p Parcel,
    /// What the person gave to it.
    pub consent: &'p Consent,
    /// Whether it is used from now on.
    pub standing: Standing,
    /// When.
    pub at: Instant,
}

/// What a command found on the shelf, and asked the person about: one version, or none. Where
/// something else is there by then, nothing is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found(pub Option<Digest>);

impl Found {
    /// What a record says.
    pub fn of(record: Option<&Record>) -> Found {
        Found(record.and_then(|record| record.installed.as_ref()).map(|installed| installed.digest))
    }
}

impl Shelf {
    /// Installs a version, in place of the one that was found.
    pub fn install(&self, install: Install<'_>, found: Found) -> Result<Record, ShelfError> {
        let Install { parcel, consent, standing, at } = install;
        let name = parcel.manifest.name.as_str();
        self.locked(|| {
            // What cannot be understood is replaced: installing again is how it is mended.
            let before = match self.fresh(name) {
                Err(ShelfError::Damaged { .. }) => None,
                before => before?,
            };
            if Found::of(before.as_ref()) != found {
                return Err(ShelfError::Changed(name.to_owned()));
            }
            let file = self.put(name, parcel)?;
            let mut record = before.unwrap_or_else(|| Record::new(name));
            record.installed = Some(Installed {
                version: parcel.manifest.version.clone(),
                digest: parcel.digest,
                component: parcel.component,
                file,
                standing,
                at,
                from: parcel.file.canonicalize().unwrap_or_else(|_| parcel.file.clone()).display().to_string(),
            });
            record.note(parcel.digest, consent.clone(), at);
            self.write(&record)?;
            Ok(record)
        })
    }

    /// Changes what the person gave to one version of an adapter, installed or not. Gives what it
    /// came to.
    pub fn consent(
        &self,
        name: &str,
        digest: Digest,
        at: Instant,
        change: impl FnOnce(&mut Consent),
    ) -> Result<Consent, ShelfError> {
        self.locked(|| {
            let mut record = self.fresh(name)?.unwrap_or_else(|| Record::new(name));
            let mut consent = record.consent(&digest);
            change(&mut consent);
            record.note(digest, consent.clone(), at);
            self.write(&record)?;
            Ok(consent)
        })
    }

    /// Enables or disables an installed adapter. Gives how it stood before.
    pub fn stand(&self, name: &str, standing: Standing) -> Result<Standing, ShelfError> {
        self.locked(|| {
            let absent = || ShelfError::Absent(name.to_owned());
            let mut record = self.fresh(name)?.ok_or_else(absent)?;
            let installed = record.installed.as_mut().ok_or_else(absent)?;
            let before = std::mem::replace(&mut installed.standing, standing);
            self.write(&record)?;
            Ok(before)
        })
    }

    /// Takes an adapter off the shelf, and its consents with it. A damaged record goes too.
    pub fn remove(&self, name: &str) -> Result<(), ShelfError> {
        self.locked(|| {
            let path = self.path_of(name);
            match fs::remove_file(&path) {
                Ok(()) => sync_folder(&self.folder),
                Err(error) if error.kind() == ErrorKind::NotFound => Err(ShelfError::Absent(name.to_owned())),
                Err(source) => Err(io("remove", &path)(source)),
            }
        })
    }

    /// Does something while nobody else changes the shelf, and clears away what no record names.
    fn locked<T>(&self, change: impl FnOnce() -> Result<T, ShelfError>) -> Result<T, ShelfError> {
        make_folder(&self.folder)?;
        self.check_owner()?;
        let path = self.folder.join(".lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(io("open", &path))?;
        lock.lock().map_err(io("lock", &path))?;
        let outcome = change();
        self.sweep();
        outcome
    }

    /// The record as it is now, whatever was seen of it before.
    fn fresh(&self, name: &str) -> Result<Option<Record>, ShelfError> {
        let path = self.path_of(name);
        match fs::symlink_metadata(&path) {
            Ok(metadata) => {
                own(&path, &metadata)?;
                self.read(name, &path).map(Some)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(io("read", &path)(source)),
        }
    }

    /// Puts the files of a version into a folder of its own. Gives the state of the component's file.
    fn put(&self, name: &str, parcel: &Parcel) -> Result<String, ShelfError> {
        let folder = self.version_folder(name, &parcel.digest);
        let component = self.component_of(name, &parcel.digest);
        let whole = || {
            let text = fs::read(folder.join("adapter.toml")).ok()?;
            let bytes = fs::read(&component).ok()?;
            (text == parcel.text.as_bytes() && bytes == parcel.bytes).then_some(())
        };
        // The same version again, whose files others may be reading, stays as it is.
        if whole().is_none() {
            make_folder(&self.folder.join(name))?;
            let draft = folder.with_extension("new");
            discard(&draft)?;
            make_folder(&draft)?;
            write_synced(&draft.join(format!("{name}.wasm")), &parcel.bytes)?;
            write_synced(&draft.join("adapter.toml"), parcel.text.as_bytes())?;
            sync_folder(&draft)?;
            discard(&folder)?;
            fs::rename(&draft, &folder).map_err(io("make", &folder))?;
            sync_folder(&self.folder.join(name))?;
        }
        let metadata = fs::metadata(&component).map_err(io("read", &component))?;
        Ok(state_of(&metadata))
    }

    fn write(&self, record: &Record) -> Result<(), ShelfError> {
        let path = self.path_of(&record.name);
        let draft = self.folder.join(".record.new");
        let bytes = serde_json::to_vec_pretty(record)
            .map_err(|error| ShelfError::Damaged { path: path.clone(), why: error.to_string() })?;
        write_synced(&draft, &bytes)?;
        fs::rename(&draft, &path).map_err(io("write", &path))?;
        sync_folder(&self.folder)
    }

    /// Removes the files of versions that no record names: of older versions, of removed adapters,
    /// and of installs that were killed. What cannot be removed costs room and nothing else.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|_| entry.path().is_dir()) else { continue };
            let kept = match self.fresh(name) {
                Ok(record) => record.and_then(|record| record.installed).map(|installed| installed.digest),
                // Whatever a damaged record named is left for the person to look at.
                Err(_) => continue,
            };
            let kept = kept.map(|digest| self.version_folder(name, &digest));
            if kept.is_none() {
                let _costs_room = fs::remove_dir_all(entry.path());
                continue;
            }
            for version in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                if Some(version.path()) != kept {
                    let _costs_room = fs::remove_dir_all(version.path());
                }
            }
        }
    }
}

fn make_folder(folder: &Path) -> Result<(), ShelfError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io("make", folder))
}

fn discard(folder: &Path) -> Result<(), ShelfError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", folder)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), ShelfError> {
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(io("write", path))
}

fn sync_folder(folder: &Path) -> Result<(), ShelfError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync", folder))
}
