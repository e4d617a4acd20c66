//! `relay-mesh serve-harness`: keeps the server of one harness running, on a leash. `up --with` starts it, `down` ends
//! it. If it is killed, the guard at the other end of the leash ends the server with everything that it started.

use std::path::{Path, PathBuf};
use std::time::Duration;

use adapters::HarnessServer;
use mesh::ports::harness::HarnessError;
use mesh::ports::machine::Machine as _;
use processes::Guard;
use processes::guard::{Cause, Limits, Order, Step, StepSignal, Streams};
use store::Key;
use tokio::time::MissedTickBehavior;

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::config::Values;
use crate::context::Context;
use crate::errors::{self, CommandError, Failure, StreamError};
use crate::exit::Exit;
use crate::runs::binary;
use crate::server::of_harness::{self, HarnessServerRecord};
use crate::signals::Stop;
use crate::unix;

/// Marks everything that a harness's server started, for the case that nobody is left to end it.
const MARK: &str = "RELAY_HARNESS_SERVER";
/// How often to look whether the record is still there: a data folder that was removed ends what belongs to it.
const LOOK: Duration = Duration::from_secs(2);
/// How long a server has to end by itself, in milliseconds.
const GRACE: u64 = 5_000;

/// Keep the server of one harness running
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh serve-harness opencode\n\n\
    Ctrl-C stops it. `relay-mesh up --with opencode` runs the same in the background.")]
pub(crate) struct Args {
    /// The harness
    harness: String,
    /// A folder with further adapters; may be given several times [$RELAY_PLUGINS]
    #[arg(long, value_name = "DIR")]
    plugins: Vec<PathBuf>,
    /// Leave the terminal: what `up` starts
    #[arg(long, hide = true)]
    background: bool,
}

impl CommandSpec for Args {
    fn settings(&self, common: Values) -> Values {
        Values { plugins: (!self.plugins.is_empty()).then(|| self.plugins.clone()), ..common }
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if self.background {
            unix::process::begin_session();
        }
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        // The server gets what this user's own shell has for it.
        let open = context.open()?;
        let dir = &context.settings.dir.value;
        let found = open.adapters.server_of(&self.harness);
        let Some(server) = found.map_err(|error| errors::adapters::failed(&self.harness, error))? else {
            return Err(CommandError::usage(
                &format!("`{}` has no server to keep running", self.harness),
                "`relay-mesh up --with auto` starts those that are needed",
            ));
        };
        // Held until this process ends, however it ends.
        let Some(_held) = open.store.hold(&key(&self.harness)).await? else {
            context.printer.say("another process keeps it running");
            return Ok(Exit::Success);
        };
        if let Some(record) = HarnessServerRecord::find(dir, &self.harness, open.machine.as_ref())? {
            context.printer.say(&format!("it runs already: process {}", record.pid));
            return Ok(Exit::Success);
        }
        let mark = format!("{}/{}", dir.display(), self.harness);
        // What a holder left that was killed together with its guard. Nobody knows its password any more.
        processes::end_marked(MARK, &mark);
        let last = HarnessServerRecord::last(dir, &self.harness)?.map(|record| record.port);
        let port = of_harness::free_port(&last.into_iter().chain([server.port()]).collect::<Vec<u16>>());
        let port = port.map_err(|source| failed("no port is free for it", Some(source)))?;
        let order = order(context, &open, &server, &self.harness, port, &mark)?;
        let mut guard = Guard::start(&binary()?, &order).await?;
        let Some(program) = guard.started().await.and_then(|started| started.program) else {
            let why = guard.ended().await?.not_started.unwrap_or_else(|| "its guard was killed".to_owned());
            return Err(failed(&format!("{} could not be started: {why}", server.title), None));
        };
        let record = HarnessServerRecord {
            harness: self.harness.clone(),
            title: server.title.clone(),
            process: open.machine.this_process(),
            pid: program.pid,
            machine: open.machine.name().to_owned(),
            port,
        };
        record.write(dir)?;
        context.printer.say(&format!("{} serves {}, process {}", server.title, record.url(), record.pid));
        let outcome = keep(guard, &record, dir, &mut stop).await;
        processes::end_marked(MARK, &mark);
        // It is gone if the data folder is.
        let _removed = record.remove(dir);
        outcome
    }
}

/// Waits for the end of the server, or for what ends it.
async fn keep(
    mut guard: Guard,
    record: &HarnessServerRecord,
    dir: &Path,
    stop: &mut Stop,
) -> Result<Exit, CommandError> {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = loop {
        tokio::select! {
            biased;
            ended = guard.ended() => break ended?,
            () = stop.asked() => guard.stop().await,
            _ = looks.tick() => {
                let stays = HarnessServerRecord::last(dir, &record.harness).is_ok_and(|last| last.as_ref() == Some(record));
                if !stays {
                    guard.stop().await;
                }
            }
        }
    };
    match ended.cause {
        Cause::Stopped | Cause::Leash => Ok(Exit::Success),
        Cause::Itself | Cause::Time | Cause::Silence | Cause::Output | Cause::GuardLost => {
            let said = ended.complaint().unwrap_or_default();
            let how = match (ended.code, ended.signal) {
                (Some(code), _) => format!("with {code}"),
                (None, Some(signal)) => format!("by signal {signal}"),
                (None, None) => "with its guard".to_owned(),
            };
            Err(failed(format!("{} ended {how} {}", record.title, said).trim(), None))
        }
    }
}

fn order(
    context: &Context,
    open: &Open,
    server: &HarnessServer,
    harness: &str,
    port: u16,
    mark: &str,
) -> Result<Order, CommandError> {
    let unusable = |error: HarnessError| errors::adapters::failed(harness, error);
    let Some(program) = &server.program else {
        let (name, _) = server.known_by();
        return Err(unusable(HarnessError::NotFound(format!("`{name}` is not on the PATH"))));
    };
    let dir = &context.settings.dir.value;
    let folder = of_harness::make_folder(dir)?;
    let file = |what: &str| folder.join(format!("{harness}.{what}"));
    // The guard makes this one itself; the others belong to the last start.
    for what in ["output", "errors", "running", "ended"] {
        let _missing = std::fs::remove_file(file(what));
    }
    let secret = hex::encode([open.machine.random(), open.machine.random()].concat());
    let mut environment = server.environment(&secret);
    environment.retain(|(name, _)| name != MARK && name != "RELAY_DIR");
    environment.push((MARK.to_owned(), mark.to_owned()));
    environment.push(("RELAY_DIR".to_owned(), dir.display().to_string()));
    let mut command = vec![program.display().to_string()];
    command.extend(server.arguments(port).map_err(unusable)?);
    Ok(Order {
        command,
        environment,
        folder: context.workdir.clone(),
        streams: Streams::Files { input: String::new(), output: file("output") },
        stop: vec![Step { signal: StepSignal::Terminate, grace: GRACE }],
        limits: Limits::default(),
        errors: file("errors"),
        running: file("running"),
        ended: file("ended"),
    })
}

fn failed(what: &str, source: Option<std::io::Error>) -> CommandError {
    let source = source.map(|source| Box::new(source) as Box<dyn std::error::Error + Send + Sync>);
    Failure { what: what.to_owned(), hint: None, exit: Exit::Failure, source }.into()
}

/// The store key that the only holder of a harness's server has.
fn key(harness: &str) -> Key {
    let key: Key = "serve-harness".parse().expect("a constant of this file is a key");
    key.child(harness)
}
