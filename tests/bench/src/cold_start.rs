//! From starting `relay-mesh mcp` to the first tool's answer, as a harness meets it.

use std::time::Instant;

use serde_json::json;

use crate::client::StdioClient;
use crate::{Failure, Subject, programs};
use bench::report::Report;
use bench::sampling::compare;

/// Start, greeting and one tool, against starting a hello-world.
pub(crate) fn first_answer(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let data = subject.data_folder("cold-start");
    let compared = compare(
        || {
            let mut server = programs::relay_mesh(&subject.relay_mesh, &data);
            let began = Instant::now();
            let mut client = StdioClient::start(server.arg("mcp"), "claude-code")?;
            client.call_tool("list_agents", &json!({}))?;
            let took = began.elapsed();
            // The next run starts with nothing of this one still ending.
            client.finish()?;
            Ok(took)
        },
        || programs::time(&mut programs::command(&subject.baselines.hello), None),
    )?;
    report.figure("relay-mesh mcp, to the first tool's answer", &compared);
    Ok(())
}
