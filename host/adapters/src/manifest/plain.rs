//! A manifest's text is shown to the user who decides about it. So it has no line breaks and nothing invisible, and it
//! is short enough to be read: no part of it can pass for the host's own words, or scroll them away.

use toml::{Table, Value};

/// The most requests that can be shown with one question.
pub(super) const MOST_REQUESTS: usize = 64;

/// What is wrong with a text, and the line of its key.
pub(super) fn objection(text: &str) -> Option<(usize, String)> {
    let table: Table = text.parse().ok()?;
    let (key, what) = in_table("", &table)?;
    let name = key.rsplit('.').next().unwrap_or(&key);
    let begins = |line: &str| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let line = text.lines().position(begins).or_else(|| text.lines().position(|line| line.contains(name)));
    let line = line.map_or(1, |at| at + 1);
    Some((line, format!("`{}` {what}", key.escape_debug())))
}

fn in_table(path: &str, table: &Table) -> Option<(String, String)> {
    table.iter().find_map(|(name, value)| {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        // The payload is no text for people, and has a limit of its own: the manifest's length.
        if key == "rehearsal.payload" {
            return None;
        }
        wrong(name, 100).map(|what| (key.clone(), what)).or_else(|| in_value(&key, value))
    })
}

fn in_value(key: &str, value: &Value) -> Option<(String, String)> {
    match value {
        Value::String(text) => wrong(text, longest(key)).map(|what| (key.to_owned(), what)),
        Value::Array(items) => items.iter().find_map(|item| in_value(key, item)),
        Value::Table(table) => in_table(key, table),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => None,
    }
}

/// The most characters of a text.
fn longest(key: &str) -> usize {
    match key {
        "title" => 60,
        "version" => 40,
        _ if key.starts_with("matches.") || key.starts_with("grants.environment") => 100,
        _ => 1_000,
    }
}

fn wrong(text: &str, longest: usize) -> Option<String> {
    let count = text.chars().count();
    if count > longest {
        return Some(format!("has {count} characters, and at most {longest} can be shown"));
    }
    let hidden = text.chars().find(|character| is_hidden(*character))?;
    Some(format!("holds the character {}, which cannot be shown on one line", hidden.escape_unicode()))
}

/// Control characters, line separators, and those that hide text or turn it around.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}
