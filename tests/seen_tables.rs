//! Tables in docs/ of what the real clients have shown in a run: what tests/kills.rs has seen of kills, tests/spawning.rs of
//! driven agents, and tests/runs.rs of runs. They are made from the run's observations and compared with what is
//! committed, or rewritten by `make clients`. Most of what is seen of runs takes too long for each run of the tests:
//! `make run-faults` writes it, and it is of the clients that are pinned.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::{OBSERVATIONS, RUNNERS, variable};

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
    for harness in ["claude-code", "codex", "copilot", "gemini-cli", "opencode"] {
        let was = |row: &Value| row["harness"] == harness;
        assert!(committed[DRIVES.kind].as_array().is_some_and(|rows| rows.iter().any(was)), "{harness} was not driven");
    }
}

#[test]
fn every_harness_that_hands_mail_over_was_killed() {
    let rows = KILLS.committed()[KILLS.kind].as_array().cloned().unwrap_or_default();
    for (harness, routes) in [
        ("claude-code", &["fetch", "hook:UserPromptSubmit", "hook:PostToolUse", "hook:Stop", "hook:FileChanged"][..]),
        (
            "codex",
            &[
                "fetch",
                "hook:SessionStart",
                "hook:UserPromptSubmit",
                "hook:PostToolUse",
                "hook:Stop",
                "app-server",
                "queue",
                "steer",
            ],
        ),
        ("opencode", &["fetch", "listen", "prompt_async"]),
        ("gemini-cli", &["fetch", "hook:BeforeAgent", "hook:AfterTool", "hook:AfterAgent"]),
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
        let lines = observations();
        let cells =
            |row: Value| self.columns.iter().map(move |(name, _)| row[*name].as_str().unwrap_or_default().to_owned());
        let rows: BTreeSet<Vec<String>> =
            lines.iter().filter_map(|line| line.get(self.kind).cloned()).map(|row| cells(row).collect()).collect();
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

/// What the run has seen, one line each.
fn observations() -> Vec<Value> {
    let name =
        variable(OBSERVATIONS).unwrap_or_else(|| panic!("no run is named by {OBSERVATIONS}; use `make clients`"));
    let text = std::fs::read_to_string(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is an observation")).collect()
}

/// What came of runs.
const RUNS: &str = "docs/runs.json";
/// The page that shows its tables, each between two comments.
const RUNS_PAGE: &str = "docs/runs.md";
/// The rows of the table of faults that each run of the tests sees, of every harness.
const EACH_RUN: [&str; 5] =
    ["--budget 0.000001", "--turns 1", "an answer", "is asked to stop by", "without credentials"];

/// A cell by its table, row and harness.
type Cells = BTreeMap<(String, String, String), String>;

#[test]
fn the_page_about_runs_shows_its_tables() {
    let (page, runs) = (read(RUNS_PAGE), runs());
    for table in ["abilities", "faults", "signals"] {
        let (begins, ends) = run_marks(table);
        let shown = page.split_once(&begins).and_then(|(_, rest)| rest.split_once(&ends)).map(|(shown, _)| shown);
        assert_eq!(shown, Some(run_markdown(&runs, table).as_str()), "{table}: `make run-faults` writes both");
    }
}

#[test]
fn what_is_told_of_runs_is_whole_and_of_the_clients_that_are_pinned() {
    let (runs, pinned) = (runs(), read("tests/package.json"));
    let pinned: Value = serde_json::from_str(&pinned).expect("it is JSON");
    for (harness, package) in [
        ("claude-code", "@anthropic-ai/claude-code"),
        ("codex", "@openai/codex"),
        ("gemini-cli", "@google/gemini-cli"),
        ("opencode", "opencode-ai"),
    ] {
        let (told, is) = (&runs["versions"][harness], &pinned["dependencies"][package]);
        assert_eq!(told, is, "what is told of {harness} is of another version: `make run-faults` sees it anew");
    }
    for (table, rows) in runs["tables"].as_object().expect("tables") {
        for (row, cells) in rows.as_object().expect("rows") {
            let missing = RUNNERS.iter().find(|harness| !cells[**harness].is_string());
            assert_eq!(missing, None, "{table}, {row}");
        }
    }
}

#[test]
#[ignore = "it judges a whole run: `make clients`, `make run-faults` and `make test` run it last"]
fn the_tables_of_runs_are_what_the_run_saw() {
    let (mut runs, observed) = (runs(), observations());
    let mut seen: Cells = BTreeMap::new();
    let mut versions: BTreeMap<String, String> = BTreeMap::new();
    for run in observed.iter().filter_map(|line| line.get("run")) {
        let of = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
        let before = seen.insert((of("table"), of("row"), of("harness")), of("cell"));
        assert!(before.as_ref().is_none_or(|before| *before == of("cell")), "{run}, and before it was {before:?}");
        versions.insert(of("harness"), of("version"));
    }
    if variable(WRITE).is_some() {
        return write_runs(&mut runs, &seen, &versions);
    }
    let told = cells(&runs);
    let wrong: Vec<String> = seen
        .iter()
        .filter(|(key, cell)| told.get(*key) != Some(*cell))
        .map(|(key, cell)| format!("{key:?}: the run saw {cell:?}, and {RUNS} says {:?}", told.get(key)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}\nif that is as it should be, `make run-faults` writes the table anew");
    let of = |row: &str, harness: &str| ("faults".to_owned(), row.to_owned(), harness.to_owned());
    let all = EACH_RUN.iter().flat_map(|row| RUNNERS.map(|harness| of(row, harness)));
    let unseen: Vec<_> = all.filter(|key| !seen.contains_key(key)).collect();
    assert_eq!(unseen, [], "each run of the tests sees these");
}

/// Writes what a run has seen. A version is that of a harness of which all was seen.
fn write_runs(runs: &mut Value, seen: &Cells, versions: &BTreeMap<String, String>) {
    for ((table, row, harness), cell) in seen {
        runs["tables"][table][row][harness] = json!(cell);
    }
    let all = cells(runs);
    for (harness, version) in versions {
        if all.keys().filter(|(_, _, of)| of == harness).all(|key| seen.contains_key(key)) {
            runs["versions"][harness] = json!(version);
        }
    }
    let written = serde_json::to_string_pretty(runs).expect("a value can be written");
    std::fs::write(file(RUNS), format!("{written}\n")).expect("docs/ is writable");
    let mut page = read(RUNS_PAGE);
    for table in runs["tables"].as_object().expect("tables").keys() {
        let (begins, ends) = run_marks(table);
        let (before, rest) = page.split_once(&begins).expect("the page has a place for the table");
        let (_, after) = rest.split_once(&ends).expect("the place has an end");
        page = format!("{before}{begins}{}{ends}{after}", run_markdown(runs, table));
    }
    std::fs::write(file(RUNS_PAGE), page).expect("docs/ is writable");
}

fn runs() -> Value {
    serde_json::from_str(&read(RUNS)).expect("it is JSON")
}

fn cells(runs: &Value) -> Cells {
    let mut cells = Cells::new();
    for (table, rows) in runs["tables"].as_object().into_iter().flatten() {
        for (row, told) in rows.as_object().into_iter().flatten() {
            for (harness, cell) in told.as_object().into_iter().flatten() {
                let cell = cell.as_str().unwrap_or_default().to_owned();
                cells.insert((table.clone(), row.clone(), harness.clone()), cell);
            }
        }
    }
    cells
}

fn run_marks(table: &str) -> (String, String) {
    (format!("<!-- table: {table} -->\n"), format!("<!-- end: {table} -->\n"))
}

fn run_markdown(runs: &Value, table: &str) -> String {
    let mut body = format!("| | {} |\n|---|{}\n", RUNNERS.join(" | "), "---|".repeat(RUNNERS.len()));
    for (row, cells) in runs["tables"][table].as_object().into_iter().flatten() {
        let cells: Vec<&str> = RUNNERS.iter().map(|harness| cells[*harness].as_str().unwrap_or_default()).collect();
        body.push_str(&format!("| {row} | {} |\n", cells.join(" | ")));
    }
    body
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
