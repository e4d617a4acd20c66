//! The table of evidence in docs/receipts.md: what the kills of tests/kills.rs have shown, per harness, version and
//! route. It is made from the run's observations and compared with docs/kills.json, or rewritten by `make clients`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::OBSERVATIONS;

/// Set by `make clients`: write the table instead of comparing it.
const WRITE: &str = "RELAY_WAKE_TABLE_WRITE";
/// The table stands between these lines of the page.
const BEGINS: &str = "<!-- kills: `make clients` writes this table -->\n";
const ENDS: &str = "<!-- end of kills -->\n";
/// Columns of the table, with their names in an observation.
const COLUMNS: [(&str, &str); 7] = [
    ("harness", "harness"),
    ("version", "version"),
    ("route", "route"),
    ("killed", "killed while"),
    ("before", "status then"),
    ("after", "status in the end"),
    ("repeated", "marked as repeated"),
];

#[test]
#[ignore = "it judges a whole run: `make clients` and `make test` run it last"]
fn the_table_of_kills_is_what_the_run_saw() {
    let seen = observed();
    let rows = |table: &Value| -> BTreeSet<String> {
        table["kills"].as_array().into_iter().flatten().map(Value::to_string).collect()
    };
    if variable(WRITE).is_some() {
        let written = serde_json::to_string_pretty(&seen).expect("a value can be written");
        std::fs::write(file("docs/kills.json"), format!("{written}\n")).expect("docs/ is writable");
        let page = read("docs/receipts.md");
        let (before, rest) = page.split_once(BEGINS).expect("the page has a place for the table");
        let (_, after) = rest.split_once(ENDS).expect("the place has an end");
        let page = format!("{before}{BEGINS}{}{ENDS}{after}", markdown(&seen));
        std::fs::write(file("docs/receipts.md"), page).expect("docs/ is writable");
        return;
    }
    let committed: Value = serde_json::from_str(&read("docs/kills.json")).expect("it is JSON");
    let (says, saw) = (rows(&committed), rows(&seen));
    let only = |these: &BTreeSet<String>, those: &BTreeSet<String>| these.difference(those).cloned().collect();
    let (unseen, unsaid): (Vec<String>, Vec<String>) = (only(&says, &saw), only(&saw, &says));
    assert!(
        unseen.is_empty() && unsaid.is_empty(),
        "docs/kills.json says what the run has not seen: {unseen:#?}\nthe run saw what it does not say: {unsaid:#?}\n\
         if that is as it should be, `make clients` writes the table anew"
    );
}

#[test]
fn the_page_shows_the_table() {
    let committed: Value = serde_json::from_str(&read("docs/kills.json")).expect("it is JSON");
    let page = read("docs/receipts.md");
    let shown = page.split_once(BEGINS).and_then(|(_, rest)| rest.split_once(ENDS)).map(|(table, _)| table);
    assert_eq!(shown, Some(markdown(&committed).as_str()), "`make clients` writes both");
}

#[test]
fn every_harness_that_hands_mail_over_was_killed() {
    let committed: Value = serde_json::from_str(&read("docs/kills.json")).expect("it is JSON");
    let rows = committed["kills"].as_array().cloned().unwrap_or_default();
    for (harness, routes) in [
        (
            "claude-code",
            &["hook:SessionStart", "hook:UserPromptSubmit", "hook:PostToolUse", "hook:Stop", "hook:FileChanged"][..],
        ),
        (
            "codex",
            &["hook:SessionStart", "hook:UserPromptSubmit", "hook:PostToolUse", "hook:Stop", "app-server", "queue"],
        ),
        ("opencode", &["listen", "prompt_async"]),
        ("gemini-cli", &["hook:BeforeAgent", "hook:AfterTool", "hook:AfterAgent"]),
    ] {
        for route in routes {
            let tried = rows.iter().any(|row| row["harness"] == harness && row["route"] == *route);
            assert!(tried, "no kill of {harness} after {route}");
        }
    }
}

/// The kills of the run, in a fixed order.
fn observed() -> Value {
    let name =
        variable(OBSERVATIONS).unwrap_or_else(|| panic!("no run is named by {OBSERVATIONS}; use `make clients`"));
    let text = std::fs::read_to_string(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is an observation"));
    let kills: BTreeSet<Vec<String>> = lines
        .filter_map(|line| line.get("kill").cloned())
        .map(|kill| COLUMNS.map(|(name, _)| kill[name].as_str().unwrap_or_default().to_owned()).to_vec())
        .collect();
    let row = |kill: Vec<String>| COLUMNS.iter().zip(kill).map(|((name, _), word)| ((*name).to_owned(), json!(word)));
    let rows = kills.into_iter().map(|kill| Value::Object(row(kill).collect()));
    json!({"kills": rows.collect::<Vec<_>>()})
}

fn markdown(table: &Value) -> String {
    let mut page = format!("| {} |\n|{}\n", COLUMNS.map(|(_, title)| title).join(" | "), "---|".repeat(COLUMNS.len()));
    for row in table["kills"].as_array().into_iter().flatten() {
        let cells = COLUMNS.map(|(name, _)| row[name].as_str().unwrap_or_default().to_owned());
        page.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    page
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[expect(clippy::disallowed_methods, reason = "make says by variables what a run is for")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
