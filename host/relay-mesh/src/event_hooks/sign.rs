//! Signatures of webhooks, as in the specification of Standard Webhooks: HMAC-SHA256 over id, time and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// A new secret of 32 bytes, from two calls for random bytes.
pub(crate) fn new_secret(random: impl Fn() -> [u8; 16]) -> String {
    format!("{PREFIX}{}", STANDARD.encode([random(), random()].concat()))
}

/// The value of the header `webhook-signature`. A secret that is no base64 signs by its own bytes.
pub(super) fn signature(secret: &str, id: &str, seconds: u64, body: &[u8]) -> String {
    let text = secret.strip_prefix(PREFIX).unwrap_or(secret);
    let key = STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length is one");
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own libraries.
    #[test]
    fn a_signature_is_the_one_that_every_library_of_standard_webhooks_checks() {
        let signed = signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let secret = new_secret(|| [7; 16]);
        assert_eq!(STANDARD.decode(secret.trim_start_matches(PREFIX)).map(|key| key.len()), Ok(32));
    }
}
