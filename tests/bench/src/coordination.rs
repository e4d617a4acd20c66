//! Coordination in a crowd: reservations and agents by the thousand, and many senders beside those who watch and sweep.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::StdioClient;
use crate::{Failure, Subject, programs};
use bench::report::Report;
use bench::sampling::{Compared, compare, median};

/// Live reservations, and agents.
const CROWD: usize = 1_000;
/// Who reservations.
const CLAIMANT: &str = "claimant";
/// Reservations that one command makes.
const AT_ONCE: usize = 50;
/// Processes that send.
const SENDERS: usize = 20;
/// Messages that each of them sends.
const MESSAGES: usize = 1_000;
/// Times that the senders run alone, and with others beside them.
const ROUNDS: usize = 3;

/// `reserve --check` and `reservations`, in a repository with a thousand live reservations.
pub(crate) fn reservations(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let data = subject.data_folder("reservations");
    let repository = subject.scratch.path().join("repository");
    std::fs::create_dir_all(&repository)?;
    let relay = |arguments: &[&str]| {
        let mut relay = programs::relay_mesh(&subject.relay_mesh, &data);
        relay.current_dir(&repository).args(arguments);
        relay
    };
    reserve_a_thousand(subject, &data, &repository)?;
    let check = ["reserve", "--check", "docs/a.md", "--from", CLAIMANT];
    for (name, arguments) in [
        ("reserve --check, 1,000 live reservations", &check as &[&str]),
        ("reservations, 1,000 live reservations", &["reservations"]),
    ] {
        let compared = compare(
            || programs::time(&mut relay(arguments), None),
            || programs::time(&mut programs::command(&subject.baselines.hello), None),
        )?;
        report.figure(name, &compared);
    }
    Ok(())
}

/// An agent of the command line reservations a thousand folders of a repository.
pub(crate) fn reserve_a_thousand(subject: &Subject, data: &Path, repository: &Path) -> Result<(), Failure> {
    let relay = |arguments: &[&str]| {
        let mut relay = programs::relay_mesh(&subject.relay_mesh, data);
        programs::output(relay.current_dir(repository).args(arguments), "")
    };
    relay(&["register", CLAIMANT])?;
    let patterns: Vec<String> = (0..CROWD).map(|number| format!("src/part{number}/**")).collect();
    for some in patterns.chunks(AT_ONCE) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        relay(&[&["reserve", "--from", CLAIMANT, "--ttl", "1d"], some.as_slice()].concat())?;
    }
    Ok(())
}

/// `status` with a thousand agents.
pub(crate) fn status(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let data = subject.data_folder("status");
    let relay = |arguments: &[&str]| {
        let mut relay = programs::relay_mesh(&subject.relay_mesh, &data);
        relay.args(arguments);
        relay
    };
    for number in 0..CROWD {
        programs::output(&mut relay(&["register", &format!("agent-{number}"), "--durability", "process"]), "")?;
    }
    let compared = compare(
        || programs::time(&mut relay(&["status"]), None),
        || programs::time(&mut programs::command(&subject.baselines.hello), None),
    )?;
    report.figure("status, 1,000 agents", &compared);
    let bare = || {
        let mut bare = programs::command(&subject.baselines.crowd);
        bare.arg(data.join("agents"));
        bare
    };
    let compared = compare(|| programs::time(&mut relay(&["status"]), None), || programs::time(&mut bare(), None))?;
    report.figure("the same, against a bare reading of its files", &compared);
    Ok(())
}

/// Twenty processes send a thousand messages each into one inbox: alone, and beside `status --follow` and one
/// `gc` after the other.
pub(crate) fn senders(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let mut alone = Vec::new();
    let mut beside = Vec::new();
    for round in 0..ROUNDS {
        alone.push(send_all(subject, &format!("senders-alone-{round}"), Beside::Nobody)?);
        beside.push(send_all(subject, &format!("senders-beside-{round}"), Beside::Others)?);
    }
    let compared = Compared { subject: median(beside), baseline: median(alone) };
    report.figure("20 × 1,000 sends beside status --follow and gc", &compared);
    Ok(())
}

/// Who else is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    Others,
}

fn send_all(subject: &Subject, folder: &str, beside: Beside) -> Result<Duration, Failure> {
    let data = subject.data_folder(folder);
    let relay = |arguments: &[&str]| {
        let mut relay = programs::relay_mesh(&subject.relay_mesh, &data);
        relay.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        relay
    };
    programs::output(&mut relay(&["register", "bob"]), "")?;
    let mut clients = Vec::new();
    for number in 0..SENDERS {
        let mut client = StdioClient::start(programs::relay_mesh(&subject.relay_mesh, &data).arg("mcp"), "a-client")?;
        client.call_tool("register_agent", &json!({ "name": format!("sender-{number}") }))?;
        clients.push(client);
    }
    let _watcher = match beside {
        Beside::Nobody => None,
        Beside::Others => Some(Watcher(relay(&["status", "--follow"]).spawn()?)),
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sweeper = (beside == Beside::Others).then(|| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    programs::time(&mut relay(&["gc"]), None)?;
                }
                Ok::<(), Failure>(())
            })
        });
        let began = Instant::now();
        let senders: Vec<_> = clients.into_iter().map(|client| scope.spawn(|| send_each(client))).collect();
        let outcomes: Vec<Result<(), Failure>> =
            senders.into_iter().map(|sender| sender.join().unwrap_or_else(|_| Err("a sender broke".into()))).collect();
        let took = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        if let Some(sweeper) = sweeper {
            sweeper.join().unwrap_or_else(|_| Err("the sweeper broke".into()))?;
        }
        outcomes.into_iter().collect::<Result<(), Failure>>().map(|()| took)
    })
}

fn send_each(mut client: StdioClient) -> Result<(), Failure> {
    for number in 0..MESSAGES {
        client.call_tool("send_message", &json!({ "to": "bob", "body": format!("message {number}") }))?;
    }
    client.finish()
}

/// A follower, ended when it is no longer needed.
struct Watcher(Child);

impl Drop for Watcher {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing left to do.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}
