//! Checks a stream that an operator created. It is refused if it would not keep what it acknowledges; if it keeps less
//! than one of ours, it causes warnings.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType};

use crate::options::NatsOptions;
use crate::subjects;

/// The shortest duplicate window that covers a message that is sent again.
const KNOWN_AGAIN: Duration = Duration::from_secs(60);

/// How a stream is worse than one that we would create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamWarning {
    /// It drops old messages to make room, read or not.
    DropsOld,
    /// It allows roll-ups: a login that may write one value could remove all others.
    RollsUp,
    /// It is stored in memory only.
    InMemory,
    /// It acknowledges messages before they are on disk.
    Unsynced,
    /// It drops messages after this time, read or not.
    Forgets(Duration),
    /// It accepts no message longer than this many bytes.
    TakesNoLonger(usize),
    /// It recognises a message that is sent again only for this long.
    KnowsAgain(Duration),
    /// It keeps removal markers for ever.
    KeepsMarks,
}

/// Why a stream with our name cannot be used.
pub(crate) enum StreamMisfit {
    /// It is for other subjects.
    SomebodyElses(String),
    /// It does not keep messages, or changes them.
    KeepsNothing(String),
}

/// Checks whether a stream can keep our messages at some subjects.
pub(crate) fn check(config: &Config, wanted: &[String]) -> Result<(), StreamMisfit> {
    let keeps_nothing = |why: &str| Err(StreamMisfit::KeepsNothing(why.to_owned()));
    if let Some(mirror) = &config.mirror {
        return keeps_nothing(&format!("it is a mirror of {}, and takes nothing of its own", mirror.name));
    }
    if !wanted.iter().all(|wanted| config.subjects.iter().any(|has| covers(has, wanted))) {
        let (wanted, has) = (wanted.join(", "), config.subjects.join(", "));
        return Err(StreamMisfit::SomebodyElses(format!("it is for {has} and not for {wanted}")));
    }
    if config.sealed {
        return keeps_nothing("it is sealed, and takes nothing any more");
    }
    match config.retention {
        RetentionPolicy::Limits => {}
        RetentionPolicy::Interest => {
            return keeps_nothing("its retention is `interest`: it keeps only what a consumer waits for");
        }
        RetentionPolicy::WorkQueue => {
            return keeps_nothing("its retention is `workqueue`: it deletes what one consumer has taken");
        }
    }
    if config.no_ack {
        return keeps_nothing("it acknowledges nothing (`no_ack`), so no sender would know what is stored");
    }
    if config.allow_message_counter {
        return keeps_nothing("it counts (`allow_msg_counter`), and keeps no texts");
    }
    if let Some(transform) = &config.subject_transform {
        return keeps_nothing(&format!("it keeps messages under other subjects (`{}`)", transform.destination));
    }
    Ok(())
}

/// The warnings about a stream of logs or values.
pub(crate) fn warnings(options: &NatsOptions, config: &Config) -> Vec<StreamWarning> {
    let is_of_logs = config.name == options.log_stream();
    let is_bounded = config.max_bytes > 0 || config.max_messages > 0;
    // A limit per subject drops old messages whatever the discard policy, except with `discard_new_per_subject`.
    let refuses_by_subject = config.discard == DiscardPolicy::New && config.discard_new_per_subject;
    let drops_by_subject = is_of_logs && config.max_messages_per_subject > 0 && !refuses_by_subject;
    let long_enough = if is_of_logs { options.kept_for } else { Duration::MAX };
    let mut warnings = Vec::new();
    let mut warning = |is_so: bool, warning: StreamWarning| warnings.extend(is_so.then_some(warning));
    warning((config.discard == DiscardPolicy::Old && is_bounded) || drops_by_subject, StreamWarning::DropsOld);
    warning(config.allow_rollup, StreamWarning::RollsUp);
    warning(config.storage == StorageType::Memory, StreamWarning::InMemory);
    warning(config.persist_mode == Some(PersistenceMode::Async), StreamWarning::Unsynced);
    warning(!config.max_age.is_zero() && config.max_age < long_enough, StreamWarning::Forgets(config.max_age));
    if let Ok(most) = usize::try_from(config.max_message_size)
        && most > 0
    {
        warning(true, StreamWarning::TakesNoLonger(most));
    }
    warning(config.duplicate_window < KNOWN_AGAIN, StreamWarning::KnowsAgain(config.duplicate_window));
    let lets_go_of_marks = config.allow_message_ttl && config.max_messages_per_subject == 1;
    warning(!is_of_logs && !lets_go_of_marks, StreamWarning::KeepsMarks);
    warnings
}

/// Whether a stream announces its messages where the watches listen.
pub(crate) fn tells(options: &NatsOptions, config: &Config) -> bool {
    config.republish.as_ref().is_some_and(|republish| {
        matches!(republish.source.as_str(), "" | ">") && republish.destination == subjects::news(options)
    })
}

/// Whether each subject that matches one pattern matches a wider one too.
fn covers(wide: &str, narrow: &str) -> bool {
    let (mut wide, mut narrow) = (wide.split('.'), narrow.split('.'));
    loop {
        match (wide.next(), narrow.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(token)) if token != ">" => {}
            (Some(token), Some(same)) if token == same => {}
            (Some(_) | None, Some(_) | None) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::stream::{Republish, Source, SubjectTransform};

    use super::*;

    fn ours() -> Config {
        let options = NatsOptions::default();
        Config {
            name: "RELAY_MESSAGES".to_owned(),
            subjects: vec!["relay.*.>".to_owned()],
            discard: DiscardPolicy::New,
            duplicate_window: Duration::from_secs(120),
            max_age: options.kept_for,
            ..Config::default()
        }
    }

    #[test]
    fn what_would_not_keep_what_it_acknowledges_is_not_used() {
        let check = |config: Config, expected: &str| {
            let outcome = match super::check(&config, &["relay.*.>".to_owned()]) {
                Ok(()) => "used".to_owned(),
                Err(StreamMisfit::SomebodyElses(why)) => format!("somebody else's: {why}"),
                Err(StreamMisfit::KeepsNothing(why)) => why,
            };
            assert!(outcome.starts_with(expected), "{outcome} and not {expected}");
        };
        let on = |subject: &str| Config { subjects: vec![subject.to_owned()], ..ours() };
        check(ours(), "used");
        check(on("relay.>"), "used");
        check(on("orders.>"), "somebody else's: it is for orders.> and not for relay.*.>");
        check(on("relay.*.*"), "somebody else's");
        check(on("relay.one.>"), "somebody else's");
        let mirror = Some(Source { name: "SRC".to_owned(), ..Source::default() });
        check(Config { mirror, subjects: Vec::new(), ..ours() }, "it is a mirror of SRC");
        check(Config { sealed: true, ..ours() }, "it is sealed");
        check(Config { retention: RetentionPolicy::Interest, ..ours() }, "its retention is `interest`");
        check(Config { retention: RetentionPolicy::WorkQueue, ..ours() }, "its retention is `workqueue`");
        check(Config { no_ack: true, ..ours() }, "it acknowledges nothing");
        check(Config { allow_message_counter: true, ..ours() }, "it counts");
        let transform = SubjectTransform { source: "relay.>".to_owned(), destination: "x.>".to_owned() };
        check(
            Config { subject_transform: Some(transform), ..ours() },
            "it keeps messages under other subjects (`x.>`)",
        );
    }

    #[test]
    fn what_keeps_less_than_ours_would_is_told() {
        let check = |config: Config, expected: &[StreamWarning]| {
            assert_eq!(warnings(&NatsOptions::default(), &config), expected, "{config:?}");
        };
        let hour = Duration::from_secs(3_600);
        check(ours(), &[]);
        check(Config { max_bytes: 9, ..ours() }, &[]);
        check(Config { max_bytes: 9, discard: DiscardPolicy::Old, ..ours() }, &[StreamWarning::DropsOld]);
        check(Config { max_messages_per_subject: 5, ..ours() }, &[StreamWarning::DropsOld]);
        check(Config { max_messages_per_subject: 5, discard_new_per_subject: true, ..ours() }, &[]);
        check(Config { allow_rollup: true, ..ours() }, &[StreamWarning::RollsUp]);
        check(Config { storage: StorageType::Memory, ..ours() }, &[StreamWarning::InMemory]);
        check(Config { persist_mode: Some(PersistenceMode::Async), ..ours() }, &[StreamWarning::Unsynced]);
        check(Config { max_age: hour, ..ours() }, &[StreamWarning::Forgets(hour)]);
        check(Config { max_message_size: 9, ..ours() }, &[StreamWarning::TakesNoLonger(9)]);
        let blink = Duration::from_millis(100);
        check(Config { duplicate_window: blink, ..ours() }, &[StreamWarning::KnowsAgain(blink)]);
        let map =
            Config { name: "KV_RELAY_MAP".to_owned(), allow_message_ttl: true, max_messages_per_subject: 1, ..ours() };
        check(Config { max_age: Duration::ZERO, ..map.clone() }, &[]);
        let week = ours().max_age;
        check(
            Config { allow_message_ttl: false, ..map.clone() },
            &[StreamWarning::Forgets(week), StreamWarning::KeepsMarks],
        );
        let of_old = Config { max_age: Duration::ZERO, max_messages_per_subject: 9, ..map };
        check(of_old, &[StreamWarning::KeepsMarks]);
    }

    #[test]
    fn who_watches_hears_of_a_stream_that_tells_there_and_nowhere_else() {
        let check = |source: &str, destination: &str, expected: bool| {
            let news = Republish { source: source.to_owned(), destination: destination.to_owned(), headers_only: true };
            let config = Config { republish: Some(news), ..ours() };
            assert_eq!(tells(&NatsOptions::default(), &config), expected, "{source} to {destination}");
        };
        check(">", "relay-news.>", true);
        check(">", "elsewhere.>", false);
        check("relay.one.>", "relay-news.>", false);
        assert!(!tells(&NatsOptions::default(), &ours()));
    }
}
