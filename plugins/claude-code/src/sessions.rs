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
