//! Lines of a file that a program is still writing.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// A line without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadLine {
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Its end was left out because it was too long.
    pub cut: bool,
}

/// Reads a growing file line by line, and never holds more than one line of the longest length and one chunk.
#[derive(Debug)]
pub struct LineReader {
    file: File,
    longest: usize,
    chunk: Vec<u8>,
    /// The line that has no end yet.
    open: Vec<u8>,
    is_cut: bool,
}

impl LineReader {
    /// A reader from the beginning of a file. Longer lines are cut to `longest` bytes.
    pub fn open(path: &Path, longest: usize) -> io::Result<LineReader> {
        Ok(LineReader { file: File::open(path)?, longest, chunk: vec![0; CHUNK], open: Vec::new(), is_cut: false })
    }

    /// The further whole lines of at most one chunk; empty if there is nothing new. `Ok(None)` if nothing was read.
    pub fn more(&mut self) -> io::Result<Option<Vec<ReadLine>>> {
        let read = self.file.read(&mut self.chunk)?;
        if read == 0 {
            return Ok(None);
        }
        let mut lines = Vec::new();
        let chunk = std::mem::take(&mut self.chunk);
        let mut rest = &chunk[..read];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.take(&rest[..end]);
            lines.push(self.line());
            rest = &rest[end + 1..];
        }
        self.take(rest);
        self.chunk = chunk;
        Ok(Some(lines))
    }

    /// The last line, if the file ends without a line break.
    pub fn last(&mut self) -> Option<ReadLine> {
        (!self.open.is_empty()).then(|| self.line())
    }

    fn take(&mut self, bytes: &[u8]) {
        let free = self.longest.saturating_sub(self.open.len());
        self.open.extend_from_slice(&bytes[..bytes.len().min(free)]);
        self.is_cut |= bytes.len() > free;
    }

    fn line(&mut self) -> ReadLine {
        let mut bytes = std::mem::take(&mut self.open);
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
        let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into());
        ReadLine { text, cut: std::mem::take(&mut self.is_cut) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_come_when_they_are_whole_and_long_ones_are_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output");
        let mut file = File::create(&path).expect("made");
        let mut reader = LineReader::open(&path, 10).expect("opened");
        let mut write = |text: &str| file.write_all(text.as_bytes()).expect("written");
        let mut check = |expected: &[(&str, bool)]| {
            let lines = reader.more().expect("read").unwrap_or_default();
            let lines: Vec<_> = lines.iter().map(|line| (line.text.as_str(), line.cut)).collect();
            assert_eq!(lines, expected);
        };
        check(&[]);
        write("one\ntw");
        check(&[("one", false)]);
        write("o\r\n\n");
        check(&[("two", false), ("", false)]);
        write("0123456789\n0123456789a\n");
        check(&[("0123456789", false), ("0123456789", true)]);
        write("012345");
        check(&[]);
        write("6789abc\nthe rest");
        check(&[("0123456789", true)]);
        assert_eq!(reader.last(), Some(ReadLine { text: "the rest".to_owned(), cut: false }));
        assert_eq!(reader.last(), None);
    }

    #[test]
    fn a_line_of_many_chunks_is_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output");
        std::fs::write(&path, format!("{}\nb\n", "a".repeat(3 * CHUNK))).expect("written");
        let mut reader = LineReader::open(&path, usize::MAX).expect("opened");
        let mut lines = Vec::new();
        while let Some(more) = reader.more().expect("read") {
            lines.extend(more);
        }
        assert_eq!(lines.iter().map(|line| line.text.len()).collect::<Vec<_>>(), [3 * CHUNK, 1]);
    }
}
