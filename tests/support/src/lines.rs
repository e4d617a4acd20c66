//! A program's output line by line, with a deadline: a program that falls silent fails the test instead of hanging it.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use crate::waiting::PATIENCE;

pub(crate) struct Lines(Receiver<String>);

impl Lines {
    /// Reads a pipe on a new thread, which ends with the pipe.
    pub(crate) fn of(pipe: impl Read + Send + 'static) -> Lines {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines() {
                // The end of the pipe or of the test is no error here.
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
    /// If the program writes nothing for [`PATIENCE`].
    pub(crate) fn next(&self) -> Option<String> {
        match self.0.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("a program said nothing for {} s", PATIENCE.as_secs()),
        }
    }
}
