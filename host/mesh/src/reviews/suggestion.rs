//! Applying what a finding suggests, where its lines are still as they were.

use super::finding::Finding;

/// Why a suggestion does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuggestionError {
    /// The finding has none.
    #[error("the finding suggests no change")]
    None,
    /// It is known for no lines of the difference.
    #[error("the finding lies outside of the difference, so it is not known what its lines were")]
    Unplaced,
    /// The lines are others now.
    #[error("lines {start} to {end} are no longer as they were reviewed")]
    Changed {
        /// The first line.
        start: u32,
        /// The last line.
        end: u32,
    },
}

/// The text of a file with what a finding suggests. Line ends stay as the file has them.
pub fn apply_suggestion(text: &str, finding: &Finding) -> Result<String, SuggestionError> {
    let suggestion = finding.suggestion.as_deref().ok_or(SuggestionError::None)?;
    let expected = finding.lines.as_ref().ok_or(SuggestionError::Unplaced)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (from, to) = (finding.start as usize - 1, finding.end as usize);
    let now = lines.get(from..to).unwrap_or_default();
    // The difference has lines without their `\n`, but with the `\r` before it.
    let is_same = now.len() == expected.len()
        && now.iter().zip(expected).all(|(now, expected)| now.strip_suffix('\n').unwrap_or(now) == expected);
    if !is_same {
        return Err(SuggestionError::Changed { start: finding.start, end: finding.end });
    }
    let end = if now.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let has_end = now.last().is_none_or(|line| line.ends_with('\n'));
    let mut new: Vec<String> = suggestion.lines().map(|line| format!("{line}{end}")).collect();
    if let Some(last) = new.last_mut().filter(|_| !has_end) {
        last.truncate(last.len() - end.len());
    }
    Ok([lines[..from].concat(), new.concat(), lines[to..].concat()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reviews::findings_in;

    fn check(text: &str, (start, end): (u32, u32), lines: &[&str], suggestion: Option<&str>, expected: &str) {
        let answer = serde_json::json!({"findings": [{
            "rule": "r", "severity": "low", "title": "t", "body": "b", "failure": "f", "file": "x",
            "start": start, "end": end, "suggestion": suggestion
        }]});
        let mut finding = findings_in(&answer, "codex").expect("an answer").remove(0);
        finding.lines = (!lines.is_empty()).then(|| lines.iter().map(|line| (*line).to_owned()).collect());
        let outcome = apply_suggestion(text, &finding).unwrap_or_else(|error| format!("[{error}]"));
        assert_eq!(outcome, expected);
    }

    #[test]
    fn a_suggestion_replaces_its_lines_where_they_still_hold() {
        check("a\nb\nc\n", (2, 2), &["b"], Some("B1\nB2"), "a\nB1\nB2\nc\n");
        check("a\nb\nc\n", (1, 2), &["a", "b"], Some(""), "c\n");
        check("a\r\nb\r\n", (2, 2), &["b\r"], Some("B"), "a\r\nB\r\n");
        check("a\nb", (2, 2), &["b"], Some("B\n"), "a\nB");
        check("a\nx\nc\n", (2, 2), &["b"], Some("B"), "[lines 2 to 2 are no longer as they were reviewed]");
        check("a\n", (2, 2), &["b"], Some("B"), "[lines 2 to 2 are no longer as they were reviewed]");
        check("a\n", (1, 1), &["a"], None, "[the finding suggests no change]");
        check(
            "a\n",
            (1, 1),
            &[],
            Some("b"),
            "[the finding lies outside of the difference, so it is not known what its lines were]",
        );
    }
}
