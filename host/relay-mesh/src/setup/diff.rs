//! A plan as text: a unified diff per file, and a one-line summary.

use mesh::ports::harness::{Edit, Plan};
use similar::{ChangeTag, TextDiff};

use crate::render::printable;

/// Context lines around a change.
const CONTEXT: usize = 3;

/// The diff of one edit, under the given path.
pub(crate) fn unified(edit: &Edit, path: &str) -> String {
    let before = printable(edit.before.as_deref().unwrap_or_default());
    let after = printable(edit.after.as_deref().unwrap_or_default());
    let old = if edit.before.is_some() { path } else { "/dev/null" };
    let new = if edit.after.is_some() { path } else { "/dev/null" };
    let new = &if edit.executable && edit.after.is_some() { format!("{new} (executable)") } else { new.to_owned() };
    let body =
        TextDiff::from_lines(&before, &after).unified_diff().context_radius(CONTEXT).header(old, new).to_string();
    if body.is_empty() {
        // An empty file that is created or removed has no lines to show.
        format!("--- {old}\n+++ {new}\n")
    } else {
        body
    }
}

/// How many lines of an edit come, and how many go.
pub(crate) fn lines(edit: &Edit) -> (usize, usize) {
    let before = edit.before.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(before, edit.after.as_deref().unwrap_or_default());
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// A plan in one line: `2 files created, 1 changed`.
pub(crate) fn summary(plan: &Plan) -> String {
    counted(plan, ["created", "changed", "removed"])
}

/// A dry run in one line: `2 files would be created, 1 changed`.
pub(crate) fn future(plan: &Plan) -> String {
    counted(plan, ["would be created", "would be changed", "would be removed"])
}

fn counted(plan: &Plan, [created, changed, removed]: [&str; 3]) -> String {
    let count = |happens: fn(&Edit) -> bool| plan.edits.iter().filter(|edit| happens(edit)).count();
    let counted = [
        (count(|edit| edit.before.is_none() && edit.after.is_some()), created),
        (count(|edit| edit.before.is_some() && edit.after.is_some()), changed),
        (count(|edit| edit.before.is_some() && edit.after.is_none()), removed),
    ];
    let mut parts = counted.iter().filter(|(number, _)| *number > 0).map(|(number, verb)| (number, verb));
    let Some((number, verb)) = parts.next() else { return "no file changed".to_owned() };
    let noun = if *number == 1 { "file" } else { "files" };
    parts.fold(format!("{number} {noun} {verb}"), |line, (number, verb)| format!("{line}, {number} {verb}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(before: Option<&str>, after: Option<&str>) -> Edit {
        Edit {
            root: "project".to_owned(),
            path: "settings.json".to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            executable: false,
        }
    }

    fn check(before: Option<&str>, after: Option<&str>, expected: &str) {
        assert_eq!(unified(&edit(before, after), "settings.json"), expected);
    }

    #[test]
    fn a_changed_line_is_shown_with_what_stood_there() {
        check(
            Some("{\n  \"a\": 1\n}\n"),
            Some("{\n  \"a\": 2\n}\n"),
            "--- settings.json\n+++ settings.json\n@@ -1,3 +1,3 @@\n {\n-  \"a\": 1\n+  \"a\": 2\n }\n",
        );
    }

    #[test]
    fn a_new_file_comes_from_nowhere_and_a_removed_one_goes_there() {
        check(None, Some("x\n"), "--- /dev/null\n+++ settings.json\n@@ -0,0 +1 @@\n+x\n");
        check(Some("x\n"), None, "--- settings.json\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
        check(None, Some(""), "--- /dev/null\n+++ settings.json\n");
    }

    #[test]
    fn a_file_that_will_be_executable_says_so() {
        let edit = Edit { executable: true, ..edit(None, Some("x\n")) };
        let expected = "--- /dev/null\n+++ settings.json (executable)\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(unified(&edit, "settings.json"), expected);
    }

    #[test]
    fn lines_that_come_and_go_are_counted() {
        for (before, after, expected) in [
            (None, Some("a\nb\n"), (2, 0)),
            (Some("a\nb\n"), None, (0, 2)),
            (Some("a\nb\nc\n"), Some("a\nx\ny\nc\n"), (2, 1)),
            (None, Some(""), (0, 0)),
        ] {
            assert_eq!(lines(&edit(before, after)), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_missing_last_line_break_is_told() {
        check(
            Some("x"),
            Some("x\n"),
            "--- settings.json\n+++ settings.json\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n",
        );
    }

    #[test]
    fn a_file_cannot_speak_to_the_terminal() {
        check(
            Some("\u{1b}[2Jx\r\n"),
            Some("y\n"),
            "--- settings.json\n+++ settings.json\n@@ -1 +1 @@\n-\\u{1b}[2Jx\\u{d}\n+y\n",
        );
    }

    #[test]
    fn a_plan_is_summed_up_in_one_line() {
        let check = |edits: Vec<Edit>, expected: &str| {
            assert_eq!(summary(&Plan { edits, next_steps: Vec::new() }), expected);
        };
        check(vec![], "no file changed");
        check(vec![edit(None, Some("x"))], "1 file created");
        check(
            vec![edit(None, Some("x")), edit(None, Some("x")), edit(Some("x"), Some("y")), edit(Some("x"), None)],
            "2 files created, 1 changed, 1 removed",
        );
        check(vec![edit(Some("x"), Some("y"))], "1 file changed");
    }
}
