//! Compares two versions of an adapter.

use std::cmp::Ordering;

use semver::Version;

use crate::errors::CommandError;

/// Parses an adapter's own version. One that cannot be compared is an error: it might be a downgrade.
pub(super) fn version(adapter: &str, text: &str) -> Result<Version, CommandError> {
    Version::parse(text).map_err(|error| {
        CommandError::usage(
            &format!("the version `{text}` of the adapter `{adapter}` cannot be read: {error}"),
            "its author has to write it as MAJOR.MINOR.PATCH in adapter.toml, as in `1.4.0`",
        )
    })
}

/// Whether a tag of a registry is a version.
pub(super) fn is_version(tag: &str) -> bool {
    Version::parse(tag.strip_prefix('v').unwrap_or(tag)).is_ok()
}

/// How a version compares with the installed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionChange {
    Up,
    /// It has the same precedence.
    Same,
    Down,
}

/// Compares a version with the installed one. Build metadata (after a `+`) does not count.
pub(super) fn step(installed: &Version, next: &Version) -> VersionChange {
    match next.cmp_precedence(installed) {
        Ordering::Greater => VersionChange::Up,
        Ordering::Equal => VersionChange::Same,
        Ordering::Less => VersionChange::Down,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_their_authors_mean_them() {
        for (installed, next, expected) in [
            ("1.0.0", "1.0.1", VersionChange::Up),
            ("1.9.0", "1.10.0", VersionChange::Up),
            ("1.0.0-rc.1", "1.0.0", VersionChange::Up),
            ("1.0.0", "1.0.0", VersionChange::Same),
            ("1.0.0+a", "1.0.0+b", VersionChange::Same),
            ("1.0.0", "1.0.0-rc.1", VersionChange::Down),
            ("2.0.0", "1.99.99", VersionChange::Down),
        ] {
            let read = |text| version("toy", text).expect("a version");
            assert_eq!(step(&read(installed), &read(next)), expected, "{installed} to {next}");
        }
        assert!(version("toy", "1.0").expect_err("not whole").to_string().contains("`1.0` of the adapter `toy`"));
    }
}
