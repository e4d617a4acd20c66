//! A difference as git prints it, read into files, hunks and lines, and cut into portions that a reviewer can take.

use std::ops::Range;

use super::quoted_path::{bare, pair, unquoted};

/// A difference between two states of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The text that it was read from.
    pub text: String,
    /// Its files, in order.
    pub files: Vec<FileDiff>,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It has another path, and perhaps other contents.
    Renamed,
    /// Its contents or its mode are others.
    Modified,
}

/// The difference of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// Its path now; if it was deleted, the one that it had.
    pub path: String,
    /// The path that it had, if it has another now.
    pub old_path: Option<String>,
    /// What became of it.
    pub change: FileChange,
    /// It is not text, and its contents are not in the difference.
    pub binary: bool,
    /// What changed in it.
    pub hunks: Vec<Hunk>,
    /// Where its head is in the text.
    head: Range<usize>,
}

/// Some lines of a file, as they are now, around a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The number of its first line in the file as it is now.
    pub start: u32,
    /// Its lines as they are now, in order, without gaps.
    pub lines: Vec<HunkLine>,
    /// Where it is in the text.
    text: Range<usize>,
}

/// A line of a file as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// Its text, without its end.
    pub text: String,
    /// It was added, or lines beside it were removed.
    pub changed: bool,
}

/// Part of a difference that a reviewer gets at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portion {
    pub text: String,
    /// Files of which something had to be left out, because a single hunk was too long.
    pub cut: Vec<String>,
}

impl Hunk {
    /// The number of the line after its last one.
    pub fn end(&self) -> u32 {
        self.start + u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }
}

impl Diff {
    /// Reads what `git diff` prints. What it does not understand is passed over.
    pub fn parse(text: &str) -> Diff {
        let mut files: Vec<FileDiff> = Vec::new();
        let mut at = 0;
        // Of the old and the new side, how many lines of the open hunk are still to come.
        let mut open = (0_u32, 0_u32);
        let mut removed = false;
        for line in text.split_inclusive('\n') {
            let place = at..at + line.len();
            at = place.end;
            let line = line.strip_suffix('\n').unwrap_or(line);
            if open != (0, 0) || line.starts_with('\\') {
                if let Some(hunk) = files.last_mut().and_then(|file| file.hunks.last_mut()) {
                    hunk.text.end = place.end;
                    take_line(hunk, line, &mut open, &mut removed);
                }
                continue;
            }
            if let Some(paths) = line.strip_prefix("diff --git ") {
                let (old, new) = pair(paths).unwrap_or_default();
                let old_path = (old != new).then_some(old);
                let change = FileChange::Modified;
                files.push(FileDiff { path: new, old_path, change, binary: false, hunks: Vec::new(), head: place });
                continue;
            }
            let Some(file) = files.last_mut() else { continue };
            if let Some(ranges) = line.strip_prefix("@@ -") {
                let Some((old, new, start)) = ranges_of(ranges) else { continue };
                open = (old, new);
                removed = false;
                // A hunk without new lines stands after the line that it names.
                let start = if new == 0 { start + 1 } else { start };
                file.hunks.push(Hunk { start, lines: Vec::new(), text: place });
            } else if file.hunks.is_empty() {
                file.head.end = place.end;
                head_line(file, line);
            }
        }
        Diff { text: text.to_owned(), files }
    }

    /// The file with this path, now or before.
    pub fn file(&self, path: &str) -> Option<&FileDiff> {
        let now = self.files.iter().find(|file| file.path == path);
        now.or_else(|| self.files.iter().find(|file| file.old_path.as_deref() == Some(path)))
    }

    /// The difference in portions of at most so many bytes, each with the heads of its files. A file goes into several
    /// portions if it has to, and a hunk that is too long is cut.
    pub fn portions(&self, most: usize) -> Vec<Portion> {
        let mut portions: Vec<Portion> = Vec::new();
        let mut open = Portion::default();
        for file in &self.files {
            let head = &self.text[file.head.clone()];
            let mut has_head = false;
            if file.hunks.is_empty() {
                if !open.text.is_empty() && open.text.len() + head.len() > most {
                    portions.push(std::mem::take(&mut open));
                }
                open.text.push_str(head);
            }
            for hunk in &file.hunks {
                let text = &self.text[hunk.text.clone()];
                let left = most.saturating_sub(head.len());
                let (text, cut) = if text.len() > left { (whole_lines(text, left), true) } else { (text, false) };
                let needed = text.len() + if has_head { 0 } else { head.len() };
                if !open.text.is_empty() && open.text.len() + needed > most {
                    portions.push(std::mem::take(&mut open));
                    has_head = false;
                }
                if !has_head {
                    open.text.push_str(head);
                    has_head = true;
                }
                open.text.push_str(text);
                if cut && open.cut.last() != Some(&file.path) {
                    open.cut.push(file.path.clone());
                }
            }
        }
        if !open.text.is_empty() {
            portions.push(open);
        }
        portions
    }

    /// The difference of these files alone.
    pub fn of_files(&self, paths: &[&str]) -> Diff {
        let wanted = self.files.iter().filter(|file| paths.contains(&file.path.as_str()));
        let mut text = String::new();
        for file in wanted {
            let end = file.hunks.last().map_or(file.head.end, |hunk| hunk.text.end);
            text.push_str(&self.text[file.head.start..end]);
        }
        Diff::parse(&text)
    }
}

/// The beginning of a text, at most so many bytes, without half a line.
fn whole_lines(text: &str, most: usize) -> &str {
    let bytes = text.as_bytes();
    let end = bytes[..most.min(bytes.len())].iter().rposition(|byte| *byte == b'\n');
    end.map_or("", |at| &text[..=at])
}

fn take_line(hunk: &mut Hunk, line: &str, open: &mut (u32, u32), removed: &mut bool) {
    let mut add = |text: &str, changed: bool| {
        hunk.lines.push(HunkLine { text: text.to_owned(), changed });
    };
    match line.as_bytes().first() {
        Some(b'+') => {
            open.1 = open.1.saturating_sub(1);
            add(&line[1..], true);
        }
        Some(b'-') => {
            open.0 = open.0.saturating_sub(1);
            *removed = true;
            // What stands before the gap.
            if let Some(last) = hunk.lines.last_mut() {
                last.changed = true;
            }
        }
        // The end of a file without a line break.
        Some(b'\\') => {}
        Some(_) | None => {
            *open = (open.0.saturating_sub(1), open.1.saturating_sub(1));
            add(line.get(1..).unwrap_or_default(), *removed);
            *removed = false;
        }
    }
    if line.starts_with('+') {
        *removed = false;
    }
}

fn head_line(file: &mut FileDiff, line: &str) {
    if let Some(path) = line.strip_prefix("rename from ").or_else(|| line.strip_prefix("copy from ")) {
        file.old_path = Some(unquoted(path));
        file.change = FileChange::Renamed;
    } else if let Some(path) = line.strip_prefix("rename to ").or_else(|| line.strip_prefix("copy to ")) {
        file.path = unquoted(path);
        file.change = FileChange::Renamed;
    } else if line.starts_with("new file mode ") {
        file.change = FileChange::Added;
        file.old_path = None;
    } else if line.starts_with("deleted file mode ") {
        file.change = FileChange::Deleted;
        file.old_path = None;
    } else if line.starts_with("Binary files ") || line == "GIT binary patch" {
        file.binary = true;
    } else if let Some(path) = line.strip_prefix("+++ ").filter(|path| *path != "/dev/null") {
        file.path = bare(&unquoted(path.trim_end_matches('\t')));
    } else if let Some(path) = line.strip_prefix("--- ").filter(|path| *path != "/dev/null")
        && file.change == FileChange::Deleted
    {
        file.path = bare(&unquoted(path.trim_end_matches('\t')));
    }
}

/// The numbers of `10,3 +12,4 @@ …`: the lines of the old and of the new side, and where the new one begins.
fn ranges_of(text: &str) -> Option<(u32, u32, u32)> {
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let numbers = |range: &str| -> Option<(u32, u32)> {
        match range.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((range.parse().ok()?, 1)),
        }
    };
    let ((_, old), (start, new)) = (numbers(old)?, numbers(new)?);
    Some((old, new, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
diff --git a/src/a.rs b/src/a.rs
index 1..2 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,4 +1,4 @@
 one
-two
+zwei
 three
 four
@@ -10,2 +10,1 @@ fn x() {
 ten
-eleven
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
index 3..4 100644
--- a/old name.txt\t
+++ b/new name.txt\t
@@ -5,0 +6,2 @@
+--- not a head
+diff --git a/x b/x
diff --git a/logo.png b/logo.png
new file mode 100644
index 0..5
Binary files /dev/null and b/logo.png differ
diff --git a/gone.rs b/gone.rs
deleted file mode 100644
index 6..0
--- a/gone.rs
+++ /dev/null
@@ -1 +0,0 @@
-bye
\\ No newline at end of file
";

    #[test]
    fn a_difference_is_read_into_files_hunks_and_lines() {
        let diff = Diff::parse(TEXT);
        let told: Vec<String> = diff
            .files
            .iter()
            .map(|file| {
                let hunks = file.hunks.iter().map(|hunk| {
                    let lines = hunk.lines.iter();
                    let lines: Vec<String> =
                        lines.map(|line| format!("{}{}", if line.changed { "*" } else { "" }, line.text)).collect();
                    format!("{}:{}", hunk.start, lines.join("|"))
                });
                let hunks: Vec<String> = hunks.collect();
                let old = file.old_path.as_ref().map_or_else(String::new, |old| format!(" was {old}"));
                let binary = if file.binary { " binary" } else { "" };
                format!("{:?} {}{old}{binary} [{}]", file.change, file.path, hunks.join(" "))
            })
            .collect();
        assert_eq!(
            told,
            [
                "Modified src/a.rs [1:*one|*zwei|three|four 10:*ten]",
                "Renamed new name.txt was old name.txt [6:*--- not a head|*diff --git a/x b/x]",
                "Added logo.png binary []",
                "Deleted gone.rs [1:]",
            ]
        );
        assert!(diff.file("old name.txt").is_some_and(|file| file.path == "new name.txt"));
        assert_eq!(diff.of_files(&["logo.png", "gone.rs"]).files.len(), 2);
    }

    #[test]
    fn portions_hold_everything_and_are_not_too_long() {
        let diff = Diff::parse(TEXT);
        assert_eq!(diff.portions(10_000), [Portion { text: TEXT.to_owned(), cut: Vec::new() }]);
        let portions = diff.portions(300);
        assert!(portions.len() > 1 && portions.iter().all(|portion| portion.text.len() <= 300), "{portions:?}");
        let lines: usize = portions.iter().map(|portion| Diff::parse(&portion.text)).map(|part| lines_of(&part)).sum();
        assert_eq!(lines, lines_of(&diff), "no line is lost and none is there twice");
        let long = format!(
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,{} @@\n{}",
            500,
            "+a line of some length\n".repeat(500)
        );
        let portions = Diff::parse(&long).portions(1_000);
        assert!(portions[0].text.len() <= 1_000 && portions[0].cut == ["x"], "{portions:?}");
    }

    fn lines_of(diff: &Diff) -> usize {
        diff.files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.lines.len()).sum()
    }
}
