//! What a reviewer found.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::anchor::Anchor;

/// The most findings that are taken of one answer.
const MOST: usize = 200;
/// The longest texts that are taken, in characters.
const LONGEST: (usize, usize) = (300, 8_000);

/// How bad it is, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Low,
    /// Worth correcting.
    Medium,
    /// Wrong in cases that happen.
    High,
    /// Loses data, opens a hole, or breaks what everybody uses.
    Critical,
}

impl Severity {
    /// All, from least to most.
    pub const ALL: [Severity; 4] = [Severity::Low, Severity::Medium, Severity::High, Severity::Critical];

    /// The word in output, JSON and schemas.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// Why text is not a severity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a severity: low, medium, high or critical")]
pub struct UnknownSeverity(String);

impl FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(text: &str) -> Result<Severity, UnknownSeverity> {
        Severity::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| UnknownSeverity(text.to_owned()))
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a second look says of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// It holds.
    Confirmed { reason: String },
    /// It does not.
    Refuted {
        /// Why not.
        reason: String,
    },
    /// It could not be told.
    Unsure {
        /// Why not.
        reason: String,
    },
}

/// A finding, placed in the difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind of defect, in lower case with hyphens.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// What is wrong.
    pub body: String,
    /// When and how it fails.
    pub failure: String,
    /// The path as the repository has it.
    pub file: String,
    /// The first line that it is about, in the file as it is now.
    pub start: u32,
    /// The last line.
    pub end: u32,
    /// What the lines should be instead.
    pub suggestion: Option<String>,
    /// The harnesses that found it.
    pub by: Vec<String>,
    /// Where it lies, by the difference.
    pub anchor: Anchor,
    /// The text of those lines, if the difference has all of them.
    pub lines: Option<Vec<String>>,
    /// The same for the same defect in later reviews.
    pub fingerprint: String,
    /// What the second look said.
    pub verdict: Option<Verdict>,
}

impl Finding {
    /// Whether it counts: it lies in the difference and was not refuted.
    pub fn stands(&self) -> bool {
        self.anchor.is_in_diff() && !matches!(self.verdict, Some(Verdict::Refuted { .. }))
    }
}

#[derive(Deserialize)]
struct ReviewerAnswer {
    findings: Vec<ReportedFinding>,
}

/// A finding as a reviewer says it, by [`super::findings_schema`].
#[derive(Deserialize)]
struct ReportedFinding {
    rule: String,
    severity: Severity,
    title: String,
    body: String,
    failure: String,
    file: String,
    start: u32,
    end: u32,
    suggestion: Option<String>,
}

/// The findings in a reviewer's answer, which has the shape of the schema. They are not placed yet.
pub fn findings_in(answer: &Value, reviewer: &str) -> Result<Vec<Finding>, serde_json::Error> {
    let answer: ReviewerAnswer = ReviewerAnswer::deserialize(answer)?;
    let short = |text: &str, most: usize| text.trim().chars().take(most).collect::<String>();
    let placed = |said: ReportedFinding| Finding {
        rule: rule(&said.rule),
        severity: said.severity,
        title: short(&said.title.replace(['\n', '\r'], " "), LONGEST.0),
        body: short(&said.body, LONGEST.1),
        failure: short(&said.failure, LONGEST.1),
        file: said.file,
        start: said.start.max(1),
        end: said.end.max(said.start).max(1),
        suggestion: said.suggestion,
        by: vec![reviewer.to_owned()],
        anchor: Anchor::Elsewhere,
        lines: None,
        fingerprint: String::new(),
        verdict: None,
    };
    Ok(answer.findings.into_iter().take(MOST).map(placed).collect())
}

/// A rule's name as code scanning takes it, whatever a model wrote.
fn rule(said: &str) -> String {
    let mut name = String::new();
    for letter in said.trim().chars().take(60) {
        let letter = letter.to_ascii_lowercase();
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "general".to_owned() } else { name.to_owned() }
}

#[derive(Deserialize)]
struct Verdicts {
    verdicts: Vec<SaidVerdict>,
}

#[derive(Deserialize)]
struct SaidVerdict {
    finding: usize,
    verdict: String,
    reason: String,
}

/// The verdicts in an answer, each with the number of its finding.
pub fn verdicts_in(answer: &Value) -> Result<Vec<(usize, Verdict)>, serde_json::Error> {
    let answer = Verdicts::deserialize(answer)?;
    let verdict = |said: SaidVerdict| {
        let reason = said.reason.trim().chars().take(LONGEST.1).collect();
        let verdict = match said.verdict.as_str() {
            "confirmed" => Verdict::Confirmed { reason },
            "refuted" => Verdict::Refuted { reason },
            _ => Verdict::Unsure { reason },
        };
        (said.finding, verdict)
    };
    Ok(answer.verdicts.into_iter().map(verdict).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_name_whatever_a_model_wrote() {
        for (said, expected) in [
            ("off-by-one", "off-by-one"),
            ("SQL Injection!", "sql-injection"),
            ("../../x\n::error::", "x-error"),
            ("  ", "general"),
            ("ü", "general"),
        ] {
            assert_eq!(rule(said), expected, "{said}");
        }
    }

    #[test]
    fn an_answer_is_read_and_its_lines_are_put_in_order() {
        let answer = serde_json::json!({"findings": [{
            "rule": "r", "severity": "high", "title": "a\nb", "body": "", "failure": "", "file": "x",
            "start": 7, "end": 3, "suggestion": null
        }]});
        let found = findings_in(&answer, "codex").expect("an answer");
        assert_eq!((found[0].start, found[0].end, found[0].title.as_str()), (7, 7, "a b"));
        assert!(!found[0].stands(), "what is not placed does not count");
        assert!(findings_in(&serde_json::json!({}), "codex").is_err());
    }
}
