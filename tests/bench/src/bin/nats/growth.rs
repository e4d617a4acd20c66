//! How long what concerns one agent takes, and how that grows with the agents and the mail of all others: the
//! mesh's own verbs over a connection that stands, and the real program, which makes one first. A table, and a
//! plot for docs/.

mod filling;
mod plot;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench::Failure;
use bench::report::Report;
use bench::sampling::median;
use mesh::Fetch;
use mesh::names::{AgentName, MessageId};
use test_support::{NatsServer, Stage};

use crate::Extent;
use crate::host::Host;
use filling::{EACH, Filler};

/// The agents that are asked about: they are there from the first step on.
const ASKED_ABOUT: usize = 5;

/// What is asked, as table and plot name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Whoever matches best, of all.
    Find,
    /// How one agent is and what waits for it.
    StatusOfAgent,
    /// Where one message stands, asked by its sender.
    StatusOfMessage,
    /// One agent's next messages.
    Fetch,
    /// The same four by the program, and how everybody is.
    ProgramFind,
    ProgramStatusOfMessage,
    ProgramRead,
    ProgramStatus,
}

/// A question and how often it is asked at each step.
const QUESTIONS: [(Question, &str, usize); 8] = [
    (Question::StatusOfAgent, "status of one agent", 25),
    (Question::StatusOfMessage, "status of one message", 25),
    (Question::Fetch, "fetch of one agent", 25),
    (Question::Find, "find, of all agents", 5),
    (Question::ProgramStatusOfMessage, "`relay-mesh message`", 9),
    (Question::ProgramRead, "`relay-mesh read`", 9),
    (Question::ProgramFind, "`relay-mesh agents NAME`, of all", 3),
    (Question::ProgramStatus, "`relay-mesh status`, of all mail", 1),
];

/// What was measured at one step.
struct Step {
    agents: usize,
    messages: usize,
    /// Medians, in the order of [`QUESTIONS`].
    took: Vec<Duration>,
    /// What the server has in memory, and its stream of messages on disk, in bytes.
    memory: u64,
    disk: u64,
}

/// Fills a server step by step and asks at each.
pub(crate) async fn measure(server: &NatsServer, extent: Extent, report: &Report) -> Result<(), Failure> {
    let steps: &[usize] = match extent {
        Extent::Quick => &[10, 20],
        Extent::Whole => &[10, 100, 1_000, 10_000],
    };
    let (program, scratch) = bench::subject()?;
    let asker = Asker::start(server, &program, scratch.path()).await?;
    let mut there = 0;
    let mut measured: Vec<Step> = Vec::new();
    let filler = Filler::start(server).await?;
    for agents in steps {
        filler.fill(there, *agents).await?;
        there = *agents;
        let mut took = Vec::new();
        for (question, _, times) in QUESTIONS {
            let mut each = Vec::new();
            for turn in 0..times {
                each.push(asker.ask(question, turn).await?);
            }
            took.push(median(each));
        }
        let disk = server.request("$JS.API.STREAM.INFO.RELAY_MESSAGES", &serde_json::json!({}));
        let step = Step {
            agents: there,
            messages: there * EACH,
            took,
            memory: server.memory(),
            disk: disk["state"]["bytes"].as_u64().unwrap_or_default(),
        };
        for ((_, name, _), took) in QUESTIONS.iter().zip(&step.took) {
            report.note(&format!("{name}, {} agents, {} messages", step.agents, step.messages), *took);
        }
        measured.push(step);
    }
    for row in plot::table(&QUESTIONS.map(|(_, name, _)| name), &measured) {
        report.row(&row);
    }
    if extent != Extent::Quick {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/nats-growth.svg");
        std::fs::write(path, plot::draw(&QUESTIONS.map(|(_, name, _)| name), &measured))?;
    }
    filler.end().await?;
    asker.host.end().await
}

/// Whoever asks: an agent of a machine of this process, and a person at another machine.
struct Asker {
    host: Host,
    sent: MessageId,
    stage: Stage,
    server: String,
    sent_by_program: String,
}

impl Asker {
    async fn start(server: &NatsServer, program: &Path, scratch: &Path) -> Result<Asker, Failure> {
        let host = Host::start(server, "asker").await?;
        let draft = mesh::messages::Draft { body: "To myself.".to_owned(), ..mesh::messages::Draft::default() };
        let sent = host.mesh.send(&host.caller, &["asker".to_owned()], draft).await?.id;
        host.mesh.write_minutes().await?;
        let program: PathBuf = program.to_owned();
        let mut asker = Asker {
            host,
            sent,
            stage: Stage::within(scratch, &program),
            server: server.url(),
            sent_by_program: String::new(),
        };
        asker.run(&["register", "asker"])?;
        // It has as much mail as everybody else.
        for _ in 0..EACH {
            let told = asker.run(&["send", "asker", "This message waits.", "--from", "asker", "--json"])?;
            let told: serde_json::Value = serde_json::from_str(&told)?;
            told["id"].as_str().ok_or("no id")?.clone_into(&mut asker.sent_by_program);
        }
        Ok(asker)
    }

    /// Asks once and gives how long it took.
    async fn ask(&self, question: Question, turn: usize) -> Result<Duration, Failure> {
        let name: AgentName = format!("agent-{}", turn % ASKED_ABOUT).parse()?;
        // What it has read of an inbox before must not count.
        let mesh = Arc::new(self.host.fresh_mesh());
        let begun = Instant::now();
        match question {
            Question::Find => check(mesh.find("asker", 3).await?.len(), 1)?,
            Question::StatusOfAgent => {
                check(mesh.agent(&name).await?.ok_or("it is not there")?.waiting, EACH)?;
            }
            Question::StatusOfMessage => {
                check(mesh.message_status(&self.host.caller, self.sent).await?.recipients.len(), 1)?;
            }
            Question::Fetch => {
                let fetched = mesh.fetch(&name, &Fetch { peek: true, ..Fetch::default() }).await?;
                check(fetched.messages.len() + fetched.waiting, EACH)?;
            }
            Question::ProgramFind => drop(self.run(&["agents", "asker"])?),
            Question::ProgramStatusOfMessage => {
                self.run(&["message", &self.sent_by_program, "--agent", "asker"])?;
            }
            Question::ProgramRead => drop(self.run(&["read", "--agent", "asker", "--unread", "--peek"])?),
            Question::ProgramStatus => drop(self.run(&["status"])?),
        }
        Ok(begun.elapsed())
    }

    fn run(&self, arguments: &[&str]) -> Result<String, Failure> {
        let outcome = self.stage.relay(arguments).env("RELAY_STORE", &self.server).run();
        if outcome.code == Some(0) { Ok(outcome.stdout) } else { Err(format!("{arguments:?}: {outcome:?}").into()) }
    }
}

/// An answer that is wrong is measured by nobody.
fn check(answered: usize, right: usize) -> Result<(), Failure> {
    if answered == right { Ok(()) } else { Err(format!("{answered} where {right} were to come").into()) }
}
