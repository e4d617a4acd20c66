//! Reservations through the real binary: output, refusals, and that of fifty racing agents only those win who may.

use std::os::unix::fs::symlink;
use std::thread;

use serde_json::Value;
use test_support::{Outcome, Stage};

#[test]
fn three_agents_share_a_repository() {
    let stage = stage(&["alice", "bob", "carol"]);
    std::fs::create_dir_all(stage.project.join("src/parser")).expect("the stage is writable");
    let mut told = String::new();
    let mut run = |arguments: &[&str]| {
        let outcome = stage.run(arguments);
        let Outcome { code, stdout, stderr } = outcome;
        told.push_str(&format!("$ relay-mesh {}\n{stdout}{stderr}[{}]\n\n", arguments.join(" "), code.unwrap_or(-1)));
    };
    run(&["reserve", "src/parser", "--from", "alice", "--reason", "new grammar"]);
    run(&["reserve", "**/*.{rs,toml}", "docs/a.md", "--from", "bob"]);
    run(&["reserve", "src/parser/lexer.rs", "--check"]);
    run(&["reserve", "docs/**", "--check", "--from", "bob"]);
    run(&["reserve", "docs/**", "--shared", "--ttl", "20m", "--from", "bob"]);
    run(&["reserve", "docs/*.md", "--shared", "--from", "carol"]);
    run(&["reserve", "src/parser/lexer.rs", "--narrow", "--from", "alice"]);
    run(&["reserve", "src/*/l*.rs", "--force", "--from", "carol"]);
    run(&["reservations"]);
    run(&["reservations", "--agent", "alice", "--expired"]);
    run(&["release", "docs/**", "--from", "carol"]);
    run(&["release", "src/*/l*.rs", "--from", "carol"]);
    run(&["release", "--all", "--from", "carol"]);
    run(&["release", "--all", "--from", "carol"]);
    run(&["reservations", "--repo", "."]);
    check(&stage, "three-agents-share-a-repository", &told);
    let news = stage.relay_ok(&["read", "--agent", "alice"]);
    assert!(news.contains("carol took over `src/parser/lexer.rs`"), "{news}");
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_hint() {
    let stage = stage(&["alice", "bob"]);
    symlink("/etc", stage.project.join("away")).expect("the stage is writable");
    symlink("nowhere", stage.project.join("broken")).expect("the stage is writable");
    stage.relay_ok(&["reserve", "held", "--from", "alice"]);
    let check = |arguments: &str, code: i32, words: &str| {
        let outcome = stage.run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(outcome.code, Some(code), "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{arguments}: {}", outcome.stderr);
        // clap prints no hint for a value, but its error says what to write.
        assert!(
            outcome.stderr.contains("hint: ") || outcome.stderr.contains("For more information"),
            "{}",
            outcome.stderr
        );
    };
    check("reserve src/[a --from alice", 2, "this `[` is never closed (at character 5)");
    check("reserve src/a** --from alice", 2, "alone between slashes");
    check("reserve /etc/passwd --from alice", 2, "outside of the repository");
    check("reserve ../sibling --from alice", 2, "outside of the repository");
    check("reserve away/passwd --from alice", 2, "outside of the repository");
    check("reserve broken/x --from alice", 3, "cannot be looked at");
    check("reserve a --from alice --repo nowhere", 3, "cannot be looked at");
    check("reserve a --ttl 0s --from alice", 2, "at least a second");
    check("reserve a --ttl 100years --from alice", 2, "at most a week");
    check("reserve a --from nobody", 3, "nobody");
    check("reserve a", 4, "you have not registered");
    check("release held --from bob", 4, "reserved by `alice`, not by you");
    check("release other --from bob", 3, "no reservation of `other`");
    check("release --from bob", 2, "required");
    std::fs::create_dir(stage.project.join("[id]")).expect("the stage is writable");
    stage.relay_ok(&["reserve", "[id]/page.tsx", "--check"]);
    let conflict = stage.run(&["reserve", "h*", "--from", "bob", "--json"]);
    let answer: Value = serde_json::from_str(&conflict.stdout).expect("JSON");
    assert_eq!((conflict.code, &answer["outcome"]), (Some(6), &"held".into()));
    assert_eq!(answer["conflicts"][0]["held"]["owner"], "alice");
    assert_eq!(answer["conflicts"][0]["at"], "held");
    assert_eq!(stage.held(), ["alice held"], "all of that changed nothing");
}

#[test]
fn worktrees_of_one_repository_share_its_reservations() {
    let stage = stage(&["alice", "bob"]);
    let other = stage.folder.join("other");
    stage.git(&["worktree", "add", "-q", &other.display().to_string()]);
    std::fs::create_dir_all(other.join("src")).expect("the stage is writable");
    stage.relay_ok(&["reserve", "src/**", "--from", "alice"]);
    let within = |folder: &str, pattern: &str| {
        stage.relay(&["reserve", pattern, "--from", "bob"]).within(&other.join(folder)).run().code
    };
    assert_eq!(within("", "src/main.rs"), Some(6));
    assert_eq!(within("src", "main.rs"), Some(6));
    assert_eq!(within("src", "../docs/main.md"), Some(0));
    assert_eq!(stage.held(), ["alice src/**", "bob docs/main.md"]);
    // A worktree inside the project is not part of it.
    stage.git(&["worktree", "add", "-q", ".trees/inner"]);
    let inner = stage.run(&["reserve", ".trees/inner/src/main.rs", "--from", "bob"]);
    assert_eq!(inner.code, Some(6), "{inner:?}");
    let outer = stage.relay(&["reserve", &format!("{}/src/main.rs", stage.project_path()), "--from", "bob"]);
    assert_eq!(outer.within(&other).run().code, Some(6));
    let elsewhere = stage.folder.join("elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("the stage is writable");
    let outcome = stage.relay(&["reserve", "src/main.rs", "--from", "bob"]).within(&elsewhere).run();
    assert_eq!(outcome.code, Some(0), "another folder is another repository: {}", outcome.stderr);
}

#[test]
fn what_lies_in_a_repository_within_another_is_reserved_in_that_one() {
    let stage = stage(&["alice", "bob"]);
    let part = stage.project.join("part");
    std::fs::create_dir_all(&part).expect("the stage is writable");
    stage.git(&["-C", "part", "init", "-q"]);
    let refused = stage.run(&["reserve", "part/main.rs", "--from", "alice"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    assert!(refused.stderr.contains("lies in a repository of its own"), "{refused:?}");
    assert!(refused.stderr.contains(&format!("--repo {}", part.display())), "{refused:?}");
    stage.relay_ok(&["reserve", "main.rs", "--from", "alice", "--repo", "part"]);
    assert_eq!(stage.relay(&["reserve", "main.rs", "--from", "bob"]).within(&part).run().code, Some(6));
    stage.relay_ok(&["reserve", "main.rs", "--from", "bob"]);
}

#[test]
fn what_is_called_like_nothing_yet_is_a_file_and_whoever_meant_a_folder_is_told() {
    let stage = stage(&["alice", "bob"]);
    for (typed, is_told) in [("drafts", true), ("notes.md", false), ("letters/", false), ("[ab]x", false)] {
        let reserved = stage.run(&["reserve", typed, "--from", "alice"]);
        let told = reserved.stderr.contains(&format!("`{typed}/` is everything in a folder"));
        assert_eq!((reserved.code, told), (Some(0), is_told), "{reserved:?}");
    }
    assert_eq!(stage.run(&["reserve", "letters/one.md", "--from", "bob"]).code, Some(6));
}

#[test]
fn of_fifty_that_race_only_those_win_that_may() {
    const RACERS: usize = 50;
    let names: Vec<String> = (0..RACERS).map(|number| format!("racer-{number}")).collect();
    let stage = stage(&names.iter().map(String::as_str).collect::<Vec<_>>());
    // Each overlaps most others; some pairs overlap only by a path that neither names.
    let pattern = |number: usize| match number % 5 {
        0 => "src/**".to_owned(),
        1 => "**/*.rs".to_owned(),
        2 => format!("src/{{main,lib,m{number}}}.rs"),
        3 => format!("docs/[a-m]{number}*"),
        _ => "{src,docs}/*".to_owned(),
    };
    let won: Vec<usize> = thread::scope(|scope| {
        let race = |number: usize| {
            let (stage, name) = (&stage, &names[number]);
            scope.spawn(move || stage.run(&["reserve", &pattern(number), "--from", name]).code)
        };
        let racers: Vec<_> = (0..RACERS).map(race).collect();
        let codes = racers.into_iter().map(|racer| racer.join().expect("a racer ends"));
        codes
            .enumerate()
            .filter_map(|(number, code)| match code {
                Some(0) => Some(number),
                Some(6) => None,
                other => panic!("racer {number} ended with {other:?}"),
            })
            .collect()
    });
    let mut expected: Vec<String> =
        won.iter().map(|number| format!("{} {}", names[*number], pattern(*number))).collect();
    let mut held = stage.held();
    expected.sort();
    held.sort();
    assert_eq!(held, expected, "who was told that they won holds it, and nobody else does");
    // The winner conflicts with everyone else who asks for the same.
    for number in &won {
        let winners: Vec<String> = in_the_way(&stage, &pattern(*number));
        assert_eq!(winners, [names[*number].clone()], "{} met others that won", pattern(*number));
    }
    assert!(!won.is_empty());
}

#[test]
fn who_is_killed_while_reserving_leaves_nothing_half_done() {
    const VICTIMS: usize = 24;
    let stage = stage(&["alice", "bob"]);
    stage.relay_ok(&["reserve", "taken/**", "--from", "bob"]);
    let victims: Vec<_> = (0..VICTIMS)
        .map(|number| {
            let path = format!("file-{number}");
            let program = match number % 3 {
                0 => stage.relay(&["reserve", &path, "--from", "alice"]),
                1 => stage.relay(&["reserve", "taken/**", "--force", "--from", "alice"]),
                _ => stage.relay(&["release", "--all", "--from", "alice"]),
            };
            program.start(&stage.folder.join(format!("victim-{number}.log")))
        })
        .collect();
    for mut victim in victims {
        victim.kill();
    }
    let before = stage.held();
    stage.relay_ok(&["reserve", "afterwards", "--from", "bob"]);
    stage.relay_ok(&["release", "afterwards", "--from", "bob"]);
    assert_eq!(stage.held(), before, "the next one finds what it left");
    let was_taken = before.iter().all(|one| one != "bob taken/**");
    let news = stage.relay_ok(&["read", "--agent", "bob"]).matches("alice took over").count();
    assert_eq!(news, usize::from(was_taken), "who lost a reservation is told, once");
    for file in stage.tree(&stage.data.join("reservations")).into_values().filter(|bytes| !bytes.is_empty()) {
        let whole: Result<Value, _> = serde_json::from_slice(&file);
        assert!(whole.is_ok(), "a value is whole: {}", String::from_utf8_lossy(&file));
    }
}

/// Compares what a script of commands printed with the snapshot of that name.
fn check(stage: &Stage, name: &str, told: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(&stage.folder.display().to_string().replace('.', r"\."), "[STAGE]");
    settings.add_filter(r"\b\d+ (min|s)\b", "[SPAN]");
    // Column widths depend on the longest path.
    settings.add_filter(r"(\S) {2,}", "$1  ");
    settings.bind(|| insta::assert_snapshot!(name, told));
}

/// A stage on which these agents have registered.
fn stage(agents: &[&str]) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for agent in agents {
        stage.relay_ok(&["register", agent]);
    }
    stage
}

/// The owners of reservations that overlap a pattern.
fn in_the_way(stage: &Stage, pattern: &str) -> Vec<String> {
    let outcome = stage.run(&["reserve", pattern, "--check", "--json"]);
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let conflicts = answer["conflicts"].as_array().expect("a list");
    conflicts.iter().map(|one| one["held"]["owner"].as_str().unwrap_or_default().to_owned()).collect()
}
