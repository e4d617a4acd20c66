//! Where an adapter comes from: a file or a folder, an address on the web, an asset of a release, or an OCI registry.

use std::fmt;
use std::path::PathBuf;

use ::fetch::oci::{Logins, Reference, Registry, RegistryError};
use ::fetch::{Client, ConnectError, Connector, Digest, FetchError, Request, is_loopback};
use adapters::{LARGEST, Package};
use url::Url;

use super::package;
use crate::context::Context;
use crate::environment::Environment;
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;

/// An asset of a release: `github:OWNER/REPO[/FILE][@TAG]`.
const GITHUB: &str = "github:";

/// Where an adapter comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A component, or the folder that holds one.
    File(PathBuf),
    /// A component on the web.
    Web {
        /// As it was typed.
        text: String,
        url: Url,
        digest: Option<Digest>,
    },
    Registry(Reference),
}

/// How other machines are reached. No doc comment on the fields' group: clap would make it the help of a command.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Network {
    /// Trust the authorities in this PEM file too, as for a registry of your own
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Reach a registry on this machine without TLS
    #[arg(long)]
    plain_http: bool,
}

/// Nothing can come from there.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("`{text}` is no address of an adapter: {why}")]
    Malformed { text: String, why: String },
    #[error("`{0}` is not on this machine, and only there is a registry reached without TLS")]
    InTheClear(String),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("what `{text}` gave has the digest {found}, and {wanted} was wanted")]
    Changed { text: String, wanted: Digest, found: Digest },
}

impl Source {
    /// Reads what was typed. Whatever names no other place is a path.
    pub(super) fn parse(text: &str) -> Result<Source, SourceError> {
        let malformed = |why: String| SourceError::Malformed { text: text.to_owned(), why };
        if Reference::is_meant(text) {
            return Ok(Source::Registry(text.parse().map_err(|error| malformed(format!("{error}")))?));
        }
        if let Some(asset) = text.strip_prefix(GITHUB) {
            let url = github(asset).ok_or_else(|| malformed("it is `github:OWNER/REPO[/FILE][@TAG]`".to_owned()))?;
            return Ok(Source::Web { text: text.to_owned(), url, digest: None });
        }
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return Ok(Source::File(PathBuf::from(text)));
        }
        let mut url = Url::parse(text).map_err(|error| malformed(error.to_string()))?;
        if url.scheme() == "http" && !is_loopback(&url) {
            return Err(ConnectError::InTheClear(text.to_owned()).into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(malformed("it would show its password to everybody who sees the command line".to_owned()));
        }
        // As pip has it: `#sha256=` and the digits.
        let digest = match url.fragment().map(|fragment| fragment.replacen('=', ":", 1)) {
            Some(fragment) => Some(fragment.parse().map_err(|_| malformed("a digest is `#sha256=DIGITS`".to_owned()))?),
            None => None,
        };
        url.set_fragment(None);
        Ok(Source::Web { text: text.to_owned(), url, digest })
    }

    /// Whether another machine is asked.
    pub(super) fn is_remote(&self) -> bool {
        match self {
            Source::File(_) => false,
            Source::Web { .. } | Source::Registry(_) => true,
        }
    }

    /// Gets the package.
    pub(super) async fn get(&self, context: &Context, network: &Network) -> Result<Package, CommandError> {
        let (bytes, from) = match self {
            Source::File(path) => return package::read(context, path),
            Source::Web { text, url, digest } => {
                let client = network.client(context)?;
                (download(&client, text, url, *digest).await?, text.clone())
            }
            Source::Registry(reference) => {
                let client = network.client(context)?;
                let mut registry = network.registry(context, &client, reference)?;
                let pulled = registry.pull(LARGEST).await.map_err(SourceError::from)?;
                context.printer.say(&format!("{} has the digest {}.", pulled.reference, pulled.digest));
                (pulled.component, pulled.reference.to_string())
            }
        };
        Package::received(bytes, &from).map_err(|error| package::unreadable(&from, error))
    }
}

async fn download(client: &Client, text: &str, url: &Url, wanted: Option<Digest>) -> Result<Vec<u8>, SourceError> {
    let request = Request::new(hyper::Method::GET, url.clone(), LARGEST);
    let body: Vec<u8> = client.send(request).await?.good()?.body.into();
    let found = Digest::of(&body);
    match wanted.filter(|wanted| *wanted != found) {
        Some(wanted) => Err(SourceError::Changed { text: text.to_owned(), wanted, found }),
        None => Ok(body),
    }
}

impl Network {
    pub(super) fn client(&self, context: &Context) -> Result<Client, SourceError> {
        let authority = self.ca.as_ref().map(|path| context.workdir.join(path));
        Ok(Client::new(Connector::of_user(authority.as_deref())?))
    }

    pub(super) fn registry<'c>(
        &self,
        context: &Context,
        client: &'c Client,
        reference: &Reference,
    ) -> Result<Registry<'c>, SourceError> {
        let is_here = Url::parse(&format!("http://{}/", reference.registry)).is_ok_and(|url| is_loopback(&url));
        if self.plain_http && !is_here {
            return Err(SourceError::InTheClear(reference.registry.clone()));
        }
        Ok(Registry::new(client, logins(&context.environment), reference, self.plain_http)?)
    }
}

/// Where Docker and Podman keep the logins of registries.
fn logins(environment: &Environment) -> Logins {
    let home = environment.home();
    let below = |folder: Option<PathBuf>, file: &str| folder.map(|folder| folder.join(file));
    let folder = |name: &str| environment.get(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let files = [
        below(folder("DOCKER_CONFIG").or(below(home.clone(), ".docker")), "config.json"),
        folder("REGISTRY_AUTH_FILE"),
        below(folder("XDG_RUNTIME_DIR"), "containers/auth.json"),
        below(home, ".config/containers/auth.json"),
    ];
    Logins(files.into_iter().flatten().collect())
}

/// The address of an asset of a release: of the newest one if no tag is named, and called as the repository if no file is.
fn github(asset: &str) -> Option<Url> {
    let (path, tag) = match asset.split_once('@') {
        Some((path, tag)) => (path, Some(tag)),
        None => (asset, None),
    };
    let mut parts = path.splitn(3, '/');
    let (owner, repository) = (parts.next()?, parts.next()?);
    let file = parts.next().map_or_else(|| format!("{repository}.wasm"), str::to_owned);
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if ![owner, repository, &file].into_iter().all(is_word) || tag.is_some_and(str::is_empty) {
        return None;
    }
    let mut url = Url::parse("https://github.com/").ok()?;
    {
        let mut segments = url.path_segments_mut().ok()?;
        segments.pop_if_empty().extend([owner, repository, "releases"]);
        match tag {
            Some(tag) => segments.extend(["download", tag, &file]),
            None => segments.extend(["latest", "download", &file]),
        };
    }
    Some(url)
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::Web { text, .. } => f.write_str(text),
            Source::Registry(reference) => reference.fmt(f),
        }
    }
}

impl Explain for SourceError {
    fn exit(&self) -> Exit {
        match self {
            SourceError::Malformed { .. } | SourceError::InTheClear(_) => Exit::Usage,
            SourceError::Fetch(error) | SourceError::Registry(RegistryError::Fetch(error)) => of_fetch(error),
            SourceError::Registry(RegistryError::Denied { .. } | RegistryError::Taken(..)) => Exit::Refused,
            SourceError::Connect(ConnectError::Authority { .. } | ConnectError::InTheClear(_)) => Exit::Usage,
            SourceError::Connect(_) | SourceError::Registry(_) | SourceError::Changed { .. } => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            SourceError::Malformed { .. } => {
                "name a file, a folder, `https://…`, `github:OWNER/REPO[@TAG]`, or `oci://REGISTRY/NAME[:TAG]`"
            }
            SourceError::InTheClear(_) => "leave `--plain-http` out",
            SourceError::Connect(error) => error.hint(),
            SourceError::Fetch(error) => error.hint(),
            SourceError::Registry(error) => error.hint(),
            SourceError::Changed { .. } => "ask its author which digest is right",
        };
        Some(hint.to_owned())
    }
}

fn of_fetch(error: &FetchError) -> Exit {
    match error {
        FetchError::Status { status, .. } => match status.as_u16() {
            404 | 410 => Exit::NotFound,
            401 | 403 => Exit::Refused,
            _ => Exit::Failure,
        },
        FetchError::TimedOut { .. } => Exit::TimedOut,
        _ => Exit::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_says_where_an_adapter_comes_from() {
        let digest = Digest::of(b"x").to_string();
        let pinned = format!("https://a.example/t.wasm#{}", digest.replace(':', "="));
        let check = |text: &str, expected: &str| {
            let told = match Source::parse(text) {
                Ok(Source::File(path)) => format!("file {}", path.display()),
                Ok(Source::Web { url, digest, .. }) => format!("web {url} {}", digest.is_some()),
                Ok(Source::Registry(reference)) => format!("registry {reference}"),
                Err(error) => format!("{error}; {}", error.hint().unwrap_or_default()),
            };
            assert!(told.contains(expected), "{text}: {told}");
        };
        check("./toad.wasm", "file ./toad.wasm");
        check("toad", "file toad");
        check("oci://ghcr.io/acme/toad:1.0.0", "registry oci://ghcr.io/acme/toad:1.0.0");
        check("oci://ghcr.io/Acme/toad", "the name of a repository is of small letters");
        check("https://a.example/t.wasm", "web https://a.example/t.wasm false");
        check(&pinned, "web https://a.example/t.wasm true");
        check("https://a.example/t.wasm#sha256=12", "a digest is `#sha256=DIGITS`");
        check("http://a.example/t.wasm", "in the clear");
        check("http://127.0.0.1:1/t.wasm", "web http://127.0.0.1:1/t.wasm");
        check("https://me:secret@a.example/t.wasm", "would show its password");
        check("github:acme/toad", "web https://github.com/acme/toad/releases/latest/download/toad.wasm");
        check("github:acme/toad@v1.0.0", "web https://github.com/acme/toad/releases/download/v1.0.0/toad.wasm");
        check("github:acme/all/toad.wasm@a/b", "web https://github.com/acme/all/releases/download/a%2Fb/toad.wasm");
        for bad in ["github:acme", "github:acme/", "github:/toad", "github:acme/toad@", "github:a/b/../c"] {
            check(bad, "it is `github:OWNER/REPO[/FILE][@TAG]`");
        }
    }
}
