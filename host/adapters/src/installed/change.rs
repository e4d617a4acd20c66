//! Changing the installed adapters: one command at a time, and each change takes effect by one rename.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use mesh::ports::machine::Instant;

use super::{Enablement, InstalledAdapters, InstalledError, InstalledVersion, Record, io, own};
use crate::cache::state_of;
use crate::digest::Digest;
use crate::grants::Consent;
use crate::package::Package;
use crate::signature::PublisherKey;
use crate::unix::{self, OpenOptionsExt};

/// What to install.
#[derive(Clone, Copy, Debug)]
pub struct Install<'p> {
    /// The component and its manifest.
    pub package: &'p Package,
    /// The keys that may sign the next version.
    pub publishers: &'p [PublisherKey],
    /// What the user granted it.
    pub consent: &'p Consent,
    /// Whether it is enabled.
    pub standing: Enablement,
    pub at: Instant,
}

/// What a command found installed and asked the user about. If another version is installed by then, or the user has
/// disabled it or taken something from it, nothing is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundVersion(Option<(Digest, Enablement, Consent)>);

impl FoundVersion {
    /// The version in a record.
    pub fn of(record: Option<&Record>) -> FoundVersion {
        let of = |record: &Record| {
            let installed = record.installed.as_ref()?;
            Some((installed.digest, installed.standing, record.consent(&installed.digest)))
        };
        FoundVersion(record.and_then(of))
    }
}

impl InstalledAdapters {
    /// Installs a version in place of the one that the command found.
    pub fn install(&self, install: Install<'_>, found: FoundVersion) -> Result<Record, InstalledError> {
        let Install { package, publishers, consent, standing, at } = install;
        let name = package.manifest.name.as_str();
        self.locked(|| {
            // An unreadable record is replaced: installing again is how it is repaired.
            let before = match self.fresh(name) {
                Err(InstalledError::Damaged { .. }) => None,
                before => before?,
            };
            if FoundVersion::of(before.as_ref()) != found {
                return Err(InstalledError::Changed(name.to_owned()));
            }
            let file = self.put(name, package)?;
            let mut record = before.unwrap_or_else(|| Record::new(name));
            let since = record.installed.as_ref().map(|installed| installed.since.unwrap_or(installed.at));
            record.installed = Some(InstalledVersion {
                version: package.manifest.version.clone(),
                digest: package.digest,
                component: package.component,
                file,
                standing,
                at,
                since,
                // An address is no file.
                from: fs::canonicalize(&package.from)
                    .map_or_else(|_| package.from.clone(), |file| file.display().to_string()),
                publishers: publishers.to_vec(),
            });
            record.note(package.digest, consent.clone(), at);
            self.write(&record)?;
            Ok(record)
        })
    }

    /// Changes what the user granted to one version of an adapter, installed or not. Returns the new grants.
    pub fn consent(
        &self,
        name: &str,
        digest: Digest,
        at: Instant,
        change: impl FnOnce(&mut Consent),
    ) -> Result<Consent, InstalledError> {
        self.locked(|| {
            let mut record = self.fresh(name)?.unwrap_or_else(|| Record::new(name));
            let mut consent = record.consent(&digest);
            change(&mut consent);
            record.note(digest, consent.clone(), at);
            self.write(&record)?;
            Ok(consent)
        })
    }

    /// Enables or disables an installed adapter. Returns its state before.
    pub fn stand(&self, name: &str, standing: Enablement) -> Result<Enablement, InstalledError> {
        self.locked(|| {
            let absent = || InstalledError::Absent(name.to_owned());
            let mut record = self.fresh(name)?.ok_or_else(absent)?;
            let installed = record.installed.as_mut().ok_or_else(absent)?;
            let before = std::mem::replace(&mut installed.standing, standing);
            self.write(&record)?;
            Ok(before)
        })
    }

    /// Removes an adapter and its consents, even if its record is damaged.
    pub fn remove(&self, name: &str) -> Result<(), InstalledError> {
        self.locked(|| {
            let path = self.path_of(name);
            match fs::remove_file(&path) {
                Ok(()) => sync_folder(&self.folder),
                Err(error) if error.kind() == ErrorKind::NotFound => Err(InstalledError::Absent(name.to_owned())),
                Err(source) => Err(io("remove", &path)(source)),
            }
        })
    }

    /// Makes a change under the lock, and deletes the files that no record names.
    fn locked<T>(&self, change: impl FnOnce() -> Result<T, InstalledError>) -> Result<T, InstalledError> {
        make_folder(&self.folder)?;
        self.check_owner()?;
        let path = self.folder.join(".lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(io("open", &path))?;
        lock.lock().map_err(io("lock", &path))?;
        let outcome = change();
        self.clean_up();
        outcome
    }

    /// The record as it is on disk now, bypassing the cache.
    fn fresh(&self, name: &str) -> Result<Option<Record>, InstalledError> {
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

    /// Writes the files of a version into a folder of their own. Returns the state of the component's file.
    fn put(&self, name: &str, package: &Package) -> Result<String, InstalledError> {
        let folder = self.version_folder(name, &package.digest);
        let component = self.component_of(name, &package.digest);
        let whole = || {
            let text = fs::read(folder.join("adapter.toml")).ok()?;
            let bytes = fs::read(&component).ok()?;
            (text == package.text.as_bytes() && bytes == package.bytes).then_some(())
        };
        // If the same version is there already, its files stay: other processes may be reading them.
        if whole().is_none() {
            make_folder(&self.folder.join(name))?;
            let draft = folder.with_extension("new");
            discard(&draft)?;
            make_folder(&draft)?;
            write_synced(&draft.join(format!("{name}.wasm")), &package.bytes)?;
            write_synced(&draft.join("adapter.toml"), package.text.as_bytes())?;
            sync_folder(&draft)?;
            discard(&folder)?;
            fs::rename(&draft, &folder).map_err(io("make", &folder))?;
            sync_folder(&self.folder.join(name))?;
        }
        let metadata = fs::metadata(&component).map_err(io("read", &component))?;
        Ok(state_of(&metadata))
    }

    fn write(&self, record: &Record) -> Result<(), InstalledError> {
        let path = self.path_of(&record.name);
        let draft = self.folder.join(".record.new");
        let bytes = serde_json::to_vec_pretty(record)
            .map_err(|error| InstalledError::Damaged { path: path.clone(), why: error.to_string() })?;
        write_synced(&draft, &bytes)?;
        fs::rename(&draft, &path).map_err(io("write", &path))?;
        sync_folder(&self.folder)
    }

    /// Removes the files of versions that no record names: of older versions, of removed adapters, and of killed
    /// installs. A file that cannot be removed costs only disk space.
    fn clean_up(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|_| entry.path().is_dir()) else { continue };
            let kept = match self.fresh(name) {
                Ok(record) => record.and_then(|record| record.installed).map(|installed| installed.digest),
                // The files of a damaged record are left for the user to look at.
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

fn make_folder(folder: &Path) -> Result<(), InstalledError> {
    unix::make_private_folder(folder).map_err(io("make", folder))
}

fn discard(folder: &Path) -> Result<(), InstalledError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", folder)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), InstalledError> {
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(io("write", path))
}

fn sync_folder(folder: &Path) -> Result<(), InstalledError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync", folder))
}
