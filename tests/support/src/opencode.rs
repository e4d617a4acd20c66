//! The real OpenCode, pinned in tests/package.json, against the scripted model.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::claude_code::Headless;
use crate::lines::Lines;
use crate::mcp_http::HttpClient;
use crate::model::Model;
use crate::programs::{Program, Running};
use crate::stage::Stage;
use crate::terminal::Terminal;
use crate::waiting::wait_for;

/// The client in a stage's project.
pub struct OpenCode<'a> {
    stage: &'a Stage,
    environment: Vec<(String, String)>,
}

impl<'a> OpenCode<'a> {
    /// Prepares the client: two models of one provider, both scripted, with everything that would call home switched
    /// off. Its settings are in no file that an installation changes.
    pub fn new(stage: &'a Stage, model: &Model) -> OpenCode<'a> {
        let settings = json!({
            "$schema": "https://opencode.ai/config.json",
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Scripted",
                "options": {"baseURL": format!("http://127.0.0.1:{}/v1", model.port), "apiKey": "opens-nothing"},
                // Without a price it counts no cost.
                "models": {"one": {"name": "One", "cost": {"input": 1, "output": 1}}, "two": {"name": "Two"}},
            }},
            "model": "scripted/one",
            "small_model": "scripted/one",
        });
        let file = stage.folder.join("opencode-model.json");
        std::fs::write(&file, settings.to_string()).expect("the stage is writable");
        // To read its own list of all models takes it five seconds of a processor at each start.
        let catalogue = stage.folder.join("opencode-models.json");
        std::fs::write(&catalogue, "{}").expect("the stage is writable");
        let mut environment = stage.environment();
        environment.extend(
            [
                ("OPENCODE_CONFIG", file.display().to_string()),
                ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
                ("OPENCODE_MODELS_PATH", catalogue.display().to_string()),
                // It fetches type definitions for plugins into each of its folders and waits for them.
                ("npm_config_fetch_retries", "0".to_owned()),
                ("TERM", "xterm-256color".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        OpenCode { stage, environment }
    }

    /// The client's executable.
    pub fn program_path() -> PathBuf {
        client()
    }

    /// The variables with which a user starts it.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Sets a further variable, as a user does before starting it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> OpenCode<'a> {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it headless with one prompt.
    pub fn ask(&self, prompt: &str, further: &[&str]) -> Headless {
        // One argument with spaces would reach the model in quotes.
        let outcome = self.program(&["run", "--format", "json"]).args(further).input(prompt).run();
        let events = outcome.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let (mut session, mut result) = (String::new(), String::new());
        for event in events {
            if let Some(id) = event["sessionID"].as_str() {
                id.clone_into(&mut session);
            }
            if let Some(words) = event["part"]["text"].as_str().filter(|_| event["type"] == "text") {
                words.clone_into(&mut result);
            }
        }
        Headless { outcome, session, result }
    }

    /// Starts it in a terminal and waits until it takes a prompt.
    pub fn open(&self, further: &[&str]) -> Terminal {
        let mut program = vec![client().display().to_string()];
        program.extend(further.iter().map(|word| (*word).to_owned()));
        let terminal = Terminal::start(&self.stage.folder, &self.stage.project, &self.environment, &program);
        terminal.wait_for("ctrl+p");
        terminal
    }

    /// Starts its server and waits until it listens.
    ///
    /// # Panics
    /// If it ends before that.
    pub fn serve(&self) -> Served {
        let log = self.stage.folder.join("opencode-serve.log");
        let mut process = self.program(&["serve", "--hostname", "127.0.0.1"]).start(&log);
        let lines = Lines::of(process.child.stdout.take().expect("its output is a pipe"));
        let port = loop {
            let line = lines.next().unwrap_or_else(|| {
                panic!("the server ended: {}", std::fs::read_to_string(&log).unwrap_or_default());
            });
            if let Some((_, port)) = line.rsplit_once("listening on http://127.0.0.1:") {
                break port.trim().parse().expect("a port");
            }
        };
        let mut http = HttpClient::new(port, None);
        if let Some((_, password)) = self.environment.iter().find(|(name, _)| name == "OPENCODE_SERVER_PASSWORD") {
            http.header("authorization", Some(&format!("Basic {}", base64(&format!("opencode:{password}")))));
        }
        Served { port, process, http, _lines: lines }
    }

    /// Kills the `relay-mesh listen` process of its connector.
    ///
    /// # Panics
    /// If there is not exactly one.
    pub fn end_listener() {
        let listening = |process: &Path| {
            let line = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
            line.contains("\0listen\0--harness\0opencode")
        };
        let processes = std::fs::read_dir("/proc").expect("there is a /proc").flatten().map(|entry| entry.path());
        let found: Vec<_> = processes.filter(|process| listening(process)).collect();
        assert_eq!(found.len(), 1, "one connector listens for the whole process");
        let pid = found[0].file_name().expect("a process has a number").to_owned();
        Program::new("kill").arg("-KILL").arg(pid).succeed();
        // The killed process may run a moment longer, and then remain as an unreaped zombie.
        wait_for("it has ended", || {
            let line = std::fs::read_to_string(found[0].join("stat")).unwrap_or_default();
            let state = line.rsplit(')').next().and_then(|fields| fields.split_whitespace().next());
            matches!(state, None | Some("Z" | "X")).then_some(())
        });
    }

    /// Disables its connector by removing the program that it starts.
    pub fn disconnect(stage: &Stage) {
        let local = stage.project.join(".opencode/relay-mesh.local.json");
        std::fs::write(local, r#"{"program": ["/nowhere/relay-mesh"]}"#).expect("the project is writable");
        OpenCode::end_listener();
    }

    /// The client's version, as it reports it.
    pub fn version(stage: &Stage) -> String {
        Program::new(client()).arg("--version").envs(stage.environment()).succeed()
    }

    fn program(&self, arguments: &[&str]) -> Program {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        Program::new(client()).args(arguments).envs(environment).within(&self.stage.project)
    }
}

/// A server of many sessions, used over its HTTP API as the user's programs do.
pub struct Served {
    /// The port it listens on.
    pub port: u16,
    /// The server process.
    pub process: Running,
    http: HttpClient,
    /// Drained, so that it can keep writing.
    _lines: Lines,
}

impl Served {
    /// Begins a session and returns its id.
    pub fn session(&self) -> String {
        let session = self.post("/session", &json!({}));
        session["id"].as_str().expect("a session has an id").to_owned()
    }

    /// Sends a prompt to one of a session's agents and waits for the end of the turn.
    pub fn say(&self, session: &str, agent: &str, words: &str) {
        let model = json!({"providerID": "scripted", "modelID": "two"});
        let body = json!({"agent": agent, "model": model, "parts": [{"type": "text", "text": words}]});
        self.post(&format!("/session/{session}/message"), &body);
    }

    /// Sends a prompt in a session and does not wait.
    pub fn begin(&self, session: &str, words: &str) {
        let body = json!({"parts": [{"type": "text", "text": words}]});
        self.http.post(&format!("/session/{session}/prompt_async"), &body.to_string());
    }

    /// Compacts a session: replaces its history by a summary.
    pub fn compact(&self, session: &str) {
        let model = json!({"providerID": "scripted", "modelID": "one"});
        self.post(&format!("/session/{session}/summarize"), &model);
    }

    /// Forks a session and returns the new id.
    pub fn fork(&self, session: &str) -> String {
        let fork = self.post(&format!("/session/{session}/fork"), &json!({}));
        fork["id"].as_str().expect("a session has an id").to_owned()
    }

    /// The messages of a session.
    pub fn messages(&self, session: &str) -> Vec<Value> {
        let answer = self.http.get(&format!("/session/{session}/message")).expect("the server answers");
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    /// Waits until a session is idle.
    pub fn wait_until_idle(&self, session: &str) {
        wait_for("the session is idle", || {
            let answer = self.http.get("/session/status").expect("the server answers");
            let busy: Value = serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
            busy[session].is_null().then_some(())
        });
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.http.post(path, &body.to_string());
        assert!(answer.status == 200, "{path}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{path}: {error}: {answer:?}"))
    }
}

/// Base64, for basic authentication.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut written = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or_default()));
        for at in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]);
            written.push(if at <= three.len() { letter } else { '=' });
        }
    }
    written
}

/// The client's executable for this platform, which npm puts beside its wrapper: one for processors of the last ten
/// years, one for older ones.
fn client() -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules");
    let modern =
        std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|cpu| cpu.contains("avx2") || !cpu.contains("flags"));
    let baseline = |path: &Path| path.to_string_lossy().contains("-baseline");
    let found = std::fs::read_dir(&modules).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = found
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("opencode-")))
        .filter(|path| baseline(path) != modern)
        .map(|path| path.join("bin/opencode"))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("there is no OpenCode under {}; run `tests/setup` first", modules.display()))
}
