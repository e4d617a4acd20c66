//! Keys as subjects. A segment of a key is a token of a subject; bytes that a token of a key-value bucket may not
//! contain become `=XX`.
//!
//! ```text
//! relay.HOST.agents.bob.inbox              an entry of the log agents/bob/inbox, written by HOST
//! $KV.RELAY_MAP.HOST.agents.bob.meta       the value agents/bob/meta, as HOST says it
//! $KV.RELAY_HOLDS.deliveries.bob           who holds deliveries/bob
//! relay-news.SUBJECT                       the server announces a message stored at SUBJECT
//! ```
//!
//! The machine is part of the subject (HOST) because a server's permissions are by subject: so the subject proves who
//! wrote, whatever the content says.

use store::Key;

use crate::options::NatsOptions;

/// A key's tokens.
fn tokens(key: &Key) -> String {
    let mut text = String::with_capacity(key.as_str().len() + 8);
    push_tokens(&mut text, key);
    text
}

fn push_tokens(text: &mut String, key: &Key) {
    for (index, segment) in key.segments().enumerate() {
        if index > 0 {
            text.push('.');
        }
        push_token(text, segment);
    }
}

/// A segment as a token.
fn token(segment: &str) -> String {
    let mut text = String::new();
    push_token(&mut text, segment);
    text
}

fn push_token(text: &mut String, segment: &str) {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("={byte:02X}"));
        }
    }
}

/// The key with these tokens; none if we write no such tokens.
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

/// The subject at which a machine writes a log.
pub(crate) fn of_log(options: &NatsOptions, machine: &str, log: &Key) -> String {
    let mut text = root(options);
    text.reserve(machine.len() + log.as_str().len() + 16);
    text.push('.');
    text.push_str(machine);
    text.push('.');
    push_tokens(&mut text, log);
    text
}

/// Whether a subject is one of these, in which a `*` stands for any token.
pub(crate) fn includes(filter: &str, subject: &str) -> bool {
    let (mut wanted, mut found) = (filter.split('.'), subject.split('.'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == "*" || wanted == found => {}
            _ => return false,
        }
    }
}

/// A log, by any machine.
pub(crate) fn any_of_log(options: &NatsOptions, log: &Key) -> String {
    of_log(options, "*", log)
}

/// Every log of every machine.
pub(crate) fn all_logs(options: &NatsOptions) -> String {
    format!("{}.*.>", root(options))
}

/// Every log as one machine writes it.
pub(crate) fn logs_of_machine(options: &NatsOptions, machine: &str) -> String {
    format!("{}.{machine}.>", root(options))
}

/// Every value as one machine writes it.
pub(crate) fn values_of_machine(bucket: &str, machine: &str) -> String {
    format!("$KV.{bucket}.{machine}.>")
}

/// A log and those under it.
pub(crate) fn logs_under(options: &NatsOptions, key: &Key) -> [String; 2] {
    let at = any_of_log(options, key);
    [format!("{at}.>"), at]
}

/// The machine that wrote an entry.
pub(crate) fn machine_of_entry<'a>(options: &NatsOptions, subject: &'a str) -> Option<&'a str> {
    let rest = subject.strip_prefix(&root(options))?.strip_prefix('.')?;
    rest.split_once('.').map(|(machine, _)| machine)
}

/// The subject at which a machine writes a value.
pub(crate) fn of_value(bucket: &str, machine: &str, key: &Key) -> String {
    format!("$KV.{bucket}.{machine}.{}", tokens(key))
}

/// Values under a key and the one at it, by any machine.
pub(crate) fn values_under(bucket: &str, key: &Key) -> [String; 2] {
    let at = of_value(bucket, "*", key);
    [format!("{at}.>"), at]
}

/// The values of this name of all keys right below a key, by any machine.
pub(crate) fn values_called(bucket: &str, below: &Key, leaf: &str) -> String {
    format!("$KV.{bucket}.*.{}.*.{}", tokens(below), token(leaf))
}

/// The values right below a key, by any machine.
pub(crate) fn values_right_below(bucket: &str, key: &Key) -> String {
    format!("$KV.{bucket}.*.{}.*", tokens(key))
}

/// The logs of this name of all keys right below a key, by any machine.
pub(crate) fn logs_called(options: &NatsOptions, below: &Key, leaf: &str) -> String {
    format!("{}.*.{}.*.{}", root(options), tokens(below), token(leaf))
}

/// The machine and the key of a bucket's subject.
pub(crate) fn value_of(bucket: &str, subject: &str) -> Option<(String, Key)> {
    let rest = subject.strip_prefix("$KV.")?.strip_prefix(bucket)?.strip_prefix('.')?;
    let (machine, tokens) = rest.split_once('.')?;
    Some((machine.to_owned(), key(tokens)?))
}

/// One machine's values of a home, and the floors of its logs.
pub(crate) fn values_of_home(bucket: &str, machine: &str, home: &Key) -> [String; 2] {
    let at = tokens(home);
    [format!("$KV.{bucket}.{machine}.{at}.>"), format!("$KV.{bucket}.{machine}._retired.{at}.>")]
}

/// The logs of a home as one machine wrote them.
pub(crate) fn logs_of_home(options: &NatsOptions, machine: &str, home: &Key) -> String {
    format!("{}.>", of_log(options, machine, home))
}

/// The log that a machine wrote at a subject.
pub(crate) fn log_of(options: &NatsOptions, subject: &str) -> Option<Key> {
    let rest = subject.strip_prefix(&root(options))?.strip_prefix('.')?;
    key(rest.split_once('.')?.1)
}

/// The name of a subject whose streams are in a domain. A leaf node does not pass subjects that begin with `$KV`, and a
/// server reserves such names for a domain's buckets, as it does for its requests.
pub(crate) fn within_domain(domain: &str, subject: &str) -> String {
    if subject.starts_with("$KV.") { format!("$JS.{domain}.API.{subject}") } else { subject.to_owned() }
}

/// The subject of the hold of a key.
pub(crate) fn of_hold(bucket: &str, key: &Key) -> String {
    format!("$KV.{bucket}.{}", tokens(key))
}

/// The subjects at which the server announces every stored message.
pub(crate) fn news(options: &NatsOptions) -> String {
    format!("{}-news.>", root(options))
}

/// The subjects at which the server announces messages of logs and values at a key and under it.
pub(crate) fn news_under(options: &NatsOptions, key: &Key) -> [String; 4] {
    let news = |at: String| format!("{}-news.{at}", root(options));
    let [values, value] = values_under(&options.map_bucket(), key);
    let [logs, log] = logs_under(options, key);
    [news(logs), news(log), news(values), news(value)]
}

fn root(options: &NatsOptions) -> String {
    options.prefix.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_token() {
        for (filter, subject, is_one) in [
            ("relay.*.agents.bob.inbox", "relay.one.agents.bob.inbox", true),
            ("relay.one.agents.bob.inbox", "relay.two.agents.bob.inbox", false),
            ("relay.*.agents.bob.inbox", "relay.one.agents.bob.receipts", false),
            ("relay.*.agents", "relay.one.agents.bob", false),
            ("relay.*.agents.bob", "relay.one.agents", false),
        ] {
            assert_eq!(includes(filter, subject), is_one, "{filter} {subject}");
        }
    }

    #[test]
    fn keys_become_subjects_and_come_back() {
        for text in ["agents/bob/meta", "m/d.e", "a/%2F_-@x", "agents/bob@team/inbox"] {
            let at: Key = text.parse().expect("a key");
            let subject = of_value("RELAY_MAP", "one", &at);
            let tail = subject.strip_prefix("$KV.RELAY_MAP.one.").expect("in the bucket");
            assert!(tail.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=.".contains(&byte)), "{subject}");
            assert_eq!(tail.split('.').count(), at.segments().count(), "{subject}");
            assert_eq!(value_of("RELAY_MAP", &subject), Some(("one".to_owned(), at)));
        }
        assert_eq!(value_of("RELAY_MAP", "$KV.OTHER.one.a"), None);
        assert_eq!(value_of("RELAY_MAP", "$KV.RELAY_MAP.one.a=zz"), None);
        assert_eq!(value_of("RELAY_MAP", "$KV.RELAY_MAP.one"), None);
    }

    #[test]
    fn the_host_stands_in_the_subject_of_whatever_it_writes() {
        let options = NatsOptions { machine: "one".to_owned(), ..NatsOptions::default() };
        let log: Key = "agents/bob/inbox".parse().expect("a key");
        assert_eq!(of_log(&options, &options.machine, &log), "relay.one.agents.bob.inbox");
        assert_eq!(any_of_log(&options, &log), "relay.*.agents.bob.inbox");
        assert_eq!(machine_of_entry(&options, "relay.one.agents.bob.inbox"), Some("one"));
        assert_eq!(machine_of_entry(&options, "relay-news.one.agents"), None);
        assert_eq!(
            news_under(&options, &log),
            [
                "relay-news.relay.*.agents.bob.inbox.>",
                "relay-news.relay.*.agents.bob.inbox",
                "relay-news.$KV.RELAY_MAP.*.agents.bob.inbox.>",
                "relay-news.$KV.RELAY_MAP.*.agents.bob.inbox"
            ]
        );
    }
}
