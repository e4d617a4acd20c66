//! Agents that talk.

use std::path::Path;
use std::time::{Duration, Instant};

use bench::Failure;
use serde_json::json;
use test_support::{Stage, StdioClient};

/// So many agents.
pub(crate) const AGENTS: usize = 20;

/// Agents, each with a session of its own.
pub(crate) struct Talkers(Vec<StdioClient>);

impl Talkers {
    pub(crate) fn join(stage: &Stage) -> Talkers {
        let join = |number: usize| {
            let process = stage.relay(&["mcp"]).start(&stage.folder.join(format!("talker-{number}.log")));
            let mut client = StdioClient::connected(process, "a-plain-client");
            client.call("register_agent", json!({"name": format!("talker-{number}")}));
            client
        };
        Talkers((0..AGENTS).map(join).collect())
    }

    /// One says something to the next one.
    pub(crate) fn say(&mut self, number: usize, body: &str) -> Result<(), Failure> {
        let (from, to) = (number % AGENTS, (number + 1) % AGENTS);
        let message = json!({"to": format!("talker-{to}"), "body": body, "thread": "bench"});
        let sent = self.0[from].call("send_message", message);
        if sent.failed { Err(format!("not sent: {sent:?}").into()) } else { Ok(()) }
    }

    /// They talk for so long: one message after the other, so far apart.
    pub(crate) fn talk(&mut self, length: Duration, apart: Duration) -> Result<usize, Failure> {
        let began = Instant::now();
        let mut said = 0;
        while began.elapsed() < length {
            self.say(said, &format!("message {said}"))?;
            said += 1;
            std::thread::sleep((apart * u32::try_from(said)?).saturating_sub(began.elapsed()));
        }
        Ok(said)
    }
}

/// How often the threads of a process have slept and were woken.
pub(crate) fn wakeups(pid: u32) -> Result<u64, Failure> {
    let mut times = 0;
    for thread in std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        times += line.ok_or("no such line")?.trim().parse::<u64>()?;
    }
    Ok(times)
}
