//! WASI, so that components of any language load: clocks and random numbers are real, everything else exists and is
//! empty. No variables, no arguments, no folders, no network, and standard output is discarded.

use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

/// The most random bytes that a guest may request at a time.
const MOST_RANDOM: u64 = 64 * 1024;

/// An empty WASI context with clocks and random numbers.
pub(crate) fn context() -> WasiCtx {
    WasiCtxBuilder::new()
        .max_random_size(MOST_RANDOM)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}
