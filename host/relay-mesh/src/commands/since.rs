//! A moment, as people type it: so long ago, or then.

use std::time::Duration;

use mesh::machine::Instant;

/// A moment, as people type it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// So long before now.
    Ago(Duration),
    /// Then.
    At(Instant),
}

impl Since {
    /// From a word on the command line.
    pub(crate) fn parse(text: &str) -> Result<Since, String> {
        if let Ok(ago) = humantime::parse_duration(text) {
            return Ok(Since::Ago(ago));
        }
        let at = humantime::parse_rfc3339_weak(text).ok();
        let milliseconds = at
            .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
            .and_then(|since_epoch| u64::try_from(since_epoch.as_millis()).ok());
        let at = milliseconds.map(|milliseconds| Since::At(Instant(milliseconds)));
        at.ok_or_else(|| "write how long ago, as in `2h`, or a time in UTC, as in `2026-11-21T10:00:00Z`".to_owned())
    }

    /// The moment itself.
    pub(crate) fn before(self, now: Instant) -> Instant {
        match self {
            Since::Ago(ago) => Instant(now.0.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX))),
            Since::At(at) => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_understood_as_people_type_them() {
        let now = Instant(10_000_000);
        for (text, expected) in [
            ("2h", Some(2_800_000)),
            ("90s", Some(9_910_000)),
            ("1970-01-01T00:00:01Z", Some(1_000)),
            ("1970-01-01 00:00:02", Some(2_000)),
            ("yesterday", None),
        ] {
            assert_eq!(Since::parse(text).ok().map(|since| since.before(now).0), expected, "{text}");
        }
    }
}
