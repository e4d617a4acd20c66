//! Pulls and pushes, as the specification of distribution has them.

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LINK, LOCATION};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use url::Url;

use super::artifact::{self, Artifact, Descriptor, Leads};
use super::credentials::Logins;
use super::error::RegistryError;
use super::login::{self, Shown};
use super::reference::Reference;
use crate::Digest;
use crate::client::{Client, FetchError, Request, Response, host};

/// The largest manifest, in bytes: what registries take at most.
const LONGEST_MANIFEST: u64 = 4 * 1024 * 1024;
/// The most pages of tags that are read.
const MOST_PAGES: usize = 20;
/// Where the tag of a repository is that has no versions.
const USUAL_TAG: &str = "latest";

/// One repository of a registry.
pub struct Registry<'c> {
    client: &'c Client,
    reference: Reference,
    base: Url,
    logins: Logins,
    shown: Option<Shown>,
}

/// What was pulled.
#[derive(Debug)]
pub struct Pulled {
    /// Its address with the tag that was chosen.
    pub reference: Reference,
    /// The digest of its manifest, which `@` pins.
    pub digest: Digest,
    pub component: Vec<u8>,
}

/// What was pushed.
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The manifest's digest.
    New(Digest),
    /// The same was there already.
    Unchanged(Digest),
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl<'c> Registry<'c> {
    /// The repository of an address. `plain` reaches a registry of this machine without TLS.
    pub fn new(
        client: &'c Client,
        logins: Logins,
        reference: &Reference,
        plain: bool,
    ) -> Result<Registry<'c>, RegistryError> {
        let host = match reference.registry.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            other => other,
        };
        let scheme = if plain { "http" } else { "https" };
        let address = format!("{scheme}://{host}/v2/{}/", reference.repository);
        let base = Url::parse(&address)
            .map_err(|_| RegistryError::Fetch(FetchError::Connect(crate::ConnectError::Address(address))))?;
        Ok(Registry { client, reference: reference.clone(), base, logins, shown: None })
    }

    /// The versions that there are, the newest first: tags that are versions by SemVer.
    pub async fn versions(&mut self) -> Result<Vec<(semver::Version, String)>, RegistryError> {
        let mut found = Vec::new();
        let mut page = self.at("tags/list?n=1000")?;
        for _ in 0..MOST_PAGES {
            let answer = self.send(Request::new(Method::GET, page, LONGEST_MANIFEST), "pull").await?.good()?;
            let tags: Tags =
                serde_json::from_slice(&answer.body).map_err(|error| self.malformed("list of tags", error))?;
            let version = |tag: String| {
                let text = tag.strip_prefix('v').unwrap_or(&tag);
                // A tag has no `+`.
                semver::Version::parse(text).ok().map(|version| (version, tag))
            };
            found.extend(tags.tags.unwrap_or_default().into_iter().filter_map(version));
            match next_page(&answer) {
                Some(next) => page = next,
                None => break,
            }
        }
        found.sort_by(|one, other| other.0.cmp(&one.0));
        Ok(found)
    }

    /// Pulls a component of at most this many bytes. Without a tag and a digest it is the newest release.
    pub async fn pull(&mut self, longest: u64) -> Result<Pulled, RegistryError> {
        if self.reference.tag.is_none() && self.reference.digest.is_none() {
            let versions = self.versions().await?;
            let released = versions.iter().find(|(version, _)| version.pre.is_empty());
            let tag = released.or(versions.first()).map_or(USUAL_TAG, |(_, tag)| tag);
            self.reference = self.reference.with_tag(tag);
        }
        let wanted = self.reference.digest;
        let name = wanted.map(|digest| digest.to_string()).or_else(|| self.reference.tag.clone()).unwrap_or_default();
        let (digest, manifest) = self.manifest(&name, wanted).await?;
        let component = match artifact::leads(&self.reference.registry, &manifest)? {
            Leads::Component(layer) => layer,
            Leads::Manifest(of_platform) => {
                let wanted = self.digest_of(&of_platform)?;
                let (_, manifest) = self.manifest(&of_platform.digest, Some(wanted)).await?;
                match artifact::leads(&self.reference.registry, &manifest)? {
                    Leads::Component(layer) => layer,
                    Leads::Manifest(_) => {
                        return Err(RegistryError::NoAdapter("its index leads to another index".to_owned()));
                    }
                }
            }
        };
        let component = self.blob(&component, longest).await?;
        Ok(Pulled { reference: self.reference.clone(), digest, component })
    }

    /// Pushes an artifact under the tag of the address.
    pub async fn push(&mut self, artifact: &Artifact, replaces: bool) -> Result<Pushed, RegistryError> {
        let tag = self.reference.tag.clone().unwrap_or_else(|| USUAL_TAG.to_owned());
        let digest = Digest::of(&artifact.manifest);
        let there = self.request(Method::HEAD, &format!("manifests/{tag}"), 0)?;
        let there = self.send(accepting(there), "pull,push").await?;
        if there.status != StatusCode::NOT_FOUND {
            let there = there.good()?;
            let found = there.headers.get("docker-content-digest").and_then(|digest| digest.to_str().ok());
            let found = found.unwrap_or("one that it does not tell").to_owned();
            if found == digest.to_string() {
                return Ok(Pushed::Unchanged(digest));
            }
            if !replaces {
                return Err(RegistryError::Taken(self.reference.with_tag(&tag).to_string(), found));
            }
        }
        for blob in [&artifact.component, &artifact.config] {
            self.upload(blob).await?;
        }
        let mut request = self.request(Method::PUT, &format!("manifests/{tag}"), LONGEST_MANIFEST)?;
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(artifact::MANIFEST));
        request.body = artifact.manifest.clone().into();
        self.send(request, "pull,push").await?.good()?;
        Ok(Pushed::New(digest))
    }

    async fn upload(&mut self, bytes: &[u8]) -> Result<(), RegistryError> {
        let digest = Digest::of(bytes).to_string();
        let there = self.request(Method::HEAD, &format!("blobs/{digest}"), 0)?;
        if self.send(there, "pull,push").await?.status.is_success() {
            return Ok(());
        }
        let begun = self.request(Method::POST, "blobs/uploads/", LONGEST_MANIFEST)?;
        let begun = self.send(begun, "pull,push").await?.good()?;
        let to = begun.headers.get(LOCATION).and_then(|to| begun.url.join(to.to_str().ok()?).ok());
        let mut to = to.ok_or_else(|| self.strange("place for an upload"))?;
        // Bytes go where the registry is, and the login with them.
        if to.origin() != self.base.origin() {
            return Err(self.strange("place for an upload on the same server"));
        }
        to.query_pairs_mut().append_pair("digest", &digest);
        let mut request = Request::new(Method::PUT, to, LONGEST_MANIFEST);
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        request.body = bytes.to_vec().into();
        self.send(request, "pull,push").await?.good()?;
        Ok(())
    }

    async fn manifest(&mut self, name: &str, wanted: Option<Digest>) -> Result<(Digest, Vec<u8>), RegistryError> {
        let request = self.request(Method::GET, &format!("manifests/{name}"), LONGEST_MANIFEST)?;
        let answer = self.send(accepting(request), "pull").await?.good()?;
        let told = answer.headers.get("docker-content-digest").and_then(|text| text.to_str().ok()?.parse().ok());
        Ok((self.compare(&answer.body, wanted.or(told))?, answer.body.into()))
    }

    async fn blob(&mut self, layer: &Descriptor, longest: u64) -> Result<Vec<u8>, RegistryError> {
        let wanted = self.digest_of(layer)?;
        if layer.size > longest {
            return Err(RegistryError::TooLarge { length: layer.size, longest });
        }
        let request = self.request(Method::GET, &format!("blobs/{wanted}"), layer.size)?;
        let answer = self.send(request, "pull").await?.good()?;
        self.compare(&answer.body, Some(wanted))?;
        Ok(answer.body.into())
    }

    /// Sends a request, and once more with a login if the registry wants one.
    async fn send(&mut self, mut request: Request, actions: &str) -> Result<Response, RegistryError> {
        let show = |request: &mut Request, shown: &Option<Shown>| {
            if let Some(shown) = shown {
                request.headers.insert(AUTHORIZATION, shown.header.clone());
            }
        };
        show(&mut request, &self.shown);
        let refused = self.client.send(request.clone()).await?;
        if refused.status != StatusCode::UNAUTHORIZED {
            return self.unless_denied(refused);
        }
        let scope = format!("repository:{}:{actions}", self.reference.repository);
        let named = host(&self.base);
        self.shown =
            Some(login::answer(self.client, &self.logins, &self.base, &named, &refused.headers, &scope).await?);
        show(&mut request, &self.shown);
        let answer = self.client.send(request).await?;
        self.unless_denied(answer)
    }

    fn unless_denied(&self, answer: Response) -> Result<Response, RegistryError> {
        if !matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok(answer);
        }
        let used = self.shown.as_ref().and_then(|shown| shown.user.clone());
        Err(RegistryError::Denied { registry: self.reference.registry.clone(), used })
    }

    fn request(&self, method: Method, path: &str, longest: u64) -> Result<Request, RegistryError> {
        Ok(Request::new(method, self.at(path)?, longest))
    }

    fn at(&self, path: &str) -> Result<Url, RegistryError> {
        // `sha256:…` would be taken for a scheme if it came first.
        self.base.join(&format!("./{path}")).map_err(|error| self.malformed("address", error))
    }

    fn compare(&self, bytes: &[u8], wanted: Option<Digest>) -> Result<Digest, RegistryError> {
        let found = Digest::of(bytes);
        match wanted.filter(|wanted| *wanted != found) {
            Some(wanted) => Err(RegistryError::Changed { registry: self.reference.registry.clone(), wanted, found }),
            None => Ok(found),
        }
    }

    fn digest_of(&self, layer: &Descriptor) -> Result<Digest, RegistryError> {
        layer.digest.parse().map_err(|error| self.malformed("manifest", error))
    }

    fn malformed(&self, what: &'static str, why: impl std::fmt::Display) -> RegistryError {
        RegistryError::Malformed { registry: self.reference.registry.clone(), what, why: why.to_string() }
    }

    fn strange(&self, what: &'static str) -> RegistryError {
        self.malformed(what, "it names none")
    }
}

fn accepting(mut request: Request) -> Request {
    for kind in [artifact::MANIFEST, artifact::INDEX] {
        request.headers.append(ACCEPT, HeaderValue::from_static(kind));
    }
    request
}

/// The next page of a list: `Link: </v2/…>; rel="next"`.
fn next_page(answer: &Response) -> Option<Url> {
    let link = answer.headers.get(LINK)?.to_str().ok()?;
    let (target, rest) = link.strip_prefix('<')?.split_once('>')?;
    let next = answer.url.join(target).ok().filter(|_| rest.contains("next"))?;
    (next.origin() == answer.url.origin()).then_some(next)
}
