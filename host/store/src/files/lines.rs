//! Lines and entries: which bytes may be an entry, and which lines of a file are entries.

use crate::backend::{check_entry, is_json};
use crate::{Damage, Entry, Position, StoreError};

/// Joins entries to lines, after checking that each will be read back unchanged.
pub(super) fn frame(entries: &[Vec<u8>]) -> Result<Vec<u8>, StoreError> {
    let mut lines = Vec::with_capacity(entries.iter().map(|entry| entry.len() + 1).sum());
    for entry in entries {
        check_entry(entry)?;
        lines.extend_from_slice(entry);
        lines.push(b'\n');
    }
    Ok(lines)
}

/// The lines in a part of a file, divided into entries and damage, up to about `limit` bytes but at least one entry.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) entries: Vec<Entry>,
    pub(super) damage: Vec<Damage>,
    /// Number of bytes consumed: all whole lines, or less if the limit was reached.
    pub(super) used: u64,
    /// Whether the limit was reached before the last whole line.
    pub(super) cut_short: bool,
}

impl Lines {
    /// These lines, with offsets converted into positions in the log.
    pub(super) fn placed(mut self, at: impl Fn(u64) -> Position) -> Lines {
        for entry in &mut self.entries {
            (entry.at, entry.next) = (at(entry.at.0), at(entry.next.0));
        }
        for damage in &mut self.damage {
            damage.at = at(damage.at.0);
        }
        self
    }
}

/// Splits bytes that start at a line's start. An unfinished last line is left out. Positions are offsets in the bytes.
pub(super) fn split(stretch: &[u8], limit: usize) -> Lines {
    let mut lines = Lines::default();
    let mut kept = 0;
    for line in stretch.split_inclusive(|byte| *byte == b'\n') {
        let Some(content) = line.strip_suffix(b"\n") else { break };
        if kept > 0 && kept + line.len() > limit {
            lines.cut_short = true;
            break;
        }
        let start = lines.used;
        lines.used += line.len() as u64;
        if is_json(content) {
            kept += line.len();
            lines.entries.push(Entry { at: Position(start), next: Position(lines.used), bytes: content.to_vec() });
        } else {
            lines.damage.push(Damage { at: Position(start), bytes: line.len() as u64 });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text and formats the result: entries as they are, damage as `!bytes`.
    fn check(text: &str, limit: usize, expected: &str) {
        let lines = split(text.as_bytes(), limit);
        let mut words: Vec<(Position, String)> = lines
            .entries
            .iter()
            .map(|entry| (entry.at, String::from_utf8_lossy(&entry.bytes).into_owned()))
            .chain(lines.damage.iter().map(|damage| (damage.at, format!("!{}", damage.bytes))))
            .collect();
        words.sort();
        let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
        let rest = text.len() as u64 - lines.used;
        assert_eq!(format!("{} rest {rest}", words.join(" ")), expected, "{text:?}");
    }

    #[test]
    fn lines_are_entries_or_damage_and_a_tail_without_a_line_break_is_neither() {
        check("", 100, " rest 0");
        check("{}\n[1]\n", 100, "{} [1] rest 0");
        check("{}\n{\"a\":", 100, "{} rest 5");
        check("{\"a\":\n{}\n", 100, "!6 {} rest 0");
        check("\n{}\n", 100, "!1 {} rest 0");
        check("\0\0\n{}\n", 100, "!3 {} rest 0");
    }

    #[test]
    fn the_limit_stops_between_entries_but_never_before_the_first() {
        check("{\"a\":1}\n{}\n", 1, "{\"a\":1} rest 3");
        check("{}\n{}\n{}\n", 6, "{} {} rest 3");
    }
}
