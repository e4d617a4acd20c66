//! Options: how to reach a server, and how its streams are named and created.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timekeeper;

/// How to reach the servers, and how to create the streams.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The servers: `nats://host:4222`, `tls://host`. Any one of them is enough.
    pub servers: Vec<String>,
    /// The login.
    pub auth: NatsAuth,
    /// A file with more root certificates, in PEM.
    pub root_certificates: Option<PathBuf>,
    /// Our own certificate and its key, in PEM, for servers that require one.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// The JetStream domain, if it is not the server's own.
    pub domain: Option<String>,
    /// The prefix of all streams and subjects: two meshes may share a server.
    pub prefix: String,
    /// This machine's name, which subjects contain to tell who wrote.
    pub machine: String,
    /// The number of replicas of the streams that we create.
    pub replicas: usize,
    /// How long messages are kept in the streams that we create.
    pub kept_for: Duration,
    /// The timeout of one request.
    pub timeout: Duration,
    /// Receives the servers' time, if set.
    pub timekeeper: Option<Arc<dyn Timekeeper>>,
}

/// How to log in.
#[derive(Clone, Default)]
pub enum NatsAuth {
    /// Without a login.
    #[default]
    Nobody,
    /// A user and a password.
    Password {
        user: String,
        password: String,
    },
    Token(String),
    /// The seed of an NKey.
    NKey(String),
    /// A file with a JWT and its seed.
    Credentials(PathBuf),
}

impl std::fmt::Debug for NatsAuth {
    // Secrets stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NatsAuth::Nobody => "Nobody",
            NatsAuth::Password { .. } => "Password",
            NatsAuth::Token(_) => "Token",
            NatsAuth::NKey(_) => "NKey",
            NatsAuth::Credentials(_) => "Credentials",
        })
    }
}

impl Default for NatsOptions {
    fn default() -> NatsOptions {
        NatsOptions {
            servers: vec!["nats://127.0.0.1:4222".to_owned()],
            auth: NatsAuth::Nobody,
            root_certificates: None,
            client_certificate: None,
            domain: None,
            prefix: "RELAY".to_owned(),
            machine: "local".to_owned(),
            replicas: 1,
            kept_for: Duration::from_secs(32 * 24 * 3_600),
            timeout: Duration::from_secs(5),
            timekeeper: None,
        }
    }
}

/// Why a prefix or a machine's name cannot be part of a subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be part of a subject: use letters, digits, - and _, and begin with a letter or a digit")]
pub struct InvalidName(pub String);

impl NatsOptions {
    /// Checks the names that become part of subjects and of stream names.
    pub fn check(&self) -> Result<(), InvalidName> {
        for name in [&self.prefix, &self.machine] {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            // Names that begin with `_` are the store's own.
            if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) || !name.bytes().all(fits) {
                return Err(InvalidName(name.clone()));
            }
        }
        Ok(())
    }

    /// The subject to publish to, for a message to be stored at `subject`.
    pub(crate) fn way_to(&self, subject: &str) -> String {
        match &self.domain {
            Some(domain) => crate::subjects::within_domain(domain, subject),
            None => subject.to_owned(),
        }
    }

    /// The prefix of JetStream requests.
    pub(crate) fn api(&self) -> String {
        match &self.domain {
            Some(domain) => format!("$JS.{domain}.API"),
            None => "$JS.API".to_owned(),
        }
    }

    /// The stream of logs.
    pub(crate) fn log_stream(&self) -> String {
        format!("{}_MESSAGES", self.prefix)
    }

    /// The bucket of values.
    pub(crate) fn map_bucket(&self) -> String {
        format!("{}_MAP", self.prefix)
    }

    /// The bucket of holds.
    pub(crate) fn hold_bucket(&self) -> String {
        format!("{}_HOLDS", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_part_of_a_subject_is_checked() {
        let check = |prefix: &str, machine: &str| {
            NatsOptions { prefix: prefix.to_owned(), machine: machine.to_owned(), ..NatsOptions::default() }.check()
        };
        assert_eq!(check("RELAY", "machine-1"), Ok(()));
        for bad in ["", "a.b", "a b", "*", ">", "ü", "_moved", "-a"] {
            assert_eq!(check(bad, "h"), Err(InvalidName(bad.to_owned())));
            assert_eq!(check("P", bad), Err(InvalidName(bad.to_owned())));
        }
    }

    #[test]
    fn secrets_are_not_written_out() {
        let auth = NatsAuth::Password { user: "u".to_owned(), password: "secret".to_owned() };
        assert_eq!(format!("{auth:?}"), "Password");
    }
}
