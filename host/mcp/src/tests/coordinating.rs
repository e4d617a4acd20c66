//! Reservations and commands as tools: shown only if the profile has their groups, and small.

use serde_json::{Value, json};

use super::{Client, World};
use crate::{Group, Profile};

fn everything() -> Profile {
    "core,reservations,commands".parse().expect("groups of tools")
}

impl World {
    /// A client of a server with all groups, registered under this name and working in `/work`.
    async fn joined_with_everything(&self, name: &str) -> Client {
        let process = crate::ClientProcess { workdir: Some("/work".to_owned()), ..Default::default() };
        let client = self.client_with("a-client", process, everything()).await;
        client.call("register_agent", &format!(r#"{{"name": "{name}"}}"#)).await;
        client
    }
}

async fn check(client: &Client, calls: &[(&str, &str, &str)]) {
    for (tool, arguments, expected) in calls {
        let text = client.call(tool, arguments).await;
        assert!(text.contains(expected), "{tool} {arguments} gave {text:?} and not {expected:?}");
    }
}

#[tokio::test]
async fn two_agents_reserve_files() {
    let world = World::new();
    let (alice, bob) = (world.joined_with_everything("alice").await, world.joined_with_everything("bob").await);
    check(
        &alice,
        &[
            (
                "reserve_paths",
                r#"{"patterns": ["src/**", "a.rs"], "reason": "<new> grammar"}"#,
                "reserved\n\"src/**\" is held by alice",
            ),
            (
                "reserve_paths",
                r#"{"patterns": "src/**", "minutes": 0}"#,
                "[a reservation lasts at least a second. Pass minutes",
            ),
            (
                "reserve_paths",
                r#"{"patterns": "src/[a"}"#,
                "[`src/[a` is not a pattern: this `[` is never closed (at character 5). ",
            ),
            ("reserve_paths", r#"{"patterns": "away/x"}"#, "[`away/x` lies outside of the repository `/work`. "),
        ],
    )
    .await;
    let held = bob.structured("reserve_paths", r#"{"patterns": "**/*.rs"}"#).await;
    assert_eq!((&held["outcome"], held["conflicts"].as_array().map(Vec::len)), (&json!("held"), Some(2)), "{held}");
    assert_eq!(
        (&held["conflicts"][0]["held"]["owner"], &held["conflicts"][1]["at"]),
        (&json!("alice"), &json!("a.rs"))
    );
    check(
        &bob,
        &[
            ("reserve_paths", r#"{"patterns": "docs/**", "check": true}"#, "free"),
            ("reserve_paths", r#"{"patterns": "src/a.rs", "check": true}"#, "for \"‹new> grammar\""),
            ("release_paths", r#"{"patterns": "src/**"}"#, "[`src/**` is reserved by `alice`, not by you. "),
            ("release_paths", "{}", "you held nothing"),
            ("reserve_paths", r#"{"patterns": "src/a.rs", "force": true}"#, "reserved"),
            ("list_reservations", "{}", "\"a.rs\" is held by alice"),
            ("list_reservations", r#"{"limit": 1}"#, "1 more: raise limit"),
        ],
    )
    .await;
    check(&alice, &[("fetch_messages", "{}", "bob took over `src/**`"), ("release_paths", "{}", "released a.rs")])
        .await;
}

#[tokio::test]
async fn one_agent_asks_and_another_runs() {
    let world = World::new();
    let (alice, bob) = (world.joined_with_everything("alice").await, world.joined_with_everything("bob").await);
    let sent = alice.structured("send_command", r#"{"to": "bob", "command": "/review", "arguments": ["src"]}"#).await;
    let id = sent["id"].as_str().expect("an id");
    let of = |rest: &str| format!(r#"{{"id": "{id}"{rest}}}"#);
    check(
        &alice,
        &[
            ("command_status", &of(""), "\"/review src\" is pending"),
            ("finish_command", &of(""), "[you have no command `"),
            ("send_command", r#"{"to": "bob", "command": "review"}"#, "[`review` is not a command"),
            ("send_command", r#"{"to": "bobb", "command": "/review"}"#, "[no agent named `bobb`"),
        ],
    )
    .await;
    check(
        &bob,
        &[
            ("finish_command", &of(""), "has not been taken. Call take_command first."),
            ("take_command", "{}", "\"/review src\" is running"),
            ("take_command", "{}", "no command waits for you"),
            ("finish_command", &of(r#", "result": "fine""#), "is done: \"fine\""),
            ("finish_command", &of(r#", "failed": true"#), "has already ended. "),
        ],
    )
    .await;
    check(&alice, &[("command_status", &of(""), "is done: \"fine\"")]).await;
    let carol = world.joined_with_everything("carol").await;
    check(&carol, &[("command_status", &of(""), "was sent by you or to you")]).await;
}

#[tokio::test]
async fn a_client_is_shown_the_groups_that_were_asked_for() {
    let world = World::new();
    let names = async |profile| -> Vec<String> {
        let client = world.client_with("a-client", crate::ClientProcess::default(), profile).await;
        let tools = client.0.list_all_tools().await.expect("listed");
        tools.iter().map(|tool| tool.name.to_string()).collect()
    };
    let core = names(Profile::default()).await;
    assert!(core.len() == 8 && !core.contains(&"reserve_paths".to_owned()), "{core:?}");
    let reservations = names(Profile::default().with(Group::Reservations)).await;
    assert!(reservations.len() == 11 && reservations.contains(&"reserve_paths".to_owned()), "{reservations:?}");
    assert_eq!(names(everything()).await.len(), 15);
    for (text, expected) in [
        ("core", Ok(())),
        ("reservations", Ok(())),
        ("claims", Ok(())),
        ("core,runs,runners", Ok(())),
        (
            "core,run",
            Err(
                "`run` is not a group of tools: core, reservations, commands, runs, runners, asks, spawn, channels, codex, \
                 subagents, atm",
            ),
        ),
    ] {
        assert_eq!(
            text.parse::<Profile>().map(|_| ()).map_err(|error| error.to_string()),
            expected.map_err(str::to_owned)
        );
    }
}

#[tokio::test]
async fn each_further_group_costs_little() {
    let world = World::new();
    let client = world.client_with("a-client", crate::ClientProcess::default(), everything()).await;
    let tools = client.0.list_all_tools().await.expect("listed");
    let tools: Vec<Value> = tools.iter().map(|tool| serde_json::to_value(tool).expect("a tool is JSON")).collect();
    let bytes: usize = tools.iter().map(super::budget::cost).sum();
    assert!(bytes / 4 <= 1_700, "{bytes} bytes are {} tokens", bytes / 4);
}
