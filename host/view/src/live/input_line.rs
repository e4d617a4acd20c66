//! A line that a person types.

/// Text with a cursor in it. Line breaks come from what is pasted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputLine {
    text: String,
    /// A place between two characters, in bytes.
    cursor: usize,
}

impl InputLine {
    /// A line with a text, the cursor at its end.
    pub fn of(text: &str) -> InputLine {
        InputLine { text: text.to_owned(), cursor: text.len() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor, and that after it.
    pub fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    pub(crate) fn insert(&mut self, text: &str, most: usize) {
        let room = most.saturating_sub(self.text.len());
        let mut end = text.len().min(room);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.insert_str(self.cursor, &text[..end]);
        self.cursor += end;
    }

    pub(crate) fn left(&mut self) {
        self.cursor -= self.text[..self.cursor].chars().next_back().map_or(0, char::len_utf8);
    }

    pub(crate) fn right(&mut self) {
        self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
    }

    pub(crate) fn first(&mut self) {
        self.cursor = 0;
    }

    pub(crate) fn last(&mut self) {
        self.cursor = self.text.len();
    }

    /// Erases the character before the cursor.
    pub(crate) fn erase(&mut self) {
        let end = self.cursor;
        self.left();
        self.text.replace_range(self.cursor..end, "");
    }

    /// Erases the word before the cursor, with the spaces after it.
    pub(crate) fn erase_word(&mut self) {
        let before = self.text[..self.cursor].trim_end();
        let begin = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        self.text.replace_range(begin..self.cursor, "");
        self.cursor = begin;
    }

    /// Erases everything before the cursor.
    pub(crate) fn erase_all(&mut self) {
        self.text.replace_range(..self.cursor, "");
        self.cursor = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_edited_where_its_cursor_is() {
        let check = |edit: fn(&mut InputLine), expected: &str| {
            let mut line = InputLine::of("größe 日本 x");
            line.left();
            edit(&mut line);
            let (before, after) = line.parts();
            assert_eq!(format!("{before}|{after}"), expected);
        };
        check(|_| {}, "größe 日本 |x");
        check(|line| line.insert("語", 100), "größe 日本 語|x");
        check(|line| line.insert("too much", 18), "größe 日本 to|x");
        check(InputLine::erase, "größe 日本|x");
        check(InputLine::erase_word, "größe |x");
        check(InputLine::erase_all, "|x");
        check(InputLine::first, "|größe 日本 x");
        check(
            |line| {
                line.last();
                line.right();
            },
            "größe 日本 x|",
        );
    }

    proptest! {
        /// Whatever is typed in whatever order, the cursor is between two characters.
        #[test]
        fn no_edit_breaks_a_character(edits in proptest::collection::vec((0_u8..8, "\\PC{0,3}"), 0..40)) {
            let mut line = InputLine::default();
            for (edit, text) in edits {
                match edit {
                    0 | 1 => line.insert(&text, 30),
                    2 => line.left(),
                    3 => line.right(),
                    4 => line.erase(),
                    5 => line.erase_word(),
                    6 => line.first(),
                    _ => line.last(),
                }
                prop_assert!(line.text().is_char_boundary(line.parts().0.len()) && line.text().len() <= 30);
            }
        }
    }
}
