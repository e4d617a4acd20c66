//! The wake table: what a run of the real clients has proven for each harness. It is made from the run's observations
//! and compared with the one in docs/, or rewritten by `make clients`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use test_support::{Ability, OBSERVATIONS, variable};

/// Set by `make clients`: write the table instead of comparing it.
const WRITE: &str = "RELAY_WAKE_TABLE_WRITE";

#[test]
#[ignore = "it judges a whole run: `make clients` and `make test` run it last"]
fn the_wake_table_is_what_the_run_saw() {
    let observations = Observations::read();
    let (json, page) = (root().join("docs/wake-table.json"), root().join("docs/wake-table.md"));
    let seen = observations.table();
    if variable(WRITE).is_some() {
        let written = serde_json::to_string_pretty(&seen).expect("a value can be written");
        std::fs::write(&json, format!("{written}\n")).expect("docs/ is writable");
        std::fs::write(&page, markdown(&seen)).expect("docs/ is writable");
        return;
    }
    let committed: Value = serde_json::from_str(&read(&json)).expect("docs/wake-table.json is JSON");
    let differences = differences(&committed, &seen);
    let hint = "if that is as it should be, `make clients` writes the table anew";
    assert!(
        differences.is_empty(),
        "the run saw something else than docs/wake-table.json says; {hint}:\n{differences:#?}"
    );
}

#[test]
fn the_page_shows_the_table() {
    let committed: Value = serde_json::from_str(&read(&root().join("docs/wake-table.json"))).expect("it is JSON");
    assert_eq!(read(&root().join("docs/wake-table.md")), markdown(&committed), "`make clients` writes both");
    let harnesses: Vec<_> =
        lines(&committed).map(|line| line["harness"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(harnesses, adapters(), "a row for each adapter; `make clients` writes them");
}

#[test]
fn a_cell_that_differs_is_named() {
    let of = |by: &[&str]| json!({"harnesses": [{"harness": "toy", "version": "1.0", "abilities": {"bind": by}}]});
    for (committed, seen, expected) in [
        (of(&["ticket"]), of(&["ticket"]), vec![]),
        (of(&["a", "b"]), of(&["b"]), vec![]),
        (of(&["a"]), of(&["b"]), vec!["toy, bind: the table says tried (a), the run saw tried (b)"]),
        (of(&["ticket"]), of(&[]), vec!["toy, bind: the table says tried (ticket), the run saw untried"]),
        (of(&[]), of(&["a", "b"]), vec!["toy, bind: the table says untried, the run saw tried (a, b)"]),
    ] {
        assert_eq!(differences(&committed, &seen), expected);
    }
}

/// Per harness: its versions and, per ability, the routes that were seen.
struct Observations {
    versions: BTreeMap<String, BTreeSet<String>>,
    means: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Observations {
    fn read() -> Observations {
        let file =
            variable(OBSERVATIONS).unwrap_or_else(|| panic!("no run is named by {OBSERVATIONS}; use `make clients`"));
        let mut observations = Observations { versions: BTreeMap::new(), means: BTreeMap::new() };
        for line in read(Path::new(&file)).lines() {
            let line: Value = serde_json::from_str(line).expect("each line is an observation");
            // Kills have a table of their own.
            if !line["ability"].is_string() {
                continue;
            }
            let field = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            observations.versions.entry(field("harness")).or_default().insert(field("version"));
            observations.means.entry((field("harness"), field("ability"))).or_default().insert(field("by"));
        }
        observations
    }

    /// A row for each adapter, observed or not.
    fn table(&self) -> Value {
        let rows = adapters().into_iter().map(|harness| {
            let versions = self.versions.get(&harness).cloned().unwrap_or_default();
            assert!(versions.len() <= 1, "one run meets one version of {harness}: {versions:?}");
            let abilities = Ability::ALL.map(|ability| {
                let means = self.means.get(&(harness.clone(), ability.name().to_owned())).cloned().unwrap_or_default();
                (ability.name().to_owned(), json!(means))
            });
            json!({"harness": harness, "version": versions.first(), "abilities": Map::from_iter(abilities)})
        });
        json!({"harnesses": rows.collect::<Vec<_>>()})
    }
}

/// Each cell in which a run contradicts a table, as text: another version, something tested that the table calls
/// untested or the other way round, or none of the named routes. A run that saw one of two routes contradicts nothing,
/// because the harness decides which comes first.
fn differences(committed: &Value, seen: &Value) -> Vec<String> {
    let (committed, seen) = (cells(committed), cells(seen));
    let names: BTreeSet<_> = committed.keys().chain(seen.keys()).collect();
    let contradicts = |says: &BTreeSet<String>, saw: &BTreeSet<String>| match (says.is_empty(), saw.is_empty()) {
        (true, true) => false,
        (false, false) => says.is_disjoint(saw),
        (true, false) | (false, true) => true,
    };
    let mut differences = Vec::new();
    for name in names {
        let of = |cells: &BTreeMap<_, BTreeSet<String>>| cells.get(name).cloned().unwrap_or_default();
        let (says, saw) = (of(&committed), of(&seen));
        if contradicts(&says, &saw) {
            let (harness, column) = name;
            differences.push(format!(
                "{harness}, {column}: the table says {}, the run saw {}",
                words(&says),
                words(&saw)
            ));
        }
    }
    differences
}

/// A cell as text.
fn words(means: &BTreeSet<String>) -> String {
    match means.is_empty() {
        true => "untried".to_owned(),
        false => format!("tried ({})", means.iter().cloned().collect::<Vec<_>>().join(", ")),
    }
}

/// Every cell, by harness and column.
fn cells(table: &Value) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut cells = BTreeMap::new();
    for line in lines(table) {
        let harness = line["harness"].as_str().unwrap_or_default().to_owned();
        let version = line["version"].as_str().map(str::to_owned).into_iter().collect();
        cells.insert((harness.clone(), "version".to_owned()), version);
        for (ability, means) in line["abilities"].as_object().into_iter().flatten() {
            let means = means.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            cells.insert((harness.clone(), ability.clone()), means);
        }
    }
    cells
}

/// The page of the table.
fn markdown(table: &Value) -> String {
    let mut page = String::from(
        "# What was tried with each harness\n\n\
         A harness is the agent's client: Claude Code, Codex and so on. Written by `make clients` from its run with \
         the real clients; it is not typed by hand. A cell says by what means \
         a test saw the thing happen; *untried* says that no test has. `relay-mesh harnesses --matrix` shows the \
         same.\n\n| harness | version |",
    );
    for ability in Ability::ALL {
        // Writing to a string cannot fail.
        let _ = write!(page, " {} |", ability.name());
    }
    page.push_str("\n|---|---|");
    page.push_str(&"---|".repeat(Ability::ALL.len()));
    for line in lines(table) {
        let _ = write!(
            page,
            "\n| {} | {} |",
            line["harness"].as_str().unwrap_or_default(),
            line["version"].as_str().unwrap_or("-")
        );
        for ability in Ability::ALL {
            let _ = write!(page, " {} |", cell(&line["abilities"][ability.name()]));
        }
    }
    page.push('\n');
    page
}

fn cell(means: &Value) -> String {
    let means: Vec<&str> = means.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if means.is_empty() { "untried".to_owned() } else { format!("tried: {}", means.join(", ")) }
}

fn lines(table: &Value) -> impl Iterator<Item = &Value> {
    table["harnesses"].as_array().into_iter().flatten()
}

/// The adapters of this repository, by name.
fn adapters() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("plugins")).expect("plugins/ can be read").flatten();
    let adapters = folders.filter(|folder| folder.path().join("adapter.toml").is_file());
    let mut names: Vec<String> = adapters.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
