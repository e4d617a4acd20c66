//! What a driven agent was told, did and said: one JSON line each, in its folder. It is for people; nothing is decided by
//! it, and losing it costs nothing else.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use mesh::ports::driver::{Operation, TurnEnd, UserAnswer};
use mesh::ports::machine::Instant;
use serde::{Deserialize, Serialize};

use crate::unix;

/// The length from which it is moved to a second file, in the place of the one before.
const LONGEST: u64 = 8 << 20;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TranscriptLine {
    pub(crate) at: Instant,
    #[serde(flatten)]
    pub(crate) what: Happening,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub(crate) enum Happening {
    /// Its session began, or goes on.
    Opened {
        session: String,
        resumed: bool,
    },
    /// It was told something: by its user if `from` is none.
    Told {
        from: Option<String>,
        text: String,
    },
    TurnStarted,
    /// A whole message of it.
    Said {
        text: String,
    },
    /// It began something, or has ended it.
    Item {
        id: String,
        operation: Option<Operation>,
        succeeded: Option<bool>,
        detail: Option<String>,
    },
    /// What has changed since the turn began.
    Diff {
        diff: String,
    },
    TurnEnded {
        end: TurnEnd,
    },
    /// It asks its user.
    Asks {
        question: String,
        operation: Operation,
        reason: Option<String>,
    },
    /// It was answered, or nobody has to any more.
    Settled {
        question: String,
        answer: Option<UserAnswer>,
    },
    Note {
        text: String,
    },
    /// Its program has ended.
    Gone {
        why: String,
    },
    /// It is over.
    Ended {
        why: String,
    },
}

/// The transcript of one agent, as its driver writes it.
pub(super) struct Transcript {
    path: PathBuf,
    /// None after an error, such as a full disk: the agent goes on.
    file: Option<File>,
    length: u64,
}

impl Transcript {
    pub(super) fn open(path: PathBuf) -> Transcript {
        let file = opened(&path);
        let length = file.as_ref().ok().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        Transcript { path, file: file.ok(), length }
    }

    pub(super) fn note(&mut self, at: Instant, what: Happening) {
        let Ok(mut line) = serde_json::to_vec(&TranscriptLine { at, what }) else { return };
        line.push(b'\n');
        if self.length > LONGEST && std::fs::rename(&self.path, before(&self.path)).is_ok() {
            self.file = opened(&self.path).ok();
            self.length = 0;
        }
        let written = self.file.as_mut().map(|file| file.write_all(&line));
        match written {
            Some(Ok(())) => self.length += line.len() as u64,
            Some(Err(error)) => {
                tracing::warn!(%error, "the transcript of a driven agent has a gap");
                self.file = opened(&self.path).ok();
            }
            None => self.file = opened(&self.path).ok(),
        }
    }
}

fn opened(path: &Path) -> io::Result<File> {
    unix::append_to_private_file(path)
}

/// Where the older half is.
fn before(path: &Path) -> PathBuf {
    path.with_extension("1.jsonl")
}

/// Reads a transcript, and what is added to it.
pub(crate) struct TranscriptReader {
    path: PathBuf,
    /// How much of the file was read; none before the older half.
    read: Option<u64>,
}

impl TranscriptReader {
    pub(crate) fn of(path: PathBuf) -> TranscriptReader {
        TranscriptReader { path, read: None }
    }

    /// The lines that were not read yet. One that is not whole is left for the next time, and one that is torn is left
    /// out.
    pub(crate) fn more(&mut self) -> Vec<TranscriptLine> {
        let length = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        let mut lines = Vec::new();
        match self.read {
            None => drop(read_from(&before(&self.path), 0, &mut lines)),
            // It was moved meanwhile.
            Some(read) if read > length => drop(read_from(&before(&self.path), read, &mut lines)),
            Some(_) => {}
        }
        let from = self.read.filter(|read| *read <= length).unwrap_or(0);
        self.read = Some(from + read_from(&self.path, from, &mut lines));
        lines
    }
}

/// Reads the whole lines from a position on. Returns how many bytes they have.
fn read_from(path: &Path, from: u64, lines: &mut Vec<TranscriptLine>) -> u64 {
    let Ok(mut file) = File::open(path) else { return 0 };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return 0;
    }
    let (mut file, mut line, mut bytes) = (BufReader::new(file), String::new(), 0);
    while file.read_line(&mut line).is_ok() && line.ends_with('\n') {
        bytes += line.len() as u64;
        lines.extend(serde_json::from_str(&line).ok());
        line.clear();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_bounded_and_a_torn_line_costs_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("transcript.jsonl");
        let said = |text: String| Happening::Said { text };
        let mut transcript = Transcript::open(path.clone());
        transcript.note(Instant(1), said("one".to_owned()));
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(b"{\"at\":2,\"ev\n"))
            .expect("torn");
        let mut transcript = Transcript::open(path.clone());
        transcript.note(Instant(3), Happening::TurnStarted);
        let read = |path: &Path| TranscriptReader::of(path.to_owned()).more();
        assert_eq!(read(&path).len(), 2);
        let mut following = TranscriptReader::of(path.clone());
        assert_eq!((following.more().len(), following.more().len()), (2, 0));
        transcript.note(Instant(4), Happening::TurnStarted);
        assert_eq!(following.more().len(), 1, "only what is new");
        for number in 0..40 {
            transcript.note(Instant(number), said("x".repeat(1 << 20)));
        }
        let length: u64 = std::fs::read_dir(folder.path())
            .expect("a list")
            .map(|entry| entry.and_then(|entry| entry.metadata()).expect("there").len())
            .sum();
        assert!(length < 3 * LONGEST, "{length}");
        assert_eq!(read(&path).last().map(|line| line.at), Some(Instant(39)));
        assert_eq!(following.more().last().map(|line| line.at), Some(Instant(39)), "also after it was moved");
    }
}
