//! Settings of the HTTP server, and why a port cannot be bound.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::profile::Profile;

/// Where the server listens, and which clients it admits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Address and port. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The bearer token that clients must send; none admits every client that reaches the port.
    pub token: Option<String>,
    /// The secret by which the server proves whose it is; none answers no such question.
    pub identity: Option<String>,
    /// From where the server may be reached.
    pub reach: Reach,
    /// Names by which clients may call this machine, besides its loopback names.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, as in `http://localhost:6274`. None by default: a page in a
    /// browser is not an agent. They need the token all the same.
    pub origins: Vec<String>,
    /// How long a session may be quiet before it ends. Agents are quiet for hours; this is for clients
    /// that left without saying so.
    pub idle: Duration,
    /// How long a client may take to send the head of a request, and then its body. A connection that stalls in one is
    /// closed.
    pub timeout: Duration,
    /// Maximum number of sessions. One more ends the session that was quiet the longest.
    pub most_sessions: usize,
    /// The tools that clients are shown.
    pub profile: Profile,
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        HttpSettings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7423)),
            token: None,
            identity: None,
            reach: Reach::Loopback,
            hosts: Vec::new(),
            origins: Vec::new(),
            idle: Duration::from_secs(24 * 3_600),
            timeout: Duration::from_secs(30),
            most_sessions: 512,
            profile: Profile::default(),
        }
    }
}

/// From where a server may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only from this machine.
    Loopback,
    /// From every machine that can reach the address. Needs a token.
    Network,
}

/// Why a port cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process has it.
    #[error("port {} of {} is in use", .0.port(), .0.ip())]
    InUse(SocketAddr),
    /// Other machines could reach it, and the settings do not allow that.
    #[error("{0} can be reached from other machines")]
    NotLoopback(SocketAddr),
    /// Other machines could reach it without a token.
    #[error("{0} can be reached from other machines, and no token is set")]
    NoToken(SocketAddr),
    /// The system refused.
    #[error("could not listen at {address}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl BindError {
    pub(super) fn of(address: SocketAddr, source: io::Error) -> BindError {
        match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse(address),
            _ => BindError::Refused { address, source },
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            BindError::InUse(_) => "a server may be running already: see `relay-mesh status`, or choose another port \
                                    with --http 127.0.0.1:PORT"
                .to_owned(),
            BindError::NotLoopback(address) => {
                format!("listen at 127.0.0.1:{}, and let other machines connect through a tunnel", address.port())
            }
            BindError::NoToken(_) => "set a token".to_owned(),
            BindError::Refused { .. } => "choose another address with --http ADDRESS:PORT".to_owned(),
        }
    }
}

impl HttpSettings {
    pub(super) fn check(&self) -> Result<(), BindError> {
        match (self.reach, self.listen.ip().is_loopback(), &self.token) {
            (_, true, _) | (Reach::Network, false, Some(_)) => Ok(()),
            (Reach::Loopback, false, _) => Err(BindError::NotLoopback(self.listen)),
            (Reach::Network, false, None) => Err(BindError::NoToken(self.listen)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: &str, reach: Reach, token: Option<&str>, expected: &str) {
        let settings = HttpSettings {
            listen: listen.parse().expect("an address"),
            reach,
            token: token.map(str::to_owned),
            ..HttpSettings::default()
        };
        let outcome = settings.check().map_or_else(|error| error.to_string(), |()| "fine".to_owned());
        assert!(outcome.contains(expected), "{listen}: {outcome}");
    }

    #[test]
    fn other_machines_are_let_in_only_when_asked_for_and_with_a_token() {
        check("127.0.0.1:0", Reach::Loopback, None, "fine");
        check("[::1]:0", Reach::Loopback, None, "fine");
        check("0.0.0.0:7423", Reach::Loopback, Some("t"), "can be reached from other machines");
        check("192.0.2.1:7423", Reach::Network, None, "no token is set");
        check("192.0.2.1:7423", Reach::Network, Some("t"), "fine");
    }
}
