//! Which of two versions of an adapter is the later one.

use std::cmp::Ordering;

use semver::Version;

use crate::errors::CommandError;

/// Reads an adapter's own version. One that cannot be ordered could not be told from a downgrade.
pub(super) fn version(adapter: &str, text: &str) -> Result<Version, CommandError> {
    Version::parse(text).map_err(|error| {
        CommandError::usage(
            &format!("the version `{text}` of the adapter `{adapter}` cannot be read: {error}"),
            "its author has to write it as MAJOR.MINOR.PATCH in adapter.toml, as in `1.4.0`",
        )
    })
}

/// How a version stands to the one that is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is later.
    Up,
    /// It is called the same.
    Same,
    /// It is earlier.
    Down,
}

/// How a version stands to the one that is installed. What was added to a version by a `+` is of no account.
pub(super) fn step(installed: &Version, next: &Version) -> Step {
    match next.cmp_precedence(installed) {
        Ordering::Greater => Step::Up,
        Ordering::Equal => Step::Same,
        Ordering::Less => Step::Down,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_their_authors_mean_them() {
        for (installed, next, expected) in [
            ("1.0.0", "1.0.1", Step::Up),
            ("1.9.0", "1.10.0", Step::Up),
            ("1.0.0-rc.1", "1.0.0", Step::Up),
            ("1.0.0", "1.0.0", Step::Same),
            ("1.0.0+a", "1.0.0+b", Step::Same),
            ("1.0.0", "1.0.0-rc.1", Step::Down),
            ("2.0.0", "1.99.99", Step::Down),
        ] {
            let read = |text| version("toy", text).expect("a version");
            assert_eq!(step(&read(installed), &read(next)), expected, "{installed} to {next}");
        }
        assert!(version("toy", "1.0").expect_err("not whole").to_string().contains("`1.0` of the adapter `toy`"));
    }
}
