//! Standard input, read whole and within bounds.

use std::io::{self, Read};

use crate::errors::{CommandError, Failure, StreamError};
use crate::exit::Exit;

/// All of standard input as text, without the last line's end.
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

/// All of standard input, refused where it is longer than `limit`.
pub(crate) fn bytes(limit: usize) -> Result<Vec<u8>, CommandError> {
    let bytes = up_to(limit)?;
    if bytes.len() > limit { Err(too_long(limit)) } else { Ok(bytes) }
}

/// Standard input up to one byte more than `limit`, so that more is told from just as much.
fn up_to(limit: usize) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    io::stdin().lock().take(one_more).read_to_end(&mut bytes).map_err(StreamError::Input)?;
    Ok(bytes)
}

fn too_long(limit: usize) -> CommandError {
    CommandError::from(Failure {
        what: format!("standard input holds more than the {limit} bytes that are taken"),
        hint: Some("put the text into a file that both can read, and send its path".to_owned()),
        exit: Exit::Usage,
        source: None,
    })
}
