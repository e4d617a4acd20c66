//! A review in the forms that code hosts read: SARIF 2.1.0 for code scanning, and GitHub's workflow commands.

use std::collections::BTreeMap;

use mesh::reviews::{Finding, Review, Severity};
use serde_json::{Value, json};

/// The most results that GitHub's code scanning takes of one run.
const MOST: usize = 25_000;

/// A review as a SARIF log: what stands as results, what was refuted as suppressed ones. A reviewer that failed makes
/// the invocation unsuccessful, so that an empty list is not taken for a clean change.
pub(crate) fn sarif(review: &Review) -> Value {
    let shown: Vec<&Finding> = review.findings.iter().filter(|one| one.anchor.is_in_diff()).take(MOST).collect();
    let rules: BTreeMap<&str, &Finding> = shown.iter().rev().map(|one| (one.rule.as_str(), *one)).collect();
    let ids: Vec<&str> = rules.keys().copied().collect();
    let listed: Vec<Value> = rules.iter().map(|(id, one)| rule(id, one)).collect();
    let failures: Vec<Value> = review
        .reviewers
        .iter()
        .chain(&review.verify)
        .filter_map(|one| {
            Some(json!({"level": "error", "message": {"text": format!("{}: {}", one.harness, one.failed.as_ref()?)}}))
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "relay-mesh review",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": listed
            }},
            "invocations": [{
                "executionSuccessful": review.is_ok(),
                "startTimeUtc": view::rfc3339(review.record.started),
                "endTimeUtc": view::rfc3339(review.ended),
                "toolExecutionNotifications": failures
            }],
            "columnKind": "unicodeCodePoints",
            "results": shown.iter().map(|one| result(one, &ids)).collect::<Vec<_>>()
        }]
    })
}

fn rule(id: &str, finding: &Finding) -> Value {
    json!({"id": id, "shortDescription": {"text": id.replace('-', " ")}, "defaultConfiguration": {"level": level(finding.severity)}})
}

fn result(finding: &Finding, rules: &[&str]) -> Value {
    let by = finding.by.join(", ");
    let text = format!("{}\n\n{}\n\n{}\n\nFound by {by}.", finding.title, finding.body, finding.failure);
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": rules.iter().position(|id| *id == finding.rule),
        "level": level(finding.severity),
        "message": {"text": text},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&finding.file), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": finding.start, "endLine": finding.end}
        }}],
        "partialFingerprints": {"relayMeshFinding/v1": finding.fingerprint},
        "properties": {"severity": finding.severity.as_str(), "by": finding.by}
    });
    if !finding.stands() {
        result["suppressions"] =
            json!([{"kind": "external", "status": "accepted", "justification": "a second look refuted it"}]);
    }
    if let Some(suggestion) = finding.suggestion.as_ref().filter(|_| finding.lines.is_some()) {
        let text = if suggestion.is_empty() || suggestion.ends_with('\n') {
            suggestion.clone()
        } else {
            format!("{suggestion}\n")
        };
        // Through the end of the last line: the replaced region ends where the next line begins.
        let region = json!({"startLine": finding.start, "startColumn": 1, "endLine": finding.end + 1, "endColumn": 1});
        result["fixes"] = json!([{
            "description": {"text": "what the reviewer suggests"},
            "artifactChanges": [{
                "artifactLocation": {"uri": uri(&finding.file), "uriBaseId": "%SRCROOT%"},
                "replacements": [{"deletedRegion": region, "insertedContent": {"text": text}}]
            }]
        }]);
    }
    result
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}

/// A path of the repository as a relative URI.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// What stands, as workflow commands that GitHub shows beside the lines, one each.
pub(crate) fn github(review: &Review) -> String {
    let mut lines = Vec::new();
    for finding in review.findings.iter().filter(|finding| finding.stands()) {
        let level = match finding.severity {
            Severity::Critical | Severity::High => "error",
            Severity::Medium => "warning",
            Severity::Low => "notice",
        };
        let Finding { file, start, end, title, body, failure, .. } = finding;
        let (file, title) = (property(file), property(&format!("{}: {title}", finding.severity)));
        let message = message(&format!("{body}\n{failure}"));
        lines.push(format!("::{level} file={file},line={start},endLine={end},title={title}::{message}"));
    }
    for one in review.reviewers.iter().chain(&review.verify) {
        if let Some(why) = &one.failed {
            let title = property(&format!("{} did not review", one.harness));
            lines.push(format!("::error title={title}::{}", message(why)));
        }
    }
    lines.join("\n")
}

/// Text after the second pair of colons, which GitHub reads up to the end of the line.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which ends at a comma or a colon.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reviewer_wrote_stays_inside_its_place() {
        assert_eq!(property("a,b::error::c\nd%"), "a%2Cb%3A%3Aerror%3A%3Ac%0Ad%25");
        assert_eq!(message("x\r\n::error::y"), "x%0D%0A::error::y");
        assert_eq!(uri("src/mit leer ü#?.rs"), "src/mit%20leer%20%C3%BC%23%3F.rs");
    }
}
