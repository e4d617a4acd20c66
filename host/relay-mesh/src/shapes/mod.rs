//! What commands print: one documented shape per command, as `--json` and as text.
//!
//! What the MCP server shows too is defined in the crate `view`; here is its text, and what only
//! the command line shows. Field names are a promise. Times are RFC 3339 in UTC. A field without a
//! value is left out.

pub(crate) mod acp;
pub(crate) mod agents;
pub(crate) mod allowances;
pub(crate) mod asks;
pub(crate) mod channels;
pub(crate) mod cleanup;
pub(crate) mod commands;
pub(crate) mod conversations;
pub(crate) mod driven;
pub(crate) mod event_hooks;
pub(crate) mod events;
pub(crate) mod guard;
pub(crate) mod harness_servers;
pub(crate) mod mail;
pub(crate) mod migration;
pub(crate) mod nats_auth;
pub(crate) mod receipts;
pub(crate) mod reservations;
pub(crate) mod reviews;
pub(crate) mod runs;
pub(crate) mod sarif;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod size;
pub(crate) mod threads;
pub(crate) mod wake;
pub(crate) mod wake_table;

use mesh::ports::machine::Instant;

pub(crate) use view::rfc3339;

/// Time since `at`, as in `2 h ago`.
pub(crate) fn ago(at: Instant, now: Instant) -> String {
    let seconds = now.since(at) / 1000;
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A duration in one unit, as in `2 h`.
pub(crate) fn span(milliseconds: u64) -> String {
    match milliseconds.div_ceil(1_000) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// `1 message`, `2 messages`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_one_unit() {
        for (milliseconds, expected) in [
            (1, "1 s"),
            (119_000, "119 s"),
            (120_000, "2 min"),
            (3_600_000, "60 min"),
            (7_200_000, "2 h"),
            (604_800_000, "7 days"),
        ] {
            assert_eq!(span(milliseconds), expected);
        }
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        for (seconds, expected) in
            [(0, "just now"), (59, "59 s ago"), (60, "1 min ago"), (7200, "2 h ago"), (200_000, "2 d ago")]
        {
            assert_eq!(ago(Instant(0), Instant(seconds * 1000)), expected);
        }
        assert_eq!(ago(Instant(9000), Instant(0)), "just now", "a clock that went backwards");
    }
}
