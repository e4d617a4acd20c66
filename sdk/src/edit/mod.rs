//! Changes to settings files that leave everything else as it was: comments, order, indentation,
//! trailing commas, byte order mark, line ends, the final newline.
//!
//! [`jsonc`] is for JSON with or without comments, [`toml`] for TOML, [`marked`] for a block in a
//! text. What was added by one of them
//! and is taken out again by it leaves the very bytes that were there before, wherever nobody
//! touched the file in between; also where the object, or the whole file, did not exist.

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

/// Why a value cannot be put where it should go. The document is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// The path, joined by dots.
    pub path: String,
    /// Where what stands there begins, counted from 1.
    pub line: usize,
    /// What would have to be there, such as `an object`.
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

/// The line break that a text uses first, `\n` where it has none.
fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// Applies splices, which are in order and do not overlap.
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
