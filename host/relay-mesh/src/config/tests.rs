//! Tests of precedence and of refused values, as tables.

use super::*;

/// Loads the settings of a project below a home folder and compares one key's value and origin, or the error.
fn check(project_file: &str, user_file: &str, variables: &[(&str, &str)], flags: Values, key: &str, expected: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    let project = home.join("project");
    let work = project.join("src/deep");
    std::fs::create_dir_all(&work).expect("a folder");
    std::fs::create_dir_all(home.join(".config/relay-mesh")).expect("a folder");
    if !project_file.is_empty() {
        std::fs::write(project.join(PROJECT_FILE), project_file).expect("a file");
    }
    if !user_file.is_empty() {
        std::fs::write(home.join(".config").join(USER_FILE), user_file).expect("a file");
    }
    let environment = with_home(variables, &home);
    let outcome = match Settings::load(flags, &environment, &work) {
        Ok(settings) => settings
            .listed()
            .into_iter()
            .find(|(name, _, _)| *name == key)
            .map(|(_, value, origin)| format!("{value} by {origin}"))
            .expect("a setting of that name"),
        Err(error) => error.to_string(),
    };
    let outcome = outcome.replace(&home.display().to_string(), "~");
    assert_eq!(outcome, expected);
}

fn with_home(variables: &[(&str, &str)], home: &Path) -> Environment {
    let home = home.display().to_string();
    match variables {
        [] => Environment::from([("HOME", home.as_str())]),
        [one] => Environment::from([("HOME", home.as_str()), *one]),
        [one, other] => Environment::from([("HOME", home.as_str()), *one, *other]),
        more => panic!("{} variables are more than this table needs", more.len()),
    }
}

fn nothing() -> Values {
    Values::default()
}

#[test]
fn the_nearer_place_decides() {
    let flag = || Values { dir: Some("here".into()), ..Values::default() };
    let user = "dir = '~/user'";
    check("", "", &[], nothing(), "dir", "~/.relay-mesh by default");
    check("", user, &[], nothing(), "dir", "~/user by ~/.config/relay-mesh/config.toml");
    check("dir = 'data'", user, &[], nothing(), "dir", "~/project/data by ~/project/.relay-mesh.toml");
    check("dir = 'data'", user, &[("RELAY_DIR", "/d")], nothing(), "dir", "/d by environment");
    check("dir = 'data'", user, &[("RELAY_DIR", "/d")], flag(), "dir", "~/project/src/deep/here by command line");
    check("", user, &[("RELAY_DIR", "")], nothing(), "dir", "~/user by ~/.config/relay-mesh/config.toml");
}

#[test]
fn a_store_of_files_is_the_data_folder() {
    let user = "store = 'files:~/user'";
    check("", user, &[], nothing(), "dir", "~/user by ~/.config/relay-mesh/config.toml");
    check("store = 'files:data'", user, &[], nothing(), "dir", "~/project/data by ~/project/.relay-mesh.toml");
    check("", user, &[("RELAY_STORE", "files:/d")], nothing(), "dir", "/d by environment");
    // No shell expands `~` in this position.
    check("", "", &[("RELAY_STORE", "files:~/d")], nothing(), "dir", "~/d by environment");
    check("", "", &[], Values { dir: Some("~/d".into()), ..nothing() }, "dir", "~/d by command line");
    check("", user, &[("RELAY_DIR", "/d")], nothing(), "dir", "/d by environment");
    check(
        "agent = 'bob'\ndir = 'a'\nstore = 'files:b'",
        "",
        &[],
        nothing(),
        "dir",
        "`~/project/.relay-mesh.toml`, line 3: `store` and `dir` name two folders, and there is one",
    );
    check("", user, &[], nothing(), "store", "files:~/user by ~/.config/relay-mesh/config.toml");
    check(
        "",
        "",
        &[("RELAY_STORE", "redis://here")],
        nothing(),
        "dir",
        "$RELAY_STORE is `redis://here`: `redis://here` is not a store: write `files:DIR`, as in `files:/srv/mesh`, or \
         `nats://HOST:4222`",
    );
    check(
        "",
        "",
        &[("RELAY_DIR", "/d"), ("RELAY_STORE", "files:/s")],
        nothing(),
        "dir",
        "$RELAY_STORE is `files:/s`: $RELAY_DIR names another folder",
    );
}

#[test]
fn servers_are_the_persons_to_name() {
    let user = "store = 'nats://u:secret@here'\n[nats]\nuser = 'u'\npassword = '~/pass'\nprefix = 'TEAM'";
    let from_user = |value: &str| format!("{value} by ~/.config/relay-mesh/config.toml");
    check("", user, &[], nothing(), "store", &from_user("nats://…@here"));
    check("", user, &[], nothing(), "dir", "~/.relay-mesh by default");
    check("", user, &[], nothing(), "nats.password", &from_user("~/pass"));
    // The login comes from one origin, each other value from its own.
    let token = [("RELAY_NATS_TOKEN", "/token")];
    check("", user, &token, nothing(), "nats.token", "/token by environment");
    check("", user, &token, nothing(), "nats.prefix", &from_user("TEAM"));
    check("", user, &[("RELAY_STORE", "files:/d")], nothing(), "store", "files:/d by environment");
    for (project, key) in [("store = 'nats://elsewhere'", "store"), ("[nats]\nprefix = 'X'", "nats")] {
        let refused = format!(
            "`~/project/.relay-mesh.toml` sets `{key}`, which a project may not set for the people who work in it"
        );
        check(project, "", &[], nothing(), "store", &refused);
    }
}

#[test]
fn every_kind_of_value_is_read() {
    let user = "away-after = '1h 30m'\nhold-after-stop = '2h'\n[http]\nlisten = '127.0.0.1:1'\ntoken = false\norigins = ['http://localhost:6274']\n[loops]\nhops = 3\nwindow = '90s'";
    for (key, value) in [
        ("away-after", "1h 30m"),
        ("hold-after-stop", "2h"),
        ("http.listen", "127.0.0.1:1"),
        ("http.token", "false"),
        ("http.origins", "http://localhost:6274"),
        ("loops.hops", "3"),
        ("loops.window", "1m 30s"),
    ] {
        check("", user, &[], nothing(), key, &format!("{value} by ~/.config/relay-mesh/config.toml"));
    }
    check("agent = 'bob'", "", &[], nothing(), "agent", "bob by ~/project/.relay-mesh.toml");
    check("tools = 'reservations'", "", &[], nothing(), "tools", "core,reservations by ~/project/.relay-mesh.toml");
    check(
        "",
        "",
        &[("RELAY_TOOLS", "commands,reservations")],
        nothing(),
        "tools",
        "core,reservations,commands by environment",
    );
    let wake = "[wake]\nmethods = ['file', 'gateway']\ngateway = ['a', '{text}']\nsocket = '~/s'\ntimeout = '2s'";
    for (key, value) in
        [("wake.methods", "file,gateway"), ("wake.gateway", "a {text}"), ("wake.socket", "~/s"), ("wake.timeout", "2s")]
    {
        check("", wake, &[], nothing(), key, &format!("{value} by ~/.config/relay-mesh/config.toml"));
    }
    let empty = "`~/.config/relay-mesh/config.toml`, line 2: a program is a list of words, of which the first names it";
    check("", "[wake]\nrun = []", &[], nothing(), "wake.run", empty);
    check("", "durability = 'process'", &[], nothing(), "durability", "process by ~/.config/relay-mesh/config.toml");
    check("", "", &[("RELAY_PLUGINS", "/a:/b")], nothing(), "plugins", "/a:/b by environment");
}

#[test]
fn a_team_says_how_its_agents_edit_what_others_hold() {
    let user = "[reservations]\nmode = 'advise'\nauto-reserve = true\nauto-reserve-ttl = '5m'";
    let from_user = |value: &str| format!("{value} by ~/.config/relay-mesh/config.toml");
    check("", "", &[], nothing(), "reservations.mode", "enforce by default");
    check("", "", &[], nothing(), "reservations.auto-reserve", "false by default");
    check("", "", &[], nothing(), "reservations.auto-reserve-ttl", "10m by default");
    check("", user, &[], nothing(), "reservations.mode", &from_user("advise"));
    check("", user, &[], nothing(), "reservations.auto-reserve", &from_user("true"));
    check("", user, &[], nothing(), "reservations.auto-reserve-ttl", &from_user("5m"));
    let project = "[reservations]\nmode = 'enforce'";
    check(project, user, &[], nothing(), "reservations.mode", "enforce by ~/project/.relay-mesh.toml");
    for (wrong, why) in [
        ("mode = 'refuse'", "unknown variant `refuse`, expected `advise` or `enforce`"),
        ("auto-reserve-ttl = '0s'", "a reservation lasts at least a second"),
    ] {
        let expected = format!("`~/project/.relay-mesh.toml`, line 2: {why}");
        check(&format!("[reservations]\n{wrong}"), "", &[], nothing(), "reservations.mode", &expected);
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    check(
        "[loops]\nhops = -1",
        "",
        &[],
        nothing(),
        "agent",
        "`~/project/.relay-mesh.toml`, line 2: invalid value: integer `-1`, expected a whole number that is not negative",
    );
    check(
        "\n\nagent = 'Bob!'",
        "",
        &[],
        nothing(),
        "agent",
        "`~/project/.relay-mesh.toml`, line 3: `Bob!` is not a name: use a-z, 0-9 and -, starting with a letter or \
         digit, and optionally @team",
    );
    check(
        "away-after = 'soon'",
        "",
        &[],
        nothing(),
        "agent",
        "`~/project/.relay-mesh.toml`, line 1: `soon` is not a length of time: write it as in `10m` or `1h 30m`",
    );
    check(
        "",
        "",
        &[("RELAY_HTTP", "7423")],
        nothing(),
        "agent",
        "$RELAY_HTTP is `7423`: it must be an address and a port, as in 127.0.0.1:7423",
    );
}

#[test]
fn a_bare_number_is_a_length_of_time_in_seconds() {
    for (written, expected) in [("90", "1m 30s"), ("'90'", "1m 30s"), ("'1h'", "1h")] {
        let file = format!("away-after = {written}");
        let expected = format!("{expected} by ~/project/.relay-mesh.toml");
        check(&file, "", &[], nothing(), "away-after", &expected);
    }
}

#[test]
fn a_project_opens_no_door_for_the_people_who_clone_it() {
    for (file, key) in [
        ("[http]\ntoken = false", "http.token"),
        ("[http]\norigins = ['http://localhost:6274']", "http.origins"),
        ("[http]\nlisten = '0.0.0.0:1'", "http.listen"),
        ("plugins = ['p']", "plugins"),
        ("[wake]\ngateway = ['sh', '-c', 'curl evil']", "wake"),
        ("[wake]\nrun = ['sh']", "wake"),
        ("[retention]\nkeep = '0s'", "retention"),
        ("hold-after-stop = '0s'", "hold-after-stop"),
        ("ask-patience = '1d'", "ask-patience"),
    ] {
        let refused = format!(
            "`~/project/.relay-mesh.toml` sets `{key}`, which a project may not set for the people who work in it"
        );
        check(file, "", &[], nothing(), "dir", &refused);
    }
}

#[test]
fn what_a_project_may_not_set_belongs_into_the_file_that_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(PROJECT_FILE), "ask-patience = '1d'").expect("a file");
    let environment = with_home(&[("XDG_CONFIG_HOME", "/settings")], folder.path());
    let refused = Settings::load(nothing(), &environment, folder.path()).map(drop).expect_err("it is refused");
    let hint = "put `ask-patience` into your own settings: /settings/relay-mesh/config.toml";
    assert_eq!(refused.hint().as_deref(), Some(hint));
}

#[test]
fn settings_of_before_0_1_are_understood() {
    let user = "tools = 'core,claims'\n[reservations]\nauto-claim = true\nauto-claim-ttl = '5m'";
    let from_user = |value: &str| format!("{value} by ~/.config/relay-mesh/config.toml");
    check("", user, &[], nothing(), "tools", &from_user("core,reservations"));
    check("", user, &[], nothing(), "reservations.auto-reserve", &from_user("true"));
    check("", user, &[], nothing(), "reservations.auto-reserve-ttl", &from_user("5m"));
}

/// Compares the warnings about a project's file, and the mode that holds all the same.
fn check_unknown(project_file: &str, mode: &str, expected: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(PROJECT_FILE), project_file).expect("a file");
    let settings = Settings::load(nothing(), &with_home(&[], folder.path()), folder.path()).expect("settings");
    let home = folder.path().display().to_string();
    let warnings: Vec<String> = settings.warnings.iter().map(|warning| warning.replace(&home, "~")).collect();
    let expected: Vec<String> = expected
        .iter()
        .map(|key| format!("`~/.relay-mesh.toml`, {key} is no setting that this version knows; the others hold"))
        .collect();
    assert_eq!((warnings, settings.edits.value.as_str()), (expected, mode), "{project_file}");
}

#[test]
fn a_key_of_a_newer_version_warns_and_what_is_known_holds() {
    check_unknown("[reservations]\nmode = 'advise'", "advise", &[]);
    check_unknown("[reservations]\nmode = 'advise'\nnewer = 1", "advise", &["line 3: `newer`"]);
    check_unknown("newer = 1\n[reservations]\nmode = 'advise'", "advise", &["line 1: `newer`"]);
    check_unknown(
        "[newer]\na = 1\n[[newer.b]]\nc = { d = 1 }\n[reservations]\nmode = 'advise'",
        "advise",
        &["line 1: `newer`"],
    );
    check_unknown(
        "one.two = 1\nreservations.newer.newest = 'x'\nreservations.mode = 'advise'\n'th ree' = []",
        "advise",
        &["line 1: `one`", "line 2: `newer`", "line 4: `'th ree'`"],
    );
}
