//! What a call of the tool `codex-reply` costs beside the turn that it is, and fifteen of them at once.

use std::time::{Duration, Instant};

use bench::sampling::median;
use bench::{Failure, report::Report};
use serde_json::{Value, json};
use test_support::{Spawning, StdioClient};

use crate::bare::Client;

/// Beyond the bare client's turn.
const CALL: Duration = Duration::from_millis(10);
/// Threads at once.
const THREADS: u64 = 15;

pub(crate) async fn measure(scene: &Spawning, turns: usize, report: &Report) -> Result<(), Failure> {
    scene.ok(&["spawn", "allow", "lead", "codex"]);
    let settings = scene.stage.home.join(".config/relay-mesh/spawn.toml");
    let consents = std::fs::read_to_string(&settings)?;
    std::fs::write(&settings, format!("each = 16\nall = 100\n{consents}"))?;
    let server = scene.stage.relay(&["mcp", "--tools", "codex"]).envs(scene.environment());
    let mut lead = StdioClient::connected(server.start(&scene.stage.folder.join("lead.log")), "a-client");
    lead.call("register_agent", json!({"name": "lead"}));
    let begun = called(&mut lead, "codex", json!({"prompt": "Say hello"}))?;
    let thread = begun["threadId"].as_str().ok_or(format!("no thread: {begun}"))?.to_owned();

    let row = scene.ok(&["codex", "threads"])["threads"][0].clone();
    let agent = row["agent"].as_str().unwrap_or_default();
    let record = scene.record(agent);
    let socket = record["socket"].as_str().ok_or(format!("it has no socket: {record}"))?;
    let mut client = Client::at(socket).await?;
    let own = client.begin(&scene.stage.project.display().to_string()).await?;
    client.follow(&thread).await?;
    let (mut bare, mut same, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..turns {
        let began = Instant::now();
        client.turn(&own, &format!("call {number}")).await?;
        client.completed(&own).await?;
        bare.push(began.elapsed());
        let began = Instant::now();
        client.turn(&thread, &format!("call {number}")).await?;
        client.completed(&thread).await?;
        same.push(began.elapsed());
        super::idle(scene, agent);
        let began = Instant::now();
        called(&mut lead, "codex-reply", json!({"threadId": thread, "prompt": format!("call {number}")}))?;
        calls.push(began.elapsed());
        client.completed(&thread).await?;
    }
    let (bare, same, calls) = (median(bare), median(same), median(calls));
    report.note("the turn by a bare client, in a thread of its own", bare);
    report.note("the turn by it in the thread of the tool", same);
    report.difference("a call of `codex-reply` beyond the first", calls, bare, CALL);
    report.difference("  and beyond the second", calls, same, CALL);

    let began = Instant::now();
    for id in 0..THREADS {
        let call = json!({"name": "codex", "arguments": {"prompt": "go"}});
        lead.write(&json!({"jsonrpc": "2.0", "id": 1_000 + id, "method": "tools/call", "params": call}).to_string());
    }
    let mut answered = 0;
    while answered < THREADS {
        let told = lead.read().ok_or("the server has ended")?;
        answered += u64::from(told["result"]["structuredContent"]["content"] == "Done.");
    }
    report.note("until fifteen threads more, begun at once, have answered", began.elapsed());
    lead.close();
    Ok(())
}

fn called(client: &mut StdioClient, tool: &str, arguments: Value) -> Result<Value, Failure> {
    let answer = client.request("tools/call", &json!({"name": tool, "arguments": arguments}));
    match answer["result"]["isError"] == true {
        true => Err(answer.to_string().into()),
        false => Ok(answer["result"]["structuredContent"].clone()),
    }
}
