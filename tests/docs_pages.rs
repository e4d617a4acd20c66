//! docs/configuration.md, docs/environments.md and docs/data.md: each command is run where its section is about, and
//! prints what the page says. Each setting does what its line says, and no setting, file or variable is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::{PageCommand, Program, Stage, isolated, page_blocks, page_commands, run_page};

/// The user that no list of users has.
const NOBODY: &str = "54321";
/// Names of streams on servers, which begin as variables do.
const STREAMS: [&str; 3] = ["RELAY_MAP", "RELAY_HOLDS", "RELAY_MESSAGES"];
/// What variables begin with that tests alone set.
const OF_TESTS: &str = "RELAY_TEST";
/// `relay-mesh config` does not list it.
const UNLISTED: &str = "repository";

#[test]
fn every_command_about_settings_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage();
        run(&stage, &commands("configuration.md"), 15, |_| shell(&stage));
    });
}

#[test]
fn every_command_about_environments_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage();
        let read_only = stage.folder.join("read-only");
        std::fs::create_dir(&read_only).expect("the stage is writable");
        Program::new("mount").args(["-t", "tmpfs", "-o", "ro", "home"]).arg(&read_only).succeed();
        let mut all = commands("environments.md");
        all.retain(|command| command.section != "Root with another user's HOME");
        run(&stage, &all, 8, |section| match section {
            "A read-only home" => shell(&stage).env("HOME", &read_only),
            "No HOME" => {
                let as_nobody = [format!("--map-user={NOBODY}"), format!("--map-group={NOBODY}")];
                let program = Program::new("unshare").arg("--user").args(as_nobody);
                program.args(["sh", "-ec"]).envs(environment(&stage, &["HOME"])).within(&stage.project)
            }
            _ => shell(&stage),
        });
    });
}

/// Not isolated, because two users are needed, as in tests/users.rs.
#[test]
fn root_with_another_users_home_is_told_what_the_page_says() {
    let stage = stage();
    let is_root = Program::new("id").arg("-u").succeed().trim() == "0";
    let (home, becomes) = match is_root {
        true => (stage.home.clone(), ""),
        // In a namespace in which this user is root, the system's root is somebody else.
        false => (PathBuf::from("/usr/share"), "unshare --map-root-user "),
    };
    std::fs::create_dir_all(stage.programs()).expect("the stage is writable");
    stage.program("sudo", &format!("#!/bin/sh\nshift\nexec {becomes}\"$@\"\n"));
    if is_root {
        Program::new("chown").args(["-R", "1000"]).arg(&stage.home).succeed();
    }
    let mut all = commands("environments.md");
    all.retain(|command| command.section == "Root with another user's HOME");
    run(&stage, &all, 1, |_| shell(&stage).env("HOME", &home));
}

#[test]
fn every_command_about_data_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage();
        for arguments in [
            &["register", "alice"][..],
            &["register", "bob"],
            &["send", "alice", "Which port does the server use?", "--from", "bob"],
            &["install", "claude-code", "--project", ".", "--yes"],
            &["up"],
        ] {
            let program = Program::new(stage.binary()).args(arguments).envs(environment(&stage, &[]));
            program.within(&stage.project).succeed();
        }
        run(&stage, &commands("data.md"), 11, |_| shell(&stage));
        assert!(!stage.data.exists() && !stage.project.join(".mcp.json").exists(), "nothing is left");
    });
}

#[test]
fn every_setting_does_what_its_line_says() {
    let stage = stage();
    let settings = settings();
    let (own, project) = (stage.home.join(".config/relay-mesh/config.toml"), stage.project.join(".relay-mesh.toml"));
    std::fs::create_dir_all(own.parent().expect("a folder")).expect("the stage is writable");
    let usual = listed(&stage, &[]);
    let help = ["serve", "register", "read"].map(|command| stage.relay_ok(&[command, "--help"])).concat();
    for setting in &settings {
        let Setting { key, line, default, also, project: may, .. } = setting;
        let value = |listed: &[Line]| {
            let found = listed.iter().find(|one| one.key == *key);
            found.map(|one| (one.value.clone(), one.origin.clone())).unwrap_or_default()
        };
        if key != UNLISTED {
            let told = value(&usual).0.replace(&stage.home.display().to_string(), "~");
            let says = if default.starts_with("none") { String::new() } else { plain(default) };
            assert_eq!(plain(&told), says, "the default of {key}");
        }
        let changes = |listed: &[Line], origin: &str| {
            let (now, by) = value(listed);
            assert!(key == UNLISTED || (now != value(&usual).0 && by == origin), "{line}: `{now}` by {by}");
        };
        // A password counts with its user alone.
        let (above, user) = match key.as_str() {
            "nats.password" => ("nats.user = \"alice\"\n", Some(("RELAY_NATS_USER", "alice"))),
            _ => ("", None),
        };
        std::fs::write(&own, format!("{above}{line}")).expect("the stage is writable");
        changes(&listed(&stage, &[]), &own.display().to_string());
        std::fs::remove_file(&own).expect("it was written");

        std::fs::write(&project, line).expect("the stage is writable");
        if may.starts_with("no") {
            let refused = config(&stage, &[]).run();
            assert_eq!(refused.code, Some(2), "a project may not: {line}: {refused:?}");
            assert!(refused.stderr.contains("which a project may not set"), "{line}: {refused:?}");
        } else {
            assert!(may.starts_with("yes") || may == "narrows", "{line}: {may}");
            changes(&listed(&stage, &[]), &project.display().to_string());
        }
        std::fs::remove_file(&project).expect("it was written");

        for word in also.split(['`', ' ', ',']) {
            if word.starts_with("RELAY_") {
                let value = setting.as_variable();
                let set: Vec<(&str, &str)> = user.into_iter().chain([(word, value.as_str())]).collect();
                changes(&listed(&stage, &set), "environment");
            } else if word.starts_with("--") {
                assert!(help.contains(&format!("{word} ")) || help.contains(&format!("{word}\n")), "{key}: {word}");
            }
        }
    }
}

#[test]
fn no_setting_is_left_out() {
    let sources = |file: &str| read(&root().join("host/relay-mesh/src/config").join(file));
    let (file, threads) = (sources("file.rs"), sources("threads.rs"));
    let tables: [(&str, Vec<String>); 10] = [
        ("adapters", fields(&sources("adapters.rs"), "AdapterValues")),
        ("http", fields(&file, "Http")),
        ("loops", fields(&file, "Loops")),
        ("reservations", fields(&file, "Reservations")),
        ("retention", fields(&file, "Retention")),
        ("wake", fields(&file, "Wake")),
        ("nats", fields(&sources("nats.rs"), "NatsValues")),
        ("codex", fields(&threads, "CodexValues")),
        ("roles", fields(&threads, "RoleValues")),
        ("", fields(&file, "File")),
    ];
    let mut known = BTreeSet::new();
    for (table, keys) in &tables {
        assert!(keys.len() > 1, "the keys of [{table}] are found: {keys:?}");
        for key in keys {
            known.insert(match *table {
                "" if tables.iter().any(|(name, _)| name == key) => continue,
                "" => key.clone(),
                "roles" => format!("roles.reviewer.{key}"),
                table => format!("{table}.{key}"),
            });
        }
    }
    let documented: Vec<String> = settings().into_iter().map(|setting| setting.key).collect();
    let once: BTreeSet<String> = documented.iter().cloned().collect();
    assert_eq!(once.len(), documented.len(), "each key has one line: {documented:?}");
    assert_eq!(once, known, "left: what docs/configuration.md has; right: what the program reads");

    let page = page("configuration.md");
    for key in fields(&sources("allowed_starts.rs"), "File").iter().filter(|key| *key != "allow") {
        assert!(page.contains(&format!("`{key}`")) || page.contains(&format!("`{key} = ")), "spawn.toml: {key}");
    }
    let mut files = 0;
    for path in files_below(&root().join("host/relay-mesh/src/config")) {
        for named in read(&path).split("\"relay-mesh/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(named), "docs/configuration.md does not have the file {named}");
            files += 1;
        }
    }
    assert!(files > 5, "the files are found");
}

#[test]
fn no_variable_is_left_out() {
    let mut known = BTreeSet::new();
    let of_crates = ["host", "plugins"].into_iter().flat_map(|folder| {
        let crates =
            std::fs::read_dir(root().join(folder)).expect("a listing").map(|one| one.expect("an entry").path());
        crates.flat_map(|one| ["src", "assets", "templates"].map(|part| one.join(part)).to_vec())
    });
    let folders: Vec<PathBuf> = of_crates.chain([root().join("sdk/src"), root().join("packaging")]).collect();
    for path in folders.iter().flat_map(|folder| files_below(folder)) {
        // What is no text, such as a picture, reads none.
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        known.extend(variables(text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default()));
    }
    known.retain(|name| !STREAMS.contains(&name.as_str()) && !name.starts_with(OF_TESTS));
    assert!(known.len() > 40, "they are found: {known:?}");
    let documented = variables(&page("configuration.md"));
    // `RELAY_PASSWORD_` begins a name; the page has an example of it.
    let begins = |name: &str, other: &str| name.ends_with('_') && other.starts_with(name);
    let missing: Vec<_> =
        known.iter().filter(|name| !documented.iter().any(|one| one == *name || begins(name, one))).collect();
    assert!(missing.is_empty(), "docs/configuration.md does not have the variables {missing:?}");
    let invented: Vec<_> =
        documented.iter().filter(|one| !known.iter().any(|name| name == *one || begins(name, one))).collect();
    assert!(invented.is_empty(), "nothing reads or sets the variables {invented:?} of docs/configuration.md");
}

/// The commands of a page. Every block has the form of a terminal.
fn commands(name: &str) -> Vec<PageCommand> {
    let path = format!("docs/{name}");
    for block in page_blocks(&path) {
        assert_eq!(block.kind, "console", "{name}: a block is of the kind `console`: {block:?}");
    }
    page_commands(&path)
}

/// Runs commands one after the other, each in the shell for its section.
fn run(stage: &Stage, commands: &[PageCommand], at_least: usize, shell: impl Fn(&str) -> Program) {
    assert!(commands.len() >= at_least, "the page has its commands: {commands:?}");
    std::fs::create_dir_all(stage.folder.join("runner")).expect("the stage is writable");
    run_page(commands, shell);
}

/// A shell of the user that gets one more argument, its commands.
fn shell(stage: &Stage) -> Program {
    Program::new("sh").arg("-ec").envs(environment(stage, &[])).within(&stage.project)
}

/// The user's variables, of which none names a data folder, without some more.
fn environment(stage: &Stage, without: &[&str]) -> Vec<(String, String)> {
    let mut all = stage.environment();
    all.retain(|(name, _)| name != "RELAY_DIR" && !without.contains(&name.as_str()));
    all.push(("RUNNER_TEMP".to_owned(), stage.folder.join("runner").display().to_string()));
    all
}

/// A line of the page's tables of settings.
#[derive(Debug)]
struct Setting {
    key: String,
    /// The key with its example.
    line: String,
    default: String,
    /// Its flags and variables.
    also: String,
    /// Whether a project may set it.
    project: String,
}

impl Setting {
    /// The example as a variable holds it.
    fn as_variable(&self) -> String {
        let table: toml::Table = toml::from_str(&self.line).expect("TOML");
        let mut value = toml::Value::Table(table);
        while let toml::Value::Table(table) = value {
            value = table.into_iter().next().expect("a key").1;
        }
        match value {
            toml::Value::String(text) => text,
            toml::Value::Array(all) => all.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(":"),
            other => other.to_string(),
        }
    }
}

fn settings() -> Vec<Setting> {
    let page = page("configuration.md");
    let (_, part) = page.split_once("\n## Settings\n").expect("the part");
    let (part, _) = part.split_once("\n## ").expect("its end");
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [line, _, default, also, project, _] = cells[..] else { panic!("six cells: {row}") };
        let line = line.trim_matches('`').to_owned();
        let key = line.split(" = ").next().unwrap_or_default().to_owned();
        Setting { key, line, default: default.to_owned(), also: also.to_owned(), project: project.to_owned() }
    })
    .collect()
}

/// A default as the page and the program both could write it.
fn plain(default: &str) -> String {
    default.replace(['`', ' '], "")
}

/// A line of `relay-mesh config --json`.
#[derive(Debug)]
struct Line {
    key: String,
    value: String,
    origin: String,
}

fn config(stage: &Stage, variables: &[(&str, &str)]) -> Program {
    let program = Program::new(stage.binary()).args(["config", "--json"]).envs(environment(stage, &[]));
    program.envs(variables.iter().copied()).within(&stage.project)
}

/// The settings that are in force. No key is unknown.
fn listed(stage: &Stage, variables: &[(&str, &str)]) -> Vec<Line> {
    let outcome = config(stage, variables).run();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{variables:?}: {outcome:?}");
    let told: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let all = told["settings"].as_array().expect("a list").iter();
    all.map(|one| Line { key: text(one, "key"), value: text(one, "value"), origin: text(one, "origin") }).collect()
}

/// The fields of a struct that is read from TOML, by their names there.
fn fields(source: &str, name: &str) -> Vec<String> {
    let (_, rest) = source.split_once(&format!("struct {name} {{\n")).unwrap_or_else(|| panic!("struct {name}"));
    let (body, _) = rest.split_once("\n}").expect("its end");
    let named = body.lines().map(str::trim).filter(|line| !line.starts_with(['/', '#'])).filter_map(|line| {
        let name = line.strip_prefix("pub(crate) ").unwrap_or(line).split_once(": ")?.0;
        Some(name.trim_start_matches('_').replace('_', "-"))
    });
    named.collect()
}

/// The words of a text that begin as our variables do.
fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_uppercase() && !letter.is_ascii_digit() && letter != '_');
    words.filter(|word| word.starts_with("RELAY_") && word.len() > "RELAY_".len()).map(str::to_owned).collect()
}

/// The files of a folder and those below, without tests. None if there is no such folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let is_test = path.file_name().is_some_and(|name| name == "tests" || name == "tests.rs");
        match path.is_dir() {
            _ if is_test => {}
            true => all.extend(files_below(&path)),
            false => all.push(path),
        }
    }
    all
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn page(name: &str) -> String {
    read(&root().join("docs").join(name))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
