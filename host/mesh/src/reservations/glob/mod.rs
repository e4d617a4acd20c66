//! Patterns of paths in a repository, and the exact answer to whether two of them share a path.

mod automaton;
mod class;
mod overlap;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use automaton::Branch;
pub use parse::{Flaw, InvalidGlob, LONGEST_GLOB};

/// A pattern of paths, relative to the top of a repository, with `/` between components.
///
/// - `?` is one character and `*` any number of them, within one component;
/// - `**`, alone between slashes, is any number of whole components, including none; at the end it is everything
///   in a folder, and so is a `/` at the end;
/// - `[a-z_]` is one of these characters and `[!x]` one that is none of them;
/// - `{one,other}` is either alternative; an alternative may contain everything else, including braces;
/// - `\` makes the next character a literal one.
///
/// A name that begins with a dot is a name like any other. No path has components that are empty, `.` or `..`, so
/// they never match.
///
/// ```
/// use mesh::reservations::glob::Glob;
/// let ours: Glob = "src/**/*.{rs,toml}".parse()?;
/// let theirs: Glob = "src/parser/**".parse()?;
/// assert!(ours.matches("src/parser/lexer.rs"));
/// assert_eq!(ours.overlap(&theirs).as_deref(), Some("src/parser/.rs"));
/// assert_eq!(ours.overlap(&"docs/**".parse()?), None);
/// # Ok::<(), mesh::reservations::glob::InvalidGlob>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob {
    text: String,
    /// One per combination of the braces' alternatives. Made at the first comparison: a repository may have a thousand
    /// reservations, and the ends of the text tell most of them apart.
    branches: OnceLock<Vec<Branch>>,
}

impl Glob {
    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pattern of one literal path, or of everything in a folder.
    pub fn of_path(path: &str, what: Literally) -> Result<Glob, InvalidGlob> {
        let mut text = escaped(path);
        match what {
            Literally::ThePath => {}
            Literally::WhatIsIn if text.is_empty() => text.push_str("**"),
            Literally::WhatIsIn => text.push_str("/**"),
        }
        text.parse()
    }

    /// The pattern of one file that is about to be written, even if its path is too long to be reserved.
    pub fn of_file(path: &str) -> Result<Glob, InvalidGlob> {
        let text = escaped(path);
        if !overlap::is_path(path) {
            return Err(InvalidGlob::new(path, 0, Flaw::Nowhere));
        }
        Ok(Glob { branches: vec![Branch::of_path(path)].into(), text })
    }

    /// Whether it is too long to be reserved: a file about to be written may have a longer path.
    pub fn is_too_long(&self) -> bool {
        self.text.len() > LONGEST_GLOB
    }

    /// Whether both name one place: they are equal, or one is a path and the other everything in it. A path that was
    /// no folder when it was reserved may be one when it is released.
    pub fn is_of_same_place(&self, other: &Glob) -> bool {
        fn place(glob: &Glob) -> &str {
            glob.text.strip_suffix("/**").unwrap_or(&glob.text)
        }
        place(self) == place(other)
    }

    /// Whether it matches a path. A text that is not a valid path never matches.
    pub fn matches(&self, path: &str) -> bool {
        overlap::is_path(path) && self.branches().iter().any(|branch| branch.matches(path))
    }

    /// Whether this and another pattern could share a path, judged by their texts. Only a no is certain.
    pub(crate) fn could_meet(&self, other: &str) -> bool {
        parse::ends(&self.text).may_meet(parse::ends(other))
    }

    /// A short path that both match, if there is one. Exact.
    pub fn overlap(&self, other: &Glob) -> Option<String> {
        if !self.could_meet(&other.text) {
            return None;
        }
        let pairs = self.branches().iter().flat_map(|ours| other.branches().iter().map(move |theirs| (ours, theirs)));
        pairs.filter(|(ours, theirs)| ours.may_meet(theirs)).find_map(|(ours, theirs)| overlap::witness(ours, theirs))
    }

    fn branches(&self) -> &[Branch] {
        // A pattern is only made without its branches after its text was checked.
        self.branches.get_or_init(|| parse::branches(&self.text).unwrap_or_default())
    }
}

/// The pattern that matches exactly this path.
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len() + 3);
    for character in path.chars() {
        if parse::SPECIAL.contains(&character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

/// The meaning of a literal path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literally {
    /// The path itself.
    ThePath,
    /// Everything in the folder.
    WhatIsIn,
}

/// The branches of a stored pattern, made now only if its validity cannot be seen otherwise. It was checked for a
/// matching path when it was first written, so that check is skipped.
fn kept_branches(text: &str) -> Result<OnceLock<Vec<Branch>>, InvalidGlob> {
    if parse::is_plainly_right(text) { Ok(OnceLock::new()) } else { Ok(parse::branches(text)?.into()) }
}

impl FromStr for Glob {
    type Err = InvalidGlob;

    fn from_str(text: &str) -> Result<Glob, InvalidGlob> {
        let glob = Glob { branches: parse::branches(text)?.into(), text: text.to_owned() };
        // A pattern that does not overlap itself matches no path: it would be granted to every agent and exclude none.
        if glob.branches().iter().any(|branch| overlap::witness(branch, branch).is_some()) {
            Ok(glob)
        } else {
            Err(InvalidGlob::new(text, 0, Flaw::Nowhere))
        }
    }
}

impl TryFrom<String> for Glob {
    type Error = InvalidGlob;

    fn try_from(text: String) -> Result<Glob, InvalidGlob> {
        Ok(Glob { branches: kept_branches(&text)?, text })
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> String {
        glob.text
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Glob) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}
