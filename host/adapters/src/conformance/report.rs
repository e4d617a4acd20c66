//! What the kit found out, in words that people and CI read: abilities, each with the checks that
//! show it.

use serde::Serialize;

/// What is known of one component.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What people type.
    pub name: String,
    /// What people read.
    pub title: String,
    /// The adapter's own version.
    pub version: String,
    /// The interface that it is written for.
    pub wit: String,
    /// Of component and manifest.
    pub digest: String,
    /// Whether every check held.
    pub passed: bool,
    /// In the order in which they were looked at.
    pub abilities: Vec<Ability>,
    /// What it took.
    pub costs: Costs,
}

/// Something that an adapter can do or must keep to.
#[derive(Clone, Debug, Serialize)]
pub struct Ability {
    /// What, in a word or two.
    pub name: &'static str,
    /// How far.
    pub verdict: Verdict,
    /// By what this is known.
    pub checks: Vec<Check>,
}

/// How far an adapter can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does, and each check held.
    Yes,
    /// Some of it was not tried, or did not hold.
    Partly,
    /// It tries, and no check held.
    No,
    /// It does not offer this, which is no failure.
    Absent,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What: a fixture's name, a sentence.
    pub name: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It is as it should be.
    Held {
        /// What was seen.
        evidence: String,
    },
    /// It is not.
    Failed {
        /// What should have been.
        expected: String,
        /// What was.
        got: String,
        /// What the author can do.
        hint: String,
    },
    /// The adapter does not offer this.
    Absent {
        /// How it says so.
        evidence: String,
    },
    /// There was nothing to try it with.
    Untried {
        /// What would be needed.
        needs: String,
    },
}

/// The most that a call took.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Costs {
    /// Calls that were made.
    pub calls: u64,
    /// Processor time of the slowest, in microseconds.
    pub slowest_us: u64,
    /// Which call that was.
    pub slowest: String,
    /// How long one may take, in milliseconds.
    pub limit_ms: u64,
    /// The most memory of one call, in bytes.
    pub largest_bytes: u64,
    /// How much one may have, in megabytes.
    pub limit_mb: u64,
}

impl Ability {
    /// An ability as its checks show it.
    pub(super) fn of(name: &'static str, checks: Vec<Check>) -> Ability {
        Ability { name, verdict: judge(&checks), checks }
    }
}

/// What checks say together.
fn judge(checks: &[Check]) -> Verdict {
    let count = |is: fn(&Outcome) -> bool| checks.iter().filter(|check| is(&check.outcome)).count();
    let held = count(|outcome| matches!(outcome, Outcome::Held { .. }));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed { .. }));
    let untried = count(|outcome| matches!(outcome, Outcome::Untried { .. }));
    match (held, failed, untried) {
        (0, 0, 0) => Verdict::Absent,
        (_, 0, 0) => Verdict::Yes,
        (0, 1.., 0) => Verdict::No,
        _ => Verdict::Partly,
    }
}

impl Verdict {
    /// The word that people see.
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
    pub(super) fn held(name: impl Into<String>, evidence: impl Into<String>) -> Check {
        Check { name: name.into(), outcome: Outcome::Held { evidence: evidence.into() } }
    }

    pub(super) fn absent(name: impl Into<String>, evidence: impl Into<String>) -> Check {
        Check { name: name.into(), outcome: Outcome::Absent { evidence: evidence.into() } }
    }

    pub(super) fn untried(name: impl Into<String>, needs: impl Into<String>) -> Check {
        Check { name: name.into(), outcome: Outcome::Untried { needs: needs.into() } }
    }

    pub(super) fn failed(
        name: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
        hint: impl Into<String>,
    ) -> Check {
        let (expected, got, hint) = (expected.into(), got.into(), hint.into());
        Check { name: name.into(), outcome: Outcome::Failed { expected, got: shorten(&got), hint } }
    }

    /// Held where two things are equal.
    pub(super) fn equal(name: impl Into<String>, expected: &str, got: &str, hint: &str) -> Check {
        if expected == got { Check::held(name, got) } else { Check::failed(name, expected, got, hint) }
    }

    /// Whether it did not hold.
    pub fn is_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

/// What an adapter says may be long; its beginning tells enough.
pub(super) fn shorten(text: &str) -> String {
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
