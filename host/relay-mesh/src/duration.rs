//! Lengths of time as people type them: `90s`, `5m`, `1h 30m`, and a bare number of seconds.

use std::time::Duration;

/// A length of time; none if the text is not one.
pub(crate) fn typed(text: &str) -> Option<Duration> {
    match text.trim().parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    }
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
