//! Short-lived commands: `send`, and the hook that stands in the way of every edit.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::StdioClient;
use crate::{Failure, Subject, coordination, programs};
use bench::report::Report;
use bench::sampling::{compare, median_of};

/// How many times as long as `relay-mesh version` a hook may take: it stands before every edit of an agent.
const HOOK_AGAINST_VERSION: f64 = 2.0;
/// How long it may take on any machine.
const LONGEST_HOOK: Duration = Duration::from_millis(10);
/// How many times as long a command may take with all that a busy team has piled up.
const YEAR_AGAINST_DAY: f64 = 1.5;
/// The session that the measured hook belongs to.
const SESSION: &str = "5b0c7f0e-4c2f-4a8e-9d0e-0d6d2b1f7a11";

/// `relay-mesh send`, synced to disk as it is by default.
pub(crate) fn send(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let data = subject.data_folder("send");
    for agent in ["alice", "bob"] {
        programs::output(programs::relay_mesh(&subject.relay_mesh, &data).args(["register", agent]), "")?;
    }
    for (name, durability) in [("relay-mesh send", "disk"), ("the same with --durability process", "process")] {
        let compared = compare(
            || {
                let mut send = programs::relay_mesh(&subject.relay_mesh, &data);
                send.args(["send", "bob", "the build is green again", "--from", "alice", "--durability", durability]);
                programs::time(&mut send, None)
            },
            || programs::time(&mut programs::command(&subject.baselines.hello), None),
        )?;
        report.figure(name, &compared);
    }
    report.note("a lone append and sync on this disk", lone_sync(&data.join("lone"))?);
    Ok(())
}

/// What the disk takes for one short synced append, as `send` makes one.
fn lone_sync(file: &Path) -> Result<Duration, Failure> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    median_of(|| {
        let began = Instant::now();
        file.write_all(&[b'x'; 250])?;
        file.sync_data()?;
        Ok(began.elapsed())
    })
}

/// `relay-mesh hook claude-code PreToolUse` before an edit, in a session whose agent is registered,
/// with its adapter compiled already; and the same if another agent has reserved a thousand folders
/// around the file.
pub(crate) fn hook(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let alone = Seat::take(subject, "hook")?;
    let compared = compare(|| alone.edit(), || programs::time(&mut alone.relay(&["version"]), None))?;
    report.ratio("relay-mesh hook claude-code PreToolUse", &compared, HOOK_AGAINST_VERSION);
    report.time("  and in itself", compared.subject, LONGEST_HOOK);
    let crowded = Seat::take(subject, "hook-in-a-crowd")?;
    coordination::reserve_a_thousand(subject, &crowded.data, &crowded.project)?;
    let compared = compare(|| crowded.edit(), || alone.edit())?;
    report.ratio("the same beside 1,000 live reservations, against none", &compared, YEAR_AGAINST_DAY);
    Ok(())
}

/// A session of Claude Code in a project of its own, whose agent is registered.
struct Seat<'a> {
    subject: &'a Subject,
    data: PathBuf,
    project: PathBuf,
}

impl Seat<'_> {
    fn take<'a>(subject: &'a Subject, name: &str) -> Result<Seat<'a>, Failure> {
        let project = subject.scratch.path().join(format!("{name}-project"));
        std::fs::create_dir_all(&project)?;
        let seat = Seat { subject, data: subject.data_folder(name), project };
        let start = json!({
            "session_id": SESSION, "cwd": seat.project, "hook_event_name": "SessionStart", "source": "startup",
        });
        programs::output(&mut seat.relay(&["hook", "claude-code", "SessionStart"]), &start.to_string())?;
        // By the server that the harness itself would start.
        let mut client = StdioClient::start(&mut seat.relay(&["mcp"]), "claude-code")?;
        client.call_tool("register_agent", &json!({ "name": "alice" }))?;
        client.finish()?;
        Ok(seat)
    }

    fn relay(&self, arguments: &[&str]) -> Command {
        let mut relay = programs::relay_mesh(&self.subject.relay_mesh, &self.data);
        relay.current_dir(&self.project).args(arguments);
        relay.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", SESSION).env("CLAUDE_PROJECT_DIR", &self.project);
        relay
    }

    /// What the hook before an edit takes.
    fn edit(&self) -> Result<Duration, Failure> {
        let edit = json!({
            "session_id": SESSION, "cwd": self.project, "prompt_id": "7dc28242-656f-49a7-a464-e7a052b58a5c",
            "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {
                "file_path": self.project.join("src/main.rs"), "old_string": "fn main() {}",
                "new_string": "fn main() { run() }",
            },
            "tool_use_id": "toolu_0001",
        });
        programs::time(&mut self.relay(&["hook", "claude-code", "PreToolUse"]), Some(&edit.to_string()))
    }
}
