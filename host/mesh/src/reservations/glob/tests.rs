//! What patterns match and where they overlap: by example, and against brute force.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::{Glob, Literally, parse};

fn glob(text: &str) -> Glob {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn patterns_match_as_people_expect() {
    let check = |pattern: &str, yes: &[&str], no: &[&str]| {
        let pattern = glob(pattern);
        for path in yes {
            assert!(pattern.matches(path), "{pattern} matches {path}");
        }
        for path in no {
            assert!(!pattern.matches(path), "{pattern} does not match {path}");
        }
    };
    check("src/main.rs", &["src/main.rs"], &["src/main.rs/x", "src/main_rs", "main.rs", "src/main.r"]);
    check("src/*.rs", &["src/a.rs", "src/.rs"], &["src/a/b.rs", "src/a.rst", "a.rs"]);
    check("**", &["a", "a/b/c", ".env"], &["", "a//b", "a/", "/a", "a/../b", "."]);
    check("src/**", &["src/a", "src/a/b"], &["src", "srcs/a", "src/"]);
    check("src/", &["src/a", "src/a/b"], &["src", "srcs/a"]);
    check("**/", &["a", "a/b"], &[""]);
    check("**/a.rs", &["a.rs", "x/a.rs", "x/y/a.rs"], &["xa.rs", "x/ya.rs"]);
    check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "a/x/by"]);
    check("a?c", &["abc", "a.c", "aäc"], &["a/c", "ac", "abbc"]);
    check("[a-c]x", &["ax", "bx"], &["dx", "/x", "x"]);
    check("[!a-c]x", &["dx", ".x", "äx"], &["ax", "/x"]);
    check("[+-9]x", &["5x", "-x"], &["/x"]);
    check("[a-]x", &["ax", "-x"], &["bx"]);
    check("[\\]]x", &["]x"], &["\\x"]);
    check("{a,b/c}.rs", &["a.rs", "b/c.rs"], &["b.rs", "c.rs"]);
    check("{a,b{c,d}}", &["a", "bc", "bd"], &["b", "ab"]);
    check("a{,.b}", &["a", "a.b"], &["ab"]);
    check("{a/**,b}/c", &["a/c", "a/x/c", "b/c"], &["b/x/c"]);
    check("\\*\\{\\[", &["*{["], &["a{["]);
    check("a,b", &["a,b"], &["a"]);
}

#[test]
fn patterns_meet_exactly_where_a_path_matches_both() {
    let check = |one: &str, other: &str, expected: Option<&str>| {
        let (one, other) = (glob(one), glob(other));
        assert_eq!(one.overlap(&other).as_deref(), expected, "{one} and {other}");
        assert_eq!(other.overlap(&one).is_some(), expected.is_some(), "{other} and {one}");
    };
    check("src/**", "src/main.rs", Some("src/main.rs"));
    check("src/**", "src", None);
    check("src/*.rs", "src/*/*.rs", None);
    check("**/*.rs", "src/**", Some("src/.rs"));
    check("*.rs", "*.toml", None);
    check("a*", "*b", Some("ab"));
    check("a/**/b", "a/*/c/*", Some("a/a/c/b"));
    check("[a-m]*", "[n-z]*", None);
    check("[a-n]", "[n-z]", Some("n"));
    check("[!a]", "?", Some("b"));
    check("{a,b}/x", "{b,c}/x", Some("b/x"));
    check("**", "**", Some("a"));
    // Only `..` matches both, and that is no valid name.
    check("[.]?", "?[.]", None);
    check("[.]*", "?[!a-z]", Some(".0"));
}

#[test]
fn what_is_no_pattern_is_said_with_its_place() {
    let check = |text: &str, expected: &str| {
        let error = text.parse::<Glob>().expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check("", "it is empty");
    check("src/[ab", "never closed (at character 5)");
    check("src/[]", "names at least one (at character 5)");
    check("[z-a]", "runs backwards (at character 2)");
    check("[a/b]", "cannot hold a `/` (at character 3)");
    check("a/{b,c", "never closed (at character 3)");
    check("a}", "closes nothing (at character 2)");
    check("a\\", "nothing follows this `\\` (at character 2)");
    check("src/a**", "alone between slashes (at character 6)");
    check("***", "alone between slashes (at character 1)");
    check("/etc/passwd", "begins with a `/`");
    check("a\0", "no path holds this character (at character 2)");
    check("../x", "no path can match it");
    check("a//b", "no path can match it");
    check("[.]", "no path can match it");
    check(&"{a,b}".repeat(40), "too many alternatives");
    check(&"x".repeat(513), "longer than 512 bytes");
    check(&"{".repeat(300), "never closed");
}

#[test]
fn a_literal_path_is_matched_whatever_its_characters() {
    for path in ["a[b]/{c}", "*", "a\\b", "?", "x/[!y"] {
        assert!(Glob::of_path(path, Literally::ThePath).expect("a pattern").matches(path), "{path}");
        let within = format!("{path}/z");
        let everything = Glob::of_path(path, Literally::WhatIsIn).expect("a pattern");
        assert!(everything.matches(&within) && !everything.matches(path), "{path}");
    }
    assert!(Glob::of_path("", Literally::WhatIsIn).expect("a pattern").matches("x"));
}

#[test]
fn a_file_that_is_written_is_found_however_long_its_path_is() {
    for path in ["a[b]/{c}", "a\\b", &format!("src/{}.rs", "ä/*[".repeat(1_000))] {
        let file = Glob::of_file(path).expect("a path");
        assert_eq!(glob("{src,a}*/**").overlap(&file).is_some(), path.contains('/'), "{path}");
        assert_eq!(glob("**").overlap(&file).as_deref(), Some(path));
        assert_eq!(file.overlap(&glob("**/*.py")), None, "{path}");
        assert_eq!(file.is_too_long(), path.len() > parse::LONGEST_GLOB, "{path}");
    }
    assert!(Glob::of_file("a/../b").is_err() && Glob::of_file("").is_err());
}

/// The alphabet of generated patterns and of the paths to try them on.
const LETTERS: [char; 4] = ['a', 'b', '.', '/'];
/// The longest paths on which a negative answer is checked.
const LONGEST: usize = 6;

static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut rows = vec![String::new()];
    let mut paths = Vec::new();
    for _ in 0..LONGEST {
        rows = rows.iter().flat_map(|row| LETTERS.iter().map(move |letter| format!("{row}{letter}"))).collect();
        paths.extend(rows.iter().filter(|path| reference::is_path(path)).cloned());
    }
    paths
});

/// A second matcher, as simple as possible: it expands the braces in the text and tries everything.
mod reference {
    pub(super) fn is_path(path: &str) -> bool {
        path.split('/').all(|component| !matches!(component, "" | "." | ".."))
    }

    pub(super) fn matches(pattern: &str, path: &str) -> bool {
        is_path(path) && expanded(pattern).iter().any(|plain| whole(plain, path))
    }

    /// Every pattern without braces. Generated patterns have no braces in classes and no escaped ones.
    fn expanded(pattern: &str) -> Vec<String> {
        let Some(close) = pattern.find('}') else { return vec![pattern.to_owned()] };
        let open = pattern[..close].rfind('{').expect("braces are in pairs");
        let choices = pattern[open + 1..close].split(',');
        choices.flat_map(|one| expanded(&format!("{}{one}{}", &pattern[..open], &pattern[close + 1..]))).collect()
    }

    /// Matches component by component; `**` takes any number of them.
    fn whole(pattern: &str, path: &str) -> bool {
        let pattern = if pattern.ends_with('/') { format!("{pattern}**") } else { pattern.to_owned() };
        let patterns: Vec<&str> = pattern.split('/').collect();
        let components: Vec<&str> = path.split('/').collect();
        folders(&patterns, &components)
    }

    fn folders(patterns: &[&str], components: &[&str]) -> bool {
        match patterns {
            [] => components.is_empty(),
            // At the end it takes at least one: `a/**` matches what is in `a`, but not `a`.
            ["**"] => !components.is_empty(),
            ["**", rest @ ..] => (0..=components.len()).any(|taken| folders(rest, &components[taken..])),
            [first, rest @ ..] => match components {
                [] => false,
                [component, others @ ..] => name(first, component) && folders(rest, others),
            },
        }
    }

    fn name(pattern: &str, text: &str) -> bool {
        let mut rest = pattern.chars();
        let mut left = text.chars();
        match rest.next() {
            None => text.is_empty(),
            Some('*') => {
                text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| name(rest.as_str(), &text[at..]))
            }
            // An escaped character is literal.
            Some('\\') => {
                rest.next().is_some_and(|letter| left.next() == Some(letter)) && name(rest.as_str(), left.as_str())
            }
            Some('?') => left.next().is_some() && name(rest.as_str(), left.as_str()),
            Some('[') => {
                let (class, behind) = rest.as_str().split_once(']').expect("classes are closed");
                let (others, class) = match class.strip_prefix('!') {
                    Some(class) => (true, class),
                    None => (false, class),
                };
                left.next().is_some_and(|letter| class.contains(letter) != others) && name(behind, left.as_str())
            }
            Some(letter) => left.next() == Some(letter) && name(rest.as_str(), left.as_str()),
        }
    }
}

/// A subset of [`PATHS`], one bit per path.
struct Paths(Vec<u64>);

impl Paths {
    fn matched_by(pattern: &str) -> Paths {
        let bit = |path: &String| u64::from(reference::matches(pattern, path));
        Paths(PATHS.chunks(64).map(|some| some.iter().rev().fold(0, |bits, path| bits << 1 | bit(path))).collect())
    }

    fn holds(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    fn first_in_both(&self, other: &Paths) -> Option<&'static str> {
        let both = self.0.iter().zip(&other.0).map(|(ours, theirs)| ours & theirs);
        let (word, bits) = both.enumerate().find(|(_, bits)| *bits != 0)?;
        Some(&PATHS[word * 64 + bits.trailing_zeros() as usize])
    }
}

/// Pieces of generated patterns.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(LETTERS.to_vec()).prop_map(String::from),
        2 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        1 => prop::sample::select(vec!["[a]", "[!a]", "[ab]", "[.a]", "[!.]", "[!b.]", "[a-b]", "[!a-b]"])
            .prop_map(str::to_owned),
        1 => prop::sample::select(vec!["\\a", "\\.", "\\*", "\\?", "ä"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["**/", "/**/", "/**", "/"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["{a,b}", "{a,}", "{.,a/b}", "{*,b/}", "{a{a,b},.b}"]).prop_map(str::to_owned),
    ]
}

fn patterns() -> impl Strategy<Value = Vec<String>> {
    let pattern = prop::collection::vec(piece(), 1..7).prop_map(|pieces| pieces.concat());
    prop::collection::vec(pattern.prop_filter("a pattern", |text| text.parse::<Glob>().is_ok()), 200)
}

proptest! {
    // 5 × 200 × 201 ÷ 2 is a little more than 100,000 pairs.
    #![proptest_config(ProptestConfig { cases: 5, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn overlap_agrees_with_brute_force(texts in patterns()) {
        let globs: Vec<Glob> = texts.iter().map(|text| glob(text)).collect();
        let matched: Vec<Paths> = texts.iter().map(|text| Paths::matched_by(text)).collect();
        for (one, its) in globs.iter().zip(&matched) {
            for (number, path) in PATHS.iter().enumerate() {
                prop_assert_eq!(one.matches(path), its.holds(number), "{} on {}", one, path);
            }
        }
        for (index, one) in globs.iter().enumerate() {
            for (other, theirs) in globs.iter().zip(&matched).skip(index) {
                match one.overlap(other) {
                    Some(witness) => {
                        for text in [one, other] {
                            prop_assert!(reference::matches(text.as_str(), &witness), "{text} on its witness {witness}");
                        }
                    }
                    None => {
                        let common = matched[index].first_in_both(theirs);
                        prop_assert!(common.is_none(), "{one} and {other} meet at {common:?}");
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_plainly_right_is_right(pieces in prop::collection::vec(any_piece(), 0..7)) {
        let text = pieces.concat();
        prop_assert!(!parse::is_plainly_right(&text) || parse::branches(&text).is_ok(), "{text}");
    }
}

/// Pieces of texts that need not be valid patterns.
fn any_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        piece(),
        prop::sample::select(vec!["**", "***", "\\", "[", "{", "}", "\0", "//"]).prop_map(str::to_owned)
    ]
}
