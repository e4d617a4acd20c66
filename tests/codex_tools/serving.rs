//! The same tools over HTTP, by a server that many clients share, and with a program of Codex that the settings name.

use serde_json::{Value, json};
use test_support::{Host, HttpClient, Program, isolated, wait_or_show};

use super::{allowed, echo, row, scene};

fn called(client: &mut HttpClient, tool: &str, arguments: &Value) -> Value {
    client.request("tools/call", &json!({"name": tool, "arguments": arguments}))["result"]["structuredContent"].clone()
}

#[test]
fn f12_f13_a_server_over_http_has_the_same_tools() {
    isolated(|| {
        let scene = scene(echo());
        allowed(&scene, "lead");
        allowed(&scene, "other");
        let (home, real) = (&scene.stage.home, scene.stage.programs().join("codex"));
        // Codex of the settings, which notes that it was it.
        let named = home.join("named-codex");
        let note = format!("#!/bin/sh\necho named >> {}/used\nexec {} \"$@\"\n", home.display(), real.display());
        std::fs::write(&named, note).expect("written");
        Program::new("chmod").args(["+x"]).arg(&named).succeed();
        let settings = format!("[codex]\nprogram = \"{}\"\n", named.display());
        std::fs::write(home.join(".config/relay-mesh/config.toml"), settings).expect("written");

        let flags = ["--tools", "core,codex", "--identity", "reviewer", "--timeout", "2m"];
        let host = Host::start_with(&scene.stage, &flags, &scene.environment());
        let mut lead = host.client("a-client");
        lead.call("register_agent", json!({"name": "lead"}));
        let folder = scene.stage.project_path();
        let first = called(&mut lead, "codex", &json!({"prompt": "The word is plum", "cwd": folder}));
        assert_eq!(first["content"], "Said: The word is plum", "{first}\n{}", scene.told());
        let thread = first["threadId"].as_str().expect("a thread").to_owned();
        assert!(home.join("used").exists(), "the program of the settings was started");
        assert_eq!(row(&scene, &thread)["agent"], "reviewer");
        let again = called(&mut lead, "codex-reply", &json!({"threadId": thread, "prompt": "Which word?"}));
        assert_eq!(again["content"], "Said: Which word?", "{again}");

        // Another client of the same server has threads of its own, and sees none of the first one's.
        let mut other = host.client("another-client");
        other.call("register_agent", json!({"name": "other"}));
        let second = called(&mut other, "codex", &json!({"prompt": "Hello", "cwd": folder}));
        assert_eq!(row(&scene, second["threadId"].as_str().expect("a thread"))["agent"], "reviewer-2", "{second}");
        let seen = called(&mut other, "codex_threads", &json!({}));
        assert_eq!(seen["threads"].as_array().map(Vec::len), Some(1), "{seen}");

        // The end of the server is that of its threads, summed up.
        let mut process = host.process;
        Program::new("kill").args(["-TERM", &process.child.id().to_string()]).succeed();
        assert_eq!(process.ended(), Some(0));
        let is_closed = || (row(&scene, &thread)["status"] == "closed").then_some(());
        wait_or_show("it is closed", is_closed, || scene.told());
        scene.nothing_is_left();
    });
}
