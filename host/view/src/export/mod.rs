//! A thread as one file that needs nothing else. What agents wrote stays text in it, whatever it is made of.

mod html;
mod markdown;

pub use html::html;
pub use markdown::markdown;

/// Whether a character could steer a terminal, hide text or turn its order around.
fn is_hidden(character: char) -> bool {
    (character.is_control() && character != '\n' && character != '\t')
        || matches!(character, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A character as `\u{1b}`, so that it can be seen.
fn visible(character: char, onto: &mut String) {
    onto.extend(character.escape_unicode());
}

#[cfg(test)]
mod tests;
