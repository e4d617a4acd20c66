//! Measures what driving an agent costs beside its harness: with the real Codex and a scripted model, the turns of a driven
//! agent in turns with the same turns by a client that speaks to the same app server and does nothing else; what the
//! process that drives takes for forty agents more; and the same for calls of the tools of Codex.
//!
//! Run by `make bench`. The first argument says how many turns.

mod bare;
mod calls;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use bench::sampling::median;
use bench::{Failure, process, report::Report};
use test_support::{DeliveryHistory, ModelAnswer, Script, Spawning, wait_or_show};

use crate::bare::Client;

/// How many turns, if nobody says.
const TURNS: usize = 30;
/// How many agents more.
const MORE: usize = 40;
/// A word in a prompt of which the model takes some time to think, and how long.
const SLOWLY: &str = "slowly";
const THINKS: Duration = Duration::from_millis(500);
/// What is to be met: until the frames of a turn are written, a driven turn against a bare one, and for each agent.
const WRITTEN: Duration = Duration::from_millis(10);
const TURN: f64 = 0.05;
const EACH_MB: f64 = 1.0;

fn main() -> ExitCode {
    bench::isolated(measure)
}

fn measure() -> Result<(), Failure> {
    let turns = std::env::args().nth(1).map_or(Ok(TURNS), |number| number.parse())?;
    let (relay_mesh, _scratch) = bench::subject()?;
    let model = Script::new().otherwise(|text| {
        if text.contains(SLOWLY) {
            std::thread::sleep(THINKS);
        }
        ModelAnswer::Say("Done.".to_owned())
    });
    let scene = Spawning::of(&relay_mesh.display().to_string(), "codex", model);
    scene.stage.relay_ok(&["register", "alice"]);
    scene.spawn("first", &["Say hello", "--wait"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = Report::to_standard_output();
    report.section(&format!("a driven agent of Codex, p50 of {turns} turns, with a model that answers at once"));
    runtime.block_on(of_turns(&scene, turns, "turn", &report))?;
    report.section("the same with a model that takes half a second to answer");
    runtime.block_on(of_turns(&scene, turns, SLOWLY, &report))?;
    of_agents(&scene, &report)?;
    report.section("the tools `codex` and `codex-reply`");
    runtime.block_on(calls::measure(&scene, turns, &report))
}

async fn of_turns(scene: &Spawning, turns: usize, word: &str, report: &Report) -> Result<(), Failure> {
    let agent = scene.record("first");
    let text = |name: &str| agent[name].as_str().map(str::to_owned).ok_or(format!("it has no `{name}`: {agent}"));
    let (socket, thread) = (text("socket")?, text("session")?);
    let mut client = Client::at(&socket).await?;
    client.follow(&thread).await?;
    let own = client.begin(&scene.stage.project.display().to_string()).await?;
    let (mut bare, mut same, mut driven, mut written) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..turns {
        let began = Instant::now();
        client.turn(&own, &format!("{word} {number}")).await?;
        client.completed(&own).await?;
        bare.push(began.elapsed());

        let began = Instant::now();
        client.turn(&thread, &format!("{word} {number}")).await?;
        client.completed(&thread).await?;
        same.push(began.elapsed());
        idle(scene, "first");

        let began = Instant::now();
        let sent = scene.ok(&["send", "first", &format!("{word} {number}"), "--from", "alice"]);
        let sending = began.elapsed();
        client.completed(&thread).await?;
        driven.push(began.elapsed().saturating_sub(sending));
        let id = sent["id"].as_str().unwrap_or_default().to_owned();
        let answered = || (scene.status(&id) == "acknowledged").then_some(());
        wait_or_show("it is answered", answered, || scene.told());
        let history = DeliveryHistory::of(&scene.stage, &id);
        written.push(history.between("stored", "notified").ok_or("it was never handed over")?);
    }
    report.time("from stored until its frames are written", median(written), WRITTEN);
    let (bare, same, driven) = (median(bare), median(same), median(driven));
    report.note("the same turn by a bare client, in a thread of its own", bare);
    report.note("the same in the agent's thread, with its tools and hooks", same);
    report.note("from the end of `send` to the end of the turn", driven);
    let more = |than: Duration| (driven.as_secs_f64() / than.as_secs_f64() - 1.0) * 100.0;
    report.size("more than the bare client's", more(bare), TURN * 100.0, "%", "");
    report.size("  and than in the agent's thread", more(same), TURN * 100.0, "%", "");
    Ok(())
}

/// Waits until an agent has nothing to do.
fn idle(scene: &Spawning, agent: &str) {
    let is_idle = || (test_support::presence_of(&scene.stage, agent).as_deref() == Some("idle")).then_some(());
    wait_or_show("it is idle", is_idle, || scene.told());
}

fn of_agents(scene: &Spawning, report: &Report) -> Result<(), Failure> {
    report.section(&format!("{MORE} agents more on the same app server"));
    let host = scene.host().ok_or("nobody drives")?;
    let before = process::proportional(host)?;
    let began = Instant::now();
    for number in 0..MORE {
        scene.spawn(&format!("more-{number}"), &[]);
    }
    report.note("until all are begun", began.elapsed());
    let servers = scene.ours().iter().filter(|line| line.contains("app-server")).count();
    report.amount("app servers", servers as f64, "", "");
    let began = Instant::now();
    for number in 0..MORE {
        scene.ok(&["steer", &format!("more-{number}"), "--next", "go"]);
    }
    let idle = || {
        let agents = scene.ok(&["spawn", "list"]);
        let agents = agents["agents"].as_array()?.clone();
        agents.iter().filter(|agent| agent["turns"].as_u64() == Some(1)).nth(MORE - 1).map(|_| ())
    };
    wait_or_show("all have had a turn", idle, || scene.told());
    report.note("until all have had a turn", began.elapsed());
    let each = (process::proportional(host)? - before) / MORE as f64;
    report.size("memory for each, where they are driven", each, EACH_MB, "MB", "");
    let _down = scene.relay(&["down"]);
    scene.nothing_is_left();
    Ok(())
}
