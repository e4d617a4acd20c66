//! Compiled components, kept between processes: `CACHE/COMPONENT-ENGINE.cwasm` beside its checksum. Everything in the
//! folder can be deleted at any time.
//!
//! These files run as machine code, so they are loaded only from a folder that belongs to this user and that no other
//! user may write to. A checksum finds damage (a full disk, a stray editor); it is no defence against this user, who
//! could as well replace the program. After a successful check the file's state is noted beside it, and a file in that
//! same state is not read through again, because that takes too long for a hook.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use wasmtime::component::Component;

use crate::compiling::{Attempt, Compiler, Waiting};
use crate::digest::Digest;
use crate::engine::Machinery;
use crate::unix::{self, MetadataExt, OpenOptionsExt, PermissionsExt};

/// How long compiled code is kept after it was written.
const LONGEST_KEPT: Duration = Duration::from_secs(60 * 24 * 60 * 60);

/// How long a file is being written at most.
const LONGEST_WRITTEN: Duration = Duration::from_secs(60 * 60);

/// Where a loaded component's machine code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compilation {
    /// From the cache.
    Cached,
    /// Compiled just now, and put into the cache.
    Fresh,
    /// Compiled just now and not cached: the cache cannot be used, for the reason in the log.
    Unkept,
}

/// The condition of one component in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheCondition {
    /// It is present and undamaged.
    Sound,
    /// It is absent, and will be compiled when it is needed.
    Absent,
    /// It was damaged, and was removed.
    Removed,
    /// The cache cannot be used.
    Unusable(String),
}

/// Why a component could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The bytes are not a component, or use features that this program does not run.
    #[error("it is not a component that can be run: {0}")]
    Invalid(String),
    /// Freshly compiled code cannot be loaded: a defect of this program.
    #[error("what was compiled cannot be loaded: {0}")]
    Unloadable(String),
    /// Compiling it takes more than it may.
    #[error("{0}")]
    OverLimit(String),
    /// It was begun to be compiled often enough.
    #[error("it could not be compiled: {why}; once `{note}` is deleted, it is tried again")]
    GivenUp { why: String, note: PathBuf },
    /// The process that compiles could not be started.
    #[error("the process that compiles it could not be started")]
    Unstarted(#[source] std::io::Error),
    /// The process that compiles was ended.
    #[error("the process that compiles it broke off: {0}")]
    BrokenOff(String),
    /// It was compiled, and cannot be put into the cache.
    #[error("what was compiled was not kept: {0}")]
    NotKept(String),
}

impl LoadError {
    /// Whether another attempt would end in the same way.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            LoadError::Invalid(_) | LoadError::Unloadable(_) | LoadError::OverLimit(_) | LoadError::GivenUp { .. } => {
                true
            }
            LoadError::Unstarted(_) | LoadError::BrokenOff(_) | LoadError::NotKept(_) => false,
        }
    }
}

/// Why the cache is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("could not use `{path}`")]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{path}` {why}, so no machine code is loaded from it")]
    Unsafe { path: PathBuf, why: &'static str },
}

/// A component from one of the caches. Quick enough to be called from async code.
pub(crate) fn find(machinery: &Machinery, caches: &[PathBuf], digest: &Digest) -> Option<Component> {
    // One that is not there is not made for a look.
    let mut entries = caches
        .iter()
        .filter(|cache| cache.exists())
        .filter_map(|cache| CompiledFiles::open(cache, digest, machinery.fingerprint).ok());
    entries.find_map(|entry| entry.load(machinery))
}

/// Loads a component, from a cache if possible, and keeps it in the first one that takes it. Blocks, for seconds if it
/// has to be compiled.
pub(crate) fn load(
    machinery: &Machinery,
    caches: &[PathBuf],
    digest: &Digest,
    bytes: impl FnOnce() -> std::io::Result<Vec<u8>>,
    (compiler, attempt): (&Compiler, Attempt),
) -> Result<(Component, Compilation), LoadError> {
    let _waiting = Waiting::begin();
    let engine = machinery.fingerprint;
    let (mut bytes, mut component) = (Some(bytes), None);
    let mut read = || match bytes.take() {
        Some(bytes) => readable(bytes),
        None => Err(LoadError::Invalid("it was read already".to_owned())),
    };
    let mut unused = Vec::new();
    for cache in caches {
        if let Some(why) = fault(cache) {
            unused.push(why);
            continue;
        }
        let entry = match CompiledFiles::open(cache, digest, engine) {
            Ok(entry) => entry,
            Err(error) => {
                unused.push(said(&error));
                continue;
            }
        };
        if let Some(component) = entry.load(machinery) {
            return Ok((component, Compilation::Cached));
        }
        // One process compiles and the others wait for it, so that ten sessions that start at once
        // do not compile ten times. Without the lock they all compile, which harms nothing.
        let lock = entry.lock();
        if let Some(component) = entry.load(machinery) {
            return Ok((component, Compilation::Cached));
        }
        if component.is_none() {
            component = Some(read()?);
        }
        let component = component.as_deref().unwrap_or_default();
        match compiler.fill_cache((cache, digest, engine), &entry, lock, component, attempt) {
            Ok(()) => {}
            Err(LoadError::NotKept(why)) => {
                unused.push(why);
                continue;
            }
            Err(error) => return Err(error),
        }
        // It is gone if it was deleted since it was written.
        if let Some(component) = entry.load(machinery) {
            for why in &unused {
                tracing::debug!("compiled adapters are kept elsewhere: {why}");
            }
            return Ok((component, Compilation::Fresh));
        }
    }
    for why in &unused {
        tracing::warn!("compiled adapters are not kept: {why}");
    }
    let component = match component {
        Some(component) => component,
        None => read()?,
    };
    let code = compiler.to_memory(engine, &component)?;
    Ok((from_memory(machinery, &code)?, Compilation::Unkept))
}

/// Why nothing can be kept in a cache; none if something can.
pub(crate) fn fault(cache: &Path) -> Option<String> {
    if let Err(error) = own_folder(cache) {
        return Some(said(&error));
    }
    unix::check_writable(cache).err().map(|error| format!("`{}`: {error}", cache.display()))
}

/// Whether a component is in one of the caches, by a quick look: nothing is compiled, and nothing is removed.
pub(crate) fn look(machinery: &Machinery, caches: &[PathBuf], digest: &Digest) -> CacheCondition {
    if find(machinery, caches, digest).is_some() {
        return CacheCondition::Sound;
    }
    // One that is not there can be made, and is not made for a look.
    let faults: Vec<Option<String>> =
        caches.iter().map(|cache| cache.exists().then(|| fault(cache)).flatten()).collect();
    match faults.into_iter().collect::<Option<Vec<String>>>() {
        Some(all) => all.into_iter().next().map_or(CacheCondition::Absent, CacheCondition::Unusable),
        None => CacheCondition::Absent,
    }
}

fn said(error: &CacheError) -> String {
    match error {
        CacheError::Io { path, source } => format!("`{}`: {source}", path.display()),
        CacheError::Unsafe { .. } => error.to_string(),
    }
}

/// Checks the whole compiled file, whatever its noted state. A damaged file is removed.
pub(crate) fn audit(machinery: &Machinery, caches: &[PathBuf], digest: &Digest) -> CacheCondition {
    let mut unusable = None;
    for cache in caches {
        match audit_in(machinery, cache, digest) {
            CacheCondition::Unusable(why) => drop(unusable.get_or_insert(why)),
            CacheCondition::Absent if fault(cache).is_some() => {}
            condition => return condition,
        }
    }
    unusable.map_or(CacheCondition::Absent, CacheCondition::Unusable)
}

fn audit_in(machinery: &Machinery, cache: &Path, digest: &Digest) -> CacheCondition {
    let entry = match CompiledFiles::open(cache, digest, machinery.fingerprint) {
        Ok(entry) => entry,
        Err(error) => return CacheCondition::Unusable(said(&error)),
    };
    let (Ok(file), Ok(expected)) = (File::open(&entry.code), fs::read_to_string(&entry.checksum)) else {
        return CacheCondition::Absent;
    };
    let sum = expected.lines().next().unwrap_or_default();
    if checksum(file).is_ok_and(|found| found == sum) {
        return CacheCondition::Sound;
    }
    // Another process may just be replacing them; losing its files only means another compilation.
    let _ = fs::remove_file(&entry.checksum);
    let _ = fs::remove_file(&entry.code);
    CacheCondition::Removed
}

fn readable(bytes: impl FnOnce() -> std::io::Result<Vec<u8>>) -> Result<Vec<u8>, LoadError> {
    let bytes = bytes().map_err(|error| LoadError::Invalid(error.to_string()))?;
    if bytes.starts_with(b"\0asm\x01\0\0\0") {
        return Err(LoadError::Invalid(
            "it is a core module; build it for wasm32-wasip2, which gives a component".to_owned(),
        ));
    }
    Ok(bytes)
}

/// The files of one compiled component.
pub(crate) struct CompiledFiles {
    code: PathBuf,
    checksum: PathBuf,
    lock: PathBuf,
    /// How often it was begun to be compiled since it last was, and why it was not.
    pub(crate) failure: PathBuf,
}

impl CompiledFiles {
    pub(crate) fn open(cache: &Path, digest: &Digest, fingerprint: u64) -> Result<CompiledFiles, CacheError> {
        own_folder(cache)?;
        let name = format!("{digest}-{fingerprint:016x}");
        Ok(CompiledFiles {
            code: cache.join(format!("{name}.cwasm")),
            checksum: cache.join(format!("{name}.crc32")),
            lock: cache.join(format!("{name}.lock")),
            failure: cache.join(format!("{name}.failure")),
        })
    }

    /// The component, if its file is present, owned by this user, and whole.
    fn load(&self, machinery: &Machinery) -> Option<Component> {
        let expected = fs::read_to_string(&self.checksum).ok()?;
        let file = File::open(&self.code).ok()?;
        let metadata = file.metadata().ok()?;
        let own = metadata.uid() == unix::user() && metadata.mode() & 0o022 == 0;
        if !metadata.is_file() || !own {
            return None;
        }
        let state = state_of(&metadata);
        let (sum, checked) = expected.split_once('\n').unwrap_or((&expected, ""));
        if checked != state {
            if checksum(file).ok()? != sum {
                return None;
            }
            // If this write fails, the next process reads the file through again.
            let _ = replace(&self.checksum, format!("{sum}\n{state}").as_bytes());
        }
        #[expect(unsafe_code, reason = "compiled code is loaded from a folder that only this user can write to")]
        // SAFETY: the file was written by `CompiledFiles::write` from wasmtime's output: the folder and the file belong to this
        // user, no other user may write to them, and the checksum holds. Files are replaced by rename and never changed
        // in place, so the mapping stays valid.
        let loaded = unsafe { Component::deserialize_file(&machinery.engine, &self.code) };
        match loaded {
            Ok(component) => Some(component),
            // A file on a disk from which nothing may be run is no code, but its bytes are.
            Err(error) => self.load_bytes(machinery, sum).or_else(|| {
                tracing::debug!(%error, "a compiled adapter is of another engine, and is compiled again");
                None
            }),
        }
    }

    fn load_bytes(&self, machinery: &Machinery, sum: &str) -> Option<Component> {
        let code = fs::read(&self.code).ok().filter(|code| checksum_of(code) == sum)?;
        #[expect(unsafe_code, reason = "compiled code is loaded from a folder that only this user can write to")]
        // SAFETY: as above, and the bytes are this process's own copy.
        let loaded = unsafe { Component::deserialize(&machinery.engine, &code) };
        loaded.ok()
    }

    pub(crate) fn write(&self, code: &[u8]) -> Result<(), CacheError> {
        // The code first: a checksum that does not match only causes another compilation.
        replace(&self.code, code)?;
        replace(&self.checksum, checksum_of(code).as_bytes())?;
        self.forget_failure();
        self.clean_up();
        Ok(())
    }

    /// How often it was begun to be compiled without an end, and the reason.
    pub(crate) fn failure(&self) -> Option<(u32, String)> {
        let text = fs::read_to_string(&self.failure).ok()?;
        let (tries, why) = text.split_once('\n')?;
        Some((tries.parse().ok()?, why.to_owned()))
    }

    /// Notes that it is begun to be compiled, for the case that a limit or a power cut ends it.
    pub(crate) fn note_attempt(&self) {
        let (tries, why) = self.failure().unwrap_or((0, "it was begun several times and never ended".to_owned()));
        self.note_failure(tries.saturating_add(1), &why);
    }

    /// Notes why it could not be compiled, at the same number of attempts.
    pub(crate) fn note_reason(&self, why: &str) {
        if let Some((tries, _)) = self.failure() {
            self.note_failure(tries, why);
        }
    }

    pub(crate) fn note_failure(&self, tries: u32, why: &str) {
        // A disk that is full costs further attempts.
        let _unnoted = replace(&self.failure, format!("{tries}\n{why}").as_bytes());
    }

    fn forget_failure(&self) {
        // Usually there is none.
        let _absent = fs::remove_file(&self.failure);
    }

    /// Removes the lock, whose holder calls this. Two processes that then both compile harm nothing.
    pub(crate) fn remove_lock(&self) {
        let _absent = fs::remove_file(&self.lock);
    }

    /// Removes code that was compiled long before this entry, mostly for adapters and engines that are gone, and what
    /// processes left that were killed while they wrote. If one is still in use, it is compiled again, once per
    /// [`LONGEST_KEPT`].
    fn clean_up(&self) {
        let age = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let (Some(now), Some(folder)) = (age(&self.code), self.code.parent()) else { return };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_half = path.extension().is_some_and(|extension| extension == "tmp");
            let longest = if is_half { LONGEST_WRITTEN } else { LONGEST_KEPT };
            if age(&path).and_then(|then| now.duration_since(then).ok()).is_some_and(|old| old > longest) {
                // Another process may be cleaning up too.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn lock(&self) -> Option<File> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&self.lock).ok()?;
        file.lock().ok()?;
        Some(file)
    }
}

/// Makes sure that the folder exists, is owned by this user, and is writable to no other.
fn own_folder(folder: &Path) -> Result<(), CacheError> {
    let io = |source| CacheError::Io { path: folder.to_owned(), source };
    let metadata = match fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            unix::make_private_folder(folder).map_err(io)?;
            fs::symlink_metadata(folder).map_err(io)?
        }
        Err(error) => return Err(io(error)),
    };
    let refuse = |why| Err(CacheError::Unsafe { path: folder.to_owned(), why });
    if !metadata.is_dir() {
        return refuse("is not a folder");
    }
    if metadata.uid() != unix::user() {
        return refuse("belongs to another user");
    }
    if metadata.mode() & 0o077 != 0 {
        // Another tool may have created it under a loose umask, so other users could have written its files. They are
        // all deleted before the folder is closed to others.
        fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(io)?;
        if metadata.mode() & 0o022 != 0 {
            for entry in fs::read_dir(folder).map_err(io)?.flatten() {
                fs::remove_file(entry.path()).map_err(io)?;
            }
        }
    }
    Ok(())
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), CacheError> {
    let io = |source| CacheError::Io { path: path.to_owned(), source };
    // Processes of two PID namespaces may have the same id.
    let namespace = processes::own_space().map_or(0, |space| space.namespace);
    let temporary = path.with_extension(format!("{}-{namespace}.tmp", std::process::id()));
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    written().map_err(|error| {
        // Nothing more can be done if the temporary file cannot be removed either.
        let _ = fs::remove_file(&temporary);
        io(error)
    })
}

fn checksum(mut file: File) -> std::io::Result<String> {
    let mut hasher = crc32fast::Hasher::new();
    let mut length = 0_u64;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{:08x} {length}", hasher.finalize())),
            read => {
                hasher.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
}

/// A fingerprint of a file's state, from its metadata.
pub(crate) fn state_of(file: &fs::Metadata) -> String {
    let (inode, length) = (file.ino(), file.len());
    let (changed, modified) = ((file.ctime(), file.ctime_nsec()), (file.mtime(), file.mtime_nsec()));
    format!("{inode} {length} {}.{:09} {}.{:09}", changed.0, changed.1, modified.0, modified.1)
}

fn checksum_of(bytes: &[u8]) -> String {
    format!("{:08x} {}", crc32fast::hash(bytes), bytes.len())
}

fn from_memory(machinery: &Machinery, code: &[u8]) -> Result<Component, LoadError> {
    #[expect(unsafe_code, reason = "compiled code is loaded that this program has just made")]
    // SAFETY: wasmtime has just made these bytes, in this process or in one of this program that it started.
    let loaded = unsafe { Component::deserialize(&machinery.engine, code) };
    loaded.map_err(|error| LoadError::Unloadable(format!("{error:#}")))
}
