//! Other people's text where people read it: what could steer a terminal, hide text or turn its order around is shown as
//! its number.

use std::borrow::Cow;

/// Whether a character could steer a terminal, hide text or turn its order around.
pub(crate) fn is_hidden(character: char) -> bool {
    (character.is_control() && character != '\n' && character != '\t')
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
                | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Adds a character as `\u{1b}`, so that it can be seen.
pub(crate) fn push_visible(character: char, onto: &mut String) {
    onto.extend(character.escape_unicode());
}

/// A text that changes nothing but what it says. Line breaks and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) { push_visible(character, &mut seen) } else { seen.push(character) }
    }
    Cow::Owned(seen)
}

/// The same on one line.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    let seen = visible(text);
    if seen.contains(['\n', '\t']) { Cow::Owned(seen.replace(['\n', '\t'], " ")) } else { seen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_shown_as_its_number() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("over\rwritten", "over\\u{d}written"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{202e}backwards", "\\u{202e}backwards"),
            ("soft\u{ad}hyphen and \u{e0041}tag", "soft\\u{ad}hyphen and \\u{e0041}tag"),
            ("größer → ok, 日本, 👩\u{200d}💻", "größer → ok, 日本, 👩\u{200d}💻"),
        ] {
            assert_eq!(visible(text), expected);
        }
        assert_eq!(visible_line("one\ntwo\t\u{7}"), "one two \\u{7}");
    }
}
