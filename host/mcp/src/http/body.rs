//! Reads a request's body whole, within a time and a length.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// The most bytes of a body that is too long which are still read, so that the client has sent it and reads the answer.
const MOST_DISCARDED: usize = 1024 * 1024 * 1024;

/// A body of at most `longest` bytes that arrives in time; else the answer that says what was wrong with it.
pub(super) async fn whole(body: Body, longest: usize, timeout: Duration) -> Result<Bytes, Response> {
    match tokio::time::timeout(timeout, read(body, longest)).await {
        Ok(read) => read,
        Err(_) => Err(told(StatusCode::REQUEST_TIMEOUT, "the body of the request did not arrive in time\n".to_owned())),
    }
}

async fn read(mut body: Body, longest: usize) -> Result<Bytes, Response> {
    let (mut collected, mut length) = (Vec::new(), 0_usize);
    while let Some(frame) = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| told(StatusCode::BAD_REQUEST, format!("the body broke off: {error}\n")))?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length <= longest {
            collected.extend_from_slice(&data);
        } else if length > MOST_DISCARDED {
            break;
        } else {
            collected = Vec::new();
        }
    }
    if length > longest {
        let sentence = format!("the body of a request may have {longest} bytes\n");
        return Err(told(StatusCode::PAYLOAD_TOO_LARGE, sentence));
    }
    Ok(collected.into())
}

fn told(status: StatusCode, sentence: String) -> Response {
    (status, sentence).into_response()
}
