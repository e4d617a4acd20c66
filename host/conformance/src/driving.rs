//! Driven agents: by which command lines the adapter has them started, and that no frame makes it fail: recorded, torn,
//! or of no harness at all. Nothing is started.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use mesh::ports::driver::{Approvals, DrivenAgent, DriverConnection, Exchange, Tailoring};
use mesh::ports::harness::{Harness as _, HarnessError};
use mesh::ports::runner::{Extensions, Reach};

use crate::Bench;
use crate::fixtures::Conversation;
use crate::garbage::TEXTS;
use crate::report::Check;
use crate::scratch::Stage;

const REACHES: [Reach; 4] = [Reach::Look, Reach::Edit, Reach::Work, Reach::Unguarded];
const EXTENSIONS: [Extensions; 3] = [Extensions::None, Extensions::Mesh, Extensions::All];
/// How a value begins that must not become a word of its own.
const STRAY: &str = "--relay-mesh-has-no";

pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let stage = bench.scratch.stage()?;
    let drives = match stage.adapter().await {
        Ok(adapter) => adapter.optional().driver.is_some(),
        Err(_) => false,
    };
    if !drives {
        stage.close().await?;
        return Ok(vec![Check::absent(
            "connections",
            "it does not export `driver`: relay-mesh drives no agents with it",
        )]);
    }
    // The programs only have to be there: nothing is started.
    for drive in bench.scratch.manifest.requests.drives.values() {
        stage.place_program(&drive.run.program)?;
    }
    let (check, names) = connections(bench, &stage).await;
    let mut checks = vec![check];
    for name in &names {
        checks.push(strange_frames(&stage, name).await);
        for conversation in &bench.fixtures.conversations {
            checks.push(recorded(&stage, name, &conversation.name, &conversation.content).await);
        }
    }
    if bench.fixtures.conversations.is_empty() {
        checks.push(Check::untried("receive", "a conversation with the harness, in driver/NAME.json"));
    }
    stage.close().await?;
    Ok(checks)
}

/// Every reach with every choice of extensions, for a user who is asked and for none: a command line, or the reason why
/// there is none. With the names of the connections.
async fn connections(bench: &Bench<'_>, stage: &Stage<'_>) -> (Check, BTreeSet<String>) {
    const TOLD: &str = "connections";
    let (mut names, mut refused, mut all) = (BTreeSet::new(), 0, 0);
    for (agent, resume) in agents() {
        all += 1;
        match offered(stage, &agent, resume).await {
            Ok(offered) => {
                for connection in offered {
                    if let Some(word) = connection.launch.command[1..].iter().find(|word| word.starts_with(STRAY)) {
                        let hint = "give such values by `--option={value}` in the manifest";
                        return (
                            Check::failed(TOLD, "a value inside of a word", format!("the word `{word}`"), hint),
                            names,
                        );
                    }
                    names.insert(connection.name);
                }
            }
            // A value that fits no word of the manifest is refused by the host, and never reaches a program.
            Err(HarnessError::Failed(why)) if why.contains("would be read as an option") => refused += 1,
            Err(HarnessError::Unsupported(_)) => refused += 1,
            Err(error) => {
                let hint = "answer `unsupported` with the reason if a promise cannot be kept";
                let got = format!("{error} for {:?} with {:?}", agent.reach, agent.extensions);
                return (Check::failed(TOLD, "a command line, or `unsupported`", got, hint), names);
            }
        }
    }
    if bench.scratch.manifest.requests.drives.is_empty() {
        let hint = "name the words with which it speaks to a program there";
        return (Check::failed(TOLD, "a `[drives.NAME]` in the manifest", "none", hint), names);
    }
    let named: Vec<&str> = names.iter().map(String::as_str).collect();
    (Check::held(TOLD, format!("{}; {refused} of {all} agents are refused", named.join(", "))), names)
}

fn agents() -> Vec<(DrivenAgent, Option<&'static str>)> {
    let mut agents = Vec::new();
    for reach in REACHES {
        for extensions in EXTENSIONS {
            for approvals in [Approvals::Ask, Approvals::Refuse] {
                let plain = DrivenAgent { reach, extensions, approvals, ..plain_agent() };
                let wild = DrivenAgent {
                    model: Some(format!("{STRAY}-such-model")),
                    guidance: "- Say `$(touch it)`.\n\"quoted\"\n".to_owned(),
                    ..plain.clone()
                };
                agents.extend([(plain, None), (wild, Some("--relay-mesh-has-no-such-session"))]);
            }
        }
    }
    agents
}

/// Frames that no harness sends: each alone, then many at once.
async fn strange_frames(stage: &Stage<'_>, connection: &str) -> Check {
    let told = format!("strange frames over {connection}");
    let further = [r#"{"type":"of_tomorrow"}"#, r#"{"id":1,"result":null}"#, r#"{"id":{},"method":7,"params":[]}"#];
    let frames: Vec<String> = TEXTS.iter().chain(&further).map(|text| (*text).to_owned()).collect();
    let many: Vec<String> = frames.iter().cycle().take(5_000).cloned().collect();
    for (given, at_once) in [(&frames, 1), (&many, usize::MAX)] {
        if let Err(error) = follow(stage, connection, given, at_once).await {
            let hint = "leave out what you do not know, and keep little in memory";
            return Check::failed(told, "no failure", error.to_string(), hint);
        }
    }
    Check::held(told, format!("{} frames, then 5000: it goes on", frames.len()))
}

/// The frames of a recorded conversation, each on an instance of its own, all at once, and half of each.
async fn recorded(stage: &Stage<'_>, connection: &str, name: &str, conversation: &Conversation) -> Check {
    let told = format!("conversation {name} over {connection}");
    let frames = conversation.received();
    let torn: Vec<String> =
        frames.iter().map(|frame| frame.chars().take(frame.chars().count() / 2).collect()).collect();
    let hint = "leave out what you do not know, and keep little in memory";
    let mut said = Vec::new();
    for (given, at_once) in [(&frames, 1), (&frames, usize::MAX), (&torn, 3)] {
        match follow(stage, connection, given, at_once).await {
            Ok(exchange) => said.push(exchange.events),
            Err(error) => return Check::failed(told, "no failure", error.to_string(), hint),
        }
    }
    if said[0] != said[1] {
        let got = format!("{} events one by one, {} of all at once", said[0].len(), said[1].len());
        return Check::failed(told, "the same events, however many frames come at once", got, "keep it in `memory`");
    }
    Check::held(told, format!("{} frames, whole and torn", frames.len()))
}

async fn offered(
    stage: &Stage<'_>,
    agent: &DrivenAgent,
    resume: Option<&str>,
) -> Result<Vec<DriverConnection>, HarnessError> {
    stage.adapter().await?.driver()?.connections(agent, resume, Path::new("/relay-mesh/driven/1")).await
}

/// Connects, and reads frames in portions, each on an instance of its own.
async fn follow(
    stage: &Stage<'_>,
    connection: &str,
    frames: &[String],
    at_once: usize,
) -> Result<Exchange, HarnessError> {
    let adapter = stage.adapter().await?;
    let driver = adapter.driver()?;
    let mut all = driver.connect(connection).await?;
    for portion in frames.chunks(at_once.min(frames.len()).max(1)) {
        let exchange = driver.receive(all.memory.as_ref(), portion).await?;
        all.memory = exchange.memory;
        all.frames.extend(exchange.frames);
        all.events.extend(exchange.events);
    }
    Ok(all)
}

fn plain_agent() -> DrivenAgent {
    DrivenAgent {
        name: "helper".to_owned(),
        folder: "/relay-mesh/project".into(),
        model: None,
        guidance: String::new(),
        reach: Reach::Look,
        approvals: Approvals::Ask,
        extensions: Extensions::Mesh,
        id: "5d20a1b2-0000-4000-8000-000000000001".to_owned(),
        environment: Vec::new(),
        tailoring: Tailoring::default(),
    }
}
