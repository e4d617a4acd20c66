//! Files under the roots that the manifest names. Read-only: an adapter proposes changes as an install plan.

use crate::Error;
#[cfg(target_arch = "wasm32")]
use crate::bindings::relay::adapter::files as host;
pub use crate::bindings::relay::adapter::files::Entry;

/// A folder of the manifest's `grants.roots`.
///
/// ```
/// use relay_mesh_sdk::files::Root;
/// # relay_mesh_sdk::testing::Fakes::default().file("config", "settings.json", "{}").start();
/// let settings = Root::open("config")?.read_text("settings.json")?;
/// assert_eq!(settings.as_deref(), Some("{}"));
/// assert_eq!(Root::open("config")?.read_text("absent.json")?, None);
/// # Ok::<(), relay_mesh_sdk::Error>(())
/// ```
#[derive(Debug)]
pub struct Root {
    name: String,
    #[cfg(target_arch = "wasm32")]
    folder: Option<host::Root>,
}

impl Root {
    /// Opens a root by its manifest name. If its folder does not exist, the root opens anyway and is empty,
    /// because an install may create it.
    pub fn open(name: &str) -> Result<Root, Error> {
        #[cfg(target_arch = "wasm32")]
        let root = match host::Root::open(name) {
            Ok(folder) => Root { name: name.to_owned(), folder: Some(folder) },
            Err(Error::NotFound(_)) => Root { name: name.to_owned(), folder: None },
            Err(error) => return Err(error),
        };
        #[cfg(not(target_arch = "wasm32"))]
        let root =
            crate::testing::fakes::with(|fakes| fakes.open_root(name)).map(|()| Root { name: name.to_owned() })?;
        Ok(root)
    }

    /// The root's manifest name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A file's bytes; none if it does not exist. `path` is relative and `/`-separated.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        #[cfg(target_arch = "wasm32")]
        let read = match &self.folder {
            Some(folder) => folder.read(path),
            None => return Ok(None),
        };
        #[cfg(not(target_arch = "wasm32"))]
        let read = crate::testing::fakes::with(|fakes| fakes.read_file(&self.name, path));
        absent_as_none(read)
    }

    /// The last bytes of a file, at most so many; none if it does not exist.
    pub fn read_end(&self, path: &str, bytes: u32) -> Result<Option<Vec<u8>>, Error> {
        #[cfg(target_arch = "wasm32")]
        let read = match &self.folder {
            Some(folder) => folder.read_end(path, bytes),
            None => return Ok(None),
        };
        #[cfg(not(target_arch = "wasm32"))]
        let read = crate::testing::fakes::with(|fakes| fakes.read_file(&self.name, path))
            .map(|whole| whole[whole.len().saturating_sub(bytes as usize)..].to_vec());
        absent_as_none(read)
    }

    /// A file's text; none if it does not exist. Fails if it is not UTF-8.
    pub fn read_text(&self, path: &str) -> Result<Option<String>, Error> {
        let Some(bytes) = self.read(path)? else { return Ok(None) };
        String::from_utf8(bytes).map(Some).map_err(|_| {
            Error::Failed(format!("{path} (under `{}`) is not UTF-8 text; convert it, or move it away", self.name))
        })
    }

    /// A folder's entries; none if it does not exist. The empty path is the root itself.
    pub fn entries(&self, path: &str) -> Result<Vec<Entry>, Error> {
        #[cfg(target_arch = "wasm32")]
        let listed = match &self.folder {
            Some(folder) => folder.entries(path),
            None => return Ok(Vec::new()),
        };
        #[cfg(not(target_arch = "wasm32"))]
        let listed = crate::testing::fakes::with(|fakes| fakes.list_files(&self.name, path));
        Ok(absent_as_none(listed)?.unwrap_or_default())
    }
}

fn absent_as_none<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
