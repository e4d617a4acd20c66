//! The report: the abilities of an adapter, each with the checks that show it. Users and CI read it.

use serde::Serialize;

/// The result of testing one component.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The adapter's name, as users type it.
    pub name: String,
    /// The harness's name for display.
    pub title: String,
    /// The adapter's own version.
    pub version: String,
    /// The interface that it is written for.
    pub wit: String,
    /// Digest of component and manifest.
    pub digest: String,
    /// Whether no check failed.
    pub passed: bool,
    /// In the order in which they were tested.
    pub abilities: Vec<Ability>,
    /// The highest costs of one call.
    pub costs: Costs,
}

/// Something that an adapter can do, or a rule that it must keep.
#[derive(Clone, Debug, Serialize)]
pub struct Ability {
    /// Its name, in a few words.
    pub name: &'static str,
    /// The result of its checks together.
    pub verdict: Verdict,
    pub checks: Vec<Check>,
}

/// How well an adapter has an ability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check passed.
    Yes,
    /// A check failed or could not be tried.
    Partly,
    /// Every check failed.
    No,
    /// The adapter does not offer this, which is not a failure.
    Absent,
}

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// A fixture's name, or what was checked.
    pub name: String,
    /// Its result.
    #[serde(flatten)]
    pub outcome: CheckOutcome,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum CheckOutcome {
    /// It passed.
    Held {
        /// What the adapter did.
        evidence: String,
    },
    /// It failed.
    Failed {
        /// What the adapter should have done.
        expected: String,
        /// What it did.
        got: String,
        /// What the author can do about it.
        hint: String,
    },
    /// The adapter does not offer this.
    Absent {
        /// How the adapter says so.
        evidence: String,
    },
    /// There was no recording to try it with.
    Untried {
        /// What to record.
        needs: String,
    },
}

/// The highest costs of one call, and the limits.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Costs {
    /// Number of calls made.
    pub calls: u64,
    /// Processor time of the slowest, in microseconds.
    pub slowest_us: u64,
    /// The function that the slowest call called.
    pub slowest: String,
    /// Limit of processor time for one call, in milliseconds.
    pub limit_ms: u64,
    /// Memory of the most demanding call, in bytes.
    pub largest_bytes: u64,
    /// Limit of memory for one call, in megabytes.
    pub limit_mb: u64,
}

impl Ability {
    pub(crate) fn of(name: &'static str, checks: Vec<Check>) -> Ability {
        Ability { name, verdict: judge(&checks), checks }
    }
}

fn judge(checks: &[Check]) -> Verdict {
    let count = |is: fn(&CheckOutcome) -> bool| checks.iter().filter(|check| is(&check.outcome)).count();
    let held = count(|outcome| matches!(outcome, CheckOutcome::Held { .. }));
    let failed = count(|outcome| matches!(outcome, CheckOutcome::Failed { .. }));
    let untried = count(|outcome| matches!(outcome, CheckOutcome::Untried { .. }));
    match (held, failed, untried) {
        (0, 0, 0) => Verdict::Absent,
        (_, 0, 0) => Verdict::Yes,
        (0, 1.., 0) => Verdict::No,
        _ => Verdict::Partly,
    }
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::Partly => "partly",
            Verdict::No => "no",
            Verdict::Absent => "absent",
        }
    }
}

impl Check {
    pub(crate) fn held(name: impl Into<String>, evidence: impl Into<String>) -> Check {
        Check { name: name.into(), outcome: CheckOutcome::Held { evidence: evidence.into() } }
    }

    pub(crate) fn absent(name: impl Into<String>, evidence: impl Into<String>) -> Check {
        Check { name: name.into(), outcome: CheckOutcome::Absent { evidence: evidence.into() } }
    }

    pub(crate) fn untried(name: impl Into<String>, needs: impl Into<String>) -> Check {
        Check { name: name.into(), outcome: CheckOutcome::Untried { needs: needs.into() } }
    }

    pub(crate) fn failed(
        name: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
        hint: impl Into<String>,
    ) -> Check {
        let (expected, got, hint) = (expected.into(), got.into(), hint.into());
        Check { name: name.into(), outcome: CheckOutcome::Failed { expected, got: shorten(&got), hint } }
    }

    /// Passes if two texts are equal.
    pub(crate) fn equal(name: impl Into<String>, expected: &str, got: &str, hint: &str) -> Check {
        if expected == got { Check::held(name, got) } else { Check::failed(name, expected, got, hint) }
    }

    pub fn is_failed(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Failed { .. })
    }
}

/// An adapter's answer may be long, and its beginning is enough.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 400;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcomes: &str, expected: Verdict) {
        let made = |letter: char| match letter {
            'h' => Check::held("", ""),
            'f' => Check::failed("", "", "", ""),
            'a' => Check::absent("", ""),
            _ => Check::untried("", ""),
        };
        assert_eq!(judge(&outcomes.chars().map(made).collect::<Vec<_>>()), expected, "{outcomes}");
    }

    #[test]
    fn a_verdict_says_no_more_than_was_seen() {
        check("", Verdict::Absent);
        check("aa", Verdict::Absent);
        check("ha", Verdict::Yes);
        check("hf", Verdict::Partly);
        check("hu", Verdict::Partly);
        check("u", Verdict::Partly);
        check("fa", Verdict::No);
    }
}
