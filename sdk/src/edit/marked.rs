//! A block of ours in a text file that the user writes, such as AGENTS.md, between two lines that are Markdown
//! comments. Adding the block and removing it again restores every byte.
//!
//! ```
//! use relay_mesh_sdk::edit::marked;
//!
//! let ours = marked::put(Some("# Rules\n"), "codex", "Other agents work here too.")?;
//! assert_eq!(
//!     ours,
//!     "# Rules\n\n<!-- relay-mesh codex: begin -->\nOther agents work here too.\n<!-- relay-mesh codex: end -->\n",
//! );
//! assert_eq!(marked::take(&ours, "codex")?.as_deref(), Some("# Rules\n"));
//! # Ok::<(), relay_mesh_sdk::edit::Broken>(())
//! ```
//!
//! As in [`toml`](super::toml), a file that existed and was empty gets no newline at its end. That is how
//! removal distinguishes it from a file that we made.

use std::ops::Range;

use super::{Broken, line_of, newline_of};

/// The text with our block at its end, or in place of an older block. None stands for a missing file.
pub fn put(text: Option<&str>, name: &str, body: &str) -> Result<String, Broken> {
    let newline = newline_of(text.unwrap_or_default());
    let (begin, end) = lines(name);
    let block = [begin.as_str(), body.trim(), end.as_str()].join("\n").replace('\n', newline);
    Ok(match text {
        None => format!("{block}{newline}"),
        Some("") => block,
        Some(text) => match find(text, name)? {
            Some(found) => format!("{}{block}{}", &text[..found.start], &text[found.end..]),
            None if text.ends_with('\n') => format!("{text}{newline}{block}{newline}"),
            // The file has no final newline, so the block gets none either: removal matches it by that.
            None => format!("{text}{newline}{newline}{block}"),
        },
    })
}

/// The text without our block; none if that leaves nothing of a file that we made.
pub fn take(text: &str, name: &str) -> Result<Option<String>, Broken> {
    let Some(found) = find(text, name)? else { return Ok(Some(text.to_owned())) };
    let (before, after) = (&text[..found.start], &text[found.end..]);
    let rest = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n')).unwrap_or(after);
    let ends_file = after.is_empty();
    // We added the blank line before the block, and the line break if the last line had none.
    let before = match last_break(before) {
        Some(above) if above.is_empty() || above.ends_with('\n') => match last_break(above).filter(|_| ends_file) {
            Some(above) => above,
            None => above,
        },
        Some(_) | None => before,
    };
    let left = format!("{before}{rest}");
    Ok((!left.is_empty() || ends_file).then_some(left))
}

/// The range of the block, without the line break after it.
fn find(text: &str, name: &str) -> Result<Option<Range<usize>>, Broken> {
    let (begin, end) = lines(name);
    let Some(start) = text.find(&begin) else { return Ok(None) };
    match text[start..].find(&end) {
        Some(at) => Ok(Some(start..start + at + end.len())),
        None => Err(Broken {
            line: line_of(text, start),
            column: 1,
            what: format!(
                "a block of relay-mesh begins here and has no line `{end}`; add that line, or remove the block"
            ),
        }),
    }
}

fn lines(name: &str) -> (String, String) {
    (format!("<!-- relay-mesh {name}: begin -->"), format!("<!-- relay-mesh {name}: end -->"))
}

/// A text without its last line break; none if it does not end with one.
fn last_break(text: &str) -> Option<&str> {
    text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text))
}
