//! Elements of an array.

use std::ops::Range;

use toml_edit::Array;

use super::spliced;

/// Adds an element at the end, in the array's own layout.
pub(super) fn append(text: &str, array: &Array, element: &str) -> String {
    let Some((whole, elements)) = places(array) else { return text.to_owned() };
    let Some(last) = elements.last() else {
        // The space marks an array that existed before and was empty.
        let at = whole.start + 1;
        return spliced(text, vec![(at..at, format!(" {element}"))]);
    };
    let before = elements.len().checked_sub(2).map_or(whole.start + 1, |previous| elements[previous].end);
    let separator = match text[before..last.start].rfind('\n') {
        Some(newline) => {
            let line = &text[before + newline + 1..last.start];
            let indent = &line[..line.len() - line.trim_start().len()];
            let carriage = if text[..before + newline].ends_with('\r') { "\r" } else { "" };
            format!("{carriage}\n{indent}")
        }
        None => " ".to_owned(),
    };
    match comma(text, last.end..whole.end - 1) {
        Some(comma) => spliced(text, vec![(comma + 1..comma + 1, format!("{separator}{element},"))]),
        None => spliced(text, vec![(last.end..last.end, format!(",{separator}{element}"))]),
    }
}

/// Removes an element; none if the array goes with it.
pub(super) fn remove(text: &str, array: &Array, index: usize) -> Option<String> {
    let Some((whole, elements)) = places(array) else { return Some(text.to_owned()) };
    let place = elements[index].clone();
    let before = index.checked_sub(1).map_or(whole.start + 1, |previous| elements[previous].end);
    let after = elements.get(index + 1).map_or(whole.end - 1, |next| next.start);
    let comma_behind = comma(text, place.end..after);
    let lead = &text[before..place.start];

    if elements.len() == 1 {
        if lead.is_empty()
            && text[place.end..after].trim_matches(|letter: char| letter.is_whitespace() || letter == ',').is_empty()
        {
            return None;
        }
        let start = if lead == " " { before } else { place.start };
        return Some(spliced(text, vec![(start..comma_behind.map_or(place.end, |comma| comma + 1), String::new())]));
    }
    // White space that follows a comment stays: it ends the comment.
    let start = if lead.contains('#') { place.start } else { before + lead.trim_end().len() };
    Some(match comma_behind {
        Some(_) if index == 0 && !text[place.start..after].contains(['\n', '#']) => {
            spliced(text, vec![(place.start..after, String::new())])
        }
        Some(comma) => spliced(text, vec![(start..place.end, String::new()), (comma..comma + 1, String::new())]),
        None => match comma(text, before..place.start) {
            Some(comma) if comma + 1 >= start => spliced(text, vec![(comma..place.end, String::new())]),
            Some(comma) => spliced(text, vec![(comma..comma + 1, String::new()), (start..place.end, String::new())]),
            None => spliced(text, vec![(start..place.end, String::new())]),
        },
    })
}

/// The ranges of an array and of its elements.
fn places(array: &Array) -> Option<(Range<usize>, Vec<Range<usize>>)> {
    let elements: Option<Vec<_>> = array.iter().map(toml_edit::Value::span).collect();
    Some((array.span()?, elements?))
}

/// The comma in a gap between elements. Otherwise the gap holds only white space and comments.
fn comma(text: &str, gap: Range<usize>) -> Option<usize> {
    let mut in_comment = false;
    text[gap.clone()].char_indices().find_map(|(at, letter)| {
        match letter {
            '#' => in_comment = true,
            '\n' => in_comment = false,
            ',' if !in_comment => return Some(gap.start + at),
            _ => {}
        }
        None
    })
}
