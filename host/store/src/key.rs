//! Keys: `/`-separated segments of a small alphabet, valid as file names, NATS subjects and words on a terminal alike.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The most bytes of a segment: a file name may have 255, which leaves room for a backend's additions.
const LONGEST: usize = 200;

/// The encoding of the empty text. No other text encodes to it, because a `%` is followed by two digits.
const EMPTY: &str = "%_";

/// Length of the digest at the end of an overlong text's segment: 128 bits, enough against accidental collisions.
const DIGEST_BYTES: usize = 16;

/// The name of a log or of a value: `agents/alice/inbox`.
///
/// Segments are 1 to 200 of `A-Z a-z 0-9 . _ - @ %` and never start with a dot. Text of unknown
/// content becomes a segment by [`Key::encode`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// Why text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a key of the store")]
pub struct InvalidKey(pub String);

impl Key {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This key with one more segment, which is encoded if necessary.
    #[must_use]
    pub fn child(&self, segment: &str) -> Key {
        let mut text = String::with_capacity(self.0.len() + 1 + segment.len());
        text.push_str(&self.0);
        text.push('/');
        Key::encode_onto(&mut text, segment);
        Key(text)
    }

    /// Its segments, in order.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The last segment, decoded.
    pub fn leaf(&self) -> String {
        Key::decode(self.segments().next_back().unwrap_or_default()).into_owned()
    }

    /// Whether this key is `other` or is under it.
    pub fn is_under(&self, other: &Key) -> bool {
        self.0 == other.0 || self.0.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether text is a valid segment.
    pub(crate) fn is_segment(text: &str) -> bool {
        (1..=LONGEST).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'@' | b'%'))
    }

    /// Makes any text a segment: bytes outside the alphabet become `%XX`; text that would be too long keeps its first
    /// bytes and ends in a digest of the whole.
    pub fn encode(text: &str) -> String {
        let mut segment = String::with_capacity(text.len());
        Key::encode_onto(&mut segment, text);
        segment
    }

    fn encode_onto(key: &mut String, text: &str) {
        let begin = key.len();
        for (index, byte) in text.bytes().enumerate() {
            let plain =
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'@') || (byte == b'.' && index > 0);
            if plain {
                key.push(char::from(byte));
            } else {
                key.push_str(&format!("%{byte:02X}"));
            }
        }
        if key.len() == begin {
            key.push_str(EMPTY);
        }
        if key.len() - begin > LONGEST {
            // Two processes, perhaps of two releases, must produce the same name: so the digest is a standard one, and
            // not the hasher of this build's standard library.
            key.truncate(begin + LONGEST - 1 - 2 * DIGEST_BYTES);
            key.push('_');
            key.push_str(&hex::encode(&Sha256::digest(text.as_bytes())[..DIGEST_BYTES]));
        }
    }

    /// Undoes [`Key::encode`], except for text that was too long.
    pub fn decode(segment: &str) -> Cow<'_, str> {
        if !segment.contains('%') {
            return Cow::Borrowed(segment);
        }
        if segment == EMPTY {
            return Cow::Borrowed("");
        }
        let bytes = segment.as_bytes();
        let mut text = Vec::with_capacity(bytes.len());
        let mut index = 0;
        while index < bytes.len() {
            let escaped = (bytes[index] == b'%')
                .then(|| segment.get(index + 1..index + 3))
                .flatten()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok());
            match escaped {
                Some(byte) => {
                    text.push(byte);
                    index += 3;
                }
                None => {
                    text.push(bytes[index]);
                    index += 1;
                }
            }
        }
        Cow::Owned(String::from_utf8_lossy(&text).into_owned())
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Key, InvalidKey> {
        if text.split('/').all(Key::is_segment) { Ok(Key(text.to_owned())) } else { Err(InvalidKey(text.to_owned())) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::Key;

    #[test]
    fn any_text_becomes_a_segment_and_comes_back() {
        for text in ["alice", "a/b", "..", "", "\0", "%_", "thread:1 2", "ünïcode", "50%"] {
            let key = "sessions".parse::<Key>().expect("a key").child(text);
            assert!(key.as_str().parse::<Key>().is_ok(), "{key}");
            assert_eq!(key.leaf(), text);
        }
    }

    #[test]
    fn overlong_text_becomes_the_same_segment_in_every_release() {
        let segment = Key::encode(&"x".repeat(300));
        assert_eq!(segment.len(), 200);
        assert!(segment.ends_with("x_0d4e2ca9e9cbced7a7a5380eb29e1a37"), "{segment}");
        assert_ne!(segment, Key::encode(&"x".repeat(301)));
    }

    #[test]
    fn text_that_would_leave_the_folder_is_not_a_key() {
        for text in ["", "/", "a//b", "../a", "a/../b", "a/.", "a b", "a\\b"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_becomes_one_segment_of_a_key(text in ".*") {
            let key = "sessions".parse::<Key>().expect("a key").child(&text);
            prop_assert_eq!(key.as_str().parse::<Key>().expect("still a key"), key.clone());
            prop_assert_eq!(key.segments().count(), 2);
            // Text that fits even if every byte is escaped.
            if text.len() * 3 <= 200 {
                prop_assert_eq!(key.leaf(), text);
            }
        }

        #[test]
        fn different_texts_become_different_segments(one in ".{0,300}", other in ".{0,300}") {
            prop_assert_eq!(Key::encode(&one) == Key::encode(&other), one == other);
        }

        #[test]
        fn a_key_is_what_its_segments_allow(text in "[a-z./@%_ -]{0,12}") {
            let fits = text.split('/').all(|segment| {
                !segment.is_empty() && !segment.starts_with('.') && !segment.contains(' ')
            });
            prop_assert_eq!(text.parse::<Key>().is_ok(), fits);
        }
    }
}
