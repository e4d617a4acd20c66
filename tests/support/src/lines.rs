//! What a program writes, line by line, with a deadline: a program that falls silent fails the test
//! that listens to it and does not hang it.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use crate::waiting::PATIENCE;

/// The lines of a pipe.
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    /// Reads a pipe to its end on a thread of its own, which ends with the pipe.
    pub(crate) fn of(pipe: impl Read + Send + 'static) -> Lines {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines() {
                // Neither an end of the pipe nor one of the test is a fault here.
                if line.map(|line| sender.send(line)).is_err() {
                    return;
                }
            }
        });
        Lines(receiver)
    }

    /// The next line; none at the end.
    ///
    /// # Panics
    /// Where the program says nothing for [`PATIENCE`].
    pub(crate) fn next(&self) -> Option<String> {
        match self.0.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("a program said nothing for {} s", PATIENCE.as_secs()),
        }
    }
}
