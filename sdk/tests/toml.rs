//! What `edit::toml` promises: what it adds and takes out again leaves the very bytes that were there
//! before.

use proptest::prelude::*;
use relay_mesh_sdk::edit::toml::{Document, Value};

/// Files as people keep them. Each is tried with `\n` and `\r\n`, with and without a byte order mark.
const FILES: &[&str] = &[
    "",
    "\n",
    "# only a comment\n",
    "# only a comment",
    "model = \"o4\"\n",
    "model = \"o4\"",
    "model = \"o4\"   # the best\n\n\n",
    "# head\n\n[features]\n",
    "[features]",
    "[features]\nfast = true",
    "[features] # which\nfast = true # why\n# tail of it\n\n# about profiles\n[profiles.work]\nmodel = \"o4\"\n",
    "notify = []\n\n[mcp_servers.other]\ncommand = \"other\"\nargs = [\"a\", \"b\"]\n\n[mcp_servers.other.env]\nA = \"1\"\n",
    "notify = [\n  \"say\", # aloud\n  \"done\",\n]\n[features]\nx.y = 1\nx.z = 2\n",
    "notify = [ \"say\" ]\nfeatures.fast = true\n[[history]]\na = 1\n\n[[history]]\na = 2\n",
    "features = { fast = true }\nnotify = [\"a\"\n, \"b\" # c\n]\n",
    "text = \"\"\"\n[not.a.table]\nnotify = []\n\"\"\"\nnotify = [] # none\n",
    "[mcp_servers]\n\n[features]\n\n\n\n",
];

#[derive(Clone, Debug)]
enum Addition {
    Key(&'static [&'static str]),
    Table(&'static [&'static str]),
    Element(&'static [&'static str]),
}

const KEYS: &[&[&str]] =
    &[&["relay"], &["features", "relay"], &["features", "x", "relay"], &["profiles", "work", "relay key"]];
const TABLES: &[&[&str]] = &[&["mcp_servers", "relay-mesh"], &["features", "relay_table"], &["relay"]];
const ARRAYS: &[&[&str]] = &[&["notify"], &["mcp_servers", "other", "args"], &["features", "list"]];

fn an_addition() -> impl Strategy<Value = Addition> {
    prop_oneof![
        prop::sample::select(KEYS).prop_map(Addition::Key),
        prop::sample::select(TABLES).prop_map(Addition::Table),
        prop::sample::select(ARRAYS).prop_map(Addition::Element),
    ]
}

/// Adds what fits, and answers what was added, in order.
fn add(document: &mut Document, additions: &[Addition]) -> Vec<Addition> {
    let mut added = Vec::new();
    for addition in additions {
        let before = document.clone();
        let done = match addition {
            Addition::Key(path) => document.set(path, "relay-mesh"),
            Addition::Table(path) => {
                document.put_table(path, &[("command", "relay-mesh".into()), ("args", Value::from_iter(["mcp"]))])
            }
            Addition::Element(path) => document.append(path, "relay-mesh"),
        };
        if done.is_ok() && *document != before {
            added.push(addition.clone());
        } else {
            assert_eq!(*document, before, "what is refused changes nothing");
        }
    }
    added
}

fn take_out(document: &mut Document, added: &[Addition]) {
    for addition in added.iter().rev() {
        match addition {
            Addition::Key(path) | Addition::Table(path) => assert!(document.remove(path), "{addition:?} is there"),
            // One at a time, as it was put in: several of the same are all ours.
            Addition::Element(path) => {
                document.remove_elements(path, |element| element.as_str() == Some("relay-mesh"));
            }
        }
    }
}

fn comes_back(before: Option<&str>, additions: &[Addition]) -> Result<(), TestCaseError> {
    let mut document = Document::parse(before).expect("the file parses");
    let added = add(&mut document, additions);
    let ours = document.clone().finish();
    let mut document = Document::parse(ours.as_deref()).expect("what we wrote parses");
    take_out(&mut document, &added);
    let after = document.finish();
    prop_assert_eq!(before, after.as_deref(), "with ours it was {:?}", ours);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn what_is_added_to_a_real_file_and_taken_out_leaves_its_bytes(
        file in 0..FILES.len(),
        crlf in any::<bool>(),
        bom in any::<bool>(),
        additions in prop::collection::vec(an_addition(), 1..5),
    ) {
        let text = if crlf { FILES[file].replace('\n', "\r\n") } else { FILES[file].to_owned() };
        let text = if bom { format!("\u{feff}{text}") } else { text };
        comes_back(Some(&text), &additions)?;
    }

    #[test]
    fn a_file_that_was_not_there_goes_again(additions in prop::collection::vec(an_addition(), 1..5)) {
        comes_back(None, &additions)?;
    }

    #[test]
    fn the_rest_says_the_same(file in 0..FILES.len(), additions in prop::collection::vec(an_addition(), 1..5)) {
        let mut document = Document::parse(Some(FILES[file])).expect("the file parses");
        let before = document.clone();
        add(&mut document, &additions);
        for path in [&["model"][..], &["features", "fast"], &["mcp_servers", "other", "command"], &["text"]] {
            prop_assert_eq!(document.get(path).map(|value| value.to_string()), before.get(path).map(|value| value.to_string()));
        }
    }
}

#[track_caller]
fn check(before: &str, change: impl FnOnce(&mut Document), after: &str) {
    let mut document = Document::parse(Some(before)).expect("it parses");
    change(&mut document);
    assert_eq!(document.text(), Some(after));
}

#[test]
fn a_key_goes_behind_the_last_of_its_table() {
    let set =
        |path: &'static [&'static str]| move |document: &mut Document| document.set(path, 1).expect("there is room");
    check("a = 1\n\n[t]\nb = 2\n\n[u]\n", set(&["t", "c"]), "a = 1\n\n[t]\nb = 2\nc = 1\n\n[u]\n");
    check("# head\n[t]\n", set(&["x"]), "x = 1\n# head\n[t]\n");
    check("[t]\n", set(&["t", "deep", "er"]), "[t]\ndeep.er = 1\n");
    check("a = 0 # zero\n", set(&["a"]), "a = 1 # zero\n");
    check("a = 1\n", set(&["a"]), "a = 1\n");
}

#[test]
fn an_array_keeps_its_layout() {
    let append = |document: &mut Document| document.append(&["a"], "x").expect("there is room");
    check("a = [\"y\"]\n", append, "a = [\"y\", \"x\"]\n");
    check("a = [\n    1,\n    2,\n]\n", append, "a = [\n    1,\n    2,\n    \"x\",\n]\n");
    check("a = []\n", append, "a = [ \"x\"]\n");
    check("", append, "a = [\"x\"]");
}

#[test]
fn what_others_wrote_in_between_stays() {
    check(
        "a = 1\n\n[ours]\nk = 1\ntheirs = 2 # in ours\n\n# about t\n[t]\n",
        |document| assert!(document.remove(&["ours", "k"])),
        "a = 1\n\n[ours]\ntheirs = 2 # in ours\n\n# about t\n[t]\n",
    );
    check(
        "a = [\"theirs\", # first\n  \"ours\"]\n",
        |document| assert_eq!(document.remove_elements(&["a"], |element| element.as_str() == Some("ours")), 1),
        "a = [\"theirs\" # first\n  ]\n",
    );
}

#[test]
fn a_broken_file_is_named_by_line_and_column() {
    let sentence = |text: &str| Document::parse(Some(text)).expect_err("it is broken").to_string();
    assert_eq!(sentence("a = 1\nb = = 2\n"), "line 2, column 5: extra `=`, expected nothing");
    assert_eq!(sentence("a = [1\nb = 2\n"), "line 2, column 1: missing comma between array elements, expected `,`");
}

#[test]
fn what_stands_in_the_way_is_named_and_left_alone() {
    let mut document = Document::parse(Some("x = 1\nfeatures = { fast = true }\n[t]\n")).expect("it parses");
    let before = document.clone();
    assert_eq!(
        document.set(&["features", "slow"], true).expect_err("inline").to_string(),
        "line 2: `features` is not in a table"
    );
    assert_eq!(document.append(&["x"], 1).expect_err("a number").to_string(), "line 1: `x` is not an array");
    assert_eq!(document.set(&["t"], 1).expect_err("a table").to_string(), "line 3: `t` is not a value");
    assert_eq!(document, before);
}
