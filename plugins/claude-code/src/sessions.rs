//! Which session a call comes from.

use relay_mesh_sdk::sessions::{Detection, Sighting};
use relay_mesh_sdk::{Error, Session, Sessions};
use serde_json::Value;

use crate::{ClaudeCode, memory};

/// Where Claude Code names the tool call, in `_meta` of tools/call.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

impl Sessions for ClaudeCode {
    /// Certain where the call bears the id of a tool use that our PreToolUse hook has just seen in
    /// this session; else inherited from the environment of the process that Claude Code started.
    fn detect(seen: &Sighting) -> Result<Option<Detection>, Error> {
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
}

fn tool_use_id(seen: &Sighting) -> Option<String> {
    let meta: Value = serde_json::from_str(seen.meta.as_deref()?).ok()?;
    meta.get(TOOL_USE_ID)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::sessions::{Certainty, Transport};
    use relay_mesh_sdk::testing::Fakes;

    use super::*;

    fn sighting(meta: Option<&str>, environment: &[(&str, &str)]) -> Sighting {
        Sighting {
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
        let detected = ClaudeCode::detect(&sighting(meta, environment)).expect("it is detected");
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
        let _lent = Fakes::default().lend();
        seen_by_hook(Session::new("s2", "/"));
        check(Some(CALL), INHERITED, "Certain s2 -");
        check(Some(CALL), INHERITED, "Inherited s1 -");
    }

    #[test]
    fn a_subagents_call_is_its_own() {
        let _lent = Fakes::default().lend();
        seen_by_hook(Session { parent: Some("s2".into()), ..Session::new("s2.a1", "/") });
        check(Some(CALL), INHERITED, "Certain s2.a1 s2");
    }

    #[test]
    fn another_call_proves_nothing() {
        let _lent = Fakes::default().lend();
        seen_by_hook(Session::new("s2", "/"));
        check(Some(r#"{"claudecode/toolUseId":"toolu_2"}"#), &[], "nobody");
        check(Some("not JSON"), INHERITED, "Inherited s1 -");
        check(None, &[], "nobody");
    }

    #[test]
    fn what_the_server_inherited_follows_a_clear() {
        let _lent = Fakes::default().lend();
        memory::follow("s1", "s2").expect("it is noted");
        memory::follow("s2", "s3").expect("it is noted");
        check(None, INHERITED, "Inherited s3 -");
        memory::follow("s3", "s1").expect("it is noted");
        check(None, INHERITED, "Inherited s1 -");
    }
}
