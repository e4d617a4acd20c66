//! Lets the web pages that the user has allowed read our answers. The user's browser asks on their behalf.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::admission::Admission;

/// What a page may send.
const METHODS: &str = "GET, POST, DELETE";
const HEADERS: &str =
    "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id";
/// What it may read besides the body.
const EXPOSED: &str = "mcp-session-id";

/// The origin of the page that a request comes from, if the user has allowed it.
pub(super) fn page(admission: &Admission, headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(header::ORIGIN).filter(|origin| admission.knows(origin)).cloned()
}

/// The answer to a browser that asks what an allowed page may send.
pub(super) fn preflight(admission: &Admission, request: &Request) -> Option<Response> {
    let asks =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks || admission.comes_from_here(request.headers()).is_err() {
        return None;
    }
    let page = page(admission, request.headers())?;
    let mut response = readable_by(Some(page), StatusCode::NO_CONTENT.into_response());
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
    Some(response)
}

/// The same response, which a browser shows to the page.
pub(super) fn readable_by(page: Option<HeaderValue>, mut response: Response) -> Response {
    if let Some(page) = page {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}
