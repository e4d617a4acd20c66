//! The guard's own lines: inserted into a hook's script or a hook manager's settings, and removed again without
//! changing any other byte.

use std::path::Path;

use mesh::EditMode;

/// First words of our lines in every form.
const BEGIN: &str = "# relay-mesh guard: begin";
/// Follows [`BEGIN`] if we made the whole file.
const WHOLE: &str = " (this file was made for it)";
const END: &str = "# relay-mesh guard: end\n";
const SHEBANG: &str = "#!/bin/sh\n";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Starts<'a> {
    /// In a file of this machine: this program, with `--dir` if the user chose a data folder.
    Here { program: &'a Path, data_folder: Option<&'a Path> },
    /// In a file that a team commits: the program on each user's PATH.
    Anywhere,
}

/// The format of the file that contains our lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A shell script.
    Script,
    /// lefthook's settings: a command of its hook.
    Lefthook,
}

/// A new file with only our lines. `then` is the earlier hook that it runs afterwards.
pub(crate) fn whole(starts: &Starts<'_>, form: Form, then: Option<&str>) -> String {
    let lines = lines(starts, form, WHOLE);
    match (form, then) {
        (Form::Lefthook, _) => lines,
        (Form::Script, None) => format!("{SHEBANG}{lines}"),
        (Form::Script, Some(name)) => {
            let kept = format!("\"$(dirname \"$0\")/{name}\"");
            let lines = lines.replace(END, &format!("[ ! -x {kept} ] || exec {kept} \"$@\"\n{END}"));
            format!("{SHEBANG}{lines}")
        }
    }
}

/// A file with our lines inserted or renewed: after the first line of a script that names its shell, else at the start.
pub(crate) fn with(text: &str, starts: &Starts<'_>, form: Form) -> String {
    let rest = without(text).unwrap_or_else(|| text.to_owned());
    let ours = lines(starts, form, "");
    let at = match form {
        Form::Script if rest.starts_with("#!") => rest.find('\n').map_or(rest.len(), |end| end + 1),
        Form::Script | Form::Lefthook => 0,
    };
    format!("{}{ours}{}", &rest[..at], &rest[at..])
}

/// A file without our lines; none if it contains none.
pub(crate) fn without(text: &str) -> Option<String> {
    let (begin, end) = span(text)?;
    Some(format!("{}{}", &text[..begin], &text[end..]))
}

/// Whether we made the whole file and nothing was added since.
pub(crate) fn is_whole(text: &str) -> bool {
    let rest = without(text);
    text.contains(&format!("{BEGIN}{WHOLE}")) && rest.is_some_and(|rest| rest.is_empty() || rest == SHEBANG)
}

fn span(text: &str) -> Option<(usize, usize)> {
    let begin = text.find(BEGIN)?;
    let end = begin + text[begin..].find(END)? + END.len();
    Some((begin, end))
}

/// Whether a script's shell understands our lines.
pub(crate) fn is_of_a_shell(text: &str) -> bool {
    let Some(first) = text.strip_prefix("#!") else { return true };
    let Some((first, _)) = first.split_once('\n') else { return false };
    let mut words = first.split_ascii_whitespace();
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let mut program = words.next().map(name);
    if program.as_deref() == Some("env") {
        program = words.find(|word| !word.starts_with('-') && !word.contains('=')).map(name);
    }
    program.is_some_and(|program| ["sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"].contains(&program.as_str()))
}

/// Our lines. Only one exit code stops a commit: any other failure lets it pass.
fn lines(starts: &Starts<'_>, form: Form, whole: &str) -> String {
    let (program, further) = match starts {
        Starts::Here { program, data_folder } => {
            let folder = data_folder.map_or_else(String::new, |folder| format!(" --dir {}", quoted(folder)));
            (quoted(program), folder)
        }
        Starts::Anywhere => ("\"${RELAY_MESH_BIN:-relay-mesh}\"".to_owned(), String::new()),
    };
    let script = [
        format!("relay_mesh={program}"),
        "if command -v \"$relay_mesh\" >/dev/null 2>&1; then".to_owned(),
        "  relay_mesh_ended=0".to_owned(),
        format!("  \"$relay_mesh\"{further} guard check || relay_mesh_ended=$?"),
        "  [ \"$relay_mesh_ended\" -ne 6 ] || exit 1".to_owned(),
        "else".to_owned(),
        "  echo \"relay-mesh guard: $relay_mesh was not found, so reservations were not checked\" >&2".to_owned(),
        "fi".to_owned(),
    ];
    let head = format!("{BEGIN}{whole}; `relay-mesh guard uninstall` takes it out\n");
    let body: String = match form {
        Form::Script => script.iter().map(|line| format!("{line}\n")).collect(),
        Form::Lefthook => {
            let script: String = script.iter().map(|line| format!("        {line}\n")).collect();
            format!("pre-commit:\n  commands:\n    relay-mesh-guard:\n      run: |\n{script}")
        }
    };
    format!("{head}{body}{END}")
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// The last sentence of a refusal: what to do.
pub(crate) fn way_out(mode: EditMode, owners: &str) -> String {
    match mode {
        EditMode::Enforce => format!(
            "ask {owners} by `relay-mesh send`, wait until it lapses, or commit all the same with `git commit --no-verify`"
        ),
        EditMode::Advise => {
            format!("this project only advises, so the commit goes on: tell {owners} by `relay-mesh send`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Starts<'static> {
        Starts::Here { program: Path::new("/opt/relay-mesh"), data_folder: None }
    }

    #[test]
    fn what_is_put_in_comes_out_to_the_byte() {
        for text in [
            "#!/bin/sh\nnpm test\n",
            "#!/usr/bin/env bash\n\nset -eu\nexec make check",
            "npm test\n",
            "",
            "#!/bin/sh\n",
            "#!/bin/sh\n\n",
        ] {
            for starts in [here(), Starts::Anywhere] {
                let with = with(text, &starts, Form::Script);
                assert_eq!(without(&with).as_deref(), Some(text));
                assert_eq!(super::with(&with, &starts, Form::Script), with, "twice is once");
                assert!(!is_whole(&with), "{text}: its own");
            }
        }
        assert_eq!(without("#!/bin/sh\nnpm test\n"), None);
    }

    #[test]
    fn a_file_of_ours_is_known_until_somebody_adds_to_it() {
        for form in [Form::Script, Form::Lefthook] {
            for then in [None, Some("pre-commit.kept")] {
                let text = whole(&here(), form, then);
                assert!(is_whole(&text), "{text}");
                assert!(!is_whole(&format!("{text}npm test\n")), "{text}");
            }
        }
    }

    #[test]
    fn only_a_shells_scripts_take_our_lines() {
        for (text, expected) in [
            ("#!/bin/sh\n", true),
            ("#!/usr/bin/env bash\nx", true),
            ("#!/usr/bin/env -S FOO=1 zsh -f\nx", true),
            ("npm test\n", true),
            ("#!/usr/bin/env python3\n", false),
            ("#!/usr/bin/perl -w\n", false),
            ("#!/bin/sh", false),
        ] {
            assert_eq!(is_of_a_shell(text), expected, "{text}");
        }
    }
}
