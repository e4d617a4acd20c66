//! Granted folders: opened once, and every path under them resolved without leaving them. Both the guests' reads and
//! the host's own edits use this, so that they agree on where a file is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::foreign_settings::ForeignSettings;
use crate::manifest::{Links, Root};
use crate::places::{self, Asker, Private, Requested};
use crate::template::{FillError, Surroundings, fill_path, is_inside};

/// A granted folder, opened.
#[derive(Clone, Debug)]
pub struct OpenRoot {
    /// Its name in the manifest.
    pub(crate) name: String,
    /// Its path, for display.
    pub(crate) path: PathBuf,
    dir: Arc<Dir>,
    links: Links,
    home: Option<PathBuf>,
    private: Private,
    foreign: ForeignSettings,
}

/// Where a path really is, after links are followed.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    /// A folder above it.
    pub(crate) dir: Arc<Dir>,
    /// Its path under `dir`, free of links as far as it exists.
    pub(crate) path: PathBuf,
}

/// The end of each refusal that is due to a link.
const BY_A_LINK: &str = "by a symbolic link";

/// The hint for a refusal that is due to a link out of a root. The refusal comes as text, because an adapter passes on
/// the host's reason as text.
pub fn hint_of_link(refusal: &str) -> Option<String> {
    refusal
        .contains(BY_A_LINK)
        .then(|| "replace the link by a file, or edit the file that it leads to by hand".to_owned())
}

/// Why a path under a root cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// The root's own path cannot be worked out.
    #[error("the root `{root}` cannot be found: {source}")]
    Unknown {
        /// The root's name.
        root: String,
        source: FillError,
    },
    /// The folder is not there.
    #[error("`{0}` is not there")]
    Missing(PathBuf),
    /// The path is not a folder.
    #[error("`{0}` is not a folder")]
    NotAFolder(PathBuf),
    /// A path that leaves the root by its text, such as `..`.
    #[error("`{path}` is not a path inside the root `{root}`")]
    Outside {
        /// The root's name.
        root: String,
        path: String,
    },
    /// A path that leaves the root by a symbolic link.
    #[error("`{path}` leads out of the root `{root}` {BY_A_LINK}")]
    Escapes {
        /// The root's name.
        root: String,
        path: String,
    },
    /// A folder that no adapter may have, or a file of our own.
    #[error("no adapter may have `{path}`: {why}")]
    Forbidden {
        /// Where the path leads.
        path: PathBuf,
        why: String,
    },
    /// A symbolic link to nothing.
    #[error("`{0}` is a symbolic link to nothing")]
    Dangling(PathBuf),
    /// The operating system refused.
    #[error("could not use `{path}`: {source}")]
    Io {
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
}

impl OpenRoot {
    /// Opens a root. Blocks.
    pub(crate) fn open(
        name: &str,
        root: &Root,
        surroundings: &Surroundings,
        asker: &Asker,
    ) -> Result<OpenRoot, RootError> {
        let path = fill_path(&root.path, surroundings)
            .map_err(|source| RootError::Unknown { root: name.to_owned(), source })?;
        if let Some(why) = places::objection(asker, Requested::Root(name), &path, surroundings) {
            return Err(RootError::Forbidden { path, why });
        }
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => RootError::Missing(path.clone()),
            io::ErrorKind::NotADirectory => RootError::NotAFolder(path.clone()),
            _ => RootError::Io { path: path.clone(), source },
        })?;
        let home = surroundings.home.clone();
        let private = Private::of(surroundings);
        let foreign = ForeignSettings::of(asker, surroundings).below(&path);
        Ok(OpenRoot { name: name.to_owned(), path, dir: Arc::new(dir), links: root.links, home, private, foreign })
    }

    /// Where a path is, with links followed as far as the root allows. A path that does not exist yet is located by the
    /// part that does.
    pub(crate) fn locate(&self, path: &str) -> Result<Located, RootError> {
        if !is_inside(path) {
            return Err(RootError::Outside { root: self.name.clone(), path: shorten(path) });
        }
        // A project may contain the data folder, and links may lead there.
        let shown = self.path.join(path);
        if self.private.holds(&shown) {
            return Err(RootError::Forbidden { path: shown, why: "it is relay-mesh's own".to_owned() });
        }
        let asked = Path::new(path);
        match follow(&self.dir, asked) {
            Ok(found) => self.judged(&self.path, Located { dir: Arc::clone(&self.dir), path: found }),
            Err(Stray::Dangling) => Err(RootError::Dangling(self.path.join(asked))),
            Err(Stray::Io(source)) => Err(RootError::Io { path: self.path.join(asked), source }),
            Err(Stray::Escape) => match self.links {
                Links::Inside => Err(RootError::Escapes { root: self.name.clone(), path: shorten(path) }),
                Links::Home => self.locate_in_home(path),
            },
        }
    }

    /// Where a path is whose links leave the root, if they stay in the user's home.
    fn locate_in_home(&self, path: &str) -> Result<Located, RootError> {
        let escapes = || RootError::Escapes { root: self.name.clone(), path: shorten(path) };
        let io = |source| RootError::Io { path: self.path.join(path), source };
        let home = self.home.as_ref().ok_or_else(escapes)?.canonicalize().map_err(io)?;
        let root = self.path.canonicalize().map_err(io)?;
        let mut real = root.join(path);
        let mut rest = PathBuf::new();
        let found = loop {
            match real.canonicalize() {
                Ok(found) => break found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if real.symlink_metadata().is_ok() {
                        return Err(RootError::Dangling(real));
                    }
                    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { return Err(io(error)) };
                    rest = if rest.as_os_str().is_empty() { name.into() } else { Path::new(name).join(rest) };
                    real = parent.to_owned();
                }
                Err(error) => return Err(io(error)),
            }
        };
        let under = found.join(rest);
        let under = under.strip_prefix(&home).map_err(|_| escapes())?;
        let dir = Dir::open_ambient_dir(&home, ambient_authority()).map_err(io)?;
        self.judged(&home, Located { dir: Arc::new(dir), path: under.to_owned() })
    }

    /// Refuses what is among another harness's settings: a project contains some, and links may lead there.
    fn judged(&self, base: &Path, located: Located) -> Result<Located, RootError> {
        if self.foreign.is_empty() {
            return Ok(located);
        }
        let place = places::real(&base.join(&located.path));
        let objection = || places::objection_of_settings(&self.foreign, Requested::Root(&self.name), &place);
        // The root itself was judged when it was opened.
        match objection().filter(|_| !located.path.as_os_str().is_empty()) {
            Some(why) => Err(RootError::Forbidden { path: place, why }),
            None => Ok(located),
        }
    }
}

/// Keeps refusals readable: a path may have any length.
fn shorten(path: &str) -> String {
    path.chars().take(200).collect()
}

/// Why a path could not be followed inside one folder.
enum Stray {
    Escape,
    Dangling,
    Io(io::Error),
}

/// The real path of the part of `path` that exists, and the rest as it is.
fn follow(dir: &Dir, path: &Path) -> Result<PathBuf, Stray> {
    for existing in path.ancestors() {
        let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
        let asked = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
        match dir.canonicalize(asked) {
            Ok(real) => {
                let real = if real == Path::new(".") { PathBuf::new() } else { real };
                return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if dir.symlink_metadata(asked).is_ok() {
                    return Err(Stray::Dangling);
                }
            }
            Err(error) if is_escape(&error) => return Err(Stray::Escape),
            Err(error) => return Err(Stray::Io(error)),
        }
    }
    Ok(path.to_owned())
}

/// cap-std reports an escape as permission denied without an OS error code; the system's refusals have one.
pub(crate) fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::foreign_settings::none_installed;
    use crate::manifest::Access;

    /// A home with a root `.x`, links in it, and a folder beside the home.
    fn check(links: Links, path: &str, expected: &str) {
        check_of(&Asker::BuiltIn, "config", links, path, expected);
    }

    fn check_of(asker: &Asker, name: &str, links: Links, path: &str, expected: &str) {
        let outer = tempfile::tempdir().expect("a folder");
        let home = outer.path().join("home");
        let root = home.join(".x");
        fs::create_dir_all(root.join("sub/.codex")).expect("a root");
        fs::create_dir_all(home.join(".claude/projects")).expect("settings");
        fs::write(home.join(".claude/settings.json"), "{}").expect("settings");
        fs::create_dir_all(home.join("dotfiles/skills")).expect("dotfiles");
        fs::create_dir_all(outer.path().join("elsewhere")).expect("elsewhere");
        fs::write(home.join("dotfiles/settings.json"), "{}").expect("settings");
        fs::write(root.join("sub/plain"), "").expect("a file");
        fs::write(outer.path().join("elsewhere/secret"), "").expect("a secret");
        for (link, target) in [
            ("settings.json", "../dotfiles/settings.json"),
            ("skills", "../dotfiles/skills"),
            ("inner", "sub"),
            ("out", "../../elsewhere"),
            ("claude", "../.claude"),
            ("theirs.json", "../.claude/settings.json"),
            ("theirs", "sub/.codex"),
            ("broken", "nowhere"),
        ] {
            symlink(target, root.join(link)).expect("a link");
        }
        let surroundings = Surroundings { home: Some(home.clone()), ..Surroundings::default() };
        let asked = Root { path: "~/.x".to_owned(), access: Access::Read, links };
        let open = OpenRoot::open(name, &asked, &surroundings, asker).expect("the root");
        let outcome = match open.locate(path) {
            Ok(located) => located.path.display().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(outcome.ends_with(expected), "{links:?} {path}: {outcome}");
    }

    #[test]
    fn a_path_never_leaves_its_root() {
        for links in [Links::Inside, Links::Home] {
            check(links, "sub/plain", "sub/plain");
            check(links, "inner/plain", "sub/plain");
            check(links, "new/folder/file", "new/folder/file");
            check(links, "..", "is not a path inside the root `config`");
            check(links, "sub/../../dotfiles/settings.json", "is not a path inside the root `config`");
            check(links, "/etc/passwd", "is not a path inside the root `config`");
            check(links, "out/secret", "leads out of the root `config` by a symbolic link");
            check(links, "broken", "is a symbolic link to nothing");
        }
    }

    #[test]
    fn links_lead_into_the_home_only_where_that_is_asked_for() {
        check(Links::Inside, "settings.json", "leads out of the root `config` by a symbolic link");
        check(Links::Home, "settings.json", "dotfiles/settings.json");
        check(Links::Home, "skills/relay/SKILL.md", "dotfiles/skills/relay/SKILL.md");
    }

    #[test]
    fn no_path_and_no_link_leads_to_the_settings_of_another_harness() {
        let toad = Asker::Stranger { name: "toad".to_owned(), earlier: none_installed() };
        let refused = "so that the user sees whose they are";
        for (links, path, owner, found) in [
            (Links::Home, "claude", "claude-code", ".claude"),
            (Links::Home, "claude/settings.json", "claude-code", ".claude/settings.json"),
            (Links::Home, "claude/new", "claude-code", ".claude/new"),
            (Links::Home, "theirs.json", "claude-code", ".claude/settings.json"),
            (Links::Inside, "sub/.codex", "codex", "sub/.codex"),
            (Links::Inside, "sub/.codex/config.toml", "codex", "sub/.codex/config.toml"),
            (Links::Inside, "theirs/new", "codex", "sub/.codex/new"),
        ] {
            check_of(&toad, "config", links, path, refused);
            // Named as what it is.
            check_of(&toad, owner, links, path, found);
            check(links, path, found);
        }
        check_of(&toad, "config", Links::Home, "settings.json", "dotfiles/settings.json");
    }
}
