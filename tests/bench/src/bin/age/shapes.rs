//! That the rig's records are the product's: a small folder by the real binary, one by the rig, and the keys of every
//! record of both, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use bench::client::StdioClient;
use bench::{Failure, programs};
use serde_json::{Value, json};
use store::{Key, Position, Store};

use crate::filling::{self, Stores};
use crate::folder;
use crate::options::Age;
use crate::records::key;
use crate::traffic::Span;

/// A hundredth of a day's volume has a record of each kind.
const DIVISOR: u64 = 10;
/// The two sessions of the product's own folder.
const ALICE: &str = "5b0c7f0e-4c2f-4a8e-9d0e-0d6d2b1f7a11";
const BOB: &str = "6b0c7f0e-4c2f-4a8e-9d0e-0d6d2b1f7a22";
/// Fields whose value says what kind of a line it is.
const TELLING: [&str; 3] = ["event", "status", "route"];

/// The shapes of the records of each kind.
type Shapes = BTreeMap<String, BTreeSet<String>>;

/// Compares both.
pub(crate) async fn check(program: &Path, scratch: &Path) -> Result<(), Failure> {
    let (own, rig) = (scratch.join("own"), scratch.join("rig"));
    let project = scratch.join("project");
    std::fs::create_dir_all(&project)?;
    Product { program, data: &own, project: &project }.play()?;
    let stores = |data: &Path| folder::stores(data, "a-machine".to_owned(), project.display().to_string(), None);
    let written = stores(&rig)?;
    filling::fill(&written, Span::of(Age::Day, DIVISOR, folder::now())).await?;
    let (own, rig) = (shapes(&stores(&own)?).await?, shapes(&written).await?);
    for (kind, shapes) in rig {
        let mut known = own.get(&kind).cloned().unwrap_or_default();
        if kind == "cursor" {
            // The rig leaves the part that older readers know. The first reader adds its checkpoint.
            known = known.iter().filter_map(|shape| Some(format!("{}}}", shape.split_once(",last")?.0))).collect();
        }
        if let Some(other) = shapes.difference(&known).next() {
            return Err(format!("the product writes no record `{kind}` like {other}, only these: {known:#?}").into());
        }
    }
    Ok(())
}

/// The shapes of everything that the rig writes, by kind.
async fn shapes(stores: &Stores) -> Result<Shapes, Failure> {
    let mut shapes = Shapes::new();
    let mut logs = vec![key(&["global"])?];
    for prefix in ["agents", "sessions", "ended", "work"] {
        for key in stores.local.list(&self::key(&[prefix])?).await? {
            let leaf = key.leaf();
            match prefix {
                "agents" if leaf == "meta" => {
                    let home = key.as_str().trim_end_matches("/meta");
                    logs.extend(
                        ["inbox", "receipts", "sent"].map(|log| format!("{home}/{log}").parse()).into_iter().flatten(),
                    );
                }
                "sessions" | "ended" => logs.push(key.as_str().replacen(prefix, "wakes", 1).parse()?),
                _ => {}
            }
            let value = stores.local.get(&key).await?.ok_or("a value that was listed is gone")?;
            let kind = match prefix {
                "agents" => leaf.as_str(),
                // A listing of the live ones has put it away.
                "ended" => "sessions",
                other => other,
            };
            note(&mut shapes, kind, &value.bytes)?;
        }
    }
    for log in logs {
        let kind = if log.as_str().starts_with("wakes") { "wakes".to_owned() } else { log.leaf() };
        for line in lines(&*stores.local, &log).await? {
            note(&mut shapes, &kind, &line)?;
        }
    }
    Ok(shapes)
}

async fn lines(store: &dyn Store, log: &Key) -> Result<Vec<Vec<u8>>, Failure> {
    let batch = store.read(log, Position::START, usize::MAX >> 1).await?;
    Ok(batch.entries.into_iter().map(|entry| entry.bytes).collect())
}

fn note(shapes: &mut Shapes, kind: &str, bytes: &[u8]) -> Result<(), Failure> {
    let shape = shape(&serde_json::from_slice(bytes)?);
    shapes.entry(kind.to_owned()).or_default().insert(shape);
    Ok(())
}

/// A record's keys in their order, with the types of their values.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Array(items) => format!("[{}]", items.first().map(shape).unwrap_or_default()),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| match TELLING.contains(&name.as_str()) {
                true => format!("{name}={value}"),
                false => format!("{name}:{}", shape(value)),
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
    }
}

/// The product, in a folder where two agents of Claude Code write to each other.
struct Product<'a> {
    program: &'a Path,
    data: &'a Path,
    project: &'a Path,
}

impl Product<'_> {
    /// Lets it write a record of each kind.
    fn play(&self) -> Result<(), Failure> {
        for session in [ALICE, BOB] {
            self.hook("SessionStart", session, json!({ "source": "startup" }))?;
        }
        let (mut alice, mut bob) = (self.client(ALICE)?, self.client(BOB)?);
        alice.call_tool("register_agent", &json!({ "name": "alice" }))?;
        bob.call_tool("register_agent", &json!({ "name": "bob" }))?;
        let mut answered = Value::Null;
        for number in 0..8 {
            let mut message = json!({ "to": ["bob"], "body": format!("The {number}th message.") });
            let extras = [
                ("tags", json!(["review"])),
                ("idempotency_key", json!(format!("k-{number}"))),
                ("reply_to", answered),
            ];
            for (place, (name, value)) in extras.into_iter().enumerate() {
                if number >> place & 1 == 1 {
                    message[name] = value;
                }
            }
            let sent = alice.call_tool("send_message", &message)?;
            let id = sent["structuredContent"]["id"].as_str().unwrap_or_default();
            match number {
                0 => {
                    self.hook("PostToolUse", BOB, json!({ "tool_name": "Read", "tool_input": {}, "tool_use_id": "t" }))?
                }
                1 => self.hook("UserPromptSubmit", BOB, json!({ "prompt": "Go on." }))?,
                _ => drop(bob.call_tool("fetch_messages", &json!({ "acknowledge": number % 2 == 0 }))?),
            }
            if number < 2 {
                // The next hook finds what this one carried in a request.
                self.requested(BOB, id)?;
                self.hook("Stop", BOB, json!({ "stop_hook_active": false }))?;
            }
            let reply = json!({ "to": ["alice"], "body": "Fine.", "reply_to": sent["structuredContent"]["id"] });
            answered = bob.call_tool("send_message", &reply)?["structuredContent"]["id"].clone();
            alice.call_tool("fetch_messages", &json!({}))?;
        }
        let acknowledged = json!({ "acknowledge_ids": [answered] });
        alice.call_tool("fetch_messages", &acknowledged)?;
        alice.finish()?;
        bob.finish()?;
        self.hook("SessionEnd", ALICE, json!({ "reason": "exit" }))?;
        for arguments in [&["register", "shelly"][..], &["send", "bob", "From a shell.", "--from", "shelly"]] {
            programs::output(
                programs::relay_mesh(self.program, self.data).current_dir(self.project).args(arguments),
                "",
            )?;
        }
        Ok(())
    }

    /// Claude Code's record of a session.
    fn transcript(&self, session: &str) -> PathBuf {
        self.data.with_extension("home").join(".claude/projects/bench").join(format!("{session}.jsonl"))
    }

    /// Notes, as Claude Code does, that a request to the model held a message.
    fn requested(&self, session: &str, id: &str) -> Result<(), Failure> {
        let path = self.transcript(session);
        std::fs::create_dir_all(path.parent().ok_or("a transcript lies in a folder")?)?;
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        text.push_str(&format!("{{\"type\":\"attachment\",\"content\":\"{id}\"}}\n{{\"type\":\"api-request\"}}\n"));
        Ok(std::fs::write(path, text)?)
    }

    fn hook(&self, event: &str, session: &str, mut payload: Value) -> Result<(), Failure> {
        payload["transcript_path"] = self.transcript(session).display().to_string().into();
        payload["session_id"] = session.into();
        payload["cwd"] = self.project.display().to_string().into();
        payload["hook_event_name"] = event.into();
        programs::output(self.relay(session).args(["hook", "claude-code", event]), &payload.to_string()).map(drop)
    }

    fn client(&self, session: &str) -> Result<StdioClient, Failure> {
        StdioClient::start(self.relay(session).arg("mcp"), "claude-code")
    }

    fn relay(&self, session: &str) -> Command {
        let mut relay = programs::relay_mesh(self.program, self.data);
        relay.current_dir(self.project);
        relay.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", session).env("CLAUDE_PROJECT_DIR", self.project);
        relay
    }
}

#[cfg(test)]
mod tests {
    use test_support::isolated;

    use super::*;

    #[test]
    fn the_rig_writes_what_the_product_writes() {
        isolated(|| {
            let (program, scratch) = bench::subject().unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(check(&program, &scratch.path().join("shapes"))).unwrap();
        });
    }

    #[test]
    fn a_shape_is_keys_types_and_what_kind_of_a_line_it_is() {
        let line = json!({ "message": "01", "at": 7, "event": "status", "evidence": { "reply": "02" }, "to": ["b"] });
        assert_eq!(shape(&line), r#"{message:text,at:number,event="status",evidence:{reply:text},to:[text]}"#);
    }
}
