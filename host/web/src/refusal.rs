//! Why a page does not get what it asked for.

use std::error::Error;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::frames::data;

/// A status, a sentence, and what to do.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: String,
    hint: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn of(status: StatusCode, error: &str) -> Refusal {
        Refusal { status, error: error.to_owned(), hint: None }
    }

    /// The browser has no secrets, or wrong ones.
    pub(crate) fn signed_out(error: &str) -> Refusal {
        let hint = Some("`relay-mesh ui --web` in a terminal of this machine opens a page that is signed in");
        Refusal { hint, ..Refusal::of(StatusCode::UNAUTHORIZED, error) }
    }

    /// The mesh cannot be read.
    pub(crate) fn unreadable(why: String) -> Refusal {
        Refusal { status: StatusCode::SERVICE_UNAVAILABLE, error: why, hint: None }
    }

    /// Something of this machine went wrong.
    pub(crate) fn failed(what: &str, error: &dyn Error) -> Refusal {
        tracing::error!(%error, "{what} has failed");
        Refusal::of(StatusCode::INTERNAL_SERVER_ERROR, &format!("{what} has failed: {error}"))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut said = json!({"error": self.error});
        if let Some(hint) = self.hint {
            said["hint"] = hint.into();
        }
        (self.status, [(header::CONTENT_TYPE, "application/json")], data(&said)).into_response()
    }
}
