//! How soon a looping guest is stopped, and how long other calls on the same thread wait meanwhile. `cargo run
//! --release -p relay-mesh-adapters --example stopping -- FOLDER`, where FOLDER holds `hostile/hostile.wasm` and
//! `polite/polite.wasm` of tests/hostile, each beside its adapter.toml.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

#[path = "../tests/common/still.rs"]
mod still;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adapters::{Adapters, NoConsents, Settings, Surroundings, host_functions};
use async_trait::async_trait;
use mesh::ports::harness::{Findings, Harness as _, HookCall, HookHost, Reading};
use still::Still;
use store::memory::MemoryStore;

/// Number of looping calls.
const ROUNDS: usize = 20;

/// A hook host that finds nothing.
struct Empty;

#[async_trait]
impl HookHost for Empty {
    async fn look_up(&mut self, _reading: Reading) -> Findings {
        Findings {
            agent: None,
            mail: None,
            protocol: None,
            refusal: None,
            wake_file: String::new(),
            ticket: String::new(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("name the folder of the components")?;
    let cache = std::env::temp_dir().join(format!("stopping-{}", std::process::id()));
    let settings = |store| Settings {
        store,
        machine: Arc::new(Still),
        cache: cache.clone(),
        cache_aside: None,
        compiler: adapters::Compiler::InThisProcess,
        installs: cache.join("installs"),
        rates: None,
        installed: None,
        plugin_folders: vec![folder.clone()],
        surroundings: Surroundings::default(),
        consents: Arc::new(NoConsents),
        host_functions: host_functions::Settings::default(),
    };
    let adapters = Adapters::new(settings(Arc::new(MemoryStore::new())));
    let polite = adapters.adapter("polite").await?.ok_or("there is no polite/polite.wasm")?;
    let (mut alone, mut beside, mut stopped) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS * 20 {
        let began = Instant::now();
        polite.discover().await?;
        alone.push(began.elapsed());
    }
    for _ in 0..ROUNDS {
        // Created for each round: an adapter with several faults in a row is paused.
        let fresh = Adapters::new(settings(Arc::new(MemoryStore::new())));
        let hostile = fresh.adapter("hostile").await?.ok_or("there is no hostile/hostile.wasm")?;
        // From the same set, which counts the calls in progress.
        let neighbour = fresh.adapter("polite").await?.ok_or("there is no polite/polite.wasm")?;
        let call = HookCall {
            name: "answer:loop".to_owned(),
            payload: "s".to_owned(),
            environment: Vec::new(),
            process: None,
        };
        let began = Instant::now();
        let mut hook_host = Empty;
        let looping = hostile.hook(&call, &mut hook_host);
        tokio::pin!(looping);
        loop {
            let asked = Instant::now();
            tokio::select! {
                biased;
                outcome = &mut looping => {
                    outcome.err().ok_or("the loop ended by itself")?;
                    stopped.push(began.elapsed());
                    break;
                }
                answer = neighbour.discover() => {
                    answer?;
                    beside.push(asked.elapsed());
                }
            }
        }
    }
    for times in [&mut alone, &mut beside, &mut stopped] {
        times.sort();
    }
    let middle = |times: &[Duration]| times[times.len() / 2];
    let most = |times: &[Duration]| times.last().copied().unwrap_or_default();
    println!(
        "a loop with a deadline of 100 ms of processor time is stopped after {:.1?}, at most {:.1?}",
        middle(&stopped),
        most(&stopped)
    );
    println!(
        "a neighbour's call takes {:.1?} alone and {:.1?} beside the loop, at most {:.1?} (5 ms are its host's promise)",
        middle(&alone),
        middle(&beside),
        most(&beside)
    );
    std::fs::remove_dir_all(&cache)?;
    Ok(())
}
