//! Cursor as its documentation describes it: a shell runs the installed hooks with payloads of the documented shapes,
//! around calls to the installed server. Cursor itself cannot be run here; plugins/cursor/README.md lists what is
//! therefore untested.

use serde_json::{Map, Value, json};
use test_support::{Program, Stage, StdioClient, ToolAnswer, isolated};

/// What Cursor does with arguments of an MCP tool that a hook rewrote. Its documentation says that it passes them on;
/// we know of no measurement.
#[derive(Clone, Copy, Debug)]
enum Rewritten {
    Passed,
    Dropped,
}

/// One window of Cursor: one server process, any number of conversations.
struct Window<'a> {
    stage: &'a Stage,
    server: StdioClient,
    rewritten: Rewritten,
}

impl<'a> Window<'a> {
    fn open(stage: &'a Stage, rewritten: Rewritten) -> Window<'a> {
        let settings = jsonc(stage, ".cursor/mcp.json");
        let server = &settings["mcpServers"]["relay-mesh"];
        let arguments: Vec<&str> = list(&server["args"]).iter().filter_map(Value::as_str).collect();
        let mark = server["env"]["RELAY_MESH_CURSOR"].as_str().expect("the server is told whom it serves");
        let running = stage.relay(&arguments).env("RELAY_MESH_CURSOR", mark).start(&stage.folder.join("server.log"));
        Window { stage, server: StdioClient::connected(running, "a-name-of-the-command-line"), rewritten }
    }

    /// Runs every hook of an event that is installed in the project and returns their answers.
    fn hook(&self, conversation: &str, event: &str, fields: Value) -> Value {
        let payload = payload(self.stage, conversation, event, fields);
        let settings = jsonc(self.stage, ".cursor/hooks.json");
        let mut answer = Map::new();
        for entry in list(&settings["hooks"][event]) {
            let command = entry["command"].as_str().expect("a hook has a command");
            let printed = Program::new("sh")
                .args(["-c", command])
                .envs(self.stage.environment())
                .env("RELAY_MESH_BIN", self.stage.binary())
                .env("CURSOR_VERSION", "3.18.25")
                .env("CURSOR_PROJECT_DIR", &self.stage.project)
                .env("CLAUDE_PROJECT_DIR", &self.stage.project)
                .within(&self.stage.project)
                .input(payload.to_string())
                .succeed();
            let printed: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed:?}"));
            answer.extend(printed.as_object().expect("an answer is one object").clone());
        }
        Value::Object(answer)
    }

    /// A conversation calls one of our tools. Returns the tool's answer and the text that a hook added.
    fn call(&mut self, conversation: &str, tool: &str, arguments: &Value) -> (ToolAnswer, String) {
        let fields =
            json!({"tool_name": format!("MCP:{tool}"), "tool_input": arguments, "tool_use_id": "call-0\nfc_0"});
        let before = self.hook(conversation, "preToolUse", fields.clone());
        assert_eq!(before.get("permission"), None, "what the person would be asked is not ours to allow");
        let told = json!({"tool_name": tool, "tool_input": arguments.to_string(), "mcp_server_name": "relay-mesh"});
        assert_eq!(self.hook(conversation, "beforeMCPExecution", told), json!({}));
        let sent = match (self.rewritten, before.get("updated_input")) {
            (Rewritten::Passed, Some(updated)) => updated.clone(),
            (Rewritten::Passed, None) => panic!("no ticket for {tool} {arguments}"),
            (Rewritten::Dropped, _) => arguments.clone(),
        };
        let answer = self.server.call(tool, sent);
        let after = self.hook(conversation, "postToolUse", fields);
        (answer, after["additional_context"].as_str().unwrap_or_default().to_owned())
    }

    fn register(&mut self, conversation: &str, name: &str) -> String {
        self.hook(conversation, "sessionStart", json!({"is_background_agent": false}));
        self.hook(conversation, "beforeSubmitPrompt", json!({"prompt": format!("Join as {name}."), "attachments": []}));
        let (answer, context) = self.call(conversation, "register_agent", &json!({"name": name}));
        assert!(!answer.failed, "{answer:?}");
        let name = answer.structured["name"].as_str().expect("a name").to_owned();
        assert!(context.starts_with(&format!("You are `{name}` on the relay-mesh.")), "{context}");
        name
    }

    /// A conversation's turn ends; returns the text that is submitted next.
    fn stop(&self, conversation: &str, status: &str, loop_count: u32) -> String {
        let answer = self.hook(conversation, "stop", json!({"status": status, "loop_count": loop_count}));
        answer["followup_message"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn two_conversations_of_one_window_are_two_agents() {
    isolated(|| {
        for rewritten in [Rewritten::Passed, Rewritten::Dropped] {
            let stage = installed();
            let mut window = Window::open(&stage, rewritten);
            assert_eq!(window.register("c1", "alice"), "alice");
            assert_eq!(window.register("c2", "bob"), "bob");
            // Each keeps its identity, though both use one connection and the other called last.
            for (conversation, name) in [("c1", "alice"), ("c2", "bob"), ("c1", "alice")] {
                let (again, _) = window.call(conversation, "register_agent", &json!({"name": "mallory"}));
                assert_eq!((&again.structured["name"], &again.structured["outcome"]), (&json!(name), &json!("same")));
            }
            let (sent, _) = window.call("c1", "send_message", &json!({"to": "bob", "body": "From the first."}));
            let id = sent.structured["id"].as_str().expect("an id").to_owned();
            let (_, context) = window.call("c1", "list_agents", &json!({}));
            assert_eq!(context, "", "the sender's own tools bring no mail");
            let (fetched, _) = window.call("c2", "fetch_messages", &json!({"acknowledge": true}));
            assert!(fetched.text.contains("From the first."), "{rewritten:?}: {}", fetched.text);
            assert_eq!(
                statuses(&stage, &id),
                ["stored", "read by fetch", "acknowledged by acknowledge"],
                "{rewritten:?}"
            );
            // A call that no hook saw has no agent, even if one registered on this connection.
            let stranger = window.server.call("send_message", json!({"to": "bob", "body": "Unseen."}));
            assert!(stranger.failed, "{stranger:?}");
        }
    });
}

#[test]
fn mail_comes_after_a_tool_or_at_the_end_of_a_turn_and_once() {
    isolated(|| {
        let stage = installed();
        let mut window = Window::open(&stage, Rewritten::Passed);
        window.register("c1", "alice");
        let first = send(&stage, "After the next tool.");
        let shell =
            json!({"tool_name": "Shell", "tool_input": {"command": "pwd"}, "tool_output": "{}", "tool_use_id": "t"});
        let context = window.hook("c1", "postToolUse", shell.clone());
        assert!(context["additional_context"].as_str().is_some_and(|text| text.contains("After the next tool.")));
        assert_eq!(window.hook("c1", "postToolUse", shell), json!({}), "and not again");
        let handed_over = ["stored", "accepted by hook:postToolUse"];
        assert_eq!(statuses(&stage, &first), handed_over, "nothing was notified that was not");

        let second = send(&stage, "Before you go.");
        assert_eq!(window.stop("c1", "aborted", 0), "", "a turn that was broken off is not gone on with");
        assert_eq!(statuses(&stage, &first), handed_over, "and proves nothing");
        assert_eq!(window.stop("c1", "completed", 5), "", "Cursor would not go on a sixth time");
        assert!(window.stop("c1", "completed", 4).contains("Before you go."));
        let by_tool = ["stored", "accepted by hook:postToolUse", "shown by hook:postToolUse"];
        assert_eq!(statuses(&stage, &first), by_tool, "the turn has ended by itself");
        assert_eq!(window.stop("c1", "completed", 0), "", "and not again");
        assert_eq!(statuses(&stage, &second), ["stored", "accepted by hook:stop", "shown by hook:stop"]);
    });
}

#[test]
fn mail_for_a_conversation_that_was_closed_waits_for_it() {
    isolated(|| {
        let stage = installed();
        let mut window = Window::open(&stage, Rewritten::Passed);
        window.register("c1", "alice");
        window.hook("c1", "sessionEnd", json!({"reason": "user_close", "duration_ms": 1}));
        drop(window);
        let id = send(&stage, "While you were away.");
        let mut window = Window::open(&stage, Rewritten::Passed);
        assert_eq!(window.register("c2", "alice"), "alice-2", "another conversation does not get the name");
        window.hook("c1", "beforeSubmitPrompt", json!({"prompt": "Anything new?", "attachments": []}));
        assert!(window.stop("c1", "completed", 0).contains("While you were away."));
        assert_eq!(statuses(&stage, &id), ["stored", "accepted by hook:stop"]);
        let (again, _) = window.call("c1", "register_agent", &json!({"name": "alice"}));
        assert_eq!(again.structured["outcome"], "same");
    });
}

#[test]
fn claude_codes_hooks_say_nothing_when_cursor_runs_them() {
    isolated(|| {
        let stage = installed();
        stage.relay_ok(&["install", "claude-code", "--project", &project(&stage), "--yes"]);
        let mut window = Window::open(&stage, Rewritten::Passed);
        window.register("c1", "alice");
        send(&stage, "Once is enough.");
        // As Cursor runs them: its own payload, or with the fields under Claude Code's names too.
        let both = json!({"status": "completed", "loop_count": 0, "cwd": project(&stage), "stop_hook_active": false});
        let claude = stage
            .relay(&["hook", "claude-code", "Stop"])
            .env("CURSOR_VERSION", "3.18.25")
            .input(payload(&stage, "c1", "stop", both).to_string())
            .run();
        assert_eq!((claude.code, claude.stdout.as_str(), claude.stderr.as_str()), (Some(0), "", ""));
        assert!(window.stop("c1", "completed", 0).contains("Once is enough."));
        assert!(stage.data.join("sessions/cursor").is_dir(), "sessions are kept by harness");
        assert!(!stage.data.join("sessions/claude-code").exists(), "no session of Claude Code was seen");
    });
}

#[test]
fn without_hooks_a_window_is_one_agent() {
    isolated(|| {
        let stage = installed();
        let mut window = Window::open(&stage, Rewritten::Dropped);
        let joined = window.server.call("register_agent", json!({"name": "alice"}));
        assert!(!joined.failed, "{joined:?}");
        send(&stage, "Fetch me.");
        let fetched = window.server.call("fetch_messages", json!({}));
        assert!(fetched.text.contains("Fetch me."), "{fetched:?}");
    });
}

#[test]
fn every_tool_with_all_that_it_takes_gets_a_ticket() {
    isolated(|| {
        let stage = installed();
        let mut window = Window::open(&stage, Rewritten::Passed);
        let listed = window.server.request("tools/list", &json!({}));
        let matcher = jsonc(&stage, ".cursor/hooks.json")["hooks"]["preToolUse"][0]["matcher"].to_string();
        let tools = list(&listed["result"]["tools"]);
        assert!(tools.len() >= 8, "{listed}");
        for tool in tools {
            let name = tool["name"].as_str().expect("a tool has a name");
            let takes = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
            let arguments: Map<String, Value> = takes.keys().map(|name| (name.clone(), json!("x"))).collect();
            let fields = json!({"tool_name": format!("MCP:{name}"), "tool_input": arguments, "tool_use_id": "t"});
            let answer = window.hook("c1", "preToolUse", fields);
            assert!(answer["updated_input"]["_relay"]["ticket"].is_object(), "{name} {arguments:?}: {answer}");
            assert!(
                matcher.contains(&format!("{name}|")) || matcher.contains(&format!("{name})")),
                "{name}: {matcher}"
            );
        }
    });
}

#[test]
fn taken_out_again_everything_is_as_it_was() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let theirs = [
            (
                ".cursor/hooks.json",
                "{\n  // ours\n  \"version\": 1,\n  \"hooks\": { \"stop\": [{ \"command\": \"true\" }] }\n}\n",
            ),
            (".cursor/mcp.json", "{\"mcpServers\": {\"other\": {\"url\": \"https://example.org/mcp\"}}}"),
        ];
        for folder in [&stage.project, &stage.home] {
            std::fs::create_dir_all(folder.join(".cursor")).expect("the stage is writable");
            for (path, text) in theirs {
                std::fs::write(folder.join(path), text).expect("the stage is writable");
            }
        }
        for (scope, folder) in [(vec!["--project", "."], &stage.project), (vec!["--user"], &stage.home)] {
            let folder = folder.join(".cursor");
            let before = stage.tree(&folder);
            let relay = |verb: &str| stage.relay_ok(&[&[verb, "cursor"], scope.as_slice(), &["--yes"]].concat());
            relay("install");
            let installed = stage.tree(&folder);
            assert_ne!(installed, before);
            relay("install");
            assert_eq!(stage.tree(&folder), installed, "a second install changes nothing");
            relay("uninstall");
            assert_eq!(stage.tree(&folder), before, "byte for byte");
        }
    });
}

#[test]
fn doctor_says_what_makes_cursor_pass_over_its_hooks() {
    isolated(|| {
        let stage = installed();
        let hooks = stage.project.join(".cursor/hooks.json");
        let text = std::fs::read_to_string(&hooks).expect("hooks are installed");
        std::fs::write(&hooks, text.replacen("\"stop\"", "\"onStop\"", 1)).expect("the stage is writable");
        let told = stage.run(&["doctor", "cursor"]).stdout;
        assert!(told.contains("ignores all of .cursor/hooks.json"), "{told}");
        assert!(told.contains("`onStop`"), "{told}");
    });
}

fn installed() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["install", "cursor", "--project", &project(&stage), "--yes"]);
    stage
}

fn project(stage: &Stage) -> String {
    stage.project.display().to_string()
}

/// A settings file as Cursor reads it: text after `//` is a comment.
fn jsonc(stage: &Stage, path: &str) -> Value {
    let text = std::fs::read_to_string(stage.project.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let stripped: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or(line)).collect();
    serde_json::from_str(&stripped.join("\n")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A payload with the fields that every hook has.
fn payload(stage: &Stage, conversation: &str, event: &str, fields: Value) -> Value {
    let mut payload = json!({
        "conversation_id": conversation,
        "generation_id": "g1",
        "model": "default",
        "session_id": conversation,
        "hook_event_name": event,
        "cursor_version": "3.18.25",
        "workspace_roots": [project(stage)],
        "transcript_path": null,
    });
    for (name, value) in fields.as_object().cloned().unwrap_or_default() {
        payload[name] = value;
    }
    payload
}

/// Sends to alice from the command line and returns the message's id.
fn send(stage: &Stage, body: &str) -> String {
    let sent: Value =
        serde_json::from_str(&stage.relay_ok(&["send", "alice", body, "--json"])).expect("--json writes JSON");
    sent["id"].as_str().expect("a message has an id").to_owned()
}

/// The statuses that a message reached, with their routes.
fn statuses(stage: &Stage, id: &str) -> Vec<String> {
    let status: Value = serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("--json writes JSON");
    let step = |step: &Value| match step["route"].as_str() {
        Some(route) => format!("{} by {route}", step["status"].as_str().unwrap_or_default()),
        None => step["status"].as_str().unwrap_or_default().to_owned(),
    };
    list(&status["recipients"][0]["history"]).iter().map(step).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
