//! How a registry is shown who asks: it refuses with a challenge, which says where a token is to be had.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use serde::Deserialize;
use url::Url;
use url::form_urlencoded::Serializer;

use super::credentials::{Login, Logins};
use super::error::RegistryError;
use crate::client::{Client, FetchError, Request, may_follow};

/// The longest answer of a server of tokens, in bytes.
const LONGEST: u64 = 256 * 1024;

/// What a refusal asks for.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer {
        /// Where tokens are given.
        realm: Url,
        service: Option<String>,
        scope: Option<String>,
    },
}

#[derive(Deserialize)]
struct Token {
    #[serde(default, alias = "access_token")]
    token: String,
}

/// What to show with the next request.
pub(super) struct Shown {
    pub(super) header: HeaderValue,
    /// The user of the login that was used for it.
    pub(super) user: Option<String>,
}

/// Answers a refusal. `scope` is what is asked for if the registry does not say.
pub(super) async fn answer(
    client: &Client,
    logins: &Logins,
    at: &Url,
    registry: &str,
    refusal: &HeaderMap,
    scope: &str,
) -> Result<Shown, RegistryError> {
    let login = logins.of(registry).await?;
    let user = login.as_ref().map(Login::user);
    match challenge(at, registry, refusal)? {
        Challenge::Basic => match login {
            Some(Login::Password { user: name, password }) => Ok(Shown { header: basic(&name, &password)?, user }),
            Some(Login::Refresh(_)) | None => Err(RegistryError::Denied { registry: registry.to_owned(), used: None }),
        },
        Challenge::Bearer { realm, service, scope: wanted } => {
            let scope = wanted.as_deref().unwrap_or(scope);
            let request = request(realm, service.as_deref(), scope, login)?;
            let answer = client.send(request).await?.good().map_err(|error| match error {
                FetchError::Status { status, .. } if matches!(status.as_u16(), 400 | 401 | 403) => {
                    RegistryError::Denied { registry: registry.to_owned(), used: user.clone() }
                }
                error => error.into(),
            })?;
            let malformed =
                |why: String| RegistryError::Malformed { registry: registry.to_owned(), what: "token", why };
            let token: Token = serde_json::from_slice(&answer.body).map_err(|error| malformed(error.to_string()))?;
            if token.token.is_empty() {
                return Err(malformed("there is none in it".to_owned()));
            }
            Ok(Shown { header: secret(&format!("Bearer {}", token.token))?, user })
        }
    }
}

fn request(mut realm: Url, service: Option<&str>, scope: &str, login: Option<Login>) -> Result<Request, RegistryError> {
    match login {
        Some(Login::Refresh(token)) => {
            let mut form = Serializer::new(String::new());
            form.append_pair("grant_type", "refresh_token").append_pair("client_id", "relay-mesh");
            form.append_pair("refresh_token", &token).append_pair("scope", scope);
            form.extend_pairs(service.map(|service| ("service", service)));
            let mut request = Request::new(Method::POST, realm, LONGEST);
            request.body = form.finish().into();
            let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
            request.headers.insert(CONTENT_TYPE, kind);
            Ok(request)
        }
        login => {
            let asked = [Some(("scope", scope)), service.map(|service| ("service", service))];
            realm.query_pairs_mut().extend_pairs(asked.into_iter().flatten());
            let mut request = Request::new(Method::GET, realm, LONGEST);
            if let Some(Login::Password { user, password }) = login {
                request.headers.insert(AUTHORIZATION, basic(&user, &password)?);
            }
            Ok(request)
        }
    }
}

fn basic(user: &str, password: &str) -> Result<HeaderValue, RegistryError> {
    secret(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

fn secret(text: &str) -> Result<HeaderValue, RegistryError> {
    let told = |_| RegistryError::Login { registry: "it".to_owned(), why: "no header can hold it".to_owned() };
    let mut value = HeaderValue::try_from(text).map_err(told)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The challenge of a refusal. A registry that is reached over TLS cannot have a login sent in the clear.
fn challenge(at: &Url, registry: &str, refusal: &HeaderMap) -> Result<Challenge, RegistryError> {
    let texts: Vec<&str> = refusal.get_all(WWW_AUTHENTICATE).iter().filter_map(|text| text.to_str().ok()).collect();
    let unknown = || RegistryError::Challenge {
        registry: registry.to_owned(),
        challenge: if texts.is_empty() {
            "it says none".to_owned()
        } else {
            texts.join(", ").chars().take(200).collect()
        },
    };
    let mut found = None;
    for parsed in texts.iter().filter_map(|text| http_auth::parse_challenges(text).ok()).flatten() {
        let value = |key: &str| {
            let mut all = parsed.params.iter();
            all.find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.to_unescaped())
        };
        if parsed.scheme.eq_ignore_ascii_case("bearer") {
            let realm = value("realm").and_then(|realm| Url::parse(&realm).ok()).ok_or_else(unknown)?;
            if !may_follow(at, &realm) {
                return Err(unknown());
            }
            return Ok(Challenge::Bearer { realm, service: value("service"), scope: value("scope") });
        }
        if parsed.scheme.eq_ignore_ascii_case("basic") {
            found = Some(Challenge::Basic);
        }
    }
    found.ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(at: &str, texts: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for text in texts {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(text));
        }
        match challenge(&Url::parse(at).expect("a URL"), "it", &headers) {
            Ok(Challenge::Basic) => "basic".to_owned(),
            Ok(Challenge::Bearer { realm, service, scope }) => format!("{realm} {service:?} {scope:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_challenge_says_where_a_token_is_to_be_had() {
        let bearer = "Bearer realm=\"https://auth.example/token\",service=\"reg\",scope=\"repository:a/b:pull,push\"";
        let expected = "https://auth.example/token Some(\"reg\") Some(\"repository:a/b:pull,push\")";
        assert_eq!(told("https://reg.example/v2/", &[bearer]), expected);
        assert_eq!(told("https://reg.example/v2/", &["Basic realm=\"x\"", bearer]), expected, "a token is better");
        assert_eq!(told("https://reg.example/v2/", &["basic realm=x"]), "basic");
    }

    #[test]
    fn a_login_is_sent_to_no_place_in_the_clear_and_to_no_server_of_this_machine() {
        let there = "https://reg.example/v2/";
        for realm in ["Bearer realm=\"http://auth.example/token\"", "Bearer realm=\"https://127.0.0.1/token\""] {
            assert!(told(there, &[realm]).contains("not known here"), "{realm}");
        }
        assert!(
            told("http://127.0.0.1:1/v2/", &["Bearer realm=\"http://127.0.0.1:2/token\""]).starts_with("http://127")
        );
        for nothing in [&[][..], &["Negotiate"], &["Bearer"], &["Bearer realm=\"x\""], &["Bearer realm=\"x"]] {
            assert!(told(there, nothing).contains("asks for a login by a way that is not known"), "{nothing:?}");
        }
    }
}
