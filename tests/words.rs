//! Retired words stay out of documents, interfaces, help, manual pages, MCP tools, and snapshots of output and JSON.
//! RETIRED is the list; add further words there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::{Program, Stage, StdioClient, handshake};

/// Retired words and phrases, and what to say instead. They match as whole words in upper and lower case. A word with
/// an ordinary meaning too (room, seen, moment, host, letter) is listed only in the phrases in which it was jargon.
const RETIRED: &[(&[&str], &str)] = &[
    // Delivery.
    (&["rung", "rungs"], "status"),
    (&["ladder", "ladders"], "history"),
    (&["climb", "climbs", "climbed"], "get a further status"),
    (&["`offered`", "\"offered\"", "offered by", "stored, offered", "stored offered"], "notified"),
    (&["`fetched`", "\"fetched\"", "shown, fetched", "shown fetched", "counts as fetched", "fetched by"], "read"),
    (&["\"steps\""], "history"),
    (&["bell", "bells"], "wake file (what a harness watches) or notification (what a route carries)"),
    (&["letter or bell", "letters and bells", "carries the letter", "carry the letter"], "message"),
    (&["patience-ms"], "timeout-ms"),
    // Adapters.
    (&["sighting", "sightings", "`seen`", "func(seen"], "caller; the event `seen` is `alive`"),
    (&["room:", "`room`", "\"room\"", "so much room", "the room that", "the room the", "bytes of room"], "max-bytes"),
    (
        &["`moment`", "\"moment\"", "reads.moment", "enum moment", "moment: moment", "option<moment>", "moment: null"],
        "occasion",
    ),
    (&["[recognises]"], "[matches]"),
    (&["lent", "lends", "lend"], "host function, grant, give"),
    (&["human-spoke"], "user-spoke"),
    (&["awaiting-human"], "needs-input"),
    (&["shelf"], "installed adapters"),
    (&["tells_person", "its person"], "its user"),
    (&["wish", "wishes"], "request"),
    (&["parcel", "parcels"], "package"),
    // Presence and machines.
    (&["`live`", "\"live\"", "live or idle", "live, idle", "idle or live"], "busy"),
    (
        &["`gone`", "\"gone\"", "away or gone", "idle, away, gone", "known to be gone"],
        "offline, or ended for a session",
    ),
    (&["fell-silent"], "agent-offline"),
    (&["came-back"], "agent-online"),
    (&["no host", "without a host", "a host runs", "host that runs", "host process"], "server"),
    (&["start the host", "starts the host", "stop the host", "run the host", "\"host\":", ".host."], "server"),
    (&["another host", "other hosts", "each host", "every host", "this host", "all hosts"], "machine"),
    // Reservations, commands, the log.
    (&["claim", "claims", "claimed", "claiming"], "reservation (of paths), lease (of a message)"),
    (&["consumed"], "running (a command's status)"),
    (&["`succeeded`", "\"succeeded\"", "*succeeded*"], "done (a command's status)"),
    (&["diary", "diaries"], "event log"),
    (&["swept", "sweep", "sweeps", "let go of", "lets go of", "letting go of"], "delete, clean up"),
    (&["bead", "beads"], "issue"),
];

/// Files that people or programs read, as git names them. Of Rust files, only the doc comments are checked.
const READ: &[&str] = &[
    "*.md",
    "wit/**",
    "*adapter.toml",
    "host/relay-mesh/templates/**",
    "*.snap",
    "*.snap.json",
    "sdk/src/*.rs",
    "docs/*.json",
    "plugins/*/assets/**",
    "Makefile",
    "clippy.toml",
    ".config/*",
];

/// Words that no name in the sources has, in whatever way it joins them.
const RETIRED_IN_NAMES: &[&str] =
    &["shelf", "crowd", "glimpse", "sighting", "rung", "ladder", "parcel", "desk", "wish", "lender", "swept", "diary"];

/// Allows a retired word on a line of a document that explains it as history: `<!-- retired: rung, bell -->`.
const EXCEPTION: &str = "<!-- retired:";

#[test]
fn files_that_people_read_use_no_retired_word() {
    let mut found = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let is_rust = path.ends_with(".rs");
        // A snapshot begins with the expression of the test that took it.
        let first =
            if path.ends_with(".snap") { text.split("\n---\n").next().unwrap_or_default().lines().count() } else { 0 };
        for (number, line) in text.lines().enumerate().skip(first) {
            let is_documentation = ["///", "//!"].iter().any(|start| line.trim_start().starts_with(start));
            if !is_rust || is_documentation {
                found.extend(problems(&format!("{path}:{}", number + 1), line));
            }
        }
    }
    expect_none(&found);
}

#[test]
fn names_in_the_sources_use_no_retired_word() {
    let listed =
        Program::new("git").args(["ls-files", "host/*.rs", "sdk/*.rs", "plugins/*.rs"]).within(&root()).succeed();
    let mut found = Vec::new();
    for path in listed.lines() {
        // It reads what older versions wrote.
        if path.ends_with("storage/upgrade.rs") {
            continue;
        }
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            // Where a raw text begins, quotes do not alternate.
            if code.contains("r#\"") {
                continue;
            }
            // A text may hold what older versions wrote.
            let code = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
            let names = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let retired = names.filter(|name| RETIRED_IN_NAMES.iter().any(|word| has_part(name, word)));
            found.extend(retired.map(|name| format!("{path}:{}: {name}", number + 1)));
        }
    }
    assert!(found.is_empty(), "retired words in names:\n{}", found.join("\n"));
}

/// Whether a name has this word as one of its parts: `of_shelf`, `OfShelf`, `shelves` not.
fn has_part(name: &str, word: &str) -> bool {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            parts.push(String::new());
        }
        if letter != '_' {
            parts.last_mut().expect("there is always one").extend(letter.to_lowercase());
        }
    }
    parts.iter().any(|part| part == word || part.strip_suffix('s') == Some(word))
}

#[test]
fn the_help_uses_no_retired_word() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let mut found = Vec::new();
    // `exit-codes` is a page of the help that the list of commands leaves out.
    let mut waiting: Vec<Vec<String>> = vec![vec![], vec!["exit-codes".to_owned()]];
    let mut pages = 0;
    while let Some(command) = waiting.pop() {
        let arguments: Vec<&str> = ["help"].into_iter().chain(command.iter().map(String::as_str)).collect();
        let page = stage.relay_ok(&arguments);
        found.extend(problems_of_text(&format!("relay-mesh {}", arguments.join(" ")), &page));
        let below = subcommands(&page).into_iter().map(|name| [command.clone(), vec![name]].concat());
        waiting.extend(below);
        pages += 1;
    }
    assert!(pages > 50, "only {pages} pages of help were found: has their layout changed?");
    expect_none(&found);
}

#[test]
fn the_manual_uses_no_retired_word() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let folder = stage.folder.join("man");
    stage.relay_ok(&["man", "--out", &folder.display().to_string()]);
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("it was written").map(|page| page.expect("it can be read").path()).collect();
    pages.sort();
    let mut found = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page is text").replace("\\-", "-");
        found.extend(problems_of_text(&page.file_name().unwrap_or_default().to_string_lossy(), &text));
    }
    expect_none(&found);
}

#[test]
fn what_mcp_clients_are_told_uses_no_retired_word() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let groups = "core,reservations,commands,runs,runners,asks,spawn,channels,codex,subagents,atm";
    let server = stage.relay(&["mcp", "--tools", groups]).start(&stage.folder.join("mcp.log"));
    let mut client = StdioClient::new(server);
    let greeting = client.request("initialize", &handshake("2025-11-25", "words"));
    client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let tools = client.request("tools/list", &json!({}));
    let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON can be written");
    let mut found =
        problems_of_text("the instructions", greeting["result"]["instructions"].as_str().unwrap_or_default());
    for tool in tools["result"]["tools"].as_array().expect("a list of tools") {
        found.extend(problems_of_text(&format!("the tool {}", tool["name"]), &pretty(tool)));
    }
    for arguments in [&["prompt"][..], &["prompt", "--harness", "claude-code"]] {
        found.extend(problems_of_text(&format!("relay-mesh {}", arguments.join(" ")), &stage.relay_ok(arguments)));
    }
    expect_none(&found);
}

#[test]
fn a_word_matches_whole_and_in_either_case() {
    let check = |line: &str, expected: &[&str]| {
        let words: Vec<&str> = retired_in(line).into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, expected, "{line}");
    };
    check("Each Rung has its time", &["rung"]);
    check("the wrung towel, the doorbell, a disclaimer", &[]);
    check("its `bell-file`, and \"moment\": null", &["bell", "\"moment\""]);
    check("offered by wake-file", &["offered by"]);
    check("there is room on the disk at the moment", &[]);
    check("then called a rung <!-- retired: rung -->", &[]);
    check("then called a rung on a ladder <!-- retired: rung -->", &["ladder"]);
    for (name, word, expected) in [
        ("of_shelf", "shelf", true),
        ("OfShelf", "shelf", true),
        ("glimpses", "glimpse", true),
        ("wrung", "rung", false),
        ("desktop", "desk", false),
    ] {
        assert_eq!(has_part(name, word), expected, "{name}");
    }
}

/// The retired words in a line, each with its replacement.
fn retired_in(line: &str) -> Vec<(&'static str, &'static str)> {
    let allowed: Vec<&str> = match line.split_once(EXCEPTION) {
        Some((_, words)) => words.split("-->").next().unwrap_or_default().split(',').map(str::trim).collect(),
        None => Vec::new(),
    };
    let text = line.split(EXCEPTION).next().unwrap_or_default().to_lowercase();
    let each = RETIRED.iter().flat_map(|(words, instead)| words.iter().map(move |word| (*word, *instead)));
    each.filter(|(word, _)| !allowed.contains(word) && has_word(&text, word)).collect()
}

/// Whether a text contains this word or phrase, not as part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |one: Option<char>| one.is_some_and(char::is_alphanumeric);
    let joins = |inside: Option<char>, outside: Option<char>| is_letter(inside) && is_letter(outside);
    text.match_indices(word).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + word.len()..]);
        !joins(word.chars().next(), before.chars().next_back())
            && !joins(word.chars().next_back(), after.chars().next())
    })
}

/// One sentence for each retired word in a line.
fn problems(place: &str, line: &str) -> Vec<String> {
    let sentence = |(word, instead)| format!("{place}: {word} → {instead}\n    {}", excerpt(line, word));
    retired_in(line).into_iter().map(sentence).collect()
}

/// The same for each line of a text without a file.
fn problems_of_text(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines.flat_map(|(number, line)| problems(&format!("{name}:{}", number + 1), line)).collect()
}

/// The text around a word, for long lines.
fn excerpt(line: &str, word: &str) -> String {
    const AROUND: usize = 50;
    let before = line.to_lowercase().split(word).next().unwrap_or_default().chars().count();
    let start = before.saturating_sub(AROUND);
    line.chars().skip(start).take(before - start + word.len() + AROUND).collect::<String>().trim().to_owned()
}

fn expect_none(found: &[String]) {
    let advice = "tests/words.rs has the list; a document may explain a word as history on a line that ends with";
    assert!(found.is_empty(), "{} retired words ({advice} `{EXCEPTION} WORD -->`):\n{}", found.len(), found.join("\n"));
}

/// The commands listed on a help page.
fn subcommands(page: &str) -> Vec<String> {
    let listed =
        page.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.trim().is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The files in READ that git tracks or would add.
fn files() -> Vec<String> {
    let listing = Program::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--"])
        .args(READ)
        .env("HOME", "/nonexistent")
        .within(&root())
        .succeed();
    listing.lines().filter(|path| root().join(path).is_file()).map(str::to_owned).collect()
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
