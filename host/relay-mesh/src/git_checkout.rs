//! Working copies and paths: reads git's files without running git, and follows symlinks.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use mesh::reservations::repository::{Checkout, PathKind, Repository, Resolved};

use crate::{config, git_remote};

/// The working copy that contains a folder. All worktrees of a repository share git's common folder, so its path is the
/// repository's identity. A folder without version control is its own.
pub(crate) fn checkout(folder: &Path) -> io::Result<Checkout> {
    let folder = fs::canonicalize(folder)?;
    for top in folder.ancestors() {
        if let Some(common) = common_folder(&top.join(".git"))? {
            // If the common folder is a clone's `.git`, users know the repository by the folder above.
            let known_as = match common.file_name() {
                Some(name) if name == ".git" => common.parent().unwrap_or(&common),
                Some(_) | None => &common,
            };
            let repository = Repository::named(&known_as.to_string_lossy());
            let everywhere = match named_in(top)? {
                Some(name) => Some(name),
                None => {
                    fs::read_to_string(common.join("config")).ok().and_then(|config| git_remote::fetched_from(&config))
                }
            };
            return Ok(Checkout { repository, everywhere, top: top.to_owned() });
        }
    }
    let everywhere = named_in(&folder)?;
    Ok(Checkout { repository: Repository::named(&folder.to_string_lossy()), everywhere, top: folder })
}

/// The top folder of the working copy that contains a folder, if one does.
pub(crate) fn top_of(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    folder.ancestors().find(|top| matches!(common_folder(&top.join(".git")), Ok(Some(_)))).map(Path::to_owned)
}

/// What is checked out in the working copy with this top folder: a branch, or the beginning of a commit.
pub(crate) fn branch_of(top: &Path) -> Option<String> {
    let dot_git = top.join(".git");
    let own = match fs::read_to_string(&dot_git) {
        Ok(text) => top.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => dot_git,
    };
    let head = fs::read_to_string(own.join("HEAD")).ok()?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => Some(head.chars().take(12).collect()),
    }
}

/// The top folder of the main worktree of the repository that contains a folder. A bare repository has none.
pub(crate) fn main_worktree(folder: &Path) -> Option<PathBuf> {
    let common = common_folder(&top_of(folder)?.join(".git")).ok()??;
    let is_clone = common.file_name().is_some_and(|name| name == ".git");
    common.parent().filter(|_| is_clone).map(Path::to_owned)
}

/// The repository's name in the project's settings. Other errors in that file are reported when it is read as settings.
fn named_in(top: &Path) -> io::Result<Option<String>> {
    #[derive(serde::Deserialize)]
    struct Project {
        repository: Option<String>,
    }
    match fs::read_to_string(top.join(config::PROJECT_FILE)) {
        Ok(text) => Ok(toml::from_str::<Project>(&text).ok().and_then(|project| project.repository)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Git's common folder, from a worktree's `.git`: a folder, or a file that names one.
fn common_folder(dot_git: &Path) -> io::Result<Option<PathBuf>> {
    let own = match fs::metadata(dot_git) {
        Ok(found) if found.is_dir() => dot_git.to_owned(),
        Ok(_) => {
            let text = fs::read_to_string(dot_git)?;
            let Some(named) = text.strip_prefix("gitdir:") else { return Ok(None) };
            dot_git.with_file_name("").join(named.trim())
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if !own.join("HEAD").exists() {
        return Ok(None);
    }
    let common = match fs::read_to_string(own.join("commondir")) {
        Ok(named) => own.join(named.trim()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => own,
        Err(error) => return Err(error),
    };
    fs::canonicalize(common).map(Some)
}

/// Follows the symlinks of an absolute path. Missing parts are kept as written. A dangling symlink is an error, because
/// its eventual target is unknown.
pub(crate) fn resolve(path: &Path) -> io::Result<Resolved> {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => resolved.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => {
                let next = resolved.join(name);
                let is_link = fs::symlink_metadata(&next).is_ok_and(|found| found.is_symlink());
                resolved = if is_link { fs::canonicalize(&next)? } else { next };
            }
        }
    }
    let found = match fs::metadata(&resolved) {
        Ok(found) if found.is_dir() => PathKind::Folder,
        Ok(_) => PathKind::File,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            PathKind::Nothing
        }
        Err(error) => return Err(error),
    };
    Ok(Resolved { path: resolved, found })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn stage() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let top = fs::canonicalize(folder.path()).expect("a path");
        for made in ["one/.git/worktrees/two", "one/src", "two/docs", "plain/sub"] {
            fs::create_dir_all(top.join(made)).expect("made");
        }
        let write = |path: &str, text: &str| fs::write(top.join(path), text).expect("written");
        write("one/.git/HEAD", "ref: refs/heads/main\n");
        write("one/.git/worktrees/two/HEAD", "ref: refs/heads/two\n");
        write("one/.git/worktrees/two/commondir", "../..\n");
        write("two/.git", &format!("gitdir: {}\n", top.join("one/.git/worktrees/two").display()));
        (folder, top)
    }

    #[test]
    fn worktrees_of_one_repository_are_one_repository() {
        let (_folder, top) = stage();
        let check = |folder: &str, repository: &str, uppermost: &str| {
            let found = checkout(&top.join(folder)).expect("a working copy");
            assert_eq!(found.repository.as_str(), top.join(repository).to_string_lossy(), "{folder}");
            assert_eq!(found.top, top.join(uppermost), "{folder}");
        };
        check("one", "one", "one");
        check("one/src", "one", "one");
        check("two", "one", "two");
        check("two/docs", "one", "two");
        check("plain/sub", "plain/sub", "plain/sub");
        assert!(checkout(&top.join("nowhere")).is_err());
    }

    #[test]
    fn a_path_leads_where_its_symlinks_do() {
        let (_folder, top) = stage();
        symlink(top.join("plain"), top.join("one/out")).expect("linked");
        symlink("src", top.join("one/in")).expect("linked");
        symlink("nowhere", top.join("one/broken")).expect("linked");
        fs::write(top.join("one/src/[id].rs"), "").expect("written");
        let check = |path: &str, leads: &str, found: PathKind| {
            let resolved = resolve(&top.join(path)).expect("resolved");
            assert_eq!(resolved, Resolved { path: top.join(leads), found }, "{path}");
        };
        check("one/src", "one/src", PathKind::Folder);
        check("one/src/[id].rs", "one/src/[id].rs", PathKind::File);
        check("one/src/[id].rs/x", "one/src/[id].rs/x", PathKind::Nothing);
        check("one/new/./file.rs", "one/new/file.rs", PathKind::Nothing);
        check("one/src/../new", "one/new", PathKind::Nothing);
        check("one/out/x", "plain/x", PathKind::Nothing);
        check("one/out/../y", "y", PathKind::Nothing);
        check("one/in/a.rs", "one/src/a.rs", PathKind::Nothing);
        assert!(resolve(&top.join("one/broken/x")).is_err());
    }
}
