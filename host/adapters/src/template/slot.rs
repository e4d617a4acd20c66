//! One word of a run's command line, or the value of one variable: fixed text with at most one blank, which takes a
//! value of the adapter's or the path of a file in the run's own folder.

use std::fmt;
use std::str::FromStr;

use super::{Blanks, FillError, InvalidTemplate, Piece};

/// The longest value of a run, in bytes: Linux takes arguments up to 128 KiB, and the option before it counts too.
pub const LONGEST_RUN_VALUE: usize = 120 * 1024;

/// Text with at most one blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    text: Blanks,
}

/// What a slot's blank takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling<'s> {
    /// It has no blank.
    Nothing,
    /// A value of the adapter's.
    Value,
    /// The path of the file of this name in the run's own folder.
    File(&'s str),
}

impl FromStr for Slot {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Slot, InvalidTemplate> {
        let text_of_blanks = Blanks::parse(text)?;
        if text_of_blanks.count() > 1 {
            return Err(InvalidTemplate::ManyBlanks(text.to_owned()));
        }
        let slot = Slot { text: text_of_blanks };
        match slot.filling() {
            Filling::File(name) if !is_file_name(name) => Err(InvalidTemplate::NotAFile(name.to_owned())),
            Filling::File(_) | Filling::Value | Filling::Nothing => Ok(slot),
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Slot {
    /// What its blank takes.
    pub fn filling(&self) -> Filling<'_> {
        let blank = self.text.pieces.iter().find_map(|piece| match piece {
            Piece::Blank(name) => Some(name.as_str()),
            Piece::Literal(_) => None,
        });
        match blank.map(|name| (name, name.strip_prefix("file:"))) {
            None => Filling::Nothing,
            Some((_, Some(file))) => Filling::File(file),
            Some((_, None)) => Filling::Value,
        }
    }

    /// Fills a word of a command line. A value that would be read as an option does not fit.
    pub fn word(&self, value: &str) -> Result<String, FillError> {
        self.fill(value, |before, value| {
            if before.is_empty() && value.starts_with('-') { Err("it would be read as an option") } else { Ok(()) }
        })
    }

    /// Fills the value of a variable, in which `-` means nothing.
    pub fn value(&self, value: &str) -> Result<String, FillError> {
        self.fill(value, |_, _| Ok(()))
    }

    fn fill(&self, value: &str, fits: impl Fn(&str, &str) -> Result<(), &'static str>) -> Result<String, FillError> {
        let values = [value.to_owned()];
        self.text.fill(&mut values.iter(), |before, value| {
            if value.contains('\0') {
                Err("it holds a zero byte")
            } else if value.len() > LONGEST_RUN_VALUE {
                Err("it is too long for an argument; put it into a file")
            } else {
                fits(before, value)
            }
        })
    }
}

fn is_file_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 63 && !name.starts_with('.') && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, value: &str, expected: &str) {
        let outcome = match text.parse::<Slot>() {
            Ok(slot) => slot.word(value).unwrap_or_else(|error| error.to_string()),
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{text} {value}: {outcome}");
    }

    #[test]
    fn a_value_stays_in_its_word() {
        check("--model={name}", "-x", "--model=-x");
        check("{name}", "a b; c", "a b; c");
        check("{name}", "--config", "would be read as an option");
        check("{name}", "a\0", "zero byte");
        check("{name}", &"x".repeat(LONGEST_RUN_VALUE + 1), "too long for an argument");
        check("--print", "", "--print");
        check("{a}{b}", "", "more than one blank");
        check("{a", "", "opens a variable or a blank");
    }

    #[test]
    fn a_blank_says_what_it_takes() {
        let filling = |text: &str| format!("{:?}", text.parse::<Slot>().expect("a slot").filling());
        assert_eq!(filling("--verbose"), "Nothing");
        assert_eq!(filling("--model={name}"), "Value");
        assert_eq!(filling("--schema={file:schema.json}"), "File(\"schema.json\")");
        for name in ["", "..", ".hidden", "a/b", "../a", "a b"] {
            check(&format!("{{file:{name}}}"), "", "is not the name of a file");
        }
    }

    #[test]
    fn a_variable_may_begin_with_a_dash() {
        let slot: Slot = "{value}".parse().expect("a slot");
        assert_eq!(slot.value("-1").as_deref(), Ok("-1"));
        assert!(slot.value("a\0").is_err());
    }
}
