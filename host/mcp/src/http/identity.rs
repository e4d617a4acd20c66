//! A server's proof of whose it is, so that nobody hands its token to what another user has put at the same port.
//!
//! The asker sends a nonce. The answer is an HMAC over it and over the address at which the asker was heard, with the
//! token as the key: only who knows the token can make it, it tells nothing of the token, and what listens elsewhere
//! cannot have it made by the server and pass it on as its own (docs/adr/0025).

use std::net::SocketAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The path that is asked; the nonce follows it.
pub const IDENTITY: &str = "/identity/";
/// The shortest nonce that is answered, in characters.
const SHORTEST: usize = 16;
/// The longest.
const LONGEST: usize = 128;

/// The proof of the server that listens at an address, in hexadecimal; none if the nonce is none.
pub fn proof(token: &str, at: SocketAddr, nonce: &str) -> Option<String> {
    Some(hex::encode(mac(token, at, nonce)?.finalize().into_bytes()))
}

/// Whether a proof was made by a server that knows the token, for whoever connected to this address.
pub fn proves(token: &str, at: SocketAddr, nonce: &str, shown: &str) -> bool {
    let (pairs, rest) = shown.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let shown: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    match (mac(token, at, nonce), shown) {
        // `verify_slice` compares in constant time.
        (Some(mac), Some(shown)) if rest.is_empty() => mac.verify_slice(&shown).is_ok(),
        _ => false,
    }
}

fn mac(token: &str, at: SocketAddr, nonce: &str) -> Option<Hmac<Sha256>> {
    let fits = (SHORTEST..=LONGEST).contains(&nonce.len()) && nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let mut mac = fits.then(|| Hmac::<Sha256>::new_from_slice(token.as_bytes()).ok()).flatten()?;
    let at = SocketAddr::new(at.ip().to_canonical(), at.port());
    mac.update(format!("relay-mesh server\n{at}\n{nonce}").as_bytes());
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_one_token_one_address_and_one_nonce() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (here, nonce) = (at("127.0.0.1:7423"), "0123456789abcdef");
        let made = proof("a-token", here, nonce).expect("a proof");
        assert!(proves("a-token", here, nonce, &made));
        assert!(proves("a-token", at("[::ffff:127.0.0.1]:7423"), nonce, &made), "the same address");
        for (token, at, nonce, shown) in [
            ("another", here, nonce, made.as_str()),
            ("a-token", at("127.0.0.1:7424"), nonce, &made),
            ("a-token", at("127.0.0.2:7423"), nonce, &made),
            ("a-token", here, "0123456789abcdee", &made),
            ("a-token", here, nonce, &made[1..]),
            ("a-token", here, nonce, ""),
            ("a-token", here, nonce, "zz"),
        ] {
            assert!(!proves(token, at, nonce, shown), "{token} {at} {nonce} {shown}");
        }
        for nonce in ["", "short", "0123456789abcde\n", &"a".repeat(129)] {
            assert_eq!(proof("a-token", here, nonce), None, "{nonce}");
        }
    }
}
