//! Login with a `.creds` file: a JWT, and the seed that signs the server's nonce. The file is read for each connection,
//! so that the next connection uses a renewed one.

use std::path::Path;

use async_nats::Auth;
use async_nats::datetime::{DateTime, from_nanos};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde::Deserialize;
use store::{ServerTrouble, StoreError};

use crate::errors::server_error;

/// The content of a `.creds` file.
pub(crate) struct Credentials {
    jwt: String,
    seed: String,
}

/// The only claim needed from the JWT.
#[derive(Deserialize)]
struct Claims {
    exp: Option<i64>,
}

impl Credentials {
    /// Reads a file.
    pub(crate) fn read(file: &Path) -> Result<Credentials, StoreError> {
        let text = std::fs::read_to_string(file).map_err(|error| StoreError::Io {
            doing: "could not read the credentials",
            what: file.display().to_string(),
            source: error,
        })?;
        Credentials::parse(&text).ok_or_else(|| StoreError::Damaged {
            what: file.display().to_string(),
            why: "it has no JWT or no seed, so it is not a `.creds` file".to_owned(),
        })
    }

    fn parse(text: &str) -> Option<Credentials> {
        let under = |title: &str| {
            let mut lines = text.lines().skip_while(|line| !line.contains(title)).skip(1);
            lines.next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty() && !line.starts_with('-'))
        };
        Some(Credentials { jwt: under("BEGIN NATS USER JWT")?, seed: under("BEGIN USER NKEY SEED")? })
    }

    /// The answer to a server's nonce.
    pub(crate) fn answer(&self, asked: &[u8]) -> Result<Auth, nkeys::error::Error> {
        let mut auth = Auth::new();
        auth.signature = Some(KeyPair::from_seed(&self.seed)?.sign(asked)?);
        auth.jwt = Some(self.jwt.clone());
        Ok(auth)
    }

    /// When the JWT expires, for display. None if it does not expire or cannot be read.
    fn ends(&self) -> Option<String> {
        let claims = URL_SAFE_NO_PAD.decode(self.jwt.split('.').nth(1)?).ok()?;
        let claims: Claims = serde_json::from_slice(&claims).ok()?;
        let at: DateTime = from_nanos(i128::from(claims.exp?) * 1_000_000_000).ok()?;
        Some(format!("{} {:02}:{:02}:{:02} UTC", at.date(), at.hour(), at.minute(), at.second()))
    }
}

/// Why the server refused the login, with the time at which the login expires.
pub(crate) fn refused(file: &Path, servers: &str, error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    let refusal = server_error("could not connect to", servers)(error);
    let ends = Credentials::read(file).ok().and_then(|credentials| credentials.ends());
    match (refusal, ends) {
        (StoreError::Server { doing, what, trouble: trouble @ ServerTrouble::Denied, source }, Some(ends)) => {
            let why = format!("{source}; the login in `{}` holds until {ends}", file.display());
            StoreError::server(doing, what, trouble, why)
        }
        (refusal, _) => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_credentials_says_who_and_until_when() {
        let jwt = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        let file = |jwt: &str| {
            format!(
                "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\n\
                 -----BEGIN USER NKEY SEED-----\r\nSU\r\n------END USER NKEY SEED------\n"
            )
        };
        for (text, expected) in [
            (file(&jwt(r#"{"exp":1700000000}"#)), Some(Some("2023-11-14 22:13:20 UTC"))),
            (file(&jwt("{}")), Some(None)),
            (file("no JWT at all"), Some(None)),
            (file(""), None),
            ("-----BEGIN NATS USER JWT-----".to_owned(), None),
            (String::new(), None),
        ] {
            let ends = Credentials::parse(&text).map(|credentials| credentials.ends());
            assert_eq!(ends.as_ref().map(Option::as_deref), expected, "{text}");
        }
    }
}
