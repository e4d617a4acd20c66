//! The address of an artifact: `oci://REGISTRY/REPOSITORY[:TAG][@sha256:DIGEST]`.

use std::fmt;
use std::str::FromStr;

use crate::Digest;

const SCHEME: &str = "oci://";
/// The longest name of a repository, and the longest tag, in bytes, as the specification of distribution has them.
const LONGEST_REPOSITORY: usize = 255;
const LONGEST_TAG: usize = 128;

/// The address of an artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Host, and port if it is not the usual one.
    pub registry: String,
    pub repository: String,
    pub tag: Option<String>,
    pub digest: Option<Digest>,
}

/// A text is no address of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReference {
    #[error("it does not begin with `{SCHEME}`")]
    Scheme,
    #[error("it names no registry, or no repository in it")]
    Parts,
    #[error("the name of a registry is a host, with a port at most")]
    Registry,
    #[error("the name of a repository is of small letters and digits, with `.`, `_`, `-` and `/` between them")]
    Repository,
    #[error("a tag is at most {LONGEST_TAG} letters and digits, with `_`, `.` and `-` after the first")]
    Tag,
    #[error(transparent)]
    Digest(#[from] crate::digest::NoDigest),
}

impl Reference {
    /// Whether a text is meant to be one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The same with another tag, and without a digest.
    #[must_use]
    pub fn with_tag(&self, tag: &str) -> Reference {
        Reference { tag: Some(tag.to_owned()), digest: None, ..self.clone() }
    }

    /// The last part of the repository's name.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or(&self.repository)
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Reference, InvalidReference> {
        let rest = text.strip_prefix(SCHEME).ok_or(InvalidReference::Scheme)?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse()?)),
            None => (rest, None),
        };
        let (registry, path) = rest.split_once('/').ok_or(InvalidReference::Parts)?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (path, None),
        };
        if registry.is_empty() || repository.is_empty() {
            return Err(InvalidReference::Parts);
        }
        if !is_registry(registry) {
            return Err(InvalidReference::Registry);
        }
        if repository.len() > LONGEST_REPOSITORY || !repository.split('/').all(is_path_part) {
            return Err(InvalidReference::Repository);
        }
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err(InvalidReference::Tag);
        }
        Ok(Reference { registry: registry.to_owned(), repository: repository.to_owned(), tag, digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.registry, self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

/// A URL says exactly which hosts there are; here only what could end the host is kept out.
fn is_registry(text: &str) -> bool {
    let parsed = url::Url::parse(&format!("https://{text}/"));
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte));
    is_plain && parsed.is_ok_and(|url| url.has_host())
}

/// Letters and digits, with one `.`, one or two `_`, or any number of `-` between them.
fn is_path_part(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (Some(first), Some(last)) = (part.bytes().next(), part.bytes().last()) else { return false };
    let separators = part.split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    let is_separator = |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    is_word(first) && is_word(last) && separators.into_iter().all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= LONGEST_TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_read() {
        let digest = format!("@{}", Digest::of(b"x"));
        for tail in ["", ":1.0.0", &digest, &format!(":1.0.0{digest}")] {
            for head in ["ghcr.io/acme/toad", "127.0.0.1:5000/toad", "[::1]:5000/a/b_c/d--e", "localhost/a.b__c"] {
                let text = format!("oci://{head}{tail}");
                assert_eq!(text.parse::<Reference>().expect(&text).to_string(), text);
            }
        }
        let read: Reference = "oci://ghcr.io/acme/toad:1.0.0".parse().expect("an address");
        assert_eq!((read.registry.as_str(), read.repository.as_str(), read.name()), ("ghcr.io", "acme/toad", "toad"));
        assert_eq!(read.with_tag("2.0.0").to_string(), "oci://ghcr.io/acme/toad:2.0.0");
    }

    #[test]
    fn what_is_no_address_is_told_by_its_part() {
        use InvalidReference::{Parts, Registry, Repository, Scheme, Tag};
        let check = |text: &str, expected: InvalidReference| {
            assert_eq!(text.parse::<Reference>(), Err(expected), "{text}");
        };
        check("ghcr.io/acme/toad", Scheme);
        check("oci://ghcr.io", Parts);
        check("oci:///toad", Parts);
        check("oci://ghcr.io/", Parts);
        check("oci://user@ghcr.io/toad", InvalidReference::Digest(crate::digest::NoDigest));
        check("oci://gh cr.io/toad", Registry);
        check("oci://ghcr.io:port/toad", Registry);
        check("oci://ghcr.io?x/toad", Registry);
        for bad in ["Toad", "a//b", "a/", "-a", "a-", "a._b", "a___b", "../a", "a/../b", "a%2fb"] {
            check(&format!("oci://ghcr.io/{bad}"), Repository);
        }
        check(&format!("oci://ghcr.io/{}", "a".repeat(256)), Repository);
        check("oci://ghcr.io/toad:", Tag);
        check("oci://ghcr.io/toad:-1", Tag);
        check("oci://ghcr.io/toad:a/b", Tag);
        check(&format!("oci://ghcr.io/toad:{}", "1".repeat(129)), Tag);
        check("oci://ghcr.io/toad@sha256:12", InvalidReference::Digest(crate::digest::NoDigest));
    }
}
