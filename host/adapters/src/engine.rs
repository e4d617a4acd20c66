//! The engine that runs components, made when the first adapter is needed, and the linker with
//! everything that a component may import.

use std::hash::{DefaultHasher, Hash, Hasher};

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine};

use crate::bindings;
use crate::guest::Guest;
use crate::ticker::Ticker;

/// The stack of a guest, in bytes. Its fiber's own stack is a little larger.
const GUEST_STACK: usize = 512 * 1024;
/// Address space that is set aside for a guest's memory before it has to move. Four gigabytes,
/// as wasmtime would, spare the bounds checks; nothing of it is touched until the guest grows.
const RESERVED: u64 = 4 << 30;

/// An engine without a compiler, its linker and its ticker. One per process.
pub(crate) struct Machinery {
    /// Runs what was compiled before. Made without a compiler, which costs time at every start.
    pub(crate) engine: Engine,
    /// Everything that a component may import.
    pub(crate) linker: Linker<Guest>,
    /// Advances the engine's epoch while calls run.
    pub(crate) ticker: Ticker,
    /// Tells this engine's compiled code from that of others.
    pub(crate) fingerprint: u64,
}

impl Machinery {
    /// Makes the engine. Takes well under a millisecond.
    pub(crate) fn new() -> wasmtime::Result<Machinery> {
        let engine = Engine::new(settings().enable_compiler(false))?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        bindings::Adapter::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let ticker = Ticker::new(engine.weak());
        Ok(Machinery { ticker, fingerprint: hasher.finish(), engine, linker })
    }
}

/// Compiles a component into machine code that [`Machinery::engine`] loads. Takes seconds.
pub(crate) fn compile(component: &[u8]) -> wasmtime::Result<Vec<u8>> {
    Engine::new(&settings())?.precompile_component(component)
}

/// What both engines, the one that compiles and the one that runs, must have in common.
fn settings() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(GUEST_STACK + 256 * 1024)
        .memory_reservation(RESERVED)
        // Nobody unwinds through an adapter, and musl's unwinder takes a component's functions in one by one and
        // looks through all of them for each that it lets go of.
        .native_unwind_info(false)
        // The interface has no async functions, so nothing is kept ready for them.
        .concurrency_support(false);
    config
}
