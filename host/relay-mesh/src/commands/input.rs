//! Reads all of standard input, up to a limit.

use std::io::{self, Read};

use crate::errors::{CommandError, Failure, StreamError};
use crate::exit::Exit;

/// All of standard input as text, without the final line break.
pub(crate) fn text(limit: usize) -> Result<String, CommandError> {
    let mut bytes = up_to(limit.saturating_add("\r\n".len()))?;
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    if bytes.len() > limit {
        return Err(too_long(limit));
    }
    String::from_utf8(bytes).map_err(|error| {
        CommandError::from(Failure {
            what: "standard input is not text in UTF-8".to_owned(),
            hint: Some("send the path of the file instead".to_owned()),
            exit: Exit::Usage,
            source: Some(Box::new(error)),
        })
    })
}

/// All of standard input; an error if it is longer than `limit`.
pub(crate) fn bytes(limit: usize) -> Result<Vec<u8>, CommandError> {
    let bytes = up_to(limit)?;
    if bytes.len() > limit { Err(too_long(limit)) } else { Ok(bytes) }
}

/// Up to `limit` + 1 bytes of standard input, so that the caller can tell too much from exactly `limit`.
fn up_to(limit: usize) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    io::stdin().lock().take(one_more).read_to_end(&mut bytes).map_err(StreamError::Input)?;
    Ok(bytes)
}

fn too_long(limit: usize) -> CommandError {
    CommandError::from(Failure {
        what: format!("standard input holds more than {limit} bytes, which is the limit"),
        hint: Some("put the text into a file that both can read, and send its path".to_owned()),
        exit: Exit::Usage,
        source: None,
    })
}
