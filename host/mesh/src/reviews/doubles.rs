//! Findings that several reviewers made, or one made twice, become one.

use std::collections::BTreeMap;

use super::anchor::fingerprint_of_later;
use super::finding::Finding;

/// Lines that two findings about one thing may lie apart.
const APART: u32 = 2;
/// The part of their words that two titles about one thing share.
const ALIKE: f64 = 0.5;

/// Makes one finding of those that are about the same thing. Keeps their order. Of what is left, no two have one
/// fingerprint.
pub fn merge(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        match merged.iter_mut().find(|one| is_double(one, &finding)) {
            Some(one) => absorb(one, finding),
            None => merged.push(finding),
        }
    }
    number(&mut merged);
    merged
}

/// Tells findings with one fingerprint apart, by their order in the file. The first keeps it.
fn number(findings: &mut [Finding]) {
    let mut in_order: Vec<&mut Finding> = findings.iter_mut().collect();
    in_order.sort_by_key(|finding| (finding.start, finding.end));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for finding in in_order {
        let count = seen.entry(finding.fingerprint.clone()).or_default();
        *count += 1;
        if *count > 1 {
            finding.fingerprint = fingerprint_of_later(&finding.fingerprint, *count);
        }
    }
}

/// The same rule on the same text elsewhere in the file is another defect, although its fingerprint is the same.
fn is_double(one: &Finding, other: &Finding) -> bool {
    let near = one.start <= other.end.saturating_add(APART) && other.start <= one.end.saturating_add(APART);
    one.file == other.file && near && (one.rule == other.rule || alike(&one.title, &other.title))
}

fn absorb(one: &mut Finding, other: Finding) {
    one.severity = one.severity.max(other.severity);
    for harness in other.by {
        if !one.by.contains(&harness) {
            one.by.push(harness);
        }
    }
    // A suggestion is for its own lines alone.
    if one.suggestion.is_none() && (one.start, one.end) == (other.start, other.end) {
        one.suggestion = other.suggestion;
    }
}

fn alike(one: &str, other: &str) -> bool {
    let words = |title: &str| -> Vec<String> {
        let words = title.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.len() > 2);
        let mut words: Vec<String> = words.map(str::to_lowercase).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let (one, other) = (words(one), words(other));
    let shared = one.iter().filter(|word| other.contains(word)).count();
    let all = one.len() + other.len() - shared;
    #[expect(clippy::cast_precision_loss, reason = "a title has few words")]
    let part = shared as f64 / all.max(1) as f64;
    part >= ALIKE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reviews::findings_in;

    fn finding(line: &str) -> Finding {
        let words: Vec<&str> = line.splitn(6, ' ').collect();
        let answer = serde_json::json!({"findings": [{
            "rule": words[1], "severity": words[2], "title": words[5], "body": "", "failure": "", "file": words[3],
            "start": words[4].parse::<u32>().expect("a number"), "end": words[4].parse::<u32>().expect("a number"),
            "suggestion": null
        }]});
        let mut finding = findings_in(&answer, words[0]).expect("an answer").remove(0);
        finding.fingerprint = super::super::fingerprint(&finding);
        finding
    }

    fn check(lines: &[&str], expected: &[&str]) {
        let merged = merge(lines.iter().map(|line| finding(line)).collect());
        let told: Vec<String> = merged
            .iter()
            .map(|one| format!("{} {} {} {}:{}", one.by.join("+"), one.rule, one.severity, one.file, one.start))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_two_reviewers_found_is_one_finding_with_the_greater_severity() {
        check(
            &[
                "codex off-by-one medium a.rs 10 the loop ends too early",
                "claude off-by-one high a.rs 11 loop misses the last",
            ],
            &["codex+claude off-by-one high a.rs:10"],
        );
        check(
            &[
                "codex logic low a.rs 10 the loop ends too early",
                "claude bounds low a.rs 10 the loop ends one too early",
            ],
            &["codex+claude logic low a.rs:10"],
        );
        check(&["codex x low a.rs 10 once", "codex x low a.rs 10 once"], &["codex x low a.rs:10"]);
    }

    #[test]
    fn the_same_text_elsewhere_in_a_file_is_another_finding_with_a_fingerprint_of_its_own() {
        let lines = ["codex x low a.rs 40 a leak", "codex x low a.rs 10 a leak", "claude x low a.rs 11 a leak"];
        let found: Vec<Finding> = lines.iter().map(|line| finding(line)).collect();
        let plain = found[0].fingerprint.clone();
        assert_eq!(plain, found[1].fingerprint);
        let merged = merge(found.clone());
        let told: Vec<_> = merged.iter().map(|one| (one.start, one.by.len(), one.fingerprint == plain)).collect();
        assert_eq!(told, [(40, 1, false), (10, 2, true)], "the first in the file keeps it");
        let again = merge(found.into_iter().rev().collect());
        let of = |findings: &[Finding]| findings.iter().find(|one| one.start == 40).map(|one| one.fingerprint.clone());
        assert_eq!(of(&again), of(&merged), "whatever their order");
        assert_eq!(merged[0].fingerprint.len(), plain.len());
    }

    #[test]
    fn different_things_stay_apart() {
        check(
            &["codex x low a.rs 10 a leak", "codex x low a.rs 20 a race elsewhere"],
            &["codex x low a.rs:10", "codex x low a.rs:20"],
        );
        check(
            &["codex x low a.rs 10 a leak", "claude y low a.rs 10 integer overflow"],
            &["codex x low a.rs:10", "claude y low a.rs:10"],
        );
        check(
            &["codex x low a.rs 10 a leak", "claude x low b.rs 10 a leak"],
            &["codex x low a.rs:10", "claude x low b.rs:10"],
        );
    }
}
