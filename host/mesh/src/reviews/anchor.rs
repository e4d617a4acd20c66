//! Where a finding lies. A reviewer names a file and lines; the difference says whether they are part of the change.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::diff::{Diff, FileChange, FileDiff, Hunk};
use super::finding::Finding;

/// Where a finding lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anchor {
    /// On a changed line.
    Changed,
    /// On lines that the difference shows around a change.
    Near,
    /// In a file of the difference, on other lines.
    Outside,
    /// In a file that is not in the difference.
    Elsewhere,
}

impl Anchor {
    /// The word in output and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Anchor::Changed => "changed",
            Anchor::Near => "near",
            Anchor::Outside => "outside",
            Anchor::Elsewhere => "elsewhere",
        }
    }

    /// Whether it is part of the change.
    pub fn is_in_diff(self) -> bool {
        match self {
            Anchor::Changed | Anchor::Near => true,
            Anchor::Outside | Anchor::Elsewhere => false,
        }
    }
}

impl Finding {
    /// Places a finding. `top` is the folder of the repository in which the reviewer worked: models also write absolute
    /// paths.
    pub fn place(&mut self, diff: &Diff, top: &Path) {
        let path = relative(&self.file, top);
        match diff.file(&path) {
            None => {
                self.file = path;
                self.anchor = Anchor::Elsewhere;
            }
            Some(file) => {
                self.file.clone_from(&file.path);
                self.anchor = anchor(file, self.start, self.end);
                self.lines = lines(file, self.start, self.end);
            }
        }
        self.fingerprint = fingerprint(self);
    }
}

fn relative(said: &str, top: &Path) -> String {
    let said = said.trim();
    let inner = Path::new(said).strip_prefix(top).ok().and_then(Path::to_str).unwrap_or(said);
    inner.trim_start_matches("./").to_owned()
}

fn anchor(file: &FileDiff, start: u32, end: u32) -> Anchor {
    // It has no lines now, and all of it is the change.
    if file.change == FileChange::Deleted || file.binary {
        return Anchor::Changed;
    }
    let shown = |hunk: &&Hunk| start < hunk.end() && hunk.start <= end;
    let mut anchor = Anchor::Outside;
    for hunk in file.hunks.iter().filter(shown) {
        let first = usize::try_from(start.saturating_sub(hunk.start)).unwrap_or(usize::MAX);
        let last = usize::try_from(end - hunk.start).unwrap_or(usize::MAX);
        let changed = hunk.lines.iter().skip(first).take(last.saturating_sub(first) + 1).any(|line| line.changed);
        if changed {
            return Anchor::Changed;
        }
        anchor = Anchor::Near;
    }
    anchor
}

/// The text of lines that one hunk has all of.
fn lines(file: &FileDiff, start: u32, end: u32) -> Option<Vec<String>> {
    let hunk = file.hunks.iter().find(|hunk| hunk.start <= start && end < hunk.end())?;
    let from = usize::try_from(start - hunk.start).ok()?;
    let to = usize::try_from(end - hunk.start).ok()?;
    Some(hunk.lines.get(from..=to)?.iter().map(|line| line.text.clone()).collect())
}

/// The same for the same defect, although the lines around it move: the rule, the file and the text of the lines; if
/// that is not known, the title.
pub fn fingerprint(finding: &Finding) -> String {
    let text = match &finding.lines {
        Some(lines) => lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n"),
        None => finding.title.to_lowercase(),
    };
    digest(&[&finding.rule, &finding.file, &text])
}

/// The fingerprint of a later place in the file with the same rule and text: the second, the third, and so on.
pub(super) fn fingerprint_of_later(first: &str, ordinal: usize) -> String {
    digest(&[first, &ordinal.to_string()])
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hex::encode(&hash.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reviews::findings_in;

    const DIFF: &str = "\
diff --git a/src/a.rs b/src/a.rs
--- a/src/a.rs
+++ b/src/a.rs
@@ -10,7 +10,7 @@
 ten
 eleven
 twelve
-old
+new
 fourteen
 fifteen
 sixteen
diff --git a/was.rs b/is.rs
similarity index 100%
rename from was.rs
rename to is.rs
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
diff --git a/gone.rs b/gone.rs
deleted file mode 100644
--- a/gone.rs
+++ /dev/null
@@ -1,1 +0,0 @@
-bye
";

    fn placed(file: &str, start: u32, end: u32) -> Finding {
        let answer = serde_json::json!({"findings": [{
            "rule": "r", "severity": "low", "title": "t", "body": "b", "failure": "f", "file": file,
            "start": start, "end": end, "suggestion": null
        }]});
        let mut finding = findings_in(&answer, "codex").expect("an answer").remove(0);
        finding.place(&Diff::parse(DIFF), Path::new("/work/app"));
        finding
    }

    #[test]
    fn a_finding_lies_where_the_difference_says() {
        let check = |file: &str, (start, end), expected: &str| {
            let finding = placed(file, start, end);
            let lines = finding.lines.map_or_else(String::new, |lines| format!(" {}", lines.join("|")));
            assert_eq!(
                format!("{} {}{lines}", finding.file, finding.anchor.as_str()),
                expected,
                "{file} {start}-{end}"
            );
        };
        check("src/a.rs", (13, 13), "src/a.rs changed new");
        check("/work/app/src/a.rs", (13, 13), "src/a.rs changed new");
        check("./src/a.rs", (12, 14), "src/a.rs changed twelve|new|fourteen");
        check("src/a.rs", (15, 16), "src/a.rs near fifteen|sixteen");
        check("src/a.rs", (16, 17), "src/a.rs near");
        check("src/a.rs", (17, 17), "src/a.rs outside");
        check("src/a.rs", (1, 9), "src/a.rs outside");
        check("src/b.rs", (13, 13), "src/b.rs elsewhere");
        check("../a.rs", (13, 13), "../a.rs elsewhere");
        check("was.rs", (3, 3), "is.rs outside");
        check("logo.png", (1, 1), "logo.png changed");
        check("gone.rs", (1, 1), "gone.rs changed");
    }

    #[test]
    fn a_fingerprint_stays_when_lines_move_and_differs_between_places() {
        let here = placed("src/a.rs", 13, 13);
        let mut moved = here.clone();
        (moved.start, moved.end, moved.title) = (50, 50, "other words".to_owned());
        assert_eq!(fingerprint(&moved), here.fingerprint);
        assert_ne!(placed("src/a.rs", 14, 14).fingerprint, here.fingerprint);
        assert_eq!(here.fingerprint.len(), 32);
    }
}
