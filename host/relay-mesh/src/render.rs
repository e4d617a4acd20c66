//! The only file that prints. Standard output is data, standard error is talk. Colour never carries meaning alone, and
//! a reader that went away is not reported.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use store::{causes, reasons};

use crate::environment::Environment;
use crate::errors::{CommandError, StreamError, in_folder};
use crate::exit::Exit;
use crate::screen::{self, ColourWhen, Screen};

/// A command's result, shown as text or as JSON.
pub(crate) trait Show: Serialize {
    /// Text for people: whole lines, without the final line break. Nothing is cut and nothing left out.
    fn text(&self) -> String;

    /// The same for a terminal, if it is another text there.
    fn text_on(&self, _screen: &Screen) -> String {
        self.text()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Printer {
    format: Format,
    talk: Talk,
    /// Whether error labels may be coloured.
    colour: Colour,
    /// The terminal of standard output; none in a pipe.
    screen: Option<Screen>,
    /// How wide the terminal of standard error is; none in a pipe.
    columns_of_errors: Option<usize>,
    /// The data folder that the user named by `--dir`: commands that are told are for that one.
    folder: Option<Arc<Path>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// The shapes of [`crate::shapes`].
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Talk {
    /// Also notes and next steps.
    Normal,
    /// Only data and errors.
    Quiet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Plain,
    Ansi,
}

impl Printer {
    pub(crate) fn new(format: Format, talk: Talk, when: ColourWhen, environment: &Environment) -> Printer {
        let ansi = match when {
            ColourWhen::Always => true,
            ColourWhen::Never => false,
            ColourWhen::Auto => environment.get("NO_COLOR").is_none() && io::stderr().is_terminal(),
        };
        let colour = if ansi { Colour::Ansi } else { Colour::Plain };
        let columns_of_errors = screen::columns_of_errors(environment);
        Printer { format, talk, colour, screen: Screen::of(environment, when), columns_of_errors, folder: None }
    }

    /// The same, for a user who has named the data folder by `--dir`.
    pub(crate) fn in_folder(self, named: Option<&Path>) -> Printer {
        Printer { folder: named.map(Arc::from), ..self }
    }

    /// A text of ours, whose commands are for the user's data folder.
    fn for_user<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.folder {
            None => Cow::Borrowed(text),
            Some(folder) => Cow::Owned(in_folder(text, folder)),
        }
    }

    /// The terminal of standard output; none in a pipe.
    pub(crate) fn screen(&self) -> Option<Screen> {
        self.screen
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn show(&self, shown: &impl Show) -> Result<(), CommandError> {
        match self.format {
            Format::Text => {
                let mut text = self.screen.map_or_else(|| shown.text(), |screen| shown.text_on(&screen));
                if text.is_empty() {
                    return Ok(());
                }
                end_last_line(&mut text);
                self.bytes(text.as_bytes())
            }
            Format::Json => self.line(shown),
        }
    }

    /// Prints one line of JSON to standard output and flushes it.
    pub(crate) fn line(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
        line.push(b'\n');
        self.bytes(&line)
    }

    /// Prints text to standard output, adds a final line break if missing, and flushes.
    pub(crate) fn data(&self, text: &str) -> Result<(), CommandError> {
        let mut text = text.to_owned();
        end_last_line(&mut text);
        self.bytes(text.as_bytes())
    }

    /// Prints sentences to standard output, on a terminal broken between words.
    pub(crate) fn sentences(&self, text: &str) -> Result<(), CommandError> {
        match &self.screen {
            Some(screen) => self.data(&screen.sentences(text)),
            None => self.data(text),
        }
    }

    /// Writes bytes to standard output as they are, and flushes them.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| StreamError::Output(error).into())
    }

    /// Prints a note to standard error, on a terminal broken between words, unless quiet.
    pub(crate) fn say(&self, text: &str) {
        let text = self.for_user(text);
        match (self.talk, self.columns_of_errors) {
            (Talk::Quiet, _) => {}
            (Talk::Normal, None) => last_words(&text),
            (Talk::Normal, Some(columns)) => last_words(&screen::sentences(&text, columns)),
        }
    }

    /// Prints a warning to standard error, unless quiet.
    pub(crate) fn warn(&self, text: &str) {
        match self.talk {
            Talk::Quiet => {}
            Talk::Normal => self.warn_of_failure(text),
        }
    }

    /// Prints a warning to standard error, even if quiet: it says why the command does not end with success.
    pub(crate) fn warn_of_failure(&self, text: &str) {
        let (label, columns, text) = ("warning", self.columns_of_errors.unwrap_or(usize::MAX), self.for_user(text));
        last_words(&screen::labelled(&format!("{}: ", self.paint(label, "33")), label.len() + 2, &text, columns));
    }

    /// Writes to standard error unchanged, for a harness that reads it.
    pub(crate) fn on_standard_error(&self, text: &str) {
        // Standard error may be closed; then there is nobody to tell.
        let _unheard = io::stderr().write_all(text.as_bytes());
    }

    /// Prints an error, its causes and its hint, each once and on its own line.
    pub(crate) fn error(&self, error: &CommandError) {
        let causes = causes(error);
        let hint = error.hint().map(|hint| self.for_user(&hint).into_owned());
        match self.format {
            Format::Text => {
                let columns = self.columns_of_errors.unwrap_or(usize::MAX);
                let broken = |word: &str, code: &str, text: &str| {
                    screen::labelled(&format!("{}: ", self.paint(word, code)), word.len() + 2, text, columns)
                };
                let mut text = broken("error", "31", &printable(&error.to_string()));
                for cause in causes {
                    let label = "  caused by: ";
                    let cause = screen::labelled(label, label.len(), &printable(&cause), columns);
                    let _infallible = write!(text, "\n{cause}");
                }
                if let Some(hint) = hint {
                    let _infallible = write!(text, "\n{}", broken("hint", "36", &printable(&hint)));
                }
                last_words(&text);
            }
            Format::Json => {
                let told = serde_json::json!({
                    "error": error.to_string(), "causes": causes, "hint": hint, "exit": error.exit().code(),
                });
                last_words(&told.to_string());
            }
        }
    }

    /// Prints the error on one line, for a harness's log.
    pub(crate) fn error_line(&self, error: &CommandError) {
        last_words(&format!("relay-mesh: {}", printable_line(&reasons(error))));
    }

    fn paint(&self, word: &str, code: &str) -> String {
        match self.colour {
            Colour::Plain => word.to_owned(),
            Colour::Ansi => format!("\u{1b}[1;{code}m{word}\u{1b}[0m"),
        }
    }
}

fn end_last_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// The first paragraph of clap's error, which names the argument, on one line.
pub(crate) fn what_is_wrong(usage: &str) -> String {
    let lines: Vec<&str> = usage.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// Prints clap's error about a command line in the JSON shape of every other error.
pub(crate) fn usage_as_json(usage: &str) {
    let tip = usage.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let hint = tip.unwrap_or("see what `--help` says of this command");
    let told = serde_json::json!({
        "error": what_is_wrong(usage), "causes": [], "hint": hint, "exit": Exit::Usage.code(),
    });
    last_words(&told.to_string());
}

/// Writes one line to standard error without a printer. Unlike `eprintln!` it does not panic if standard error is
/// closed.
pub(crate) fn last_words(text: &str) {
    // Standard error may be closed; then there is nobody to tell.
    let _unheard = writeln!(io::stderr(), "{text}");
}

/// Makes untrusted text safe for a terminal: escapes control characters, so that no message can move the cursor, set a
/// title or hide text. Line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        let reorders = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (character.is_control() && character != '\n' && character != '\t') || reorders {
            safe.extend(character.escape_unicode());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Whether text is only visible ASCII and spaces, as nearly all table cells are.
fn is_plain(text: &str) -> bool {
    // No early return, so that the loop can be vectorised.
    text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

/// The same for one line.
pub(crate) fn printable_line(text: &str) -> String {
    on_one_line(text).into_owned()
}

/// The same, without copying plain text.
pub(crate) fn on_one_line(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(printable(text).replace(['\n', '\t'], " "))
}

/// How wide a line of untrusted text may be. A terminal that broke a longer one could be made to show a line that looks
/// like one of ours.
const FRAMED: usize = 76;

/// Untrusted text in lines that all begin with a bar, broken here so that no terminal breaks them.
pub(crate) fn framed(text: &str) -> String {
    let mut framed = String::new();
    for line in printable(text).split('\n') {
        let mut width = 0;
        framed.push_str("\n  | ");
        for character in line.chars() {
            let (character, columns) = match character {
                '\t' => (' ', 1),
                // Nearly all characters that take two columns are above these.
                other => (other, if other >= '\u{1100}' { 2 } else { 1 }),
            };
            if width + columns > FRAMED {
                framed.push_str("\n  | ");
                width = 0;
            }
            framed.push(character);
            width += columns;
        }
    }
    framed
}

/// Estimated bytes per row.
const WIDE: usize = 64;

/// Rows in columns, each as wide as its widest cell, two spaces apart; the last column is not padded.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new(head, rows.len());
    for row in rows {
        row.iter().for_each(|cell| table.cell(cell));
    }
    table.text()
}

/// A table for thousands of rows: all cells share one string.
pub(crate) struct Table {
    columns: usize,
    cells: String,
    /// End offset and width of each cell.
    ends: Vec<(usize, usize)>,
}

impl Table {
    /// A table with its head, and capacity for `rows` rows.
    pub(crate) fn new(head: &[&str], rows: usize) -> Table {
        let columns = head.len();
        let (cells, ends) = (String::with_capacity(rows * WIDE), Vec::with_capacity((rows + 1) * columns));
        let mut table = Table { columns, cells, ends };
        head.iter().for_each(|cell| table.cell(cell));
        table
    }

    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [&str; COLUMNS]) {
        cells.iter().for_each(|cell| self.cell(cell));
    }

    fn cell(&mut self, cell: &str) {
        self.cells.push_str(cell);
        let width = if cell.is_ascii() { cell.len() } else { cell.chars().count() };
        self.ends.push((self.cells.len(), width));
    }

    /// The lines, without the final line break.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.onto(&mut text);
        text
    }

    /// Appends the lines to a text, without the final line break.
    pub(crate) fn onto(&self, text: &mut String) {
        let mut widths = vec![0; self.columns];
        for row in self.ends.chunks(self.columns) {
            widths.iter_mut().zip(row).for_each(|(widest, (_, width))| *widest = (*widest).max(*width));
        }
        let longest = widths.iter().sum::<usize>() + 2 * self.columns;
        text.reserve(longest * self.ends.len() / self.columns.max(1));
        let spaces = " ".repeat(longest);
        let mut begin = 0;
        for row in self.ends.chunks(self.columns) {
            for ((end, width), widest) in row.iter().zip(&widths) {
                text.push_str(&self.cells[begin..*end]);
                text.push_str(&spaces[..widest - width + 2]);
                begin = *end;
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text.truncate(text.len() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_text_cannot_steer_a_terminal() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("over\rwritten", "over\\u{d}written"),
            ("\u{202e}backwards", "\\u{202e}backwards"),
            ("größer → ok", "größer → ok"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn what_is_asked_cannot_look_like_a_line_of_ours() {
        assert_eq!(framed("one\ntwo"), "\n  | one\n  | two");
        assert_eq!(framed("a\u{1b}[2Jb\rc"), "\n  | a\\u{1b}[2Jb\\u{d}c");
        let forged = format!("{}01JD8Z3K5V0000000000000000  you allowed this", " ".repeat(FRAMED));
        assert!(framed(&forged).lines().skip(1).all(|line| line.starts_with("  | ") && line.len() <= 80));
        assert!(framed(&"字".repeat(200)).lines().all(|line| line.chars().count() <= 42));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".to_owned(), "bb".to_owned()], vec!["ccc".to_owned(), String::new()]];
        assert_eq!(table(&["x", "y"], &rows), "x    y\na    bb\nccc");
    }

    #[test]
    fn a_cause_is_said_once() {
        let inner = io::Error::other("the disk is full");
        let store = store::StoreError::Io { doing: "could not append to", what: "inbox".to_owned(), source: inner };
        let error = CommandError::from(mesh::FetchError::Store(store));
        assert_eq!(error.to_string(), "the inbox could not be read");
        assert_eq!(causes(&error), ["could not append to inbox", "the disk is full"]);
    }
}
