//! Points in time, in RFC 3339 and in UTC.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use mesh::ports::machine::Instant;
use serde::{Serialize, Serializer};

/// A point in time, in JSON as `2026-11-21T10:59:02.120Z`. It is formatted when it is serialised: lists hold
/// thousands of them, and most are only shown as "2 h ago".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub Instant);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // humantime cannot format years beyond 9999; a store that holds such a time is damaged anyway.
        let latest = 253_402_300_799_000;
        humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(self.0.0.min(latest))).fmt(f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// The text of a [`Timestamp`].
pub fn rfc3339(at: Instant) -> String {
    Timestamp(at).to_string()
}
