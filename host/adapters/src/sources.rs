//! Where adapters come from: the program itself, the installed ones, and plugin folders. Each lookup looks at the
//! files again, so that a new version is used from the next call on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lzma_rust2::LzmaReader;
use mesh::ports::machine::Instant;

use crate::digest::Digest;
use crate::grants::Consents;
use crate::installed::{InstalledAdapters, InstalledEntry, Record};
use crate::manifest::Manifest;
use crate::package::Package;
use crate::unix::MetadataExt;

/// Where an adapter comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is part of this program.
    BuiltIn,
    /// The user installed it as this file.
    Installed(PathBuf),
    /// This file in a plugin folder.
    Plugin(PathBuf),
}

impl Source {
    /// Its file; none if it is part of the program.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Source::BuiltIn => None,
            Source::Installed(path) | Source::Plugin(path) => Some(path),
        }
    }
}

/// An adapter that is part of the program. The build makes one from each folder in `plugins/`.
pub(crate) struct BuiltIn {
    /// Its name, so that listing the names parses no manifest.
    pub(crate) name: &'static str,
    pub(crate) manifest: &'static str,
    /// Where its component is among the components of all.
    at: Range<u64>,
    /// SHA-256 of the component, computed at build time: hashing takes too long for a hook.
    pub(crate) digest: [u8; 32],
    /// The clients by which its manifest matches its harness, so that a caller that matches no adapter, such as most
    /// command lines, costs no parsing.
    pub(crate) clients: &'static [&'static str],
    /// The variables by which its manifest matches its harness.
    pub(crate) environment: &'static [&'static str],
    /// The variables of its agents' shells.
    pub(crate) shells: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// An adapter that could be loaded.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) manifest: Manifest,
    /// Digest of component and manifest: consent is pinned to it.
    pub(crate) digest: Digest,
    /// Digest of the component alone: the cache of compiled code is keyed by it.
    pub(crate) component: Digest,
    pub(crate) source: Source,
    /// When the user installed an adapter of this name; later versions keep it.
    pub(crate) since: Option<Instant>,
    bytes: Bytes,
}

/// Where the bytes of a component are.
#[derive(Debug)]
enum Bytes {
    InFile(PathBuf),
    InMemory(Vec<u8>),
    /// In the program, there among the components of all.
    Packed(Range<u64>),
}

/// The most kibibytes of memory that unpacking may take.
const UNPACKING: u32 = 1 << 17;

impl Candidate {
    /// A candidate whose component is in a file.
    pub(crate) fn on_disk(manifest: Manifest, digest: Digest, component: Digest, source: Source) -> Candidate {
        let bytes = Bytes::InFile(source.file().map(Path::to_owned).unwrap_or_default());
        Candidate { manifest, digest, component, source, since: None, bytes }
    }

    /// A candidate in memory. Later changes of its file have no effect.
    pub(crate) fn of_package(package: &Package) -> Candidate {
        Candidate {
            manifest: package.manifest.clone(),
            digest: package.digest,
            component: package.component,
            source: Source::Plugin(PathBuf::from(&package.from)),
            since: None,
            bytes: Bytes::InMemory(package.bytes.clone()),
        }
    }

    /// The component's bytes, checked against the digest.
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        let (bytes, otherwise) = match &self.bytes {
            Bytes::InFile(path) => (fs::read(path)?, "the file changed while it was being loaded; try again"),
            Bytes::InMemory(bytes) => return Ok(bytes.clone()),
            Bytes::Packed(at) => (unpack(at)?, "it is not what this program was built with"),
        };
        if Digest::of(&bytes) != self.component {
            return Err(io::Error::other(otherwise));
        }
        Ok(bytes)
    }
}

/// One component out of all. Those behind it are not unpacked.
fn unpack(at: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut reader = LzmaReader::new_mem_limit(PACKED, UNPACKING, None)?;
    io::copy(&mut reader.by_ref().take(at.start), &mut io::sink())?;
    let mut bytes = Vec::new();
    reader.take(at.end - at.start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file in a plugin folder that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// All adapters that could be loaded.
pub(crate) struct Sources {
    installed: Option<Arc<InstalledAdapters>>,
    folders: Vec<PathBuf>,
    /// One for each of [`BUILT_IN`]; empty if those are left out.
    built_in: Vec<OnceLock<Result<Arc<Candidate>, String>>>,
    // A std mutex: nothing is awaited while it is held; the section reads a folder.
    seen: Mutex<BTreeMap<PathBuf, CachedFile>>,
}

/// One file of a plugin folder, as last read.
struct CachedFile {
    stamp: Stamp,
    /// The last valid version. A broken new one does not replace it.
    candidate: Option<Arc<Candidate>>,
    problem: Option<String>,
}

/// Size, time and inode of component and manifest, by which a change is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp([Option<(u64, i64, i64, u64)>; 2]);

impl Sources {
    /// Built-in adapters, installed ones, and those in some folders. Reads nothing yet.
    pub(crate) fn new(installed: Option<Arc<InstalledAdapters>>, folders: Vec<PathBuf>) -> Sources {
        let built_in = BUILT_IN.iter().map(|_| OnceLock::new()).collect();
        Sources { installed, folders, built_in, seen: Mutex::default() }
    }

    /// Whether all known adapters are built in.
    pub(crate) fn are_built_in_alone(&self) -> bool {
        let all_installed =
            self.installed.as_ref().is_some_and(|installed| !installed.names().is_ok_and(|names| names.is_empty()));
        self.folders.is_empty() && !all_installed
    }

    /// The adapter of this name, if no other manifest has to be read to know whose the name is. For a built-in one that
    /// costs a look at one file, which usually does not exist.
    pub(crate) fn by_own_name(&self, name: &str, consents: &dyn Consents) -> Option<Result<Arc<Candidate>, String>> {
        let built_in = || self.built_in(name).filter(|_| self.folders.is_empty());
        let Some(installed) = &self.installed else { return built_in() };
        match installed.held(name) {
            Ok(Some(held)) if held.record.is_enabled() => {
                let candidate = held.candidate?.ok()?;
                let is_free = !Sources::built_in_names().any(|own| own == name);
                if is_free || consents.given(name, &candidate.digest).replaces_built_in {
                    Some(Ok(candidate))
                } else {
                    // `others` reports why it is not used.
                    built_in()
                }
            }
            Ok(Some(_) | None) | Err(_) => built_in(),
        }
    }

    /// The names in a manifest that a built-in adapter has too, each with that adapter.
    pub(crate) fn built_in_claims(&self, manifest: &Manifest) -> Vec<(String, &'static str)> {
        let mut claims = Vec::new();
        for owner in self.own_names() {
            let Some(Ok(own)) = self.built_in(owner) else { continue };
            let names = std::iter::once(&manifest.name).chain(&manifest.aliases);
            let claimed = names.filter(|name| *name == owner || own.manifest.aliases.contains(name));
            claims.extend(claimed.map(|name| (name.clone(), owner)));
        }
        claims
    }

    /// Every enabled adapter that is not built in: installed ones first, then those in plugin folders.
    pub(crate) fn others(&self) -> (Vec<Arc<Candidate>>, Vec<Problem>) {
        let (mut candidates, mut problems) = (Vec::new(), Vec::new());
        for (record, candidate) in self.all_installed(&mut problems) {
            if record.is_enabled() {
                candidates.push(candidate);
            }
        }
        let (plugins, unused) = self.plugins();
        candidates.extend(plugins);
        problems.extend(unused);
        (candidates, problems)
    }

    /// Every installed adapter that can be used, enabled or not.
    pub(crate) fn all_installed(&self, problems: &mut Vec<Problem>) -> Vec<(Arc<Record>, Arc<Candidate>)> {
        let Some(installed) = &self.installed else { return Vec::new() };
        let names = installed.names().unwrap_or_else(|error| {
            problems.push(Problem { path: installed.folder().to_owned(), why: error.to_string() });
            Vec::new()
        });
        let mut found = Vec::new();
        for name in names {
            let why = match installed.held(&name) {
                Ok(Some(InstalledEntry { record, candidate: Some(Ok(candidate)) })) => {
                    found.push((record, candidate));
                    continue;
                }
                // Just removed, or consents only.
                Ok(Some(InstalledEntry { candidate: None, .. }) | None) => continue,
                Ok(Some(InstalledEntry { candidate: Some(Err(why)), .. })) => why,
                Err(error) => format!("{error}; {}", error.hint()),
            };
            problems.push(Problem { path: installed.path_of(&name), why });
        }
        found
    }

    /// Only the adapters in some folders, as if nothing were built in.
    pub(crate) fn without_built_in(folders: Vec<PathBuf>) -> Sources {
        Sources { installed: None, folders, built_in: Vec::new(), seen: Mutex::default() }
    }

    /// The names of the built-in adapters in this set.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().zip(&self.built_in).map(|(one, _)| one.name)
    }

    /// The names of those in this set that go.
    pub(crate) fn own_names_by(&self, goes: impl Fn(&BuiltIn) -> bool) -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().zip(&self.built_in).filter(move |(one, _)| goes(one)).map(|(one, _)| one.name)
    }

    /// The built-in adapters whose client names or variables match.
    pub(crate) fn own_by(&self, goes: impl Fn(&BuiltIn) -> bool) -> Vec<Arc<Candidate>> {
        let meant = BUILT_IN.iter().zip(&self.built_in).filter(|(one, _)| goes(one));
        meant.filter_map(|(one, parsed)| parsed_once(one, parsed).ok()).collect()
    }

    pub(crate) fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|one| one.name)
    }

    pub(crate) fn built_in(&self, name: &str) -> Option<Result<Arc<Candidate>, String>> {
        let index = self.own_names().position(|own| own == name)?;
        Some(parsed_once(&BUILT_IN[index], &self.built_in[index]))
    }

    /// The adapters in the plugin folders now, and the problems of files that cannot be used.
    pub(crate) fn plugins(&self) -> (Vec<Arc<Candidate>>, Vec<Problem>) {
        if self.folders.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut problems = Vec::new();
        let mut files = Vec::new();
        for folder in &self.folders {
            if let Err(error) = list(folder, &mut files) {
                problems.push(Problem { path: folder.clone(), why: format!("it cannot be read: {error}") });
            }
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|path, _| files.iter().any(|file| file.component == *path));
        let mut candidates = Vec::new();
        for file in files {
            let stamp = Stamp([stamp_of(&file.component), stamp_of(&file.manifest)]);
            let known = seen.entry(file.component.clone()).or_insert(CachedFile {
                stamp: Stamp([None; 2]),
                candidate: None,
                problem: None,
            });
            if known.stamp != stamp {
                known.stamp = stamp;
                match read(&file) {
                    Ok(candidate) => (known.candidate, known.problem) = (Some(Arc::new(candidate)), None),
                    Err(why) => {
                        tracing::warn!(file = %file.component.display(), "an adapter cannot be used: {why}");
                        known.problem = Some(why);
                    }
                }
            }
            candidates.extend(known.candidate.clone());
            problems.extend(known.problem.clone().map(|why| Problem { path: file.component.clone(), why }));
        }
        (candidates, problems)
    }
}

/// A component in a plugin folder, and the path of its manifest.
struct PluginFile {
    component: PathBuf,
    manifest: PathBuf,
}

/// `DIR/NAME.wasm` with `DIR/NAME.toml`, and `DIR/NAME/NAME.wasm` with `DIR/NAME/adapter.toml`.
fn list(folder: &Path, files: &mut Vec<PluginFile>) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.extension().is_some_and(|extension| extension == "wasm") && path.is_file() {
            files.push(PluginFile { manifest: path.with_extension("toml"), component: path });
        } else if let Some(name) = path.file_name() {
            let component = path.join(name).with_extension("wasm");
            if component.is_file() {
                files.push(PluginFile { manifest: path.join("adapter.toml"), component });
            }
        }
    }
    Ok(())
}

fn stamp_of(path: &Path) -> Option<(u64, i64, i64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.mtime(), metadata.mtime_nsec(), metadata.ino()))
}

fn read(file: &PluginFile) -> Result<Candidate, String> {
    let package = Package::read(&file.component, &file.manifest).map_err(|error| error.to_string())?;
    let source = Source::Plugin(file.component.clone());
    Ok(Candidate::on_disk(package.manifest, package.digest, package.component, source))
}

fn parsed_once(one: &BuiltIn, parsed: &OnceLock<Result<Arc<Candidate>, String>>) -> Result<Arc<Candidate>, String> {
    parsed.get_or_init(|| parse_built_in(one).map(Arc::new)).clone()
}

fn parse_built_in(one: &BuiltIn) -> Result<Candidate, String> {
    let manifest = Manifest::parse(one.manifest).map_err(|error| format!("its manifest is wrong in {error}"))?;
    let component = Digest::known(one.digest);
    Ok(Candidate {
        manifest,
        digest: Digest::of_adapter(&component, one.manifest),
        component,
        source: Source::BuiltIn,
        since: None,
        bytes: Bytes::Packed(one.at.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::SECTION;
    use crate::section;

    #[test]
    fn every_built_in_adapter_has_a_manifest_of_its_own_name() {
        let sources = Sources::new(None, Vec::new());
        for name in Sources::built_in_names() {
            let candidate = sources.built_in(name).expect("it is built in").expect("its manifest is right");
            assert_eq!(candidate.manifest.name, name);
            let bytes = candidate.bytes().expect("it is what was packed");
            assert_eq!(Digest::of(&bytes), candidate.component, "{name}");
            // The sdk's macro embeds the manifest in the component, so that one file is enough.
            let own = BUILT_IN.iter().find(|one| one.name == name).map(|one| one.manifest.as_bytes());
            assert_eq!(section::find(&bytes, SECTION), own, "{name}");
        }
    }

    #[test]
    fn what_is_not_the_packed_component_is_not_used() {
        let one = &BUILT_IN[0];
        let candidate = |at: Range<u64>| Candidate {
            bytes: Bytes::Packed(at),
            ..parse_built_in(one).expect("its manifest is right")
        };
        let half = one.at.start..one.at.end / 2;
        for at in [half, BUILT_IN[1].at.clone(), u64::MAX - 1..u64::MAX, 0..0] {
            assert!(candidate(at.clone()).bytes().is_err(), "{at:?}");
        }
    }
}
