//! The engine that runs components, created when the first adapter is needed, and the linker with everything that a
//! component may import.

use std::hash::{DefaultHasher, Hash, Hasher};

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine};

use crate::bindings;
use crate::guest::Guest;
use crate::ticker::Ticker;

/// The stack of a guest, in bytes. Its fiber's own stack is a little larger.
const GUEST_STACK: usize = 512 * 1024;
/// Address space reserved for a guest's memory before it has to move. Four gigabytes, wasmtime's default, spare the
/// bounds checks; it is not touched until the guest grows.
const RESERVED: u64 = 4 << 30;

/// An engine without a compiler, its linker and its ticker. One per process.
pub(crate) struct Machinery {
    /// Runs precompiled code. It has no compiler, which would cost time at every start.
    pub(crate) engine: Engine,
    /// Everything that a component may import.
    pub(crate) linker: Linker<Guest>,
    /// Advances the engine's epoch while calls run.
    pub(crate) ticker: Ticker,
    /// Tells this engine's compiled code from that of other engines.
    pub(crate) fingerprint: u64,
}

impl Machinery {
    /// Takes well under a millisecond.
    pub(crate) fn new() -> wasmtime::Result<Machinery> {
        let engine = Engine::new(settings().enable_compiler(false))?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        bindings::Adapter::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)?;
        let ticker = Ticker::new(engine.weak());
        Ok(Machinery { ticker, fingerprint: fingerprint_of(&engine), engine, linker })
    }
}

/// The fingerprint of the engines of this program.
pub(crate) fn fingerprint() -> wasmtime::Result<u64> {
    Ok(fingerprint_of(&Engine::new(settings().enable_compiler(false))?))
}

fn fingerprint_of(engine: &Engine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

/// Compiles a component into machine code that [`Machinery::engine`] loads. Takes seconds.
pub(crate) fn compile(component: &[u8]) -> wasmtime::Result<Vec<u8>> {
    Engine::new(&settings())?.precompile_component(component)
}

/// The settings that the compiling and the running engine must share.
fn settings() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(GUEST_STACK + 256 * 1024)
        .memory_reservation(RESERVED)
        // Nothing unwinds through an adapter, and musl's unwinder registers a component's functions one by one and
        // searches all of them for each that it unregisters.
        .native_unwind_info(false)
        // The interface has no async functions, so their machinery is not needed.
        .concurrency_support(false);
    config
}
