//! `relay-mesh plugin new`: write a repository for an adapter, which builds, passes `plugin test` and installs
//! before its author has written a line.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use adapters::manifest::is_name;
use serde::Serialize;

use super::{templates, vendored};
use crate::context::Context;
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;
use crate::render::{Show, printable, printable_line};

/// Write a repository for a new adapter, which builds, tests and installs at once
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin new my-harness\n  \
    relay-mesh plugin new my-harness --lang python --dir ~/src/my-harness\n\n\
    docs/adapters.md explains the next steps.")]
pub(super) struct Args {
    /// What people will type after `relay-mesh install`
    name: String,
    /// The language to write it in
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// Where to write it [default: a folder of that name here]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Build on this copy of the sdk, and put none into the repository (rust)
    #[arg(long, value_name = "DIR", env = "RELAY_MESH_SDK")]
    sdk: Option<PathBuf>,
}

/// A language with a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    /// With relay-mesh-sdk.
    Rust,
    /// With componentize-py, from the WIT.
    Python,
    /// With componentize-qjs, from the WIT.
    Js,
}

/// Why no repository was written. Nothing was created in that case.
#[derive(Debug, thiserror::Error)]
enum NewError {
    /// The name cannot name an adapter.
    #[error("`{0}` is not a name for an adapter")]
    Name(String),
    /// The name belongs to an adapter that is part of the program.
    #[error("`{0}` is the name of an adapter that is part of relay-mesh")]
    BuiltIn(String),
    /// The folder is not empty.
    #[error("`{0}` is there already, and not an empty folder")]
    Occupied(PathBuf),
    /// The folder that was named as the sdk is not the sdk.
    #[error("`{0}` does not hold relay-mesh-sdk")]
    NoSdk(PathBuf),
    /// The system refused to write.
    #[error("`{0}` could not be written")]
    Write(PathBuf, #[source] io::Error),
}

pub(super) fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let Args { name, lang, dir, sdk } = args;
    let folder = context.workdir.join(dir.unwrap_or_else(|| PathBuf::from(&name)));
    let sdk = sdk.map(|sdk| context.workdir.join(sdk));
    let blanks = Blanks::fill(&name, sdk.as_deref())?;
    let files = write(lang, &blanks, &folder)?;
    context.printer.show(&NewAdapterShape { name, lang, folder: folder.display().to_string(), files })?;
    Ok(Exit::Success)
}

/// The values for the blanks in a template.
struct Blanks {
    values: Vec<(&'static str, String)>,
    /// The repository has a copy of the sdk.
    has_vendored_sdk: bool,
}

impl Blanks {
    fn fill(name: &str, sdk: Option<&Path>) -> Result<Blanks, NewError> {
        if !is_name(name) {
            return Err(NewError::Name(name.to_owned()));
        }
        if adapters::built_in_names().any(|built_in| built_in == name) {
            return Err(NewError::BuiltIn(name.to_owned()));
        }
        let version = env!("CARGO_PKG_VERSION");
        let dependency = match sdk {
            None if !vendored::IS_PUBLISHED => format!("{{ path = \"{}\" }}", vendored::FOLDER),
            None => format!("\"{version}\""),
            Some(path) => {
                let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
                if !manifest.lines().any(|line| line.trim() == "name = \"relay-mesh-sdk\"") {
                    return Err(NewError::NoSdk(path.to_owned()));
                }
                let path = path.canonicalize().map_err(|error| NewError::Write(path.to_owned(), error))?;
                format!("{{ path = {} }}", toml::Value::from(path.display().to_string()))
            }
        };
        let values = vec![
            ("{{name}}", name.to_owned()),
            ("{{title}}", title_of(name)),
            ("{{NAME}}", name.to_uppercase().replace('-', "_")),
            ("{{sdk}}", dependency),
            ("{{version}}", version.to_owned()),
        ];
        Ok(Blanks { values, has_vendored_sdk: sdk.is_none() && !vendored::IS_PUBLISHED })
    }

    fn fill_in(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (blank, value)| text.replace(blank, value))
    }
}

/// `my-harness` as people read it: `My Harness`.
fn title_of(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    name.split('-').filter_map(capital).collect::<Vec<_>>().join(" ")
}

/// Writes all files into a folder beside the target and renames it, so that the repository is there whole or not
/// at all. Returns the files' paths.
fn write(language: Language, blanks: &Blanks, folder: &Path) -> Result<Vec<String>, NewError> {
    if !is_free(folder) {
        return Err(NewError::Occupied(folder.to_owned()));
    }
    let refused = |error| NewError::Write(folder.to_owned(), error);
    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(refused)?;
    let draft = tempfile::Builder::new().prefix(".relay-mesh-new-").tempdir_in(parent).map_err(refused)?;
    let mut files = Vec::new();
    let templates =
        templates::of(language).map(|template| (blanks.fill_in(template.path), blanks.fill_in(template.text)));
    let sdk = vendored::files().filter(|_| blanks.has_vendored_sdk && language == Language::Rust);
    for (path, text) in templates.chain(sdk) {
        let file = draft.path().join(&path);
        fs::create_dir_all(file.parent().unwrap_or(draft.path())).map_err(refused)?;
        fs::write(&file, text).map_err(refused)?;
        files.push(path);
    }
    share(draft.path()).map_err(refused)?;
    // This also replaces an empty folder; the system refuses one that was filled meanwhile.
    fs::rename(draft.path(), folder).map_err(refused)?;
    files.sort();
    Ok(files)
}

/// Gives the folder the permissions of any folder made here: a temporary one is only for its owner.
fn share(folder: &Path) -> io::Result<()> {
    let sample = folder.join(".sample");
    fs::create_dir(&sample)?;
    let usual = fs::metadata(&sample)?.permissions();
    fs::remove_dir(&sample)?;
    fs::set_permissions(folder, usual)
}

/// Whether the folder does not exist or is empty.
fn is_free(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

impl Explain for NewError {
    fn exit(&self) -> Exit {
        match self {
            NewError::Name(_) | NewError::BuiltIn(_) | NewError::Occupied(_) | NewError::NoSdk(_) => Exit::Usage,
            NewError::Write(..) => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            NewError::Name(_) => "names are made of a-z, 0-9 and -, and begin with a letter".to_owned(),
            NewError::BuiltIn(_) => "call yours otherwise: `relay-mesh plugin list` shows the names in use".to_owned(),
            NewError::Occupied(_) => "name another folder with --dir".to_owned(),
            NewError::NoSdk(_) => {
                "name the folder `sdk` of a checkout of relay-mesh, or leave --sdk out, and the repository gets a copy"
                    .to_owned()
            }
            NewError::Write(..) => return None,
        })
    }
}

#[derive(Debug, Serialize)]
struct NewAdapterShape {
    name: String,
    lang: Language,
    /// The repository's absolute path.
    folder: String,
    /// Its files, relative to `folder`.
    files: Vec<String>,
}

impl Show for NewAdapterShape {
    fn text(&self) -> String {
        let mut text = format!("{}\n", printable(&self.folder));
        for file in &self.files {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {}", printable_line(file));
        }
        let build = match self.lang {
            Language::Rust => "cargo test && cargo build --release --target wasm32-wasip2",
            Language::Python => {
                "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt && .venv/bin/python build.py"
            }
            Language::Js => "npm install && npm run build",
        };
        let component = match self.lang {
            Language::Rust => "target/wasm32-wasip2/release/adapter.wasm",
            Language::Python | Language::Js => "adapter.wasm",
        };
        let _ = write!(
            text,
            "next: {build}\nnext: relay-mesh plugin test {component} --fixtures fixtures\nnext: say in README.md and in \
             the code what your harness really does"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(name: &str, folder: &Path, expected: &str) {
        let written = Blanks::fill(name, None).and_then(|blanks| write(Language::Rust, &blanks, folder));
        let told = written.expect_err("it is refused").to_string();
        assert_eq!(told.replace(&folder.display().to_string(), "DIR"), expected);
    }

    #[test]
    fn what_cannot_be_is_refused_and_nothing_is_written() {
        let room = tempfile::tempdir().expect("a folder");
        let folder = room.path().join("new");
        refused("My Harness", &folder, "`My Harness` is not a name for an adapter");
        refused("../up", &folder, "`../up` is not a name for an adapter");
        refused("codex", &folder, "`codex` is the name of an adapter that is part of relay-mesh");
        assert!(!folder.exists());
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("mine"), "mine").expect("a file");
        refused("toad", &folder, "`DIR` is there already, and not an empty folder");
        refused("toad", &folder.join("mine"), "`DIR` is there already, and not an empty folder");
        assert_eq!(fs::read_dir(room.path()).expect("it can be read").count(), 1, "no draft is left behind");
    }

    #[test]
    fn every_blank_is_filled_in() {
        for language in [Language::Rust, Language::Python, Language::Js] {
            let room = tempfile::tempdir().expect("a folder");
            let blanks = Blanks::fill("my-toad", None).expect("a name");
            let files = write(language, &blanks, room.path()).expect("an empty folder is filled");
            for file in &files {
                let text = fs::read_to_string(room.path().join(file)).expect("it was written");
                let is_sdk = file.starts_with("sdk/");
                assert!(is_sdk || !text.contains("{{") && !file.contains("{{"), "{file}: {text}");
            }
            let manifest = fs::read_to_string(room.path().join("adapter.toml")).expect("a manifest");
            let manifest = adapters::manifest::Manifest::parse(&manifest).expect("it is right");
            assert_eq!((manifest.name.as_str(), manifest.title.as_str()), ("my-toad", "My Toad"));
        }
    }

    #[test]
    fn the_sdk_is_in_the_repository_or_a_checkout() {
        let dependency = |sdk: Option<&Path>| Blanks::fill("toad", sdk).map(|blanks| blanks.fill_in("{{sdk}}"));
        assert_eq!(dependency(None).expect("a name"), "{ path = \"sdk\" }");
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk");
        let path = sdk.canonicalize().expect("it is there");
        assert_eq!(dependency(Some(&sdk)).expect("a name"), format!("{{ path = \"{}\" }}", path.display()));
        assert!(matches!(dependency(Some(Path::new("/nowhere"))), Err(NewError::NoSdk(_))));
    }
}
