//! Changes to settings files that leave everything else as it was: comments, order, indentation,
//! trailing commas, byte order mark, line ends, the final newline.
//!
//! [`jsonc`] is for JSON with or without comments, [`toml`] for TOML, [`marked`] for a block in a text.
//! Adding something and removing it again restores every byte, if the file did not change in between. That
//! holds too if the object around it, or the whole file, did not exist before.

use std::fmt;
use std::ops::Range;

pub mod jsonc;
pub mod marked;
pub mod toml;

/// Why a text does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

/// Why a value cannot be put in its place. The document is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// The path, joined by dots.
    pub path: String,
    /// The line of the value in the way, counted from 1.
    pub line: usize,
    /// What the path would have to hold, such as `an object`.
    pub wanted: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for Broken {}

impl fmt::Display for Occupied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => write!(out, "line {}: the file does not hold {}", self.line, self.wanted),
            false => write!(out, "line {}: `{}` is not {}", self.line, self.path, self.wanted),
        }
    }
}

impl std::error::Error for Occupied {}

/// The line of a byte, counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The first line break of a text, or `\n` if it has none.
fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// Applies splices. They must be in order and must not overlap.
fn spliced(text: &str, splices: Vec<(Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len() + splices.iter().map(|(_, added)| added.len()).sum::<usize>());
    let mut at = 0;
    for (range, added) in splices {
        out.push_str(&text[at..range.start]);
        out.push_str(&added);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}
