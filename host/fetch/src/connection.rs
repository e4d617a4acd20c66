//! One connection to a server: over TLS, or to this machine in the clear; through the proxy that the environment names.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::http::Uri;
use hyper::{Method, Request};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// How servers are reached.
#[derive(Clone, Debug)]
pub struct Connector {
    tls: Arc<ClientConfig>,
    /// The proxies of the environment, if they are used.
    proxies: Option<Arc<Matcher>>,
}

/// A server is not reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("TLS has no usable settings here: {0}")]
    Settings(String),
    #[error("`{}` holds no certificates: {why}", path.display())]
    Authority { path: PathBuf, why: String },
    #[error("`{0}` is no address of a server")]
    Address(String),
    #[error("`{0}` would go over the network in the clear: it is https, or http to 127.0.0.1, ::1 or localhost")]
    InTheClear(String),
    /// `localhost` is what the system says it is.
    #[error("`{0}` is not this machine")]
    NotThisMachine(String),
    #[error("{host} port {port}: {source}")]
    Unreachable { host: String, port: u16, source: std::io::Error },
    #[error("the proxy {proxy}: {why}")]
    Proxy { proxy: String, why: String },
    #[error("TLS with {host}: {source}")]
    Tls { host: String, source: std::io::Error },
}

impl ConnectError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            ConnectError::Settings(_) => "install the system's certificates, such as Debian's `ca-certificates`",
            ConnectError::Authority { .. } => "name a file of PEM certificates",
            ConnectError::Address(_) => "write it as `https://HOST/PATH`",
            ConnectError::InTheClear(_) | ConnectError::NotThisMachine(_) => "reach it by https",
            ConnectError::Unreachable { .. } => "see that the name is right and that this machine is online",
            ConnectError::Proxy { .. } => {
                "HTTPS_PROXY names the proxy, and NO_PROXY the hosts that are reached without it"
            }
            ConnectError::Tls { .. } => {
                "if the server's certificate is from an authority of your own, name that by `--ca FILE`"
            }
        }
    }
}

impl Connector {
    /// Reaches every server by itself, and trusts the authorities of this system.
    pub fn direct() -> Result<Connector, ConnectError> {
        static TRUSTED: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
        let tls = TRUSTED.get_or_init(|| settings(system_authorities()).map_err(|error| error.to_string()));
        Ok(Connector { tls: tls.clone().map_err(ConnectError::Settings)?, proxies: None })
    }

    /// Goes through the proxies that the environment names (`HTTPS_PROXY`, `NO_PROXY`), and trusts the authorities of a
    /// PEM file beside those of this system.
    pub fn of_user(authority: Option<&Path>) -> Result<Connector, ConnectError> {
        let mut connector = Connector::direct()?;
        connector.proxies = Some(Arc::new(Matcher::from_env()));
        if let Some(path) = authority {
            let told = |why: String| ConnectError::Authority { path: path.to_owned(), why };
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| told(error.to_string()))?;
            if certificates.is_empty() {
                return Err(told("there is none in it".to_owned()));
            }
            let mut roots = system_authorities();
            for certificate in certificates {
                roots.add(certificate).map_err(|error| told(error.to_string()))?;
            }
            connector.tls = settings(roots).map_err(|error| ConnectError::Settings(error.to_string()))?;
        }
        Ok(connector)
    }

    /// Connects to the server of a URL.
    pub async fn connect(&self, url: &Url) -> Result<Box<dyn Stream>, ConnectError> {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(ConnectError::Address(url.to_string()));
        };
        if url.scheme() == "http" {
            if !is_loopback(url) {
                return Err(ConnectError::InTheClear(url.to_string()));
            }
            let stream = reach(host, port).await?;
            let is_here = stream.peer_addr().is_ok_and(|peer| is_here(peer.ip()));
            return if is_here { Ok(Box::new(stream)) } else { Err(ConnectError::NotThisMachine(host.to_owned())) };
        }
        let name = bare(host).to_owned();
        let name = ServerName::try_from(name).map_err(|_| ConnectError::Address(url.to_string()))?;
        let stream: Box<dyn Stream> = match self.proxy(url) {
            Some(proxy) => through(&proxy, host, port).await?,
            None => Box::new(reach(host, port).await?),
        };
        let secured = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await;
        Ok(Box::new(secured.map_err(|source| ConnectError::Tls { host: host.to_owned(), source })?))
    }

    fn proxy(&self, url: &Url) -> Option<hyper_util::client::proxy::matcher::Intercept> {
        let target: Uri = url.as_str().parse().ok()?;
        self.proxies.as_ref()?.intercept(&target)
    }
}

/// Whether a URL names this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_here(address.into()),
        Some(Host::Ipv6(address)) => is_here(address.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// Whether an address is of this machine alone. Where none is given, the system takes it for this machine's.
fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// The address of IPv6 without its brackets.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn settings(roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(versions.with_root_certificates(roots).with_no_client_auth()))
}

async fn reach(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let told = |source| ConnectError::Unreachable { host: host.to_owned(), port, source };
    TcpStream::connect((bare(host), port)).await.map_err(told)
}

/// Asks a proxy for a way to a server.
async fn through(
    proxy: &hyper_util::client::proxy::matcher::Intercept,
    host: &str,
    port: u16,
) -> Result<Box<dyn Stream>, ConnectError> {
    let address = proxy.uri();
    // Without the user and password that its URL may hold.
    let named = format!("{}:{}", address.host().unwrap_or_default(), address.port_u16().unwrap_or(80));
    let told = |why: String| ConnectError::Proxy { proxy: named.clone(), why };
    if address.scheme_str() != Some("http") {
        return Err(told("only proxies of http:// are known here".to_owned()));
    }
    let stream = reach(address.host().unwrap_or_default(), address.port_u16().unwrap_or(80)).await?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| told(error.to_string()))?;
    tokio::spawn(connection.with_upgrades());
    let target = format!("{host}:{port}");
    let mut request = Request::builder().method(Method::CONNECT).uri(&target).header("host", &target);
    if let Some(login) = proxy.basic_auth() {
        request = request.header("proxy-authorization", login);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| told(error.to_string()))?;
    let answer = sender.send_request(request).await.map_err(|error| told(error.to_string()))?;
    if !answer.status().is_success() {
        return Err(told(format!("it answered {}", answer.status())));
    }
    let way = hyper::upgrade::on(answer).await.map_err(|error| told(error.to_string()))?;
    Ok(Box::new(TokioIo::new(way)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() {
        let is = |text: &str| is_loopback(&Url::parse(text).expect("a URL"));
        for here in ["http://127.0.0.1:1/x", "http://[::1]/", "http://localhost:5000/", "http://127.8.8.8/"] {
            assert!(is(here), "{here}");
        }
        for there in ["http://127.0.0.1.example.org/", "http://localhost.example.org/", "http://10.0.0.1/"] {
            assert!(!is(there), "{there}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_no_authority() {
        let told = |path: &str| match Connector::of_user(Some(Path::new(path))) {
            Err(error) => error.to_string(),
            Ok(_) => "it is one".to_owned(),
        };
        assert!(told("/dev/null").contains("there is none in it"), "{}", told("/dev/null"));
        assert!(told("/nowhere.pem").contains("`/nowhere.pem` holds no certificates"), "{}", told("/nowhere.pem"));
    }
}
