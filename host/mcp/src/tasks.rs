//! Runs and reviews as tasks of the protocol, for clients that declare them: a call gives a task at once, and the client
//! asks for its state by `tasks/get`.

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, DetailedTask, JsonObject, Task, TaskPayload, TaskStatus};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::run_host::RunProgress;
use crate::server::Server;
use crate::tool_error::ToolError;
use crate::tools::{Begin, ListedTool};

/// How often a client should ask, in milliseconds.
const POLL: u64 = 1_000;

impl Server {
    /// Begins the work of a tool as a task.
    pub(crate) async fn begin(
        &self,
        tool: &ListedTool,
        begin: Begin,
        mut arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Task, ToolError> {
        let call = self.call(&tool.listing.name, &mut arguments, context).await?;
        let (runs, caller) = (call.runs()?, call.caller.clone());
        let id = begin(call, Value::Object(arguments)).await?;
        Ok(self.described(&runs.look(&caller, &id).await?, TaskStatus::Working))
    }

    /// How a task stands.
    pub(crate) async fn task(&self, id: &str, context: &RequestContext<RoleServer>) -> Result<DetailedTask, ToolError> {
        let call = self.call("", &mut JsonObject::new(), context).await?;
        let progress = call.runs()?.look(&call.caller, id).await?;
        let payload = match &progress.result {
            None => TaskPayload::Working,
            Some(result) if result["ended"] == "stopped" => TaskPayload::Cancelled,
            Some(result) => TaskPayload::Completed { result: completed(result) },
        };
        Ok(DetailedTask::new(self.described(&progress, payload.status()), payload))
    }

    fn described(&self, progress: &RunProgress, status: TaskStatus) -> Task {
        Task::new(progress.id.clone(), status, progress.started.clone(), self.now())
            .with_status_message(progress.doing.clone())
            .with_poll_interval_ms(POLL)
    }
}

/// The result of the tool whose task has ended.
fn completed(result: &Value) -> JsonObject {
    let mut answer = CallToolResult::success(vec![ContentBlock::text(result.to_string())]);
    answer.structured_content = Some(result.clone());
    match serde_json::to_value(answer) {
        Ok(Value::Object(object)) => object,
        Ok(_) | Err(_) => JsonObject::new(),
    }
}
