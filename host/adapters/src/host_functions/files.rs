//! Reading files under the roots that the manifest names. Nothing is written here: changes are returned as a plan.

use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, UNIX_EPOCH};

use cap_std::fs::{OpenOptions, OpenOptionsExt};
use wasmtime::component::Resource;

use super::rates::Use;
use super::{HostResult, about, blocking, failed};
use crate::bindings::relay::adapter::files::{Entry, Host, HostRoot};
use crate::bindings::relay::adapter::types::Error;
use crate::guest::Guest;
pub use crate::roots::OpenRoot;
use crate::roots::{RootError, is_escape};
use crate::unix;

/// Limits of file access.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest file that is read, in bytes.
    pub largest: u64,
    /// The most entries of one folder.
    pub most_entries: usize,
    /// The longest wait for the file system.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { largest: 4 * 1024 * 1024, most_entries: 4096, timeout: Duration::from_secs(5) }
    }
}

impl Host for Guest {}

impl HostRoot for Guest {
    async fn open(&mut self, name: String) -> wasmtime::Result<HostResult<Resource<OpenRoot>>> {
        if let Err(error) = self.spend(Use::Read) {
            return Ok(Err(error));
        }
        let root = match self.host_side.grants.root(&name) {
            Ok(root) => root.clone(),
            Err(denied) => return Ok(Err(denied.into())),
        };
        let (surroundings, asker) = (self.host_side.surroundings.clone(), self.host_side.grants.asker());
        let opened = blocking(self.host_side.settings.files.timeout, "opening a folder", move || {
            OpenRoot::open(&name, &root, &surroundings, &asker).map_err(|error| told(&name, error))
        });
        Ok(match opened.await {
            Ok(root) => Ok(self.table.push(root)?),
            Err(error) => Err(error),
        })
    }

    async fn read(&mut self, root: Resource<OpenRoot>, path: String) -> wasmtime::Result<HostResult<Vec<u8>>> {
        if let Err(error) = self.spend(Use::Read) {
            return Ok(Err(error));
        }
        let root = self.table.get(&root)?.clone();
        let settings = self.host_side.settings.files;
        Ok(blocking(settings.timeout, "reading a file", move || read(&root, &path, settings.largest)).await)
    }

    async fn read_end(
        &mut self,
        root: Resource<OpenRoot>,
        path: String,
        bytes: u32,
    ) -> wasmtime::Result<HostResult<Vec<u8>>> {
        if let Err(error) = self.spend(Use::Read) {
            return Ok(Err(error));
        }
        let root = self.table.get(&root)?.clone();
        let settings = self.host_side.settings.files;
        let most = u64::from(bytes).min(settings.largest);
        Ok(blocking(settings.timeout, "reading the end of a file", move || read_end(&root, &path, most)).await)
    }

    async fn entries(&mut self, root: Resource<OpenRoot>, path: String) -> wasmtime::Result<HostResult<Vec<Entry>>> {
        if let Err(error) = self.spend(Use::Read) {
            return Ok(Err(error));
        }
        let root = self.table.get(&root)?.clone();
        let settings = self.host_side.settings.files;
        Ok(blocking(settings.timeout, "listing a folder", move || entries(&root, &path, settings.most_entries)).await)
    }

    async fn drop(&mut self, root: Resource<OpenRoot>) -> wasmtime::Result<()> {
        self.table.delete(root)?;
        Ok(())
    }
}

/// Opens a file below a root, with its length.
fn open(root: &OpenRoot, path: &str) -> HostResult<(cap_std::fs::File, u64)> {
    let located = root.locate(path).map_err(|error| told(&root.name, error))?;
    let place = root.path.join(path);
    let io = |source| about(&grant_of(&root.name), told_io(source, &place));
    // Non-blocking, so that opening a named pipe does not wait for its other end.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(unix::NON_BLOCKING);
    let file = located.dir.open_with(&located.path, &options).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(failed(format!("`{}` is not a file", place.display())));
    }
    Ok((file, metadata.len()))
}

fn read(root: &OpenRoot, path: &str, largest: u64) -> HostResult<Vec<u8>> {
    let (file, length) = open(root, path)?;
    let place = root.path.join(path);
    let too_large =
        |length: u64| failed(format!("`{}` has {length} bytes, and at most {largest} are read", place.display()));
    if length > largest {
        return Err(too_large(length));
    }
    let mut bytes = Vec::new();
    let io = |source| about(&grant_of(&root.name), told_io(source, &place));
    file.take(largest + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > largest { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

fn read_end(root: &OpenRoot, path: &str, most: u64) -> HostResult<Vec<u8>> {
    let (mut file, length) = open(root, path)?;
    let io = |source| about(&grant_of(&root.name), told_io(source, &root.path.join(path)));
    file.seek(SeekFrom::Start(length.saturating_sub(most))).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

fn entries(root: &OpenRoot, path: &str, most: usize) -> HostResult<Vec<Entry>> {
    let located = root.locate(path).map_err(|error| told(&root.name, error))?;
    let place = root.path.join(path);
    let io = |source| about(&grant_of(&root.name), told_io(source, &place));
    let folder = if located.path.as_os_str().is_empty() { ".".into() } else { located.path };
    let mut entries = Vec::new();
    for entry in located.dir.read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        // An entry that vanished meanwhile, or whose name is not text, is left out.
        let (Ok(metadata), Ok(name)) = (entry.metadata(), entry.file_name().into_string()) else { continue };
        if entries.len() >= most {
            return Err(failed(format!("`{}` has more than {most} entries", place.display())));
        }
        let modified = metadata.modified().ok().and_then(|time| time.into_std().duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        entries.push(Entry { name, directory: metadata.is_dir(), modified });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn grant_of(root: &str) -> String {
    format!("roots.{root}")
}

fn told(root: &str, error: RootError) -> Error {
    about(&grant_of(root), told_of_root(error))
}

fn told_of_root(error: RootError) -> Error {
    match error {
        RootError::Missing(_) | RootError::Dangling(_) | RootError::Unknown { .. } => {
            Error::NotFound(error.to_string())
        }
        RootError::NotAFolder(_) => failed(error),
        RootError::Outside { .. } | RootError::Escapes { .. } | RootError::Forbidden { .. } => {
            Error::Denied(error.to_string())
        }
        RootError::Io { path, source } => told_io(source, &path),
    }
}

fn told_io(source: std::io::Error, path: &std::path::Path) -> Error {
    let path = path.display();
    match source.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(format!("`{path}` is not there")),
        _ if is_escape(&source) => Error::Denied(format!("`{path}` leads out of its root")),
        _ => failed(format!("could not read `{path}`: {source}")),
    }
}
