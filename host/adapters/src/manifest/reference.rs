//! Holds docs/manifest.md against the parser: each of its tables has exactly the keys that the parser knows.

use std::collections::BTreeSet;

use super::Manifest;

/// The headings of the page, and a manifest's lines with a key in that table that cannot be.
const TABLES: [(&str, &str); 17] = [
    ("Top level", "no-such-key = 1\n"),
    ("`[matches]`", "[matches]\nno-such-key = 1\n"),
    ("`[grants]`", "[grants]\nno-such-key = 1\n"),
    ("`[grants.roots.NAME]`", "[grants.roots.config]\nno-such-key = 1\n"),
    ("`[grants.endpoints.NAME]`", "[grants.endpoints.rpc]\nno-such-key = 1\n"),
    ("`[grants.logins.ORIGIN]`", "[grants.logins.api]\nno-such-key = 1\n"),
    ("`[grants.answers]`", "[grants.answers]\nno-such-key = 1\n"),
    ("`[grants.answers.KIND]`", "[grants.answers.refuse]\nno-such-key = 1\n"),
    ("`[runs.NAME]`", "[runs.task]\nno-such-key = 1\n"),
    ("`[drives.NAME]`", "[drives.acp]\nno-such-key = 1\n"),
    ("`[serves]`", "[serves]\nno-such-key = 1\n"),
    ("`[limits]`", "[limits]\nno-such-key = 1\n"),
    ("`[rehearsal]`", "[rehearsal]\nno-such-key = 1\n"),
    ("`[project]`", "[project]\nno-such-key = 1\n"),
    ("`[sessions]`", "[sessions]\nno-such-key = 1\n"),
    ("`[sessions.record]`", "[sessions.record]\nno-such-key = 1\n"),
    // The other kinds of answers have the same table.
    ("`[grants.answers.KIND]`", "[grants.answers.allow]\nno-such-key = 1\n"),
];

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/manifest.md");
    std::fs::read_to_string(path).expect("the page is there")
}

/// The sections of the page: heading, and the keys of its table.
fn sections(page: &str) -> Vec<(String, BTreeSet<String>)> {
    let parts = page.split("\n## ").skip(1);
    let key = |line: &str| line.strip_prefix("| `")?.split('`').next().map(str::to_owned);
    parts
        .map(|part| (part.lines().next().unwrap_or_default().to_owned(), part.lines().filter_map(key).collect()))
        .collect()
}

/// The keys that the parser expects in the table of these lines.
fn expected(lines: &str) -> BTreeSet<String> {
    let text = format!("name = \"toad\"\ntitle = \"Toad\"\nversion = \"1.0.0\"\nwit = \"0.1\"\n{lines}");
    let what = Manifest::parse(&text).expect_err("no such key").what;
    let (_, keys) = what.split_once("expected ").unwrap_or_else(|| panic!("{lines}: {what}"));
    keys.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_has_every_key_of_the_manifest_and_no_other() {
    let sections = sections(&page());
    for (heading, lines) in TABLES {
        let found = sections.iter().find(|(found, _)| found == heading);
        let (_, keys) = found.unwrap_or_else(|| panic!("docs/manifest.md has no {heading}"));
        assert_eq!(keys, &expected(lines), "{heading}");
    }
    for (heading, _) in &sections {
        assert!(TABLES.iter().any(|(known, _)| known == heading), "nothing compares {heading} with the parser");
    }
}
