//! WASI, so that components of any language load: clocks and random numbers are real, and
//! everything else is there and empty. No variables, no arguments, no folders, no network, and
//! standard output leads nowhere.

use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

/// Random bytes that one call may ask for at a time.
const MOST_RANDOM: u64 = 64 * 1024;

/// An empty world with clocks and random numbers.
pub(crate) fn context() -> WasiCtx {
    WasiCtxBuilder::new()
        .max_random_size(MOST_RANDOM)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}
