//! What an adapter costs compared with bare wasmtime: a fresh instance and a call, and loading a precompiled one. Both
//! sides run the same component in one process and alternate, so that the ratio is meaningful on any machine. `cargo
//! run --release -p relay-mesh-adapters --example instance`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its measurements")]

#[path = "../tests/common/still.rs"]
mod still;

use std::sync::Arc;
use std::time::{Duration, Instant};

use adapters::{Adapters, NoConsents, Settings, Surroundings, host_functions};
use mesh::ports::harness::Harnesses as _;
use still::Still;
use store::memory::MemoryStore;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// Number of runs of each side.
const ROUNDS: usize = 2_000;
/// The measured adapter: built in, so that it needs no setup.
const ADAPTER: &str = "generic";

mod bare {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "relay:adapter/adapter",
        exports: { default: async },
    });
}

struct Bare {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Bare {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

fn settings(cache: &std::path::Path) -> Settings {
    Settings {
        store: Arc::new(MemoryStore::new()),
        machine: Arc::new(Still),
        cache: cache.to_owned(),
        cache_aside: None,
        compiler: adapters::Compiler::InThisProcess,
        installs: cache.to_owned(),
        rates: None,
        installed: None,
        plugin_folders: Vec::new(),
        surroundings: Surroundings::default(),
        consents: Arc::new(NoConsents),
        host_functions: host_functions::Settings::default(),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = std::env::temp_dir().join(format!("relay-mesh-bench-{}", std::process::id()));
    let adapters = Adapters::new(settings(&cache));
    let ours = adapters.get(ADAPTER).await?.ok_or("it is not built in")?;

    let engine = Engine::new(&Config::new())?;
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(ADAPTER);
    let component = Component::from_file(&engine, path.join(ADAPTER).with_extension("wasm"))?;
    let mut linker = Linker::<Bare>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    linker.define_unknown_imports_as_traps(&component)?;
    let bare = bare::AdapterPre::new(linker.instantiate_pre(&component)?)?;

    let (mut mine, mut theirs, mut loads) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let answer = ours.protocol("base", mesh::ports::harness::Occasion::Registration, None).await?;
        mine.push(began.elapsed());

        let began = Instant::now();
        let data = Bare { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = Store::new(&engine, data);
        let instance = bare.instantiate_async(&mut store).await?;
        let occasion = bare::relay::adapter::types::Occasion::Registration;
        let same = instance.relay_adapter_context().call_protocol(&mut store, "base", occasion, None).await?;
        drop(store);
        theirs.push(began.elapsed());
        assert_eq!(answer, same.ok().flatten());
    }
    for _ in 0..200 {
        // Everything that a new process does: the engine, the linker, the cached code, and `describe`.
        let began = Instant::now();
        let adapters = Adapters::new(settings(&cache));
        adapters.get(ADAPTER).await?.ok_or("it is not built in")?;
        loads.push(began.elapsed());
    }
    // Once, so that all of them are in the cache.
    for name in Adapters::new(settings(&cache)).names() {
        Adapters::new(settings(&cache)).get(&name).await?;
    }
    let mut all = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        let adapters = Adapters::new(settings(&cache));
        for name in adapters.names() {
            adapters.get(&name).await?.ok_or("it is not built in")?;
        }
        all.push(began.elapsed());
    }
    let all = median(all);
    let (mine, theirs, loads) = (median(mine), median(theirs), median(loads));
    let ratio = mine.as_secs_f64() / theirs.as_secs_f64();
    println!("fresh instance and call: {mine:.1?}; bare wasmtime: {theirs:.1?}; ratio {ratio:.2} (budget 3)");
    println!("load of a cached adapter, engine and first call included: {loads:.1?} (budget 1 ms)");
    println!("load of all built-in adapters from the cache, in one process: {all:.1?} (budget 10 ms for five)");
    std::fs::remove_dir_all(&cache)?;
    Ok(())
}
