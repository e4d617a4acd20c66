//! Codex, and any agent that can be driven, as MCP tools: the conversation by `codex` and `codex-reply`, what a thread is
//! told, what is kept of it, who may begin one, and what is left when anybody is killed. With the real Codex and the real
//! Claude Code, their models scripted.

#[path = "codex_tools/faults.rs"]
mod faults;
#[path = "codex_tools/serving.rs"]
mod serving;

use serde_json::{Value, json};
use test_support::{
    ClaudeCode, Client, Codex, Model, ModelAnswer, Program, Script, Spawning, Stage, StdioClient, isolated, send_with,
    wait_for, wait_or_show,
};

fn scene(script: Script) -> Spawning {
    let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), "codex", script);
    git(&scene, &["init", "--quiet", "--initial-branch", "main"]);
    scene
}

fn git(scene: &Spawning, words: &[&str]) {
    let top = scene.stage.project_path();
    Program::new("git").args(["-C", &top]).args(words).envs(scene.stage.environment()).succeed();
}

/// A model that answers everything with what it was asked last, beside what relay-mesh and Codex tell it.
fn echo() -> Script {
    const TOLD: [&str; 7] = ["<", "You are the agent", "Team: ", "Repository", "Branch: ", "Folder: ", "Mail: "];
    Script::new().otherwise(|news| {
        let is_asked = |line: &&str| !line.is_empty() && !TOLD.iter().any(|told| line.starts_with(told));
        let last = news.lines().map(str::trim).rfind(is_asked).unwrap_or_default();
        ModelAnswer::Say(if news.contains("being dismissed") {
            "It greeted.".to_owned()
        } else {
            format!("Said: {last}")
        })
    })
}

/// A client of a server of ours that shows these tools, joined under a name.
fn joined(scene: &Spawning, name: &str, words: &[&str]) -> StdioClient {
    let server = scene.stage.relay(&[&["mcp", "--tools", "codex,subagents"], words].concat()).envs(scene.environment());
    let server = server.by_hand();
    let mut client = StdioClient::connected(server.start(&scene.stage.folder.join(format!("{name}.log"))), "a-client");
    client.call("register_agent", json!({"name": name}));
    client
}

fn allowed(scene: &Spawning, name: &str) {
    let allowed = scene.relay(&["spawn", "allow", name, "codex", "--reach", "edit"]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
}

fn called(client: &mut StdioClient, tool: &str, arguments: &Value) -> Value {
    client.request("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// A call that succeeds: its thread and what it says.
fn told(scene: &Spawning, client: &mut StdioClient, tool: &str, arguments: &Value) -> (String, String) {
    let result = called(client, tool, arguments);
    let told = &result["structuredContent"];
    let thread = told["threadId"].as_str().unwrap_or_else(|| panic!("{result}\n{}", scene.told()));
    (thread.to_owned(), told["content"].as_str().unwrap_or_default().to_owned())
}

/// The rows of the registry.
fn rows(scene: &Spawning, further: &[&str]) -> Vec<Value> {
    scene.ok(&[&["codex", "threads"], further].concat())["threads"].as_array().cloned().unwrap_or_default()
}

fn row(scene: &Spawning, thread: &str) -> Value {
    let found = rows(scene, &[]).into_iter().find(|row| row["thread_id"] == thread);
    found.unwrap_or_else(|| panic!("no thread {thread}: {:?}", rows(scene, &[])))
}

/// The same once its turn is known to be over: its answer comes before that.
fn idle_row(scene: &Spawning, thread: &str) -> Value {
    let idle = || Some(row(scene, thread)).filter(|row| row["status"] == "idle");
    wait_or_show("the thread is idle", idle, || scene.told())
}

fn audit(scene: &Spawning) -> Vec<Value> {
    let printed = scene.relay(&["log", "--type", "audit", "--json"]);
    printed.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The last request of an agent's turn.
fn last_request(model: &Model) -> String {
    let heard = model.heard();
    let last = heard.iter().rfind(|heard| heard.scripted).expect("a request");
    last.body.to_string()
}

#[test]
fn f1_f2_f5_f8_f9_f10_a_conversation_with_codex() {
    isolated(|| {
        let scene = scene(echo());
        allowed(&scene, "lead");
        let mut lead = joined(&scene, "lead", &["--aliases", "atm"]);
        let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        let (thread, said) = told(
            &scene,
            &mut lead,
            "codex",
            &json!({
                "prompt": format!("The token is {secret}\nSay hello"), "tag": "greeting", "base-instructions": "You are a test double.",
                "developer-instructions": "Be brief.", "compact-prompt": "Sum it up.", "approval-policy": "on-request",
                "sandbox": "read-only", "config": {"model_verbosity": "low"},
            }),
        );
        assert_eq!(said, "Said: Say hello");
        idle_row(&scene, &thread);
        let request = last_request(&scene.model);
        for part in ["You are a test double.", "Be brief.", "You are the agent `codex-1`", "Branch: main", "Folder: "] {
            assert!(request.contains(part), "{part}: {request}");
        }
        // What changed since is told with the next prompt, and mail waits until it is fetched.
        git(&scene, &["checkout", "--quiet", "-b", "topic"]);
        let turns = scene.model.heard().len();
        send_with(&scene.stage, "codex-1", "are you there?", &[]);
        let status = called(&mut lead, "codex_status", &json!({}))["structuredContent"].clone();
        assert_eq!((&status["child_alive"], &status["identity"]), (&json!(true), &json!("codex")), "{status}");
        assert_eq!(
            (&status["threads"][0]["pending_mail"], &status["active_threads"]),
            (&json!(1), &json!(0)),
            "{status}"
        );
        assert!(status["version"].as_str().is_some_and(|version| version.contains('.')), "{status}");
        assert_eq!(scene.model.heard().len(), turns, "mail begins no turn");
        let reply = json!({"threadId": thread, "prompt": "And again"});
        assert_eq!(told(&scene, &mut lead, "codex-reply", &reply), (thread.clone(), "Said: And again".to_owned()));
        let request = last_request(&scene.model);
        assert!(request.contains("Branch: topic") && request.contains("Mail: 1 unread"), "{request}");
        assert!(!request.contains("are you there?"), "{request}");
        let old_name = json!({"conversationId": thread, "prompt": "Third"});
        assert_eq!(told(&scene, &mut lead, "codex-reply", &old_name).1, "Said: Third");

        let listed = called(&mut lead, "codex_threads", &json!({"tag": "greeting"}))["structuredContent"].clone();
        let listed = &listed["threads"][0];
        assert_eq!((&listed["threadId"], &listed["branch"]), (&json!(thread), &json!("topic")), "{listed}");
        let kept = idle_row(&scene, &thread);
        for (field, value) in
            [("identity", "codex"), ("agent", "codex-1"), ("tag", "greeting"), ("status", "idle"), ("by", "lead")]
        {
            assert_eq!(kept[field], value, "{kept}");
        }
        assert_eq!(rows(&scene, &["--repo", kept["repo_name"].as_str().expect("a name")]).len(), 1);
        assert_eq!((rows(&scene, &["--repo", "other"]).len(), rows(&scene, &["--identity", "other"]).len()), (0, 0));

        // Mail by the names that others have for it; the sender is the caller, and nothing is marked by counting.
        let sent = called(&mut lead, "atm_send", &json!({"to": "codex-1", "message": "from lead", "summary": "hi"}));
        assert_ne!(sent["isError"], true, "{sent}");
        send_with(&scene.stage, "lead", "one", &[]);
        for _ in 0..2 {
            let count = called(&mut lead, "atm_pending_count", &json!({}))["structuredContent"].clone();
            assert_eq!(count, json!({"count": 1, "senders": {"shell": 1}}));
        }
        let read = called(&mut lead, "atm_read", &json!({"max_messages": 1, "max_message_length": 2}));
        assert_eq!(read["structuredContent"]["messages"][0]["message"], "on", "{read}");
        assert!(text(&read).contains("<relay"), "an envelope: {read}");
        assert_eq!(called(&mut lead, "relay_pending", &json!({}))["structuredContent"]["count"], 0);

        let audit = audit(&scene);
        let of = |tool: &str| audit.iter().filter(|line| line["tool"] == tool).cloned().collect::<Vec<_>>();
        let begun = &of("codex")[0];
        assert!(
            !begun.to_string().contains(secret) && begun["text"].as_str().is_some_and(|text| text.contains("[secret]"))
        );
        assert_eq!((&begun["by"], &begun["agent"]), (&json!("lead"), &json!("codex-1")), "{begun}");
        assert_eq!((of("codex-reply").len(), of("atm_send")[0]["to"][0].as_str()), (2, Some("codex-1")), "{audit:?}");
        assert_eq!((of("atm_pending_count").len(), of("atm_read").len()), (2, 1));
        assert!(audit.iter().all(|line| line["correlation"].as_str().is_some_and(|id| !id.is_empty())), "{audit:?}");

        // The end of the client: one turn of ours sums it up, and nothing runs any more.
        assert_eq!(lead.close(), Some(0));
        let kept = row(&scene, &thread);
        assert_eq!((&kept["status"], &kept["summed_up"]), (&json!("closed"), &json!(true)), "{}", scene.told());
        let summary = scene.relay(&["codex", "summary", &thread]);
        assert_eq!(summary.stdout.trim(), "It greeted.", "{summary:?}");
        scene.nothing_is_left();
    });
}

#[test]
fn f6_f7_f13_a_thread_goes_on_after_its_server() {
    isolated(|| {
        let scene = scene(echo());
        allowed(&scene, "lead");
        let mut lead = joined(&scene, "lead", &[]);
        let below = scene.stage.project.join("below");
        std::fs::create_dir_all(&below).expect("a folder");
        let (thread, _) = told(&scene, &mut lead, "codex", &json!({"prompt": "The word is plum", "cwd": "below"}));
        Program::new("kill").args(["-TERM", &lead.server.child.id().to_string()]).succeed();
        assert_eq!(lead.server.ended(), Some(0));
        assert_eq!(row(&scene, &thread)["status"], "closed", "{}", scene.told());
        scene.nothing_is_left();

        // Its last thread, natively: the harness has it whole. The folder is kept.
        let mut lead = joined(&scene, "lead", &["--resume"]);
        let resumed = told(&scene, &mut lead, "codex", &json!({"prompt": "Go on"}));
        assert_eq!(resumed, (thread.clone(), "Said: Go on".to_owned()), "{}", scene.told());
        let request = last_request(&scene.model);
        assert!(request.contains("The word is plum") && request.contains("project/below"), "{request}");
        // The next one is new.
        let (second, _) = told(&scene, &mut lead, "codex", &json!({"prompt": "Another"}));
        assert_ne!(second, thread);

        // The server is killed: what it began ends, and can be gone on with all the same.
        Program::new("kill").args(["-KILL", &lead.server.child.id().to_string()]).succeed();
        lead.server.ended();
        scene.nothing_is_left();
        let kept = row(&scene, &thread);
        assert_eq!(kept["status"], "interrupted", "{kept}");
        assert_eq!(row(&scene, &second)["agent"], "codex-2");
        let mut lead = joined(&scene, "lead", &[]);
        let again = told(&scene, &mut lead, "codex-reply", &json!({"threadId": thread, "prompt": "Still there?"}));
        assert_eq!(again, (thread.clone(), "Said: Still there?".to_owned()));
        assert_eq!(row(&scene, &thread)["agent"], "codex-1", "the name of a dead holder is free");
        assert_eq!(lead.close(), Some(0));
        scene.nothing_is_left();

        // The harness has lost it: what was summed up stands before the first turn of another, to which the old id leads.
        std::fs::remove_dir_all(scene.stage.home.join(".codex/sessions")).expect("they were there");
        let mut lead = joined(&scene, "lead", &[]);
        let (other, said) = told(&scene, &mut lead, "codex-reply", &json!({"threadId": thread, "prompt": "Once more"}));
        assert_eq!(said, "Said: Once more");
        assert_ne!(other, thread, "{}", scene.told());
        let request = last_request(&scene.model);
        assert!(request.contains("It greeted.") && !request.contains("The word is plum"), "{request}");
        let by_old_id = told(&scene, &mut lead, "codex-reply", &json!({"threadId": thread, "prompt": "By the old id"}));
        assert_eq!(by_old_id.0, other);
        assert_eq!(lead.close(), Some(0));
        scene.nothing_is_left();
    });
}

#[test]
fn f3_two_servers_have_one_identity_and_lose_nothing() {
    isolated(|| {
        let scene = scene(echo());
        for name in ["lead", "peer"] {
            allowed(&scene, name);
        }
        let mut lead = joined(&scene, "lead", &["--identity", "reviewer"]);
        let mut peer = joined(&scene, "peer", &["--identity", "reviewer"]);
        let (first, _) = told(&scene, &mut lead, "codex", &json!({"prompt": "One"}));
        let (second, _) = told(&scene, &mut peer, "codex", &json!({"prompt": "Two"}));
        assert_eq!(
            (&row(&scene, &first)["agent"], &row(&scene, &second)["agent"]),
            (&json!("reviewer"), &json!("reviewer-2"))
        );
        assert_eq!(rows(&scene, &["--identity", "reviewer"]).len(), 2);
        // Another's thread is unknown, whatever is said.
        let stolen = called(&mut peer, "codex-reply", &json!({"threadId": first, "prompt": "What did you say?"}));
        assert!(stolen["isError"] == true && text(&stolen).contains("you have begun no thread"), "{stolen}");
        let seen = called(&mut peer, "codex_threads", &json!({}))["structuredContent"]["threads"].clone();
        assert_eq!((seen.as_array().map(Vec::len), &seen[0]["threadId"]), (Some(1), &json!(second)));
        // The first holder dies without a word: its name is free again.
        Program::new("kill").args(["-KILL", &lead.server.child.id().to_string()]).succeed();
        lead.server.ended();
        wait_or_show("it is noted", || (row(&scene, &first)["status"] == "interrupted").then_some(()), || scene.told());
        let (third, _) = told(&scene, &mut peer, "codex", &json!({"prompt": "Three"}));
        assert_eq!(row(&scene, &third)["agent"], "reviewer");
        assert_eq!(peer.close(), Some(0));
        assert_eq!(
            (row(&scene, &second)["status"].clone(), row(&scene, &third)["status"].clone()),
            (json!("closed"), json!("closed"))
        );
        scene.nothing_is_left();
    });
}

#[test]
fn f12_only_what_the_user_allows_is_begun() {
    isolated(|| {
        let scene = scene(echo());
        let server = scene.stage.relay(&["mcp", "--tools", "codex"]).envs(scene.environment()).by_hand();
        let mut nobody = StdioClient::connected(server.start(&scene.stage.folder.join("nobody.log")), "a-client");
        let nameless = called(&mut nobody, "codex", &json!({"prompt": "Hello"}));
        assert!(text(&nameless).contains("you have not registered"), "{nameless}");
        assert_eq!(nobody.close(), Some(0));

        // The user is asked, and the call goes on with their answer.
        let mut lead = joined(&scene, "lead", &[]);
        let call = json!({"name": "codex", "arguments": {"prompt": "Hello", "developer-instructions": "Be brief."}});
        lead.write(&json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": call}).to_string());
        let asks = || scene.ok(&["asks"])["asks"].clone();
        let ask = wait_for("a question", || asks()[0]["what"].as_str().map(str::to_owned));
        assert!(ask.contains("Hello") && ask.contains("instructions: Be brief."), "{ask}");
        assert!(scene.ours().is_empty(), "nothing begins before the answer");
        assert_eq!(scene.relay(&["spawn", "approve"]).code, Some(0));
        let answer = loop {
            let answer = lead.read().expect("an answer");
            if answer["id"] == 77 {
                break answer["result"]["structuredContent"].clone();
            }
        };
        assert_eq!(answer["content"], "Said: Hello", "{answer} {}", scene.told());

        allowed(&scene, "lead");
        for (wide, why) in [
            (json!({"prompt": "x", "sandbox": "danger-full-access"}), "--reach unguarded"),
            (json!({"prompt": "x", "approval-policy": "never"}), "approval-policy=never"),
            (json!({"prompt": "x", "config": {"mcp_servers": {}}}), "config.mcp_servers"),
            (json!({"prompt": "x", "role": "nobody"}), "no role `nobody`"),
        ] {
            let refused = called(&mut lead, "codex", &wide);
            assert!(refused["isError"] == true && text(&refused).contains(why), "{refused}");
        }
        // The user's settings name a role, and the project's narrow it.
        let prompts = scene.stage.project.join("reviewer.md");
        std::fs::write(&prompts, "Review only.").expect("written");
        let user = "[codex]\nallow = [\"approval-policy=never\"]\n[roles.reviewer]\nharness = \"codex\"\nsandbox = \"workspace-write\"\n";
        std::fs::write(scene.stage.home.join(".config/relay-mesh/config.toml"), user).expect("written");
        let project = "[roles.reviewer]\nsandbox = \"read-only\"\ndeveloper-instructions = \"reviewer.md\"\n";
        std::fs::write(scene.stage.project.join(".relay-mesh.toml"), project).expect("written");
        assert_eq!(lead.close(), Some(0));
        let shown = scene.ok(&["config"])["settings"].clone();
        let origin =
            |key: &str| shown.as_array()?.iter().find(|line| line["key"] == key)?["origin"].as_str().map(str::to_owned);
        assert!(origin("roles.reviewer.sandbox").is_some_and(|from| from.ends_with(".relay-mesh.toml")), "{shown}");
        assert!(origin("roles.reviewer.harness").is_some_and(|from| from.ends_with("config.toml")), "{shown}");
        let mut lead = joined(&scene, "lead", &["--role", "reviewer"]);
        let (_, said) = told(&scene, &mut lead, "ask_agent", &json!({"prompt": "Look", "role": "reviewer"}));
        assert_eq!(said, "Said: Look");
        let request = last_request(&scene.model);
        assert!(request.contains("Review only.") && request.contains("read-only"), "{request}");
        assert_eq!(lead.close(), Some(0));
        scene.nothing_is_left();
    });
}

/// `make demo-codex-tools`
#[test]
fn f1_claude_asks_codex_and_codex_asks_claude() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        println!("A user lets the agent `coder` start Codex, and sets Claude Code up with the tools of Codex.");
        print!("{}", stage.relay_ok(&["spawn", "allow", "coder", "codex"]));
        let tools = ["--tools", "core,codex", "--yes"];
        stage.relay_ok(&[&["install", "claude-code", "--project", &stage.project_path()], &tools[..]].concat());
        let tool = |name| Client::ClaudeCode.tool(name);
        let thread = |news: &str| {
            let id = news.split(['"', '\'', '\\']).find(|word| word.len() == 36 && word.matches('-').count() == 4);
            json!({"threadId": id.unwrap_or_default(), "prompt": "Are you sure?"})
        };
        let model = Model::start(
            Script::new()
                .call("Have Codex review", &tool("register_agent"), json!({"name": "coder"}))
                .call("coder", &tool("codex"), json!({"prompt": "Review the last change."}))
                .say("Review the last change.", "One finding: a typo.")
                .call_with("One finding: a typo.", &tool("codex-reply"), thread)
                .say("Are you sure?", "Yes, in the first line.")
                .say("Yes, in the first line.", "Codex says: a typo in the first line.")
                .otherwise(|_| ModelAnswer::Say("I reviewed.".to_owned())),
        );
        let codex = Codex::new(&stage, &model);
        stage.client("codex", &stage.programs().join("codex"), codex.environment(), "");
        println!("Claude Code is asked to have Codex review. Its model is scripted, everything else is real.");
        let answer = Client::ClaudeCode.ask(&stage, &model, "Have Codex review the last change.", None);
        println!("Claude Code: {}", answer.result);
        let told = || model.heard().last().map(test_support::Heard::news);
        assert_eq!(answer.result, "Codex says: a typo in the first line.", "{:?}", told());
        let listed: Value = serde_json::from_str(&stage.relay_ok(&["codex", "threads", "--json"])).expect("JSON");
        println!("The thread: {}", listed["threads"][0]);
        assert_eq!((&listed["threads"][0]["by"], &listed["threads"][0]["agent"]), (&json!("coder"), &json!("codex-1")));
        nothing_is_left(&stage);
        println!("No process of it is left.");
    });
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        println!("The other way: Codex has Claude Code as its subagent.");
        stage.relay_ok(&["spawn", "allow", "coder", "claude"]);
        let install = ["install", "codex", "--project", &stage.project_path(), "--tools", "subagents", "--yes"];
        stage.relay_ok(&install);
        let model = Model::start(
            Script::new()
                .call("Ask Claude", &Codex::tool("register_agent"), json!({"name": "coder"}))
                .call(
                    "coder",
                    &Codex::tool("ask_agent"),
                    json!({"harness": "claude", "prompt": "What is this project called?"}),
                )
                .say("What is this project called?", "It is called `A project`.")
                .say("It is called `A project`.", "Claude says: it is called `A project`.")
                .otherwise(|_| ModelAnswer::Say("I answered.".to_owned())),
        );
        let claude = ClaudeCode::new(&stage, &model);
        stage.client("claude", &ClaudeCode::program_path(), claude.environment(), "");
        let answer = Client::Codex.ask(&stage, &model, "Ask Claude what this project is called.", None);
        println!("Codex: {}", answer.result);
        let told = || model.heard().last().map(test_support::Heard::news);
        assert_eq!(answer.result, "Claude says: it is called `A project`.", "{:?}", told());
        nothing_is_left(&stage);
        println!("No process of it is left.");
    });
}

/// Waits until no process of an agent that we started is left.
fn nothing_is_left(stage: &Stage) {
    let dir = format!("RELAY_DIR={}", stage.data.display()).into_bytes();
    let is_ours = |process: std::fs::DirEntry| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let has = |what: &dyn Fn(&[u8]) -> bool| environment.split(|byte| *byte == 0).any(what);
        has(&|line| line.starts_with(b"RELAY_SPAWN=")) && has(&|line| line == dir)
    };
    wait_for("nothing of the agents is left", || {
        let left = std::fs::read_dir("/proc").expect("a list").flatten().any(is_ours);
        (!left).then_some(())
    });
}
