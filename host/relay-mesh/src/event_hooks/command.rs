//! A hook's command: run by the shell as the user wrote it, under a guard that ends it with everything that it started.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use mesh::event_hooks::{Attempt, Occurrence};
use processes::Guard;
use processes::guard::{Cause, Ended, Limits, Order, Step, StepSignal, Streams};

use super::payload;
use crate::context::Context;
use crate::runs::binary;
use crate::unix;

/// The folder of the data folder in which commands have their output.
const FOLDER: &str = "hooks";
/// The most output of a command, in bytes. Then it is ended.
const MOST_OUTPUT: u64 = 1 << 20;
/// How much of its output the log holds, in bytes.
const KEPT: usize = 1_000;
/// How long a command has to end itself when its time is up, in milliseconds.
const GRACE: u64 = 2_000;

/// Deletes what commands left whose process was killed.
pub(super) fn clean_up(context: &Context) {
    let _none_there = std::fs::remove_dir_all(context.settings.dir.value.join(FOLDER));
}

/// Runs a command to its end.
pub(super) async fn run(
    context: &Context,
    command: &str,
    timeout: u64,
    (hook, id): (&str, &str),
    event: &Occurrence,
) -> Attempt {
    let folder = context.settings.dir.value.join(FOLDER).join(id);
    let outcome = run_in(context, command, timeout, (hook, id, &folder), event).await;
    let _stays_until_the_next_clean_up = std::fs::remove_dir_all(&folder);
    outcome.unwrap_or_else(|why| Attempt::Failed(format!("it could not be started: {why}")))
}

async fn run_in(
    context: &Context,
    command: &str,
    timeout: u64,
    (hook, id, folder): (&str, &str, &Path),
    event: &Occurrence,
) -> Result<Attempt, String> {
    let broken = |error: io::Error| error.to_string();
    let _older = std::fs::remove_dir_all(folder);
    unix::make_private_folder(folder).map_err(broken)?;
    let input = payload::json_of(hook, id, event).to_string();
    let order = Order {
        command: ["/bin/sh", "-c", command].map(str::to_owned).to_vec(),
        environment: environment(context, hook, id, event).into_iter().collect(),
        folder: place(context, event),
        streams: Streams::Files { input: format!("{input}\n"), output: folder.join("output") },
        stop: vec![Step { signal: StepSignal::Terminate, grace: GRACE }],
        limits: Limits { time: Some(timeout), silence: None, output: Some(MOST_OUTPUT) },
        errors: folder.join("errors"),
        running: folder.join("running.json"),
        ended: folder.join("ended.json"),
    };
    let binary = binary().map_err(|error| store::reasons(&error))?;
    let mut guard = Guard::start(&binary, &order).await.map_err(|error| store::reasons(&error))?;
    let ended = guard.ended().await.map_err(|error| store::reasons(&error))?;
    let output = std::fs::read(folder.join("output")).unwrap_or_default();
    Ok(judge(&ended, &output, timeout))
}

/// The user's own variables, those that name this mesh, and the event's.
fn environment(context: &Context, hook: &str, id: &str, event: &Occurrence) -> BTreeMap<String, String> {
    let mut variables = context.environment.of_the_person();
    let of_the_mesh = |(name, _): &(String, String)| name == "RELAY_STORE" || name.starts_with("RELAY_NATS_");
    variables.extend(context.environment.pairs().into_iter().filter(of_the_mesh));
    variables.insert("RELAY_DIR".to_owned(), context.settings.dir.value.display().to_string());
    variables.extend(payload::variables(hook, id, event));
    variables
}

/// The folder of the event's agent, or else the user's home.
fn place(context: &Context, event: &Occurrence) -> PathBuf {
    let of_agent = event.text("folder").map(PathBuf::from).filter(|folder| folder.is_absolute() && folder.is_dir());
    of_agent.or_else(|| context.environment.home()).unwrap_or_else(|| PathBuf::from("/"))
}

fn judge(ended: &Ended, output: &[u8], timeout: u64) -> Attempt {
    let said = last_of(output, &ended.stderr_end);
    let with = |what: String| if said.is_empty() { what } else { format!("{what}: {said}") };
    match (&ended.cause, ended.code) {
        _ if ended.not_started.is_some() => {
            Attempt::Failed(with(format!("it could not be started: {}", ended.not_started.as_deref().unwrap_or(""))))
        }
        (Cause::Itself, Some(0)) => Attempt::Done(with("exit 0".to_owned())),
        (Cause::Itself, Some(code)) => Attempt::Failed(with(format!("exit {code}"))),
        (Cause::Itself, None) => Attempt::Failed(with("it was killed".to_owned())),
        (Cause::Time, _) => {
            let seconds = timeout.div_ceil(1_000);
            Attempt::Failed(with(format!("it took more than {seconds} s, and was ended with all that it started")))
        }
        (Cause::Output, _) => Attempt::Failed(with(format!("it wrote more than {MOST_OUTPUT} bytes, and was ended"))),
        (Cause::Stopped | Cause::Silence | Cause::Leash | Cause::GuardLost, _) => {
            Attempt::Failed(with("it was ended: perhaps it has not finished".to_owned()))
        }
    }
}

/// The end of what a command wrote.
fn last_of(output: &[u8], errors: &str) -> String {
    let both = format!("{}{errors}", String::from_utf8_lossy(output));
    let text = both.trim_end();
    text[text.ceil_char_boundary(text.len().saturating_sub(KEPT))..].to_owned()
}
