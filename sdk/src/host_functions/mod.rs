//! Safe Rust wrappers of the functions that the host offers. On wasm each function calls the host;
//! natively it calls the fakes of [`crate::testing`], so an adapter's logic runs unchanged in a test.

pub mod channels;
pub mod clock;
pub mod files;
pub mod http;
pub mod log;
pub mod notices;
pub mod programs;
pub mod state;
