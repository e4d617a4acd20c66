//! What has changed in a working copy between two points in time, whoever changed it.
//!
//! `git diff` misses new files, and blames a run for what was changed before it. So the whole working copy is written
//! as a tree before and after, with a copy of the index and with objects in a folder of ours: new, changed and deleted
//! files count, and commits that were made meanwhile; ignored files do not.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Git, GitError};

/// The contents of a working copy at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(pub String);

/// The difference between two trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New and changed files, relative to the top.
    pub written: Vec<String>,
    /// Deleted files.
    pub deleted: Vec<String>,
    /// A patch that `git apply` takes.
    pub patch: Vec<u8>,
    /// What git could not add, as [`Git::tree_and_left_out`] says it. Set by the caller that took the tree.
    pub left_out: Vec<String>,
}

impl Git {
    /// The contents of a working copy now. `scratch` is a folder of ours that holds the objects; it is made if needed.
    pub async fn tree(&self, top: &Path, scratch: &Path) -> Result<Tree, GitError> {
        self.tree_and_left_out(top, scratch).await.map(|(tree, _)| tree)
    }

    /// The same, and the paths that git could not add: what it may not read, and nested repositories without a commit.
    /// The tree has them as the index had them.
    pub async fn tree_and_left_out(&self, top: &Path, scratch: &Path) -> Result<(Tree, Vec<String>), GitError> {
        let index = scratch.join("index");
        fs::create_dir_all(scratch.join("objects")).map_err(GitError::File)?;
        let own = PathBuf::from(self.text(top, &["rev-parse", "--path-format=absolute", "--git-path", "index"]).await?);
        copy_index(&own, &index).map_err(GitError::File)?;
        let objects = self.objects(top).await?;
        let variables = variables(scratch, &objects, &index);
        let added = self.call(top, &["add", "--all", "--ignore-errors"], &variables.as_pairs(), &[]).await?;
        let left_out = match added.code {
            Some(0) => Vec::new(),
            // All but these was added.
            Some(1) => left_out(&added.stderr),
            Some(_) | None => return Err(added.failure()),
        };
        if added.code == Some(1) && left_out.is_empty() {
            return Err(added.failure());
        }
        let bytes = self.bytes(top, &["write-tree"], &variables.as_pairs(), &[]).await?;
        Ok((Tree(String::from_utf8_lossy(&bytes).trim().to_owned()), left_out))
    }

    /// What lies between two trees of [`Git::tree`] with the same scratch folder.
    pub async fn changes(&self, top: &Path, scratch: &Path, before: &Tree, after: &Tree) -> Result<Changes, GitError> {
        self.changes_of(top, scratch, (before, after), &[]).await
    }

    /// The same of these files alone, or of all if none is named.
    pub async fn changes_of(
        &self,
        top: &Path,
        scratch: &Path,
        (before, after): (&Tree, &Tree),
        paths: &[String],
    ) -> Result<Changes, GitError> {
        if before == after {
            return Ok(Changes::default());
        }
        let index = scratch.join("index");
        let objects = self.objects(top).await?;
        let variables = variables(scratch, &objects, &index);
        let ask = |arguments: &'static [&'static str]| {
            let mut all = vec!["--literal-pathspecs"];
            all.extend(arguments);
            all.extend([before.0.as_str(), after.0.as_str(), "--"]);
            all.extend(paths.iter().map(String::as_str));
            all
        };
        let names = ask(&["diff-tree", "-r", "--no-renames", "--name-status", "-z"]);
        let names = self.bytes(top, &names, &variables.as_pairs(), &[]).await?;
        let patch =
            ask(&["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"]);
        let patch = self.bytes(top, &patch, &variables.as_pairs(), &[]).await?;
        let mut changes = Changes { patch, ..Changes::default() };
        let mut fields = names.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            let path = String::from_utf8_lossy(path).into_owned();
            if status == b"D" { changes.deleted.push(path) } else { changes.written.push(path) }
        }
        Ok(changes)
    }

    /// The same for readers: renames are told as such, and what is not text is only named.
    pub async fn difference(
        &self,
        top: &Path,
        scratch: &Path,
        before: &Tree,
        after: &Tree,
    ) -> Result<Vec<u8>, GitError> {
        let objects = self.objects(top).await?;
        let variables = variables(scratch, &objects, &scratch.join("index"));
        let words = ["diff-tree", "-r", "-p", "-M", "--unified=3", "--no-color", "--no-ext-diff", "--no-textconv"];
        let mut all = words.to_vec();
        all.extend(["--src-prefix=a/", "--dst-prefix=b/", before.0.as_str(), after.0.as_str()]);
        self.bytes(top, &all, &variables.as_pairs(), &[]).await
    }

    /// The commit that a name stands for.
    pub async fn commit(&self, top: &Path, name: &str) -> Result<String, GitError> {
        let asked = format!("{name}^{{commit}}");
        match self.text(top, &["rev-parse", "--verify", "--quiet", "--end-of-options", &asked]).await {
            Err(GitError::Failed { .. }) => Err(GitError::NoRevision(name.to_owned())),
            outcome => outcome,
        }
    }

    /// The contents of a commit.
    pub fn tree_of(commit: &str) -> Tree {
        Tree(format!("{commit}^{{tree}}"))
    }

    /// The contents before a commit: those of its first parent, or nothing.
    pub async fn before(&self, top: &Path, commit: &str) -> Result<Tree, GitError> {
        match self.commit(top, &format!("{commit}^1")).await {
            Ok(parent) => Ok(Git::tree_of(&parent)),
            Err(GitError::NoRevision(_)) => {
                let bytes = self.bytes(top, &["hash-object", "-t", "tree", "--stdin"], &[], &[]).await?;
                Ok(Tree(String::from_utf8_lossy(&bytes).trim().to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// The commit at which two histories part.
    pub async fn merge_base(&self, top: &Path, one: &str, other: &str) -> Result<String, GitError> {
        match self.text(top, &["merge-base", one, other]).await {
            Err(GitError::Failed { .. }) => Err(GitError::NoRevision(format!("{one}...{other}"))),
            outcome => outcome,
        }
    }

    /// Whether a patch fits a working copy. Changes nothing.
    pub async fn fits(&self, top: &Path, patch: &[u8]) -> Result<(), GitError> {
        self.bytes(top, &["apply", "--check", "--binary", "--whitespace=nowarn", "-"], &[], patch).await.map(drop)
    }

    /// The files that a patch changes.
    pub async fn paths_of(&self, top: &Path, patch: &[u8]) -> Result<Vec<String>, GitError> {
        let bytes = self.bytes(top, &["apply", "--numstat", "-z", "-"], &[], patch).await?;
        let lines = bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let paths = lines.filter_map(|line| line.splitn(3, |byte| *byte == b'\t').nth(2));
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Applies a patch that fits to a working copy. Git writes file by file: if it is killed, some are written.
    pub async fn apply(&self, top: &Path, patch: &[u8]) -> Result<(), GitError> {
        self.bytes(top, &["apply", "--binary", "--whitespace=nowarn", "-"], &[], patch).await.map(drop)
    }

    async fn objects(&self, top: &Path) -> Result<PathBuf, GitError> {
        self.text(top, &["rev-parse", "--path-format=absolute", "--git-path", "objects"]).await.map(PathBuf::from)
    }
}

/// The paths in what `git add` said of those that it could not add.
pub(super) fn left_out(said: &[u8]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(said).lines() {
        let Some(error) = line.strip_prefix("error: ") else { continue };
        let path = quoted(error).unwrap_or(error).trim_end_matches('/');
        if !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// What stands in the quotation marks of a line.
fn quoted(line: &str) -> Option<&str> {
    let from = line.find(['\'', '"'])?;
    let to = line.rfind(line.get(from..=from)?)?;
    line.get(from + 1..to)
}

/// Copies an index with its time. By that time git knows which files it has to read although they look unchanged: those
/// that were written in the second in which the index was.
fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    let written = match fs::metadata(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.modified()?,
    };
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(written)
}

/// Variables that keep git away from the repository's own index and objects.
struct Variables {
    index: PathBuf,
    objects: PathBuf,
    /// A list of paths, so that a colon in one has to be quoted.
    alternates: PathBuf,
}

impl Variables {
    fn as_pairs(&self) -> [(&str, &Path); 3] {
        [
            ("GIT_INDEX_FILE", &self.index),
            ("GIT_OBJECT_DIRECTORY", &self.objects),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.alternates),
        ]
    }
}

fn variables(scratch: &Path, objects: &Path, index: &Path) -> Variables {
    let quoted = objects.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    let alternates = if quoted.contains([':', '"']) { format!("\"{quoted}\"").into() } else { objects.to_owned() };
    Variables { index: index.to_owned(), objects: scratch.join("objects"), alternates }
}
