//! Secrets of pages. Only their digests are kept, so that who reads the folder later learns none.

use mesh::ports::machine::Machine;
use sha2::{Digest, Sha256};

/// 256 bits in hexadecimal.
pub(crate) fn secret(machine: &dyn Machine) -> String {
    hex::encode([machine.random(), machine.random()].concat())
}

/// The digest of a secret, as files are named.
pub(crate) fn digest(secret: &str) -> String {
    digest_of(secret.as_bytes())
}

/// The digest of bytes, in hexadecimal.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
