//! Lengths of time as people type them: `90s`, `5m`, `1h 30m`, and a bare number of seconds.

use std::time::Duration;

/// A length of time; none if the text is not one.
pub(crate) fn typed(text: &str) -> Option<Duration> {
    match text.trim().parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    }
}

/// A length of time, or what to write instead.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    typed(text).ok_or_else(|| "write it as `30` (seconds), `30s`, `5m`, `2h` or `30d`".to_owned())
}

/// A length of time that is not zero.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let span = timeout(text)?;
    if span.is_zero() { Err("it must be more than zero".to_owned()) } else { Ok(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds() {
        for (text, expected) in [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("0", Some(0)),
            ("1h 30m", Some(5_400)),
            ("5m", Some(300)),
            ("-5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(typed(text), expected.map(Duration::from_secs), "{text}");
        }
    }
}
