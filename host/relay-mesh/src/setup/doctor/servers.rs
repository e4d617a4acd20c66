//! The findings about the servers, with hints.

use std::io::ErrorKind;
use std::time::Duration;

use mesh::KnownStore;
use mesh::messages::LONGEST_BODY;
use mesh::ports::harness::{Finding, Severity};
use mesh::ports::machine::Instant;
use store::{ServerTrouble, StoreError, reasons};
use store_nats::{ServerCheck, StreamReport, StreamWarning};

use super::{broken, fine, shown};
use crate::errors::store::{REPLICAS, SOMEBODY_ELSES};
use crate::shapes::ago;

/// Bytes that a message needs beside its text: names, subject, thread, headers.
const AROUND_A_BODY: usize = 64 * 1024;
/// A larger difference of clocks, in milliseconds, affects the order of events and when things lapse.
const SKEW: u64 = 30_000;
/// Percentage from which a stream counts as nearly full.
const NEARLY_FULL: u64 = 90;
/// Hint for a login that the server refused, or whose file cannot be read.
const NOT_LET_IN: &str = "the server does not take this login: look at user, password, token, nkey or credentials in \
                          `relay-mesh config`, and whether they have expired";
/// Hint for a server that cannot be reached for any other reason.
const NO_WAY_THERE: &str =
    "check the address in `relay-mesh config`: its name, its port, and whether this machine reaches it";

/// The findings. `clock` is this machine's clock in milliseconds since 1970.
pub(crate) fn findings(seen: &[ServerCheck], clock: u64) -> Vec<Finding> {
    let mut jetstream = true;
    let mut findings = Vec::new();
    for one in seen {
        match one {
            ServerCheck::Reached { server, took, encrypted, jetstream: keeps } => {
                jetstream = *keeps;
                let how = if *encrypted { "over TLS" } else { "unencrypted" };
                findings.push(fine(format!("{server} was reached {how} in {}", shown(*took))));
                if !keeps {
                    findings.push(broken(
                        "the server runs without JetStream, which keeps what is sent".to_owned(),
                        "start it with `--jetstream`, or write `jetstream {}` into its configuration",
                    ));
                }
            }
            ServerCheck::Unreached(error) => findings.push(broken(reasons(error), why_unreached(error))),
            ServerCheck::Payload { most } => findings.push(payload(*most)),
            ServerCheck::Stream(stream) => findings.extend(of_stream(stream)),
            ServerCheck::NoStream { .. } if !jetstream => {}
            ServerCheck::NoStream { name, error } => findings.push(broken(reasons(error), why_no_stream(name, error))),
            ServerCheck::Kept { took, server_clock } => {
                findings
                    .push(fine(format!("an entry and a value were kept, read back and removed in {}", shown(*took))));
                findings.push(skew(clock, *server_clock));
            }
            ServerCheck::NotKept(error) => findings.push(broken(reasons(error), why_not_kept(error))),
        }
    }
    findings
}

/// The finding about a store that took the place of another one.
pub(crate) fn replaced(place: &str, known: &KnownStore, now: Instant) -> Option<Finding> {
    let at = known.replaced?;
    Some(broken(
        format!(
            "`{place}` is another store than before, since {}: what the former one held is not in it",
            ago(at, now)
        ),
        "if that was not meant, stop the servers and give them their former data; `relay-mesh store import` brings an \
         export back; `relay-mesh doctor --store --fix` notes that it is the one to use",
    ))
}

/// The server's trouble; none if the error has another cause.
fn trouble(error: &StoreError) -> Option<ServerTrouble> {
    match error {
        StoreError::Server { trouble, .. } => Some(*trouble),
        StoreError::Io { .. }
        | StoreError::Damaged { .. }
        | StoreError::Elsewhere { .. }
        | StoreError::Unfit { .. }
        | StoreError::Injected(_) => None,
    }
}

fn why_unreached(error: &StoreError) -> &'static str {
    match error {
        StoreError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            "the file does not exist: see [nats] in `relay-mesh config`"
        }
        StoreError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => NOT_LET_IN,
        StoreError::Server { trouble, .. } => match trouble {
            ServerTrouble::Denied => NOT_LET_IN,
            ServerTrouble::TlsFailed => {
                "the TLS handshake failed: set `ca` in [nats] to the authority's certificate, address the server by the name \
                 in its certificate, set `certificate` and `key` if it requires them, and renew expired ones"
            }
            ServerTrouble::NothingListens => {
                "nothing listens there: start nats-server, or `relay-mesh up --nats` for one on this machine"
            }
            ServerTrouble::Unsupported => "put a nats-server there that is new enough, or ask for another one",
            ServerTrouble::TimedOut => "nothing answers there: check the address, the network and the firewall",
            ServerTrouble::OutOfReach
            | ServerTrouble::NoLeader
            | ServerTrouble::Full
            | ServerTrouble::TooFewServers
            | ServerTrouble::NotOurs
            | ServerTrouble::Unusable
            | ServerTrouble::TooLong
            | ServerTrouble::Other => NO_WAY_THERE,
        },
        StoreError::Io { .. }
        | StoreError::Damaged { .. }
        | StoreError::Elsewhere { .. }
        | StoreError::Unfit { .. }
        | StoreError::Injected(_) => NO_WAY_THERE,
    }
}

fn why_no_stream(name: &str, error: &StoreError) -> String {
    match trouble(error) {
        Some(ServerTrouble::NotOurs) => SOMEBODY_ELSES.to_owned(),
        Some(ServerTrouble::Unusable) => format!(
            "the stream would not keep messages: change it (`nats stream edit {name}`) or delete it (`nats stream rm {name}`) \
             and run this again, or set `prefix` in [nats] to a word of your own"
        ),
        Some(ServerTrouble::Full) => "the account has no room for it: raise its limits on the server".to_owned(),
        Some(ServerTrouble::Unsupported | ServerTrouble::NoLeader | ServerTrouble::OutOfReach) => {
            "JetStream does not answer in this account: set `domain` in [nats] where the mesh lies in another one \
             (`relay-mesh nats-auth` says which), or enable JetStream for the account"
                .to_owned()
        }
        Some(ServerTrouble::Denied | ServerTrouble::TimedOut) => format!(
            "this login may not ask for it, or no server leads: allow what `relay-mesh nats-auth` prints, and have an \
             operator run `relay-mesh doctor --store` once to make {name}"
        ),
        Some(ServerTrouble::TooFewServers) => REPLICAS.to_owned(),
        Some(
            ServerTrouble::NothingListens | ServerTrouble::TlsFailed | ServerTrouble::TooLong | ServerTrouble::Other,
        )
        | None => format!("have an operator run `relay-mesh doctor --store` once to make {name}"),
    }
}

fn why_not_kept(error: &StoreError) -> &'static str {
    match trouble(error) {
        Some(ServerTrouble::Full) => {
            "it is full: raise the limits of the stream or the account, or delete what is old with `relay-mesh gc`"
        }
        Some(
            ServerTrouble::Denied
            | ServerTrouble::TimedOut
            | ServerTrouble::Unsupported
            | ServerTrouble::NoLeader
            | ServerTrouble::OutOfReach,
        ) => {
            "this login may read and not write: allow it to publish what `relay-mesh nats-auth` prints for this machine"
        }
        Some(
            ServerTrouble::NothingListens
            | ServerTrouble::TlsFailed
            | ServerTrouble::TooFewServers
            | ServerTrouble::NotOurs
            | ServerTrouble::Unusable
            | ServerTrouble::TooLong
            | ServerTrouble::Other,
        )
        | None => "look at the server's log",
    }
}

fn payload(most: usize) -> Finding {
    let needed = LONGEST_BODY + AROUND_A_BODY;
    if most < needed {
        broken(
            format!("the server takes messages of {most} bytes, and the longest text alone has {LONGEST_BODY}"),
            format!("set `max_payload: {needed}` or more in the server's configuration (its default is 1 MB)"),
        )
    } else {
        fine(format!("messages may have {most} bytes"))
    }
}

fn of_stream(stream: &StreamReport) -> Vec<Finding> {
    let StreamReport { name, messages, bytes, most_bytes, most_messages, replicas, .. } = stream;
    let parts = |has: u64, most: Option<u64>| most.map_or(0, |most| has.saturating_mul(100) / most.max(1));
    let full = parts(*bytes, *most_bytes).max(parts(*messages, *most_messages));
    let on = if *replicas == 1 { "one server".to_owned() } else { format!("{replicas} servers") };
    let about = format!("{name} holds {messages} messages, {bytes} bytes, on {on}");
    let doubtful = |what: String, fix: String| Finding { severity: Severity::Warning, what, fix: Some(fix) };
    let mut findings = Vec::new();
    findings.push(match full {
        100.. => broken(
            format!("{about}, and is full"),
            "raise the stream's limits (`nats stream edit`); what was stored before is safe",
        ),
        NEARLY_FULL.. => doubtful(format!("{about}, and is {full} % full"), "raise the stream's limits".to_owned()),
        _ => fine(about),
    });
    findings.extend(stream.warnings.iter().filter_map(|warning| of_warning(name, warning)));
    findings
}

/// The finding about a stream that is less durable than ours would be.
fn of_warning(name: &str, warning: &StreamWarning) -> Option<Finding> {
    let needed = LONGEST_BODY + AROUND_A_BODY;
    let long = |time: &Duration| humantime::format_duration(*time).to_string();
    let edit = |option: &str| format!("nats stream edit {name} {option}");
    let anew = "let an operator make it anew on disk: `relay-mesh store copy` moves what it holds".to_owned();
    let (severity, what, fix) = match warning {
        StreamWarning::DropsOld => (
            Severity::Warning,
            format!("{name} drops what is old to make room, unread mail too"),
            format!("{}, and no `--max-msgs-per-subject` for logs", edit("--discard=new")),
        ),
        StreamWarning::RollsUp => (
            Severity::Warning,
            format!("{name} allows roll-ups, by which one machine can remove what others wrote"),
            edit("--no-allow-rollup"),
        ),
        StreamWarning::InMemory => (
            Severity::Warning,
            format!("{name} lies in the server's memory: whatever is stored there goes when the server ends"),
            anew,
        ),
        StreamWarning::Unsynced => (
            Severity::Warning,
            format!("{name} acknowledges what is not on the disk yet (`persist_mode: async`)"),
            anew,
        ),
        StreamWarning::Forgets(after) => (
            Severity::Warning,
            format!("{name} deletes everything after {}, unread mail too", long(after)),
            edit("--max-age=7d (0 for the bucket of values)"),
        ),
        StreamWarning::TakesNoLonger(most) if *most < needed => (
            Severity::Broken,
            format!("{name} takes messages of {most} bytes, and the longest text alone has {LONGEST_BODY}"),
            edit(&format!("--max-msg-size={needed}")),
        ),
        StreamWarning::TakesNoLonger(_) => return None,
        StreamWarning::KnowsAgain(window) => (
            Severity::Warning,
            format!("{name} knows a message that is sent again only for {}: one may lie there twice", long(window)),
            edit("--dupe-window=2m"),
        ),
        StreamWarning::KeepsMarks => (
            Severity::Warning,
            format!("{name} keeps a mark of each key that was removed for good, which costs room and time"),
            edit("--allow-msg-ttl --max-msgs-per-subject=1"),
        ),
    };
    Some(Finding { severity, what, fix: Some(fix) })
}

fn skew(here: u64, there: u64) -> Finding {
    let apart = here.abs_diff(there);
    let word = if here > there { "ahead of" } else { "behind" };
    let shown = humantime::format_duration(Duration::from_secs(apart / 1_000)).to_string();
    if apart > SKEW {
        Finding {
            severity: Severity::Warning,
            what: format!("this machine's clock is {shown} {word} the server's, and relay-mesh goes by the server's"),
            fix: Some("set both by a time server, as in `timedatectl set-ntp true`".to_owned()),
        }
    } else {
        fine("this machine's clock and the server's agree".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seen: ServerCheck, expected: &[&str]) {
        let told: Vec<String> =
            findings(&[seen], 1_000_000).iter().map(|one| format!("{:?}: {}", one.severity, one.what)).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_was_seen_is_said_in_a_sentence() {
        let took = Duration::from_millis(2);
        check(ServerCheck::Payload { most: 1 << 20 }, &["Ok: messages may have 1048576 bytes"]);
        check(
            ServerCheck::Payload { most: 1_000 },
            &["Broken: the server takes messages of 1000 bytes, and the longest text alone has 262144"],
        );
        check(
            ServerCheck::Kept { took, server_clock: 1_000_000 + 3_600_000 },
            &[
                "Ok: an entry and a value were kept, read back and removed in 2.0 ms",
                "Warning: this machine's clock is 1h behind the server's, and relay-mesh goes by the server's",
            ],
        );
        let stream = StreamReport {
            name: "S".to_owned(),
            messages: 9,
            bytes: 95,
            most_bytes: Some(100),
            most_messages: None,
            replicas: 1,
            warnings: vec![StreamWarning::DropsOld],
        };
        check(
            ServerCheck::Stream(stream.clone()),
            &[
                "Warning: S holds 9 messages, 95 bytes, on one server, and is 95 % full",
                "Warning: S drops what is old to make room, unread mail too",
            ],
        );
        let full = StreamReport { most_messages: Some(9), warnings: Vec::new(), replicas: 3, ..stream };
        check(ServerCheck::Stream(full), &["Broken: S holds 9 messages, 95 bytes, on 3 servers, and is full"]);
    }
}
