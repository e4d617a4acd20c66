//! Tables in docs/ of what the real clients have shown in a run: what tests/kills.rs has seen of kills, and tests/spawning.rs
//! of driven agents. They are made from the run's observations and compared with what is committed, or rewritten by
//! `make clients`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::OBSERVATIONS;

/// Set by `make clients`: write the tables instead of comparing them.
const WRITE: &str = "RELAY_WAKE_TABLE_WRITE";

/// A table.
struct Table {
    /// The word under which observations have its rows.
    kind: &'static str,
    /// The committed rows.
    rows: &'static str,
    /// The page that shows them, between two comments.
    page: &'static str,
    /// Columns, with their names in an observation.
    columns: &'static [(&'static str, &'static str)],
}

const KILLS: Table = Table {
    kind: "kill",
    rows: "docs/kills.json",
    page: "docs/receipts.md",
    columns: &[
        ("harness", "harness"),
        ("version", "version"),
        ("route", "route"),
        ("killed", "killed while"),
        ("before", "status then"),
        ("after", "status in the end"),
        ("repeated", "marked as repeated"),
    ],
};

const DRIVES: Table = Table {
    kind: "drive",
    rows: "docs/drives.json",
    page: "docs/driving.md",
    columns: &[
        ("harness", "harness"),
        ("version", "version"),
        ("connection", "connection"),
        ("receipts", "a prompt is"),
        ("steer", "words for a running turn come"),
        ("interrupt", "interrupt"),
        ("asks", "asks before a command (`--reach work`)"),
        ("resume", "goes on after its program has ended"),
        ("join", "`attach`"),
    ],
};

#[test]
#[ignore = "it judges a whole run: `make clients` and `make test` run it last"]
fn the_tables_are_what_the_run_saw() {
    for table in [KILLS, DRIVES] {
        table.is_what_the_run_saw();
    }
}

#[test]
fn the_pages_show_the_tables() {
    for table in [KILLS, DRIVES] {
        let page = read(table.page);
        let shown = page.split_once(&table.begins()).and_then(|(_, rest)| rest.split_once(&table.ends()));
        let expected = table.markdown(&table.committed());
        assert_eq!(shown.map(|(shown, _)| shown), Some(expected.as_str()), "`make clients` writes both");
    }
}

#[test]
fn every_harness_that_can_be_driven_was() {
    let committed = DRIVES.committed();
    for harness in ["claude-code", "codex", "gemini-cli", "opencode"] {
        let was = |row: &Value| row["harness"] == harness;
        assert!(committed[DRIVES.kind].as_array().is_some_and(|rows| rows.iter().any(was)), "{harness} was not driven");
    }
}

#[test]
fn every_harness_that_hands_mail_over_was_killed() {
    let rows = KILLS.committed()[KILLS.kind].as_array().cloned().unwrap_or_default();
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

impl Table {
    fn is_what_the_run_saw(&self) {
        let seen = self.observed();
        let rows = |table: &Value| -> BTreeSet<String> {
            table[self.kind].as_array().into_iter().flatten().map(Value::to_string).collect()
        };
        if variable(WRITE).is_some() {
            let written = serde_json::to_string_pretty(&seen).expect("a value can be written");
            std::fs::write(file(self.rows), format!("{written}\n")).expect("docs/ is writable");
            let page = read(self.page);
            let (begins, ends) = (self.begins(), self.ends());
            let (before, rest) = page.split_once(&begins).expect("the page has a place for the table");
            let (_, after) = rest.split_once(&ends).expect("the place has an end");
            let page = format!("{before}{begins}{}{ends}{after}", self.markdown(&seen));
            std::fs::write(file(self.page), page).expect("docs/ is writable");
            return;
        }
        let (says, saw) = (rows(&self.committed()), rows(&seen));
        let only = |these: &BTreeSet<String>, those: &BTreeSet<String>| these.difference(those).cloned().collect();
        let (unseen, unsaid): (Vec<String>, Vec<String>) = (only(&says, &saw), only(&saw, &says));
        assert!(
            unseen.is_empty() && unsaid.is_empty(),
            "{} says what the run has not seen: {unseen:#?}\nthe run saw what it does not say: {unsaid:#?}\n\
             if that is as it should be, `make clients` writes the table anew",
            self.rows
        );
    }

    fn begins(&self) -> String {
        format!("<!-- {}: `make clients` writes this table -->\n", self.kind)
    }

    fn ends(&self) -> String {
        format!("<!-- end of {} -->\n", self.kind)
    }

    fn committed(&self) -> Value {
        serde_json::from_str(&read(self.rows)).expect("it is JSON")
    }

    /// The rows of the run, in a fixed order.
    fn observed(&self) -> Value {
        let name =
            variable(OBSERVATIONS).unwrap_or_else(|| panic!("no run is named by {OBSERVATIONS}; use `make clients`"));
        let text = std::fs::read_to_string(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is an observation"));
        let cells =
            |row: Value| self.columns.iter().map(move |(name, _)| row[*name].as_str().unwrap_or_default().to_owned());
        let rows: BTreeSet<Vec<String>> =
            lines.filter_map(|line| line.get(self.kind).cloned()).map(|row| cells(row).collect()).collect();
        let row = |cells: Vec<String>| {
            let named = self.columns.iter().zip(cells).map(|((name, _), word)| ((*name).to_owned(), json!(word)));
            Value::Object(named.collect())
        };
        json!({self.kind: rows.into_iter().map(row).collect::<Vec<_>>()})
    }

    fn markdown(&self, table: &Value) -> String {
        let titles: Vec<&str> = self.columns.iter().map(|(_, title)| *title).collect();
        let mut page = format!("| {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
        for row in table[self.kind].as_array().into_iter().flatten() {
            let cells: Vec<&str> =
                self.columns.iter().map(|(name, _)| row[*name].as_str().unwrap_or_default()).collect();
            page.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        page
    }
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
