//! Which session makes a call, and which sessions are alive.

use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::sessions::{Caller, Detection};
use relay_mesh_sdk::{Activity, Error, Session, Sessions};
use serde_json::Value;

use crate::{ClaudeCode, memory};

/// The field in `_meta` of tools/call in which Claude Code names the tool call.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

impl Sessions for ClaudeCode {
    /// Certain if our PreToolUse hook has just seen this call's tool use id in a session. Otherwise inherited from
    /// the environment that Claude Code gave our process.
    fn detect(seen: &Caller) -> Result<Option<Detection>, Error> {
        if let Some(id) = tool_use_id(seen)
            && let Some(session) = memory::take_call(&id)?
        {
            return Ok(Some(Detection::certain(session)));
        }
        let Some(started_in) = seen.variable("CLAUDE_CODE_SESSION_ID") else { return Ok(None) };
        let workdir = seen.workdir.as_deref().or(seen.variable("CLAUDE_PROJECT_DIR")).unwrap_or_default();
        Ok(Some(Detection::inherited(Session {
            process: seen.variable("CLAUDE_PID").and_then(|pid| pid.parse().ok()),
            ..Session::new(memory::current(started_in)?, workdir)
        })))
    }

    /// The client keeps a file for each of its processes, named by its pid, with the session that it shows now. A
    /// crashed process leaves its file behind; the host knows which processes run.
    fn discover() -> Result<Vec<Session>, Error> {
        Ok(listed()?.into_iter().map(|listed| listed.session).collect())
    }

    fn activity_of(id: &str) -> Result<Activity, Error> {
        let found = listed()?.into_iter().find(|listed| listed.session.id == id);
        let found = found.ok_or_else(|| Error::NotFound(format!("Claude Code lists no session `{id}`")))?;
        found.activity.ok_or_else(|| Error::Unsupported("Claude Code does not report what this session does".into()))
    }
}

/// A session in the client's own list.
struct Listed {
    session: Session,
    activity: Option<Activity>,
}

/// The folder of the client's own list, below its settings. Beside each file is one with a key, which we do not
/// read.
fn listed() -> Result<Vec<Listed>, Error> {
    let config = Root::open("config")?;
    let mut all = Vec::new();
    for entry in config.entries("sessions")? {
        let numbered = entry.name.strip_suffix(".json").is_some_and(|number| number.parse::<u32>().is_ok());
        if entry.directory || !numbered {
            continue;
        }
        // A file may be deleted or half-written now; the next call reads it whole.
        let text = config.read_text(&format!("sessions/{}", entry.name))?.unwrap_or_default();
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            all.extend(of_entry(&value));
        }
    }
    Ok(all)
}

fn of_entry(value: &Value) -> Option<Listed> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    // The list also has the client's own daemons.
    if !matches!(text("kind"), Some("interactive" | "bg")) {
        return None;
    }
    let process = u32::try_from(value.get("pid")?.as_u64()?).ok()?;
    let session = Session { process: Some(process), ..Session::new(text("sessionId")?, text("cwd")?) };
    let activity = match text("status") {
        Some("idle") => Some(Activity::Idle),
        Some("busy") => Some(Activity::Busy),
        Some("waiting") => Some(Activity::NeedsInput),
        Some(_) | None => None,
    };
    Some(Listed { session, activity })
}

fn tool_use_id(seen: &Caller) -> Option<String> {
    let meta: Value = serde_json::from_str(seen.meta.as_deref()?).ok()?;
    meta.get(TOOL_USE_ID)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::sessions::{Certainty, Transport};
    use relay_mesh_sdk::testing::Fakes;

    use super::*;

    fn caller(meta: Option<&str>, environment: &[(&str, &str)]) -> Caller {
        Caller {
            transport: Transport::Stdio,
            client_name: Some("claude-code".into()),
            client_version: Some("2.1.329".into()),
            meta: meta.map(str::to_owned),
            headers: Vec::new(),
            tool: Some("register_agent".into()),
            arguments: Some("{}".into()),
            environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            workdir: Some("/home/u/app".into()),
        }
    }

    /// Compares `certainty id parent`.
    #[track_caller]
    fn check(meta: Option<&str>, environment: &[(&str, &str)], expected: &str) {
        let detected = ClaudeCode::detect(&caller(meta, environment)).expect("it is detected");
        let told = detected.map_or("nobody".to_owned(), |Detection { session, certainty }| {
            let certainty = if certainty == Certainty::Certain { "Certain" } else { "Inherited" };
            format!("{certainty} {} {}", session.id, session.parent.as_deref().unwrap_or("-"))
        });
        assert_eq!(told, expected);
    }

    const CALL: &str = r#"{"claudecode/toolUseId":"toolu_1","progressToken":2}"#;
    const INHERITED: &[(&str, &str)] = &[("CLAUDE_CODE_SESSION_ID", "s1")];

    fn seen_by_hook(session: Session) {
        memory::remember_call("toolu_1", &session).expect("it is remembered");
    }

    #[test]
    fn a_call_that_the_hook_saw_is_certain_once() {
        let _host = Fakes::default().start();
        seen_by_hook(Session::new("s2", "/"));
        check(Some(CALL), INHERITED, "Certain s2 -");
        check(Some(CALL), INHERITED, "Inherited s1 -");
    }

    #[test]
    fn a_subagents_call_is_its_own() {
        let _host = Fakes::default().start();
        seen_by_hook(Session { parent: Some("s2".into()), ..Session::new("s2.a1", "/") });
        check(Some(CALL), INHERITED, "Certain s2.a1 s2");
    }

    #[test]
    fn another_call_proves_nothing() {
        let _host = Fakes::default().start();
        seen_by_hook(Session::new("s2", "/"));
        check(Some(r#"{"claudecode/toolUseId":"toolu_2"}"#), &[], "nobody");
        check(Some("not JSON"), INHERITED, "Inherited s1 -");
        check(None, &[], "nobody");
    }

    #[test]
    fn what_the_server_inherited_follows_a_clear() {
        let _host = Fakes::default().start();
        memory::follow("s1", "s2").expect("it is noted");
        memory::follow("s2", "s3").expect("it is noted");
        check(None, INHERITED, "Inherited s3 -");
        memory::follow("s3", "s1").expect("it is noted");
        check(None, INHERITED, "Inherited s1 -");
    }

    /// As 2.1.329 writes it, shortened.
    const ENTRY: &str = r#"{"pid":15,"sessionId":"s1","cwd":"/home/u/app","startedAt":1795275696376,"procStart":"1867631","version":"2.1.329","kind":"interactive","entrypoint":"cli","name":"app-33","status":"idle","updatedAt":1795275696635}"#;

    #[test]
    fn the_clients_own_list_says_who_lives() {
        let _host = Fakes::default()
            .file("config", "sessions/15.json", ENTRY)
            .file("config", "sessions/15.de4fe0e4.key", "{\"peerToken\":\"secret\"}")
            .file("config", "sessions/16.json", ENTRY.replace("s1", "s2").replace("15,", "16,").replace("idle", "busy"))
            .file("config", "sessions/17.json", ENTRY.replace("interactive", "daemon"))
            .file("config", "sessions/18.json", "{\"pid\":18,")
            .file("config", "sessions/19.json", ENTRY.replace("s1", "s3").replace("idle", "shrugging"))
            .start();
        let told = |session: &Session| format!("{} in {} of {:?}", session.id, session.workdir, session.process);
        let found: Vec<String> = ClaudeCode::discover().expect("it is listed").iter().map(told).collect();
        assert_eq!(
            found,
            ["s1 in /home/u/app of Some(15)", "s2 in /home/u/app of Some(16)", "s3 in /home/u/app of Some(15)"]
        );
        assert_eq!(ClaudeCode::activity_of("s1"), Ok(Activity::Idle));
        assert_eq!(ClaudeCode::activity_of("s2"), Ok(Activity::Busy));
        assert!(matches!(ClaudeCode::activity_of("s3"), Err(Error::Unsupported(_))));
        assert!(matches!(ClaudeCode::activity_of("s9"), Err(Error::NotFound(_))));
        let _host = Fakes::default().root("config").start();
        assert_eq!(ClaudeCode::discover(), Ok(Vec::new()));
    }
}
