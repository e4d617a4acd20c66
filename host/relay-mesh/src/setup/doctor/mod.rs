//! Checks that the mesh works here: each tries the thing itself and reports the result.

pub(crate) mod checked_logs;
pub(crate) mod data_folder;
pub(crate) mod examine;
pub(crate) mod hook;
pub(crate) mod records;
pub(crate) mod server;
pub(crate) mod servers;
pub(crate) mod wake;

use std::time::Duration;

use mesh::ports::harness::{Finding, Severity};

pub(crate) fn fine(what: String) -> Finding {
    Finding { severity: Severity::Ok, what, fix: None }
}

pub(crate) fn broken(what: String, fix: impl Into<String>) -> Finding {
    Finding { severity: Severity::Broken, what, fix: Some(fix.into()) }
}

/// A time in a readable unit.
pub(crate) fn shown(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    if milliseconds < 100.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < 1000.0 {
        format!("{milliseconds:.0} ms")
    } else {
        format!("{:.1} s", milliseconds / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_people_say_them() {
        for (milliseconds, expected) in [(2, "2.0 ms"), (640, "640 ms"), (2000, "2.0 s")] {
            assert_eq!(shown(Duration::from_millis(milliseconds)), expected);
        }
    }
}
