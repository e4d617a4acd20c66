//! A package: a component and its manifest, in a file or a folder. It is parsed here, but not trusted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::manifest::{Manifest, ManifestError, SECTION};
use crate::section::{self, Excess};
use crate::signature::{self, Signed, SigningKey};

/// The largest component that is read, in bytes.
pub const LARGEST: u64 = 64 * 1024 * 1024;
/// The largest manifest, in bytes.
const LARGEST_MANIFEST: u64 = 64 * 1024;

/// A component and its manifest.
#[derive(Clone, Debug)]
pub struct Package {
    /// The manifest, parsed.
    pub manifest: Manifest,
    /// The manifest's text.
    pub text: String,
    /// The component's bytes.
    pub bytes: Vec<u8>,
    /// Digest of the component alone: the cache of compiled code is keyed by it.
    pub component: Digest,
    /// Digest of component and manifest: consent is pinned to it.
    pub digest: Digest,
    /// The file that the component was read from, or the address.
    pub from: String,
}

/// Why a file or a folder holds no adapter. Each text is about the path that the caller names.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// Nothing has this name.
    #[error("it does not exist")]
    Missing,
    /// The operating system does not let it be read.
    #[error("`{path}` cannot be read")]
    Io {
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file that is larger than any adapter.
    #[error("`{path}` has {length} bytes, and at most {largest} are read")]
    TooLarge {
        path: PathBuf,
        length: u64,
        /// The largest that is read.
        largest: u64,
    },
    /// Not WebAssembly at all.
    #[error("it is not a WebAssembly component")]
    NotWasm,
    /// The file ends too early.
    #[error("it is cut short: the file ends within a section")]
    CutShort,
    /// WebAssembly without the component's shell.
    #[error("it is a core module, not a component")]
    CoreModule,
    /// A component built to waste resources.
    #[error(transparent)]
    Excess(#[from] Excess),
    /// A component without a manifest.
    #[error("it has no manifest: neither `{0}` nor one inside")]
    NoManifest(PathBuf),
    /// A manifest that is too large.
    #[error("its manifest has {length} bytes, and at most {largest} are read")]
    LongManifest {
        length: u64,
        /// The largest that is read.
        largest: u64,
    },
    /// A manifest that is not text.
    #[error("its manifest is not text")]
    NotText,
    /// A manifest that is wrong.
    #[error("its manifest is wrong in {}", with_hint(.0))]
    Manifest(ManifestError),
    /// A manifest inside, and another one beside it.
    #[error("its manifest is inside of it, and another one beside it")]
    TwoManifests,
    /// A folder without a component.
    #[error("there is no component in it")]
    Empty,
    /// A folder with several components, none of which has the folder's name.
    #[error("there are several components in it: {}", .0.join(", "))]
    Several(Vec<String>),
}

impl PackageError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            PackageError::Missing => "name the component's file, or its folder",
            PackageError::Io { .. } => "make it readable for you",
            PackageError::TooLarge { .. } => "build it without debug information, which is most of a large component",
            PackageError::CutShort => "copy or download it again: its end is missing",
            PackageError::NotWasm | PackageError::CoreModule => {
                "build it for wasm32-wasip2, which gives a component: `cargo build --release --target wasm32-wasip2`"
            }
            PackageError::Excess(_) => "no compiler makes such a component by itself; ask its author what it is for",
            PackageError::NoManifest(_) => "put its adapter.toml beside it, or build it with the sdk's export macro",
            PackageError::LongManifest { .. } => "tell its author: a manifest is some dozens of lines",
            PackageError::NotText => "write adapter.toml in UTF-8",
            PackageError::Manifest(_) => "fix its adapter.toml, or ask its author for one that fits",
            PackageError::TwoManifests => "build it again, so that both are the same, or take the one beside it away",
            PackageError::Empty => "name the folder of the .wasm file, or the file itself",
            PackageError::Several(_) => "name the one that you mean",
        }
    }
}

impl Package {
    /// Reads `FILE.wasm`, or the one component of a folder. Its manifest is `FILE.toml` or `adapter.toml` beside it,
    /// else the one embedded in it.
    pub fn open(path: &Path) -> Result<Package, PackageError> {
        let file = if path.is_dir() { component_in(path)? } else { path.to_owned() };
        let named = file.with_extension("toml");
        let beside = if named.is_file() { named } else { file.with_file_name("adapter.toml") };
        let package = Package::read(&file, &beside)?;
        // The header's layer field marks a component; a core module cannot run as an adapter.
        if package.bytes.starts_with(b"\0asm\x01\0\0\0") { Err(PackageError::CoreModule) } else { Ok(package) }
    }

    /// A component that came from elsewhere, with its manifest inside.
    pub fn received(bytes: Vec<u8>, from: &str) -> Result<Package, PackageError> {
        if bytes.starts_with(b"\0asm\x01\0\0\0") {
            return Err(PackageError::CoreModule);
        }
        Package::of(bytes, None, from.to_owned(), Path::new("adapter.toml"))
    }

    /// Whether the component has an embedded manifest, so that the one file is enough.
    pub fn has_manifest_inside(&self) -> bool {
        section::find(&self.bytes, SECTION).is_some()
    }

    /// Who signed it, component and manifest.
    pub fn signed(&self) -> Signed {
        match signature::signed(&self.bytes) {
            Signed::By(_) if section::find(&self.bytes, SECTION) != Some(self.text.as_bytes()) => {
                Signed::ManifestBeside
            }
            signed => signed,
        }
    }

    /// The component with its manifest inside, signed with a key beside those that signed it before.
    pub fn sign(&self, key: &SigningKey) -> Result<Package, PackageError> {
        let inside = section::find(&self.bytes, SECTION);
        if inside.is_some() && inside != Some(self.text.as_bytes()) {
            return Err(PackageError::TwoManifests);
        }
        let mut bytes = self.bytes.clone();
        if inside.is_none() {
            bytes.extend(section::custom(SECTION, self.text.as_bytes()));
        }
        Package::received(signature::sign(&bytes, key), &self.from)
    }

    /// Reads a component, and its manifest from the other file if that exists.
    pub(crate) fn read(file: &Path, beside: &Path) -> Result<Package, PackageError> {
        let bytes = read_bounded(file, LARGEST)?;
        let text = if beside.is_file() { Some(read_manifest(beside)?) } else { None };
        Package::of(bytes, text, file.display().to_string(), beside)
    }

    fn of(bytes: Vec<u8>, text: Option<String>, from: String, beside: &Path) -> Result<Package, PackageError> {
        if !bytes.starts_with(b"\0asm") {
            return Err(PackageError::NotWasm);
        }
        if section::is_cut_short(&bytes) {
            return Err(PackageError::CutShort);
        }
        section::bound(&bytes)?;
        let text = match (text, section::find(&bytes, SECTION)) {
            (Some(text), _) => text,
            (None, Some(text)) => as_manifest(text.to_owned())?,
            (None, None) if bytes.starts_with(b"\0asm\x01\0\0\0") => return Err(PackageError::CoreModule),
            (None, None) => return Err(PackageError::NoManifest(beside.to_owned())),
        };
        let manifest = Manifest::parse(&text).map_err(PackageError::Manifest)?;
        let component = Digest::of(&bytes);
        let digest = Digest::of_adapter(&component, &text);
        Ok(Package { manifest, text, bytes, component, digest, from })
    }
}

pub(crate) fn read_manifest(path: &Path) -> Result<String, PackageError> {
    match read_bounded(path, LARGEST_MANIFEST) {
        Ok(bytes) => as_manifest(bytes),
        Err(PackageError::TooLarge { length, largest, .. }) => Err(PackageError::LongManifest { length, largest }),
        Err(error) => Err(error),
    }
}

fn as_manifest(bytes: Vec<u8>) -> Result<String, PackageError> {
    let length = bytes.len() as u64;
    if length > LARGEST_MANIFEST {
        return Err(PackageError::LongManifest { length, largest: LARGEST_MANIFEST });
    }
    String::from_utf8(bytes).map_err(|_| PackageError::NotText)
}

/// What is wrong with a manifest, and what to write instead.
fn with_hint(error: &ManifestError) -> String {
    match &error.hint {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

/// The only component of a folder, or among several the one named like the folder.
fn component_in(folder: &Path) -> Result<PathBuf, PackageError> {
    let io = |source| PackageError::Io { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(io)?.collect::<Result<Vec<_>, _>>().map_err(io)?;
    let is_component = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wasm");
    let mut found: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(is_component).collect();
    found.sort();
    let named = folder.canonicalize().ok().and_then(|folder| Some(folder.file_name()?.to_owned()));
    let of_the_folder = found.iter().find(|file| file.file_stem().map(ToOwned::to_owned) == named);
    match (found.as_slice(), of_the_folder) {
        ([], _) => Err(PackageError::Empty),
        ([only], _) | (_, Some(only)) => Ok(only.clone()),
        (several, None) => {
            let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Err(PackageError::Several(several.iter().map(name).collect()))
        }
    }
}

fn read_bounded(path: &Path, largest: u64) -> Result<Vec<u8>, PackageError> {
    let told = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => PackageError::Missing,
        _ => PackageError::Io { path: path.to_owned(), source },
    };
    let metadata = fs::metadata(path).map_err(told)?;
    if !metadata.is_file() {
        // Reading a pipe or a device might never end.
        return Err(PackageError::NotWasm);
    }
    if metadata.len() > largest {
        return Err(PackageError::TooLarge { path: path.to_owned(), length: metadata.len(), largest });
    }
    fs::read(path).map_err(told)
}
