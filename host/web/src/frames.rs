//! Server-sent events, as they go over the wire.

use axum::body::Bytes;
use serde::Serialize;

/// Data of an event or an answer: JSON on one line.
pub(crate) fn data(value: &impl Serialize) -> Bytes {
    // Shapes of ours have string keys and no numbers that JSON lacks.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Adds an event.
pub(crate) fn event(kind: &str, json: &[u8], frames: &mut Vec<u8>) {
    for part in [b"event: ", kind.as_bytes(), b"\ndata: ", json, b"\n\n"] {
        frames.extend_from_slice(part);
    }
}

/// Adds an event that a client which comes back names as the last one that it has.
pub(crate) fn event_with_id(kind: &str, id: &str, json: &[u8], frames: &mut Vec<u8>) {
    for part in [b"id: ", id.as_bytes(), b"\n"] {
        frames.extend_from_slice(part);
    }
    event(kind, json, frames);
}
