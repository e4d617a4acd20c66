//! A point in time, as people type it: how long ago, or a date and time.

use std::time::Duration;

use mesh::ports::machine::Instant;

use crate::duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// This long before now.
    Ago(Duration),
    At(Instant),
}

impl Since {
    pub(crate) fn parse(text: &str) -> Result<Since, String> {
        if let Some(ago) = duration::typed(text) {
            return Ok(Since::Ago(ago));
        }
        moment(text).map(Since::At).ok_or_else(|| {
            "write how long ago, as in `2h`, or a time, as in `2026-11-21`, `2026-11-21T10:00` (in UTC) or \
             `2026-11-21T12:00:00+02:00`"
                .to_owned()
        })
    }

    /// The point in time, given the current one.
    pub(crate) fn before(self, now: Instant) -> Instant {
        match self {
            Since::Ago(ago) => Instant(now.0.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX))),
            Since::At(at) => at,
        }
    }
}

/// Parses a date or a date and time, in UTC unless it has an offset. A date alone means 00:00; seconds may be left
/// out.
fn moment(text: &str) -> Option<Instant> {
    // The date itself has dashes.
    let (local, ahead) = match text.rfind(['+', '-']).filter(|at| *at > "2026-11-21".len()) {
        Some(at) => (&text[..at], offset(&text[at..])?),
        None => (text, 0),
    };
    let whole = match local.trim_end_matches('Z').len() {
        10 => format!("{local}T00:00:00"),
        16 => format!("{}:00", local.trim_end_matches('Z')),
        _ => local.to_owned(),
    };
    let at = humantime::parse_rfc3339_weak(&whole).ok()?;
    let since_epoch = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since_epoch.as_millis()).ok()?.checked_add_signed(-ahead).map(Instant)
}

/// Milliseconds ahead of UTC, from an offset such as `+02:00` or `-0330`.
fn offset(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at_checked(1)?;
    let digits = digits.replacen(':', "", 1);
    if digits.len() != 4 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = (digits[..2].parse::<i64>().ok()?, digits[2..].parse::<i64>().ok()?);
    let ahead = (hours * 60 + minutes) * 60_000;
    (hours < 24 && minutes < 60).then_some(if sign == "-" { -ahead } else { ahead })
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
            ("90", Some(9_910_000)),
            ("1970-01-01T00:00:01Z", Some(1_000)),
            ("1970-01-01 00:00:02", Some(2_000)),
            ("1970-01-01", Some(0)),
            ("1970-01-02", Some(86_400_000)),
            ("1970-01-01T00:02", Some(120_000)),
            ("1970-01-01T00:02Z", Some(120_000)),
            ("1970-01-01T02:00:03+02:00", Some(3_000)),
            ("1970-01-01 01:00+0030", Some(1_800_000)),
            ("1970-01-01T00:00-00:30", Some(1_800_000)),
            ("1970-01-01T00:00:00+02:00", None),
            ("1970-01-01T00:00:00+2", None),
            ("1970-01-01T00:00:00+99:00", None),
            ("1970-13-01", None),
            ("-5m", None),
            ("ääääääääääääääää", None),
            ("", None),
            ("yesterday", None),
        ] {
            assert_eq!(Since::parse(text).ok().map(|since| since.before(now).0), expected, "{text}");
        }
    }
}
