//! What a call of the tool `codex-reply` costs beside the turn that it is, fifteen of them at once, and what the registry of
//! threads costs when it is old.

use std::time::{Duration, Instant};

use bench::sampling::median;
use bench::{Failure, report::Report};
use serde_json::{Value, json};
use test_support::{Spawning, StdioClient};

use crate::bare::Client;

/// Beyond the bare client's turn, and for a list of all rows.
const CALL: Duration = Duration::from_millis(10);
const LISTS: Duration = Duration::from_millis(50);
/// Rows of the registry, and on how many days they are.
const ROWS: usize = 10_000;
const DAYS: usize = 100;
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
    let record = scene.record(row["agent"].as_str().unwrap_or_default());
    let socket = record["socket"].as_str().ok_or(format!("it has no socket: {record}"))?;
    let mut client = Client::at(socket).await?;
    let own = client.begin(&scene.stage.project.display().to_string()).await?;
    let (mut bare, mut calls) = (Vec::new(), Vec::new());
    for number in 0..turns {
        let began = Instant::now();
        client.turn(&own, &format!("call {number}")).await?;
        client.completed(&own).await?;
        bare.push(began.elapsed());
        let began = Instant::now();
        called(&mut lead, "codex-reply", json!({"threadId": thread, "prompt": format!("call {number}")}))?;
        calls.push(began.elapsed());
    }
    let (bare, calls) = (median(bare), median(calls));
    report.note("the turn by a bare client", bare);
    report.difference("a call of `codex-reply` beyond it", calls, bare, CALL);

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
    of_registry(scene, report)
}

fn called(client: &mut StdioClient, tool: &str, arguments: Value) -> Result<Value, Failure> {
    let answer = client.request("tools/call", &json!({"name": tool, "arguments": arguments}));
    match answer["result"]["isError"] == true {
        true => Err(answer.to_string().into()),
        false => Ok(answer["result"]["structuredContent"].clone()),
    }
}

/// Fills the registry with copies of a row, and lists it.
fn of_registry(scene: &Spawning, report: &Report) -> Result<(), Failure> {
    let folder = scene.stage.data.join("threads");
    let file = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).next().ok_or("there is no registry")?;
    let day: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let row = &day["value"][0];
    for day in 0..DAYS {
        let copy = |number: usize| {
            let mut row = row.clone();
            row["thread"] = json!(format!("01a20000-{day:04}-7000-8000-{number:012}"));
            row
        };
        let rows: Vec<Value> = (0..ROWS / DAYS).map(copy).collect();
        let name = format!("{:06}", 18_000 + day);
        let extension = file.extension().map(|extension| format!(".{}", extension.display())).unwrap_or_default();
        std::fs::write(folder.join(format!("{name}{extension}")), json!({"revision": 1, "value": rows}).to_string())?;
    }
    let list = || {
        let began = Instant::now();
        let listed = scene.ok(&["codex", "threads"]);
        (began.elapsed(), listed["threads"].as_array().map_or(0, Vec::len))
    };
    let (_, rows) = list();
    report.amount("threads in the registry", rows as f64, "", "");
    report.time(
        "a list of all of them, with the start of the program",
        median((0..9).map(|_| list().0).collect()),
        LISTS,
    );
    Ok(())
}
