//! Text in columns of the screen: cut and broken by how wide it is there.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The beginning of a text that takes at most so many columns; what was cut ends with `…`.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let (mut cut, mut width) = (String::new(), 0);
    for character in text.chars() {
        let more = character.width().unwrap_or_default();
        if width + more + 1 > columns {
            break;
        }
        cut.push(character);
        width += more;
    }
    // A character that joins two others would join the dots too.
    while cut.ends_with('\u{200d}') {
        cut.pop();
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// A text that takes exactly so many columns: cut, or with spaces behind it.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let mut fitted = cut(text, columns);
    let spaces = columns.saturating_sub(fitted.width());
    fitted.extend(std::iter::repeat_n(' ', spaces));
    fitted
}

/// A line broken so that no part takes more columns, between words where that is possible.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let (mut lines, mut line, mut width) = (Vec::new(), String::new(), 0);
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches(' ');
        if width > 0 && width + bare.width() > columns {
            lines.push(std::mem::take(&mut line));
            width = 0;
        }
        for character in word.chars() {
            let more = character.width().unwrap_or_default();
            if width + more > columns {
                if character == ' ' {
                    continue;
                }
                lines.push(std::mem::take(&mut line));
                width = 0;
            }
            line.push(character);
            width += more;
        }
    }
    lines.push(line);
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end_matches(' ').len()));
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_text_is_as_wide_as_it_may_be_at_most() {
        for (text, columns, expected) in [
            ("hello", 5, "hello"),
            ("window", 4, "win…"),
            ("hello", 1, "…"),
            ("hello", 0, ""),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
        ] {
            assert_eq!(cut(text, columns), expected, "{text} in {columns}");
        }
        assert_eq!(fitted("日本", 6), "日本  ");
    }

    #[test]
    fn a_line_is_broken_between_words_where_it_can_be() {
        for (text, columns, expected) in [
            ("which port does it use", 10, "which port|does it|use"),
            ("unbroken-word", 5, "unbro|ken-w|ord"),
            ("日本語です", 4, "日本|語で|す"),
            ("", 4, ""),
            ("    indented", 8, "|indented"),
            ("x", 0, "x"),
        ] {
            assert_eq!(wrapped(text, columns).join("|"), expected, "{text} in {columns}");
        }
    }

    proptest! {
        /// No part is wider than it may be, and nothing but spaces is lost.
        #[test]
        fn what_is_broken_fits_and_is_whole(text in "[a-c 日🦀é]{0,40}", columns in 2_usize..12) {
            let lines = wrapped(&text, columns);
            prop_assert!(lines.iter().all(|line| line.width() <= columns), "{lines:?}");
            prop_assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
    }
}
