//! The format of a data folder. The file `format` names a later one; a folder without it has the format that 0.1 began
//! with. A version that writes what earlier ones would misread puts its number there first.

use std::fs;
use std::path::Path;

/// The latest format that this version reads and writes.
pub(crate) const KNOWN: u32 = 1;
const FILE: &str = "format";
/// The longest part of an unknown format that is shown, in characters.
const SHOWN: usize = 20;

/// The format of a folder, in its own words, if this version does not know it.
pub(crate) fn unknown(folder: &Path) -> Option<String> {
    // Without the file, or a folder, there is nothing to know. Whatever cannot be read is for the store to say.
    let bytes = fs::read(folder.join(FILE)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    let is_known = text.parse::<u32>().is_ok_and(|format| format <= KNOWN);
    (!is_known).then(|| text.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_a_later_format_is_unknown_and_one_without_a_file_is_of_today() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(unknown(folder.path()), None);
        assert_eq!(unknown(&folder.path().join("missing")), None);
        for (text, expected) in [
            ("1\n", None),
            ("0", None),
            ("2\n", Some("2")),
            ("2.1 \u{1b}[2Jwith words that go on", Some("2.1 [2Jwith words th")),
            ("", Some("")),
        ] {
            fs::write(folder.path().join(FILE), text).expect("writable");
            assert_eq!(unknown(folder.path()).as_deref(), expected, "{text:?}");
        }
    }
}
