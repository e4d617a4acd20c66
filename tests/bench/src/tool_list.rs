//! What the list of tools takes of an agent's context.

use serde_json::{Value, json};

use crate::client::StdioClient;
use crate::{Failure, Subject, programs};
use bench::report::Report;

/// Names, descriptions and input schemas of the core tools, in tokens of four bytes.
pub(crate) fn tokens(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let mut server = programs::relay_mesh(&subject.relay_mesh, &subject.data_folder("tool-list"));
    let mut client = StdioClient::start(server.arg("mcp"), "claude-code")?;
    let list = client.request("tools/list", &json!({}))?;
    client.finish()?;
    let tools = list.get("tools").and_then(Value::as_array).ok_or("tools/list holds no tools")?;
    let bytes: usize = tools.iter().map(weight).sum();
    let remark = format!(" ({} tools, {bytes} bytes)", tools.len());
    report.size("tools/list, core profile", bytes as f64 / 4.0, 800.0, "tokens", &remark);
    Ok(())
}

/// The bytes of a tool that a model is shown.
fn weight(tool: &Value) -> usize {
    let text = |field: &str| tool.get(field).and_then(Value::as_str).map_or(0, str::len);
    let schema = tool.get("inputSchema").map_or(0, |schema| schema.to_string().len());
    text("name") + text("description") + schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_weighs_what_a_model_is_shown_of_it() {
        let tool = json!({ "name": "ab", "description": "cde", "inputSchema": {}, "outputSchema": { "not": "shown" } });
        assert_eq!(weight(&tool), 2 + 3 + 2);
    }
}
