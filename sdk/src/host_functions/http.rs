//! Requests to the origins that the manifest names.

use crate::Error;
#[cfg(target_arch = "wasm32")]
use crate::bindings::relay::adapter::http as host;
pub use crate::bindings::relay::adapter::http::{Request, Response};

/// Sends one request. The host follows no redirects. Every HTTP status is a response, not an error.
///
/// ```
/// use relay_mesh_sdk::http::{self, Request, Response};
/// # use relay_mesh_sdk::testing::Fakes;
/// # Fakes::default().origin("opencode", |_| Response { status: 204, headers: vec![], body: vec![] }).start();
/// let request = Request::new("opencode", "POST", "/session/s1/prompt").value("4096").json("{}");
/// assert_eq!(http::send(request)?.status, 204);
/// # Ok::<(), relay_mesh_sdk::Error>(())
/// ```
pub fn send(request: Request) -> Result<Response, Error> {
    #[cfg(target_arch = "wasm32")]
    return host::send(&request);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::answer_request(&request);
}

impl Request {
    /// A request without a body to one of the manifest's `grants.origins`.
    pub fn new(origin: &str, method: &str, path: impl Into<String>) -> Request {
        Request {
            origin: origin.to_owned(),
            values: Vec::new(),
            method: method.to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Fills the origin's next blank, such as a port.
    pub fn value(mut self, value: impl Into<String>) -> Request {
        self.values.push(value.into());
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Request {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets a body of JSON text and its content type.
    pub fn json(mut self, body: impl Into<String>) -> Request {
        self.body = body.into().into_bytes();
        self.header("content-type", "application/json")
    }
}
