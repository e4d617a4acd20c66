//! A real OCI registry per test, Debian's docker-registry, over TLS, with a login or without.

use std::net::TcpStream;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::programs::{Program, Running, search_path};
use crate::waiting::wait_for;
use crate::web_server::{Reply, WebServer};

/// `user` and `secret`, as `htpasswd -B` writes them.
const PASSWORDS: &str = "user:$2y$05$8uVlh0vUS3PL4AHFbr3MOefiTX/rigeK4XljBFyZK1/hw8npu2IjK\n";
/// The same for HTTP Basic.
pub const LOGIN: &str = "dXNlcjpzZWNyZXQ=";

/// How a registry knows its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Everybody may do everything.
    Open,
    /// The user of [`LOGIN`], by HTTP Basic.
    Password,
    /// The same user, with a token that another server gives.
    Token,
}

/// A registry that runs.
pub struct OciRegistry {
    _process: Running,
    _tokens: Option<WebServer>,
    /// Host and port.
    pub host: String,
    /// The authority that signed its certificate.
    pub authority: PathBuf,
}

impl OciRegistry {
    /// Starts one over TLS in this folder.
    ///
    /// # Panics
    /// If it does not begin to listen.
    pub fn start(folder: &Path, door: Door) -> OciRegistry {
        std::fs::create_dir_all(folder).expect("a folder");
        let authority = certificates(folder);
        let at = |name: &str| folder.join(name).display().to_string();
        let tokens = (door == Door::Token).then(|| tokens(folder));
        let auth = match (door, &tokens) {
            (Door::Password, _) => {
                std::fs::write(folder.join("passwords"), PASSWORDS).expect("a file");
                json!({"htpasswd": {"realm": "tests", "path": at("passwords")}})
            }
            (_, Some(tokens)) => json!({"token": {
                "realm": format!("http://{}/token", tokens.address),
                "service": "tests",
                "issuer": "tests",
                "rootcertbundle": at("ca.pem"),
            }}),
            (Door::Open | Door::Token, None) => json!({}),
        };
        let host = format!("127.0.0.1:{}", crate::nats_server::NatsServer::free_port());
        let mut configuration = json!({
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": at("data")}},
            "http": {"addr": host, "tls": {"certificate": at("server.pem"), "key": at("server.key")}},
        });
        if door != Door::Open {
            configuration["auth"] = auth;
        }
        // Every JSON is YAML.
        std::fs::write(folder.join("config.yml"), configuration.to_string()).expect("a file");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.registry/usr/bin/docker-registry");
        let process = Program::new(program).args(["serve", &at("config.yml")]).start(&folder.join("log"));
        wait_for("the registry listens", || TcpStream::connect(&host).ok());
        OciRegistry { _process: process, _tokens: tokens, host, authority }
    }
}

/// An authority, and a certificate of it for this machine. Returns the authority's file.
fn certificates(folder: &Path) -> PathBuf {
    let make = |words: &[&str]| {
        let all = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-config", "/dev/null"];
        Program::new("openssl").args(all).args(words).env("PATH", search_path()).within(folder).succeed();
    };
    let is_authority = ["-addext", "basicConstraints=critical,CA:TRUE"];
    make(&[&["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=an authority of tests"][..], &is_authority].concat());
    let of_it = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"];
    let named = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-subj", "/CN=a registry of tests"];
    make(&[&["-keyout", "server.key", "-out", "server.pem"][..], &of_it, &named].concat());
    folder.join("ca.pem")
}

/// A server that gives tokens to the one user, for what is asked. Whoever shows nothing may pull.
fn tokens(folder: &Path) -> WebServer {
    let folder = folder.to_owned();
    WebServer::start(move |request| {
        let user = match request.header("authorization") {
            None => "",
            Some(login) if login == format!("Basic {LOGIN}") => "user",
            Some(_) => return Reply::of(401, "{}"),
        };
        let scope = request.query("scope").unwrap_or_default();
        let parts: Vec<&str> = scope.splitn(3, ':').collect();
        let [kind, name, actions] = parts[..] else { return Reply::of(400, "{}") };
        let actions: Vec<&str> = actions.split(',').filter(|action| *action == "pull" || user == "user").collect();
        let claims = json!({
            "iss": "tests", "sub": user, "aud": "tests", "exp": 4_000_000_000_u64, "nbf": 0, "iat": 0, "jti": "1",
            "access": [{"type": kind, "name": name, "actions": actions}],
        });
        let certificate = std::fs::read_to_string(folder.join("ca.pem")).expect("a certificate");
        let der: String = certificate.lines().filter(|line| !line.starts_with("---")).collect();
        let head = json!({"typ": "JWT", "alg": "RS256", "x5c": [der]});
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(head.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let token = format!("{signed}.{}", signature(&folder, &signed));
        Reply::of(200, json!({ "token": token }).to_string())
    })
}

fn signature(folder: &Path, text: &str) -> String {
    let line = "openssl dgst -sha256 -sign ca.key | openssl base64 -A";
    let program = Program::new("sh").args(["-c", line]).env("PATH", search_path()).within(folder);
    url_safe(&program.input(text).succeed())
}

fn url_safe(text: &str) -> String {
    text.trim().trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// What a registry needs to answer for one component without being one: the manifest and the blob, by their digests.
pub fn artifact(component: &[u8], digest: impl Fn(&[u8]) -> String) -> (Value, String) {
    let layer = digest(component);
    let config = json!({"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2});
    let of_layer = json!({"mediaType": "application/wasm", "digest": layer, "size": component.len()});
    (json!({"schemaVersion": 2, "config": config, "layers": [of_layer]}), layer)
}
