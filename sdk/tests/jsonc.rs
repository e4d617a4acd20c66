//! What `edit::jsonc` promises: what it adds and takes out again leaves the very bytes that were
//! there before, whatever the file looked like.

use proptest::prelude::*;
use relay_mesh_sdk::edit::jsonc::Document;
use serde_json::{Value, json};

/// Files as people keep them. Each is tried with `\n` and `\r\n`, with and without a byte order mark.
const FILES: &[&str] = &[
    "",
    "\n",
    "  \n\n",
    "// only a comment\n",
    "// only a comment",
    "/* mine */\n// and mine ",
    "{}",
    "{}\n",
    "{ }\n",
    "{\n}\n",
    "{\n\n}",
    "{ /* nothing yet */ }\n",
    "{\n  // nothing yet\n}\n",
    "{\"model\":\"opus\",\"hooks\":{},\"permissions\":{\"allow\":[]}}",
    "{\"model\":\"opus\",\"permissions\":{\"allow\":[\"Bash(ls:*)\",\"WebFetch\"]}}\n",
    "{ \"model\": \"opus\", \"hooks\": { \"Stop\": [] } }\n",
    "{\n  \"model\": \"opus\"\n}\n",
    "{\n  \"model\": \"opus\",\n}\n",
    "{\n  \"model\": \"opus\" // the best\n}\n",
    "{\n  \"model\": \"opus\", // the best\n  // \"theme\": \"dark\"\n}\n",
    "{\n  \"model\": \"opus\" /* why */ , // the best\n}",
    "{\n\t\"model\": \"opus\",\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Bash(npm run test:*)\"\n\t\t],\n\t\t\"deny\": []\n\t}\n}\n",
    "{\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }]\n            }\n        ],\n        \"PreToolUse\": []\n    },\n    \"permissions\": {}\n}\n",
    "{\n  \"hooks\": { \"Stop\": [{\n    \"hooks\": []\n  }] },\n\n\n  \"permissions\": { \"allow\": [ \"a\", // first\n    \"b\" // second\n  ] }\n}\n\n\n",
    "// head\n{\n  /* block\n     comment */\n  \"permissions\": {\n    // none so far\n    \"allow\": [\n      // none so far\n    ]\n  } // end\n}\n// tail\n",
    "[]",
    "{\"a\": {\"b\": {\"c\": {}}}, \"hooks\": {\n}, \"permissions\": {\"allow\": [\n]}}",
    "{\n\"model\": \"opus\",\n\"hooks\": {\n}\n}",
    "{\n  \"text\": \"braces { } // and, commas\",\n  \"hooks\": {\"Stop\":[1,2]}}\n",
];

const PATHS: &[&[&str]] = &[
    &["hooks", "Stop"],
    &["hooks", "PreToolUse"],
    &["permissions", "allow"],
    &["permissions", "deny"],
    &["enabledMcpjsonServers"],
    &["mcpServers", "relay-mesh"],
    &["a", "b", "c", "d"],
];

fn is_ours(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("relay-mesh")) || value.get("ours").is_some()
}

#[derive(Clone, Debug)]
enum Addition {
    Element(usize, Value),
    Property(usize, Value),
}

fn added(before: Option<&str>, additions: &[Addition]) -> Option<String> {
    let mut document = Document::parse(before).expect("the file parses");
    for addition in additions {
        // What stands in the way of an addition is reported and left alone, so both ways are right here.
        let _ = match addition {
            Addition::Element(path, value) => document.append(PATHS[*path], value),
            Addition::Property(path, value) => {
                let path = [PATHS[*path], &["relay-mesh-own"]].concat();
                document.set(&path, value)
            }
        };
    }
    document.finish()
}

fn taken_out(text: Option<&str>) -> Option<String> {
    let mut document = Document::parse(text).expect("what we wrote parses");
    document.remove_where(|_, value| is_ours(value));
    document.finish()
}

fn a_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("relay-mesh")),
        Just(json!("relay-mesh \"quoted\" \\ // text")),
        Just(json!({"ours": true})),
        Just(json!({"ours": {"matcher": "x", "hooks": [{"type": "command", "args": ["a", "b"], "timeout": 5}]}})),
    ]
}

fn an_addition() -> impl Strategy<Value = Addition> {
    prop_oneof![
        (0..PATHS.len(), a_value()).prop_map(|(path, value)| Addition::Element(path, value)),
        (0..PATHS.len(), a_value()).prop_map(|(path, value)| Addition::Property(path, value)),
    ]
}

/// A JSON text in a style of its own: every gap drawn at random.
fn a_text() -> impl Strategy<Value = String> {
    let gap = prop_oneof![
        4 => Just(String::new()),
        3 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\n\t".to_owned()),
        1 => Just(" // c\n".to_owned()),
        1 => Just("\n/* c */ ".to_owned()),
        1 => Just("\n\n    ".to_owned()),
    ];
    let leaf =
        prop_oneof![Just("1".to_owned()), Just("\"x\"".to_owned()), Just("{}".to_owned()), Just("[]".to_owned())];
    let key =
        prop_oneof![Just("hooks"), Just("Stop"), Just("permissions"), Just("allow"), Just("a"), Just("b"), Just("c")];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        let member = (gap.clone(), key.clone(), gap.clone(), inner.clone(), gap.clone());
        let element = (gap.clone(), inner, gap.clone());
        let trailing = any::<bool>();
        prop_oneof![
            (prop::collection::vec(member, 0..4), trailing, gap.clone()).prop_map(|(members, comma, end)| {
                let mut seen = Vec::new();
                let mut written = Vec::new();
                for (before, key, colon, value, after) in members {
                    if !seen.contains(&key) {
                        seen.push(key);
                        written.push(format!("{before}\"{key}\":{colon}{value}{after}"));
                    }
                }
                let comma = if comma && !written.is_empty() { "," } else { "" };
                format!("{{{}{comma}{end}}}", written.join(","))
            }),
            (prop::collection::vec(element, 0..4), trailing, gap.clone()).prop_map(|(elements, comma, end)| {
                let written: Vec<_> =
                    elements.iter().map(|(before, value, after)| format!("{before}{value}{after}")).collect();
                let comma = if comma && !written.is_empty() { "," } else { "" };
                format!("[{}{comma}{end}]", written.join(","))
            }),
        ]
    });
    (value, prop_oneof![Just(""), Just("\n"), Just("\n\n"), Just(" // end")])
        .prop_map(|(value, end)| format!("{value}{end}"))
}

fn comes_back(before: Option<&str>, additions: &[Addition]) -> Result<(), TestCaseError> {
    let with_ours = added(before, additions);
    let after = taken_out(with_ours.as_deref());
    prop_assert_eq!(before, after.as_deref(), "with ours it was {:?}", with_ours);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn what_is_added_to_a_real_file_and_taken_out_leaves_its_bytes(
        file in 0..FILES.len(),
        crlf in any::<bool>(),
        bom in any::<bool>(),
        additions in prop::collection::vec(an_addition(), 1..6),
    ) {
        let text = if crlf { FILES[file].replace('\n', "\r\n") } else { FILES[file].to_owned() };
        let text = if bom { format!("\u{feff}{text}") } else { text };
        comes_back(Some(&text), &additions)?;
    }

    #[test]
    fn what_is_added_to_any_text_and_taken_out_leaves_its_bytes(
        text in a_text(),
        additions in prop::collection::vec(an_addition(), 1..5),
    ) {
        comes_back(Some(&text), &additions)?;
    }

    #[test]
    fn a_file_that_was_not_there_goes_again(additions in prop::collection::vec(an_addition(), 1..5)) {
        comes_back(None, &additions)?;
    }

    #[test]
    fn what_is_added_is_found_and_the_rest_says_the_same(text in a_text(), value in a_value()) {
        let before = Document::parse(Some(&text)).expect("it parses");
        let mut document = before.clone();
        if document.append(&["x", "new"], &value).is_ok() {
            prop_assert_eq!(document.get(&["x", "new"]), Some(json!([value])));
            let parsed = Document::parse(document.text());
            prop_assert!(parsed.is_ok(), "{:?} does not parse: {:?}", document.text(), parsed);
            for key in ["hooks", "permissions", "a"] {
                prop_assert_eq!(document.get(&[key]), before.get(&[key]));
            }
        }
    }
}

/// Adds by a path and value, and compares the whole text.
#[track_caller]
fn check(before: &str, path: &[&str], element: Value, after: &str) {
    let mut document = Document::parse(Some(before)).expect("it parses");
    document.append(path, &element).expect("there is room");
    assert_eq!(document.text(), Some(after));
}

#[test]
fn an_addition_follows_the_files_own_style() {
    check("{\n\t\"a\": 1\n}", &["b"], json!(2), "{\n\t\"a\": 1,\n\t\"b\": [2]\n}");
    check(
        "{\n    \"a\": 1,\n}",
        &["b"],
        json!({"c": 1}),
        "{\n    \"a\": 1,\n    \"b\": [\n        {\n            \"c\": 1\n        }\n    ],\n}",
    );
    check("{\"a\":1}", &["b"], json!({"c": [1, 2]}), "{\"a\":1,\"b\":[{\"c\":[1,2]}]}");
    check("{\r\n  \"a\": 1 // x\r\n}", &["b"], json!(2), "{\r\n  \"a\": 1, // x\r\n  \"b\": [2]\r\n}");
    check("{ \"a\": [1, 2] }", &["a"], json!(3), "{ \"a\": [1, 2, 3] }");
}

#[test]
fn what_others_wrote_around_ours_stays_when_ours_goes() {
    let ours = added(Some("{}\n"), &[Addition::Element(0, json!("relay-mesh"))]).expect("a text");
    let others = ours.replace("\"relay-mesh\"", "\"relay-mesh\", \"theirs\"");
    assert_eq!(taken_out(Some(&others)).as_deref(), Some("{\n\n  \"hooks\": {\n    \"Stop\": [\"theirs\"]\n  }\n}\n"));
    assert_eq!(
        taken_out(Some("[\n  1, // one\n  \"relay-mesh\", 2\n]\n")).as_deref(),
        Some("[\n  1, // one\n   2\n]\n"),
        "nothing is drawn into the comment before it",
    );
}

#[test]
fn what_is_added_below_a_comment_without_a_newline_does_not_become_part_of_it() {
    let ours = [Addition::Element(4, json!("relay-mesh"))];
    let check = |before: &str, expected: &str| {
        let with_ours = added(Some(before), &ours);
        assert_eq!(with_ours.as_deref(), Some(expected));
        assert_eq!(taken_out(with_ours.as_deref()).as_deref(), Some(before));
    };
    check("// mine", "// mine\n{\n  \"enabledMcpjsonServers\": [\"relay-mesh\"]\n}\n");
    check("// a\r\n// b", "// a\r\n// b\r\n{\r\n  \"enabledMcpjsonServers\": [\"relay-mesh\"]\r\n}\r\n");
    check("// mine\n", "// mine\n{\n  \"enabledMcpjsonServers\": [\"relay-mesh\"]\n}");
    check("/* // mine */", "/* // mine */{\n  \"enabledMcpjsonServers\": [\"relay-mesh\"]\n}");
}

#[test]
fn setting_what_is_there_already_changes_nothing() {
    let text = "{ \"a\" : { \"b\":1 } }";
    let mut document = Document::parse(Some(text)).expect("it parses");
    document.set(&["a"], &json!({"b": 1})).expect("there is room");
    assert_eq!(document.text(), Some(text));
    document.set(&["a", "b"], &json!(2)).expect("there is room");
    assert_eq!(document.text(), Some("{ \"a\" : { \"b\":2 } }"));
}

#[test]
fn a_broken_file_is_named_by_line_and_column() {
    let sentence = |text: &str| Document::parse(Some(text)).expect_err("it is broken").to_string();
    assert_eq!(sentence("{\n  \"a\": 1\n  \"b\": 2\n}"), "line 2, column 9: Expected comma");
    assert_eq!(sentence("{\n  \"a\": \n"), "line 3, column 1: Expected value after colon in object property");
    assert_eq!(sentence("{a: 1}"), "line 1, column 2: Expected string for object property");
}

#[test]
fn what_stands_in_the_way_is_named_and_left_alone() {
    let mut document = Document::parse(Some("{\n  \"hooks\": \"none\"\n}")).expect("it parses");
    let refused = document.append(&["hooks", "Stop"], &json!(1)).expect_err("a string is in the way");
    assert_eq!(refused.to_string(), "line 2: `hooks` is not an object");
    assert_eq!(
        document.append(&["hooks"], &json!(1)).expect_err("not an array").to_string(),
        "line 2: `hooks` is not an array"
    );
    assert_eq!(document.text(), Some("{\n  \"hooks\": \"none\"\n}"));
}
