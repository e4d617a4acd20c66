//! Lines and blocks: where a key or a table goes, and what its removal removes.

use std::ops::Range;

use toml_edit::{Item, Table};

use super::{Parsed, item, newline_of, spliced};

/// The table that a new key is written under.
pub(super) struct Section {
    /// The number of names of the path that are in the header.
    pub(super) depth: usize,
    /// The header's range; none for the top of the file.
    header: Option<Range<usize>>,
    /// The end of the last value under the header.
    last_value: Option<usize>,
}

/// The innermost table with a header around a path; none if a part of the path is not a table.
pub(super) fn section_for(parsed: &Parsed<'_>, path: &[&str]) -> Option<Section> {
    let on_the_way = (1..path.len()).filter_map(|depth| item(parsed, &path[..depth]));
    if on_the_way.into_iter().any(|found| !found.is_table() && !found.is_none()) {
        return None;
    }
    (0..path.len()).rev().find_map(|depth| {
        let table = item(parsed, &path[..depth])?.as_table()?;
        let has_header = depth == 0 || !(table.is_implicit() || table.is_dotted());
        has_header.then(|| Section {
            depth,
            header: if depth == 0 { None } else { table.span() },
            last_value: own_values(table).map(|value| value.end).max(),
        })
    })
}

/// Writes a line at the end of a section.
pub(super) fn insert(text: &str, is_file: bool, parsed: &Parsed<'_>, section: &Section, line: &str) -> String {
    let newline = newline_of(text);
    let at = match (section.last_value, &section.header) {
        (Some(end), _) => line_end(text, end),
        (None, Some(header)) => line_end(text, header.end),
        // Top-level keys must come before the first header.
        (None, None) if has_headers(parsed.as_table()) => 0,
        (None, None) => text.len(),
    };
    let added = match text[..at].ends_with('\n') || at == 0 {
        false => format!("{newline}{line}"),
        true if is_file && text.is_empty() => line.to_owned(),
        true => format!("{line}{newline}"),
    };
    spliced(text, vec![(at..at, added)])
}

/// Writes a block at the end of a text, after a blank line.
pub(super) fn append_block(text: &str, is_file: bool, block: &str) -> String {
    let newline = newline_of(text);
    match text {
        "" if is_file => block.to_owned(),
        "" => format!("{block}{newline}"),
        _ if text.ends_with('\n') => format!("{text}{newline}{block}{newline}"),
        // The file has no final newline, so the block gets none either: removal matches it by that.
        _ => format!("{text}{newline}{newline}{block}"),
    }
}

/// Removes an item. None if that leaves nothing of a file that we made.
pub(super) fn remove(text: &str, found: &Item) -> Option<String> {
    let mut blocks = Vec::new();
    let mut lines = Vec::new();
    collect(text, found, &mut blocks, &mut lines);
    let in_block = |line: &Range<usize>| {
        blocks.iter().any(|block: &Range<usize>| block.start <= line.start && line.end <= block.end)
    };
    lines.retain(|line| !in_block(line));
    let made_by_us = !text.is_empty() && text.ends_with('\n');
    let mut splices: Vec<Range<usize>> = blocks.iter().map(|block| with_blank_line(text, block)).collect();
    splices.extend(lines.iter().map(|line| with_line_break(text, line)));
    splices.sort_by_key(|range| range.start);
    splices.dedup();
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in splices {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => merged.push(range),
        }
    }
    let left = spliced(text, merged.into_iter().map(|range| (range, String::new())).collect());
    if left.is_empty() && made_by_us { None } else { Some(left) }
}

/// Collects the blocks of all tables with a header in an item, and the lines of its values.
fn collect(text: &str, item: &Item, blocks: &mut Vec<Range<usize>>, lines: &mut Vec<Range<usize>>) {
    match item {
        Item::None => {}
        Item::Value(value) => {
            lines.extend(value.span().map(|span| line_start(text, span.start)..line_end(text, span.end)))
        }
        Item::Table(table) => collect_table(text, table, blocks, lines),
        Item::ArrayOfTables(tables) => tables.iter().for_each(|table| collect_table(text, table, blocks, lines)),
    }
}

fn collect_table(text: &str, table: &Table, blocks: &mut Vec<Range<usize>>, lines: &mut Vec<Range<usize>>) {
    if let Some(header) = table.span().filter(|_| !table.is_implicit() && !table.is_dotted()) {
        let end = own_values(table).map(|value| value.end).max().unwrap_or(header.end);
        blocks.push(line_start(text, header.start)..line_end(text, end));
    }
    for (_, item) in table.iter() {
        collect(text, item, blocks, lines);
    }
}

/// The ranges of the values under a table's own header, including dotted keys.
fn own_values(table: &Table) -> Box<dyn Iterator<Item = Range<usize>> + '_> {
    Box::new(table.iter().flat_map(|(_, item)| -> Box<dyn Iterator<Item = Range<usize>>> {
        match item {
            Item::Value(value) => Box::new(value.span().into_iter()),
            Item::Table(table) if table.is_dotted() => own_values(table),
            Item::Table(_) | Item::ArrayOfTables(_) | Item::None => Box::new(std::iter::empty()),
        }
    }))
}

fn has_headers(table: &Table) -> bool {
    table.iter().any(|(_, item)| match item {
        Item::Table(table) => !table.is_dotted() || has_headers(table),
        Item::ArrayOfTables(_) => true,
        Item::Value(_) | Item::None => false,
    })
}

/// A block with the blank line before it. If the file had no final newline, also with the line break that
/// [`append_block`] added.
fn with_blank_line(text: &str, block: &Range<usize>) -> Range<usize> {
    let mut start = block.start;
    let blank = text[..start].strip_suffix('\n').map(|rest| rest.strip_suffix('\r').unwrap_or(rest));
    if let Some(rest) = blank.filter(|rest| rest.is_empty() || rest.ends_with('\n')) {
        start = rest.len();
        let at_the_end = block.end == text.len() && !text.ends_with('\n');
        if at_the_end && let Some(rest) = rest.strip_suffix('\n') {
            start = rest.strip_suffix('\r').unwrap_or(rest).len();
        }
    }
    start..block.end
}

/// A line, with the line break before it if it is the last line and has none after it.
fn with_line_break(text: &str, line: &Range<usize>) -> Range<usize> {
    let before = text[..line.start].strip_suffix('\n').map(|rest| rest.strip_suffix('\r').unwrap_or(rest).len());
    match before {
        Some(start) if !text[line.clone()].ends_with('\n') => start..line.end,
        Some(_) | None => line.clone(),
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The position after the line break of the line that contains a byte.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}
