//! Signatures inside a component, in the form of the WebAssembly tool conventions: a custom section `signature`, the
//! first of the file, over the SHA-256 of all that follows it. Any runtime loads such a component as it loads an unsigned
//! one. What we add to the form is the key: a signature's key id is the public key itself, so that a file says who signed
//! it, and the user decides whether to trust that key.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::section::{self, put_bytes, unsigned};

/// The name of the section.
const NAME: &str = "signature";
/// What every signed text begins with: the form's name, its version, what is signed, and how it is hashed.
const DOMAIN: &[u8] = b"wasmsig\x01\x01\x01";
const HEAD: [u8; 3] = [1, 1, 1];
/// The one algorithm of the form: Ed25519.
const ALGORITHM: u8 = 1;
/// The most signatures of one file that are looked at: a publisher who changes the key needs two.
const MOST: usize = 16;
/// The largest section, in bytes.
const LARGEST: usize = 64 * 1024;
const PREFIX: &str = "ed25519:";
/// What comes before the 32 bytes of a private key of Ed25519 in PKCS#8 (RFC 8410).
const PKCS8: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// The key of a publisher: `ed25519:` and 43 letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublisherKey([u8; 32]);

/// A text is no key of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a publisher's key is `{PREFIX}` and 43 letters, digits, `-` and `_`")]
pub struct NoKey;

impl fmt::Display for PublisherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublisherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublisherKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<PublisherKey, NoKey> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX).ok_or(NoKey)?).map_err(|_| NoKey)?;
        Ok(PublisherKey(bytes.try_into().map_err(|_| NoKey)?))
    }
}

impl TryFrom<String> for PublisherKey {
    type Error = NoKey;

    fn try_from(text: String) -> Result<PublisherKey, NoKey> {
        text.parse()
    }
}

impl From<PublisherKey> for String {
    fn from(key: PublisherKey) -> String {
        key.to_string()
    }
}

/// What a publisher signs with.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

/// A signing key is not made or not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    #[error("this system gives no random numbers")]
    Random,
    #[error("it is no private key of Ed25519 in PKCS#8")]
    Malformed,
}

impl SigningKey {
    /// A new key, and the bytes to keep it as (PKCS#8).
    pub fn generate() -> Result<(SigningKey, Vec<u8>), SigningKeyError> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| SigningKeyError::Random)?;
        // The private half alone, which every tool reads; ring itself would write the later form with both.
        let pkcs8 = [PKCS8.as_slice(), &seed].concat();
        Ok((SigningKey::read(&pkcs8)?, pkcs8))
    }

    /// Reads a key in PKCS#8, as `generate` or OpenSSL made it.
    pub fn read(pkcs8: &[u8]) -> Result<SigningKey, SigningKeyError> {
        let read = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8);
        read.map(SigningKey).map_err(|_| SigningKeyError::Malformed)
    }

    /// The public half.
    pub fn publisher(&self) -> PublisherKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.0.public_key().as_ref());
        PublisherKey(key)
    }
}

/// Whether a component is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signed {
    /// It has no signatures.
    No,
    /// Signed by these, each proven.
    By(Vec<PublisherKey>),
    /// It has signatures, and none of them fits: it was changed after it was signed, or signed by another tool without
    /// its key.
    Broken,
    /// It is signed, and its manifest is another one, beside it: that anybody may have written.
    ManifestBeside,
}

impl Signed {
    /// The keys that signed it.
    pub fn keys(&self) -> &[PublisherKey] {
        match self {
            Signed::By(keys) => keys,
            Signed::No | Signed::Broken | Signed::ManifestBeside => &[],
        }
    }
}

/// Who signed a component.
pub(crate) fn signed(binary: &[u8]) -> Signed {
    match first_section(binary) {
        // A signature elsewhere covers nothing that comes before it.
        None if has_stray(binary) => Signed::Broken,
        None => Signed::No,
        Some((contents, rest)) => {
            let hash: [u8; 32] = Sha256::digest(rest).into();
            let mut keys: Vec<PublisherKey> = signatures(contents)
                .unwrap_or_default()
                .into_iter()
                .filter(|one| one.hash == hash && one.verifies())
                .map(|one| one.key)
                .collect();
            keys.sort();
            keys.dedup();
            if keys.is_empty() { Signed::Broken } else { Signed::By(keys) }
        }
    }
}

/// The component with a signature of this key, beside those that it has and that fit.
pub(crate) fn sign(binary: &[u8], key: &SigningKey) -> Vec<u8> {
    let (before, rest) = match first_section(binary) {
        Some((contents, rest)) => (signatures(contents).unwrap_or_default(), rest),
        None => (Vec::new(), binary.get(8..).unwrap_or_default()),
    };
    let hash: [u8; 32] = Sha256::digest(rest).into();
    let publisher = key.publisher();
    let kept = before.into_iter().filter(|one| one.hash == hash && one.key != publisher && one.verifies());
    let signature = key.0.sign(&message(&hash)).as_ref().to_vec();
    let all: Vec<Signature> = kept.chain([Signature { key: publisher, hash, signature }]).collect();

    let mut set = vec![1];
    set.extend(hash);
    section::put_unsigned(&mut set, all.len());
    for one in &all {
        let mut written = Vec::new();
        put_bytes(&mut written, &one.key.0);
        written.push(ALGORITHM);
        put_bytes(&mut written, &one.signature);
        put_bytes(&mut set, &written);
    }
    let mut contents = HEAD.to_vec();
    contents.push(1);
    put_bytes(&mut contents, &set);

    let mut signed = binary.get(..8).unwrap_or_default().to_vec();
    signed.extend(section::custom(NAME, &contents));
    signed.extend(rest);
    signed
}

/// One signature over one hash.
struct Signature {
    key: PublisherKey,
    hash: [u8; 32],
    signature: Vec<u8>,
}

impl Signature {
    fn verifies(&self) -> bool {
        UnparsedPublicKey::new(&ED25519, self.key.0).verify(&message(&self.hash), &self.signature).is_ok()
    }
}

fn message(hash: &[u8; 32]) -> Vec<u8> {
    [DOMAIN, hash].concat()
}

/// The contents of the section and what follows it, if it is the first.
fn first_section(binary: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&kind, after) = binary.get(8..)?.split_first()?;
    let (length, after) = unsigned(after)?;
    let (contents, rest) = after.split_at_checked(length)?;
    let (length, named) = unsigned(contents)?;
    let (name, contents) = named.split_at_checked(length)?;
    (kind == 0 && name == NAME.as_bytes()).then_some((contents, rest))
}

/// Whether there is a signature that is not the first section of the file.
fn has_stray(binary: &[u8]) -> bool {
    section::top_level(binary).any(|name| name == NAME.as_bytes())
}

/// The signatures over one hash of the whole. One over several hashes would hold for a part of the file as well.
fn signatures(contents: &[u8]) -> Option<Vec<Signature>> {
    let mut rest = contents.get(..LARGEST.min(contents.len()))?.strip_prefix(&HEAD)?;
    let mut found = Vec::new();
    for _ in 0..take_number(&mut rest)?.min(MOST) {
        let mut set = take_bytes(&mut rest)?;
        let hashes = take_number(&mut set)?;
        if hashes != 1 {
            continue;
        }
        let (hash, after) = set.split_at_checked(32)?;
        let hash: [u8; 32] = hash.try_into().ok()?;
        set = after;
        for _ in 0..take_number(&mut set)?.min(MOST) {
            let mut one = take_bytes(&mut set)?;
            let key = take_bytes(&mut one)?;
            let (&algorithm, after) = one.split_first()?;
            one = after;
            let signature = take_bytes(&mut one)?.to_vec();
            if let (Ok(key), ALGORITHM) = (key.try_into(), algorithm) {
                found.push(Signature { key: PublisherKey(key), hash, signature });
            }
        }
    }
    Some(found)
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = unsigned(rest)?;
    *rest = after;
    Some(number)
}

fn take_bytes<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = take_number(rest)?;
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests;
