//! Keys as subjects. A segment of a key is a token of a subject; bytes that a token of a key-value
//! bucket may not have become `=XX`.
//!
//! ```text
//! relay.HOST.agents.bob.inbox         an entry of the log agents/bob/inbox, written by HOST
//! $KV.RELAY_MAP.agents.bob.meta       the value agents/bob/meta
//! ```
//!
//! The host stands in the subject because a server's permissions are about subjects: so who wrote an
//! entry is known from where it lies, and never from what it says.

use super::options::NatsOptions;
use crate::Key;

/// A key's tokens.
fn tokens(key: &Key) -> String {
    let mut text = String::with_capacity(key.as_str().len() + 8);
    for (index, segment) in key.segments().enumerate() {
        if index > 0 {
            text.push('.');
        }
        for byte in segment.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
                text.push(char::from(byte));
            } else {
                text.push_str(&format!("={byte:02X}"));
            }
        }
    }
    text
}

/// The key whose tokens these are; none where nothing of ours was written so.
fn key(tokens: &str) -> Option<Key> {
    let mut text = String::with_capacity(tokens.len());
    let mut rest = tokens.chars();
    while let Some(character) = rest.next() {
        match character {
            '.' => text.push('/'),
            '=' => {
                let digits: String = rest.by_ref().take(2).collect();
                text.push(char::from(u8::from_str_radix(&digits, 16).ok()?));
            }
            plain => text.push(plain),
        }
    }
    text.parse().ok()
}

/// Where this host writes a log.
pub(super) fn of_log(options: &NatsOptions, log: &Key) -> String {
    format!("{}.{}.{}", root(options), options.host, tokens(log))
}

/// A log, whoever wrote it.
pub(super) fn any_of_log(options: &NatsOptions, log: &Key) -> String {
    format!("{}.*.{}", root(options), tokens(log))
}

/// Every log of every host.
pub(super) fn all_logs(options: &NatsOptions) -> String {
    format!("{}.*.>", root(options))
}

/// A log and those under it.
pub(super) fn logs_under(options: &NatsOptions, key: &Key) -> [String; 2] {
    let at = any_of_log(options, key);
    [format!("{at}.>"), at]
}

/// The subject of a key in a bucket.
pub(super) fn of_value(bucket: &str, key: &Key) -> String {
    format!("$KV.{bucket}.{}", tokens(key))
}

/// A value and those under it.
pub(super) fn values_under(bucket: &str, key: &Key) -> [String; 2] {
    let at = of_value(bucket, key);
    [format!("{at}.>"), at]
}

/// The key that a bucket's subject stands for.
pub(super) fn value_of(bucket: &str, subject: &str) -> Option<Key> {
    key(subject.strip_prefix("$KV.")?.strip_prefix(bucket)?.strip_prefix('.')?)
}

fn root(options: &NatsOptions) -> String {
    options.prefix.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_subjects_and_come_back() {
        for text in ["agents/bob/meta", "m/d.e", "a/%2F_-@x", "agents/bob@team/inbox"] {
            let at: Key = text.parse().expect("a key");
            let subject = of_value("RELAY_MAP", &at);
            let tail = subject.strip_prefix("$KV.RELAY_MAP.").expect("in the bucket");
            assert!(tail.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=.".contains(&byte)), "{subject}");
            assert_eq!(tail.split('.').count(), at.segments().count(), "{subject}");
            assert_eq!(value_of("RELAY_MAP", &subject), Some(at));
        }
        assert_eq!(value_of("RELAY_MAP", "$KV.OTHER.a"), None);
        assert_eq!(value_of("RELAY_MAP", "$KV.RELAY_MAP.a=zz"), None);
    }

    #[test]
    fn the_host_stands_in_the_subject_of_an_entry() {
        let options = NatsOptions { host: "one".to_owned(), ..NatsOptions::default() };
        let log: Key = "agents/bob/inbox".parse().expect("a key");
        assert_eq!(of_log(&options, &log), "relay.one.agents.bob.inbox");
        assert_eq!(any_of_log(&options, &log), "relay.*.agents.bob.inbox");
        assert_eq!(logs_under(&options, &log), ["relay.*.agents.bob.inbox.>", "relay.*.agents.bob.inbox"]);
    }
}
