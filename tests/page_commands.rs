//! README.md and the pages of docs/: what needs no model, no network and no second machine is run, and prints what the
//! page says. No block of commands is without a test, or a reason why there is none.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;
use test_support::{
    NatsServer, PageBlock, PageCommand, Program, Stage, isolated, page, page_blocks, page_commands, page_fits,
    run_page, send_with, wait_for,
};

/// Which test runs the blocks of this kind in this page.
const RUN: &[(&str, &str, &str)] = &[
    ("README.md", "console", "page_commands"),
    ("docs/adapters.md", "sh", "authors_guide"),
    ("docs/asks.md", "console", "page_commands"),
    ("docs/codex-tools.md", "console", "page_commands"),
    ("docs/configuration.md", "console", "docs_pages"),
    ("docs/conversations.md", "console", "page_commands"),
    ("docs/coordination.md", "console", "page_commands"),
    ("docs/data.md", "console", "docs_pages"),
    ("docs/driving.md", "console", "page_commands"),
    ("docs/driving.md", "sh", "driving_page"),
    ("docs/environments.md", "console", "docs_pages"),
    ("docs/event-hooks.md", "console", "page_commands"),
    ("docs/events.md", "console", "page_commands"),
    ("docs/installing-adapters.md", "console", "signing"),
    ("docs/live-view.md", "console", "page_commands"),
    ("docs/nats.md", "console", "page_commands"),
    ("docs/plugins-of-harnesses.md", "console", "bundles"),
    ("docs/runs.md", "sh", "runs_page"),
    ("docs/three-agents.md", "console", "three_agents"),
    ("docs/troubleshooting.md", "sh", "troubleshooting_page"),
];

/// Blocks that no test runs: the page, how the block begins, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "make run", "`make test` runs this very test; tests/fresh-machine tries what both begin with"),
    ("README.md", "RELAY_MESH_URL=", "`make dist` installs each package in a clean root (tests/packages.rs)"),
    ("README.md", "relay-mesh plugin install oci:", "a made-up registry; tests/registries.rs has one of its own"),
    ("docs/codex-tools.md", "claude -p", "an account; tests/codex_tools.rs does it with the real client and a model"),
    ("docs/codex-tools.md", "codex exec", "an account; tests/codex_tools.rs does it with the real client and a model"),
    (
        "docs/events.md",
        "{ echo",
        "socat and nc, which tests/setup does not install; tests/events.rs connects by itself",
    ),
    ("docs/installing-adapters.md", "relay-mesh plugin install", "a made-up registry; see tests/registries.rs"),
    ("docs/installing-adapters.md", "relay-mesh plugin push", "a made-up registry; see tests/registries.rs"),
    ("docs/live-view.md", "$ relay-mesh ui", "it needs a terminal, which tests/ui.rs has"),
    ("docs/nats.md", "relay-mesh adopt", "a second machine, which tests/adopting.rs has"),
    ("docs/releasing.md", "$ skopeo copy", "podman, and a registry of the owner's"),
    ("docs/releasing.md", "$ minisign", "a key of the owner's; tests/installer.rs signs with one of its own"),
];

/// What a block may be that holds no commands.
const NO_COMMANDS: [&str; 6] = ["cron", "json", "python", "text", "toml", "yaml"];

#[test]
fn each_block_of_commands_is_run_or_has_a_reason() {
    let mut pages = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(format!("{}/../../docs", env!("CARGO_MANIFEST_DIR"))).expect("docs/ can be read") {
        let name = entry.expect("docs/ can be read").file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            pages.push(format!("docs/{name}"));
        }
    }
    let (mut excused, mut run) = (Vec::new(), Vec::new());
    for path in &pages {
        for PageBlock { kind, lines, .. } in page_blocks(path) {
            let first = lines.first().map(String::as_str).unwrap_or_default();
            if NO_COMMANDS.contains(&kind.as_str()) {
                continue;
            }
            assert!(["console", "sh"].contains(&kind.as_str()), "{path}: what kind of block is this: `{kind}` {first}");
            let reason = NOT_RUN.iter().find(|(page, begins, _)| page == path && first.starts_with(*begins));
            let test = RUN.iter().find(|(page, of_kind, _)| page == path && *of_kind == kind);
            match (reason, test) {
                (Some(reason), _) => excused.push(reason),
                (None, Some(test)) => run.push(test),
                (None, None) => panic!("{path}: no test runs this block, and NOT_RUN has no reason: {first}"),
            }
        }
    }
    for reason in NOT_RUN {
        assert_eq!(excused.iter().filter(|one| **one == reason).count(), 1, "one block begins so: {reason:?}");
    }
    for test in RUN {
        assert!(run.contains(&test), "the page has such blocks: {test:?}");
        let (path, _, name) = test;
        // Neither a comment nor a row of a table reads a page.
        let reads = |line: &str| {
            let line = line.trim_start();
            !line.starts_with("//") && !line.starts_with("(\"") && line.contains(path.trim_start_matches("docs/"))
        };
        assert!(page(&format!("tests/{name}.rs")).lines().any(reads), "it reads it: {test:?}");
    }
}

#[test]
fn the_readmes_twenty_seconds_and_five_minutes_go_as_it_says() {
    isolated(|| {
        let [twenty, mut five] = by_section("README.md", ["Try it", "Five minutes with two agents"]);
        assert_eq!((twenty.len(), five.len()), (4, 6));
        let alone = stage();
        run_page(&twenty, |_| shell(&alone));

        // Its user agrees at a terminal. Alice is a command line here and a session of Claude Code there.
        five[0].typed.push_str(" --yes");
        let stage = stage();
        stage.relay_ok(&["register", "alice"]);
        run_page(&five[..5], |_| shell(&stage));
        stage.relay_ok(&["send", "bob", "5433", "--from", "alice"]);
        run_page(&five[5..], |_| shell(&stage));
    });
}

#[test]
fn every_command_about_conversations_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage_of(&["alice", "bob"]);
        let id = send_with(&stage, "alice", "The rate limit of the api is 100 requests a minute", &["--from", "bob"]);
        stage.relay_ok(&["send", "bob", "Thank you, I wait then", "--from", "alice", "--reply-to", &id]);
        run_page(&page_commands("docs/conversations.md"), |_| shell(&stage));
        let exported = std::fs::read_to_string(stage.project.join("limit.html")).expect("it was exported");
        assert!(exported.contains("Thank you, I wait then"), "{exported}");
    });
}

#[test]
fn every_command_about_questions_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage_of(&["alice"]);
        stage.relay_ok(&["ask", "Which port shall the server use?", "--from", "alice"]);
        run_page(&page_commands("docs/asks.md"), |_| shell(&stage));
        assert!(stage.relay_ok(&["asks", "--all"]).contains("answered: 8080"));
    });
}

#[test]
fn every_command_about_event_hooks_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage();
        let hooks = "hooks:\n  codex:\n    on_file_change:\n      - command: \"rustfmt --check ${file}\"\n";
        std::fs::write(stage.project.join("agent-relay.yaml"), hooks).expect("the project is writable");
        run_page(&page_commands("docs/event-hooks.md"), |_| shell(&stage));
    });
}

#[test]
fn every_command_about_coordination_prints_what_the_page_says() {
    isolated(|| {
        let path = "docs/coordination.md";
        let [reservations, commits, waking] = by_section(path, ["Reservations", "Commits", "Waking"]);
        let stage = stage_of(&["alice", "bob", "carol"]);
        let settings = page_blocks(path).into_iter().find(|block| block.kind == "toml").expect("the example");
        stage.configure(&settings.lines.join("\n"));
        stage.program("openclaw", "#!/bin/sh\necho 'gateway not reachable' >&2\nexit 1\n");
        run_page(&reservations, |_| shell(&stage));

        for agent in ["alice", "bob"] {
            stage.relay_ok(&["release", "--all", "--from", agent]);
        }
        stage.relay_ok(&["reserve", "src", "--reason", "new grammar", "--ttl", "42m", "--from", "alice"]);
        for (key, value) in [("user.name", "A Person"), ("user.email", "person@example.org")] {
            stage.git(&["config", key, value]);
        }
        stage.relay_ok(&["guard", "install"]);
        std::fs::write(stage.project.join("src/a.rs"), "fn a() {}\n").expect("the project is writable");
        stage.git(&["add", "."]);
        run_page(&commits, |_| shell(&stage));

        run_page(&waking, |_| shell(&stage));
    });
}

#[test]
fn every_command_about_tools_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage();
        run_page(&page_commands("docs/codex-tools.md"), |_| shell(&stage));
    });
}

/// A program that speaks ACP and answers each prompt at once.
const ACP: &str = r#"#!/usr/bin/env python3
import json, sys

def say(**words):
    print(json.dumps({"jsonrpc": "2.0", **words}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if method == "initialize":
        say(id=id, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif method == "session/new":
        say(id=id, result={"sessionId": "s1"})
    elif method == "session/prompt":
        piece = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "There is none."}}
        say(method="session/update", params={"sessionId": "s1", "update": piece})
        say(id=id, result={"stopReason": "end_turn"})
    elif id is not None:
        say(id=id, error={"code": -32601, "message": "unknown"})
"#;

#[test]
fn every_command_about_driven_agents_without_a_model_prints_what_the_page_says() {
    isolated(|| {
        let stage = stage();
        stage.program("my-agent", ACP);
        run_page(&page_commands("docs/driving.md"), |_| shell(&stage));
        wait_for("the agent answers", || {
            stage.relay_ok(&["spawn", "show", "helper"]).contains("says: There is none.").then_some(())
        });
        stage.relay_ok(&["dismiss", "helper"]);
    });
}

#[test]
fn what_is_followed_comes_as_the_page_says() {
    isolated(|| {
        let stage = stage_of(&["alice", "bob"]);
        let commands = page_commands("docs/events.md");
        let [PageCommand { typed, prints, .. }] = &commands[..] else { panic!("one command: {commands:?}") };
        let mut following = shell(&stage).arg(format!("exec {typed}")).start(&stage.folder.join("events.log"));
        let mut output = BufReader::new(following.child.stdout.take().expect("a pipe"));
        let mut line = || {
            let mut line = String::new();
            output.read_line(&mut line).expect("a line");
            line
        };
        let subscribed = line();
        stage.relay_ok(&["send", "bob", "hello", "--from", "alice"]);
        let message = line();
        stage.relay_ok(&["reserve", "src/**", "--from", "alice"]);
        let reserved = line();
        following.kill();
        let told = [subscribed.as_str(), message.as_str(), reserved.as_str()];
        assert!(page_fits(prints, &told), "the page: {prints:#?}\nit printed: {told:#?}");
    });
}

#[test]
fn every_command_about_the_page_of_the_server_prints_what_the_page_says() {
    isolated(|| {
        // `NOT_RUN` says why the first one is not.
        let [in_a_terminal, page] = by_section("docs/live-view.md", ["Five agents, one of which waits", "The page"]);
        assert_eq!(in_a_terminal.len(), 1);
        let stage = stage();
        run_page(&page, |_| shell(&stage));
        stage.relay_ok(&["down"]);
    });
}

#[test]
fn a_mesh_on_a_server_is_tried_on_one_machine_as_the_page_says() {
    isolated(|| {
        let stage = stage();
        let with_server = |_: &str| {
            let environment = stage.environment();
            let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
            let path = format!("{}:{}", NatsServer::folder().display(), path.unwrap_or_default());
            shell(&stage).env("PATH", path)
        };
        let [mut commands] = by_section("docs/nats.md", ["Try it on one machine"]);
        run_page(&commands[..1], with_server);
        let noted = std::fs::read_to_string(stage.data.join("nats/server.json")).expect("the server is noted");
        let noted: Value = serde_json::from_str(&noted).expect("JSON");
        for command in &mut commands {
            command.typed = command.typed.replace("PORT", &noted["port"].to_string());
        }
        run_page(&commands[1..], with_server);
    });
}

#[test]
fn what_leaves_the_machine_is_the_same_list_in_both_places() {
    let listed = |path: &str| {
        let text = page(path);
        let (_, part) = text.split_once("\n## What leaves the machine\n").expect("the part");
        let part = part.split("\n## ").next().unwrap_or_default();
        part.lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let here = listed("SECURITY.md");
    assert!(here.len() > 3, "{here:?}");
    assert_eq!(here, listed("docs/data.md"));
}

/// The commands of a page by section. No other section has one.
fn by_section<const N: usize>(path: &str, sections: [&str; N]) -> [Vec<PageCommand>; N] {
    let all = page_commands(path);
    let others: Vec<_> = all.iter().filter(|one| !sections.contains(&one.section.as_str())).collect();
    assert!(others.is_empty(), "{path}: nothing runs {others:?}");
    sections.map(|section| {
        let of_section: Vec<PageCommand> = all.iter().filter(|one| one.section == section).cloned().collect();
        assert!(!of_section.is_empty(), "{path}: {section} has commands");
        of_section
    })
}

/// A shell of the user that gets one more argument, its commands. No variable names a data folder.
fn shell(stage: &Stage) -> Program {
    let mut environment = stage.environment();
    environment.retain(|(name, _)| name != "RELAY_DIR");
    Program::new("sh").arg("-ec").envs(environment).within(&stage.project)
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// A stage on whose command line these agents were registered.
fn stage_of(agents: &[&str]) -> Stage {
    let stage = stage();
    for agent in agents {
        stage.relay_ok(&["register", agent]);
    }
    stage
}
