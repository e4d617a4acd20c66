//! Admits requests: the caller must address the server by a name of this machine, must not be a web page, and must
//! send the token.
//!
//! The Host header is checked because a web page can make its own host name resolve to this machine (DNS
//! rebinding); a numeric address cannot be rebound. The Origin header is checked because it is browsers that send it.
//! The server's own origin passes: no page comes from there, so it says nothing that the Host header does not.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::settings::{HttpSettings, Reach};

/// Checks requests by their headers.
pub(super) struct Admission {
    /// The token's digest. Digests are compared, so the time of the comparison reveals nothing about the token.
    token: Option<[u8; 32]>,
    reach: Reach,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// Its Host header is not one of our names.
    Host(String),
    /// It has no Host header.
    NoHost,
    /// It comes from a web page.
    Origin(String),
    /// It has no token.
    NoToken,
    /// It has a wrong token.
    WrongToken,
}

impl Admission {
    pub(super) fn new(settings: &HttpSettings) -> Admission {
        Admission {
            token: settings.token.as_ref().map(|token| digest(token.as_bytes())),
            reach: settings.reach,
            hosts: settings.hosts.clone(),
            origins: settings.origins.clone(),
        }
    }

    /// Whether a request may use the mesh.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        self.comes_from_here(headers)?;
        let Some(token) = &self.token else { return Ok(()) };
        let shown = headers.get(header::AUTHORIZATION).ok_or(Rejection::NoToken)?;
        let shown = bearer(shown.as_bytes()).ok_or(Rejection::NoToken)?;
        if digest(shown) == *token { Ok(()) } else { Err(Rejection::WrongToken) }
    }

    /// Whether the Host and Origin headers are allowed.
    pub(super) fn comes_from_here(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        let knows = |origin: &HeaderValue| self.knows(origin);
        self.comes_from(headers, knows)
    }

    /// The same, and if a page asks, it is one of this server's own.
    pub(super) fn comes_from_own_page(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        self.comes_from(headers, |_| false)
    }

    fn comes_from(&self, headers: &HeaderMap, knows: impl FnOnce(&HeaderValue) -> bool) -> Result<(), Rejection> {
        let host = headers.get(header::HOST).ok_or(Rejection::NoHost)?;
        let called = readable(host);
        if !called.parse::<Authority>().is_ok_and(|authority| self.is_ours(authority.host())) {
            return Err(Rejection::Host(called));
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if !is_own(origin, host) && !knows(origin) => Err(Rejection::Origin(readable(origin))),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the user has allowed the pages of an origin.
    pub(super) fn knows(&self, origin: &HeaderValue) -> bool {
        self.origins.iter().any(|known| known.as_bytes() == origin.as_bytes())
    }

    fn is_ours(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => {
                address.is_loopback()
                    || match self.reach {
                        Reach::Loopback => false,
                        Reach::Network => true,
                    }
            }
            Err(_) => {
                host.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(|name| name.eq_ignore_ascii_case(host))
            }
        }
    }
}

/// Whether an origin is this server, as the request itself addresses it.
fn is_own(origin: &HeaderValue, host: &HeaderValue) -> bool {
    origin.as_bytes().strip_prefix(b"http://").is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_bytes()))
}

/// The token in an Authorization header.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// A header for use in an answer: at most 100 characters, all printable ASCII.
fn readable(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).chars().filter(|c| c.is_ascii_graphic()).take(100).collect()
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let (status, sentence) = match self {
            Rejection::Host(host) => (
                StatusCode::FORBIDDEN,
                format!("`{host}` is not a name of this server; call it 127.0.0.1 or localhost\n"),
            ),
            Rejection::NoHost => (StatusCode::FORBIDDEN, "the request does not say which host it calls\n".to_owned()),
            Rejection::Origin(origin) => {
                let sentence = format!(
                    "web pages may not call this server, and `{origin}` is a web page; `origins` of [http] in your \
                     settings names those that may\n"
                );
                (StatusCode::FORBIDDEN, sentence)
            }
            Rejection::NoToken => (
                StatusCode::UNAUTHORIZED,
                "this server requires its token: send the header `Authorization: Bearer TOKEN`\n".to_owned(),
            ),
            Rejection::WrongToken => (
                StatusCode::UNAUTHORIZED,
                "the token is wrong; run `relay-mesh install` for your harness again to get it\n".to_owned(),
            ),
        };
        let mut response = (status, sentence).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"relay-mesh\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(settings: &HttpSettings, headers: &str, expected: Result<(), Rejection>) {
        let mut map = HeaderMap::new();
        for line in headers.split("; ") {
            let (name, value) = line.split_once(": ").expect("a name and a value");
            let name: axum::http::HeaderName = name.parse().expect("a header's name");
            map.insert(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header's value"));
        }
        assert_eq!(Admission::new(settings).admit(&map), expected, "{headers}");
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let settings = HttpSettings::default();
        for good in ["127.0.0.1:7423", "localhost", "LOCALHOST:80", "[::1]:7423", "127.9.9.9"] {
            check(&settings, &format!("host: {good}"), Ok(()));
        }
        for bad in
            ["evil.example", "evil.example:7423", "192.0.2.1", "localhost.evil.example", "127.0.0.1.evil.example"]
        {
            check(&settings, &format!("host: {bad}"), Err(Rejection::Host(bad.to_owned())));
        }
        check(&settings, "x-nothing: 1", Err(Rejection::NoHost));
        let open = HttpSettings { reach: Reach::Network, hosts: vec!["box.lan".to_owned()], ..settings };
        check(&open, "host: 192.0.2.1:7423", Ok(()));
        check(&open, "host: box.lan:7423", Ok(()));
        check(&open, "host: evil.example", Err(Rejection::Host("evil.example".to_owned())));
    }

    #[test]
    fn web_pages_are_turned_away_unless_they_are_named() {
        let settings = HttpSettings { origins: vec!["http://localhost:6274".to_owned()], ..HttpSettings::default() };
        check(&settings, "host: localhost; origin: http://localhost:6274", Ok(()));
        for page in ["http://localhost:3000", "null", "https://localhost:6274"] {
            let headers = format!("host: localhost; origin: {page}");
            check(&settings, &headers, Err(Rejection::Origin(page.to_owned())));
        }
    }

    #[test]
    fn the_servers_own_origin_is_no_web_page() {
        let settings = HttpSettings::default();
        for own in ["localhost:7423", "127.0.0.1:7423", "[::1]:7423"] {
            check(&settings, &format!("host: {own}; origin: http://{own}"), Ok(()));
        }
        check(&settings, "host: localhost:7423; origin: http://LOCALHOST:7423", Ok(()));
        // Another port, another name, another scheme, and a name that only resolves to this machine.
        for (host, origin) in [
            ("localhost:7423", "http://localhost:3000"),
            ("localhost:7423", "http://localhost"),
            ("localhost:7423", "http://127.0.0.1:7423"),
            ("localhost:7423", "https://localhost:7423"),
            ("localhost:7423", "http://localhost:7423.evil.example"),
            ("localhost:7423", "http://evil.example:7423"),
        ] {
            let rejected = Err(Rejection::Origin(origin.to_owned()));
            check(&settings, &format!("host: {host}; origin: {origin}"), rejected);
        }
        let rebound = Err(Rejection::Host("evil.example:7423".to_owned()));
        check(&settings, "host: evil.example:7423; origin: http://evil.example:7423", rebound);
    }

    #[test]
    fn a_page_that_may_call_is_not_the_servers_own() {
        let origins = vec!["http://localhost:6274".to_owned()];
        let admission = Admission::new(&HttpSettings { origins, ..HttpSettings::default() });
        let headers = |origin: &'static str| {
            let host = (header::HOST, HeaderValue::from_static("localhost:7423"));
            HeaderMap::from_iter([host, (header::ORIGIN, HeaderValue::from_static(origin))])
        };
        let allowed = headers("http://localhost:6274");
        assert_eq!(admission.comes_from_here(&allowed), Ok(()));
        assert_eq!(admission.comes_from_own_page(&allowed), Err(Rejection::Origin("http://localhost:6274".to_owned())));
        assert_eq!(admission.comes_from_own_page(&headers("http://localhost:7423")), Ok(()));
    }

    #[test]
    fn the_token_is_asked_for() {
        let settings = HttpSettings { token: Some("s3cret".to_owned()), ..HttpSettings::default() };
        check(&settings, "host: localhost; authorization: Bearer s3cret", Ok(()));
        check(&settings, "host: localhost; authorization: bearer  s3cret", Ok(()));
        check(&settings, "host: localhost; authorization: Bearer s3cre", Err(Rejection::WrongToken));
        check(&settings, "host: localhost; authorization: Bearer", Err(Rejection::NoToken));
        check(&settings, "host: localhost; authorization: Basic s3cret", Err(Rejection::NoToken));
        check(&settings, "host: localhost", Err(Rejection::NoToken));
    }
}
