//! What the host lends, with Rust manners. On wasm each function crosses to the host; natively it
//! goes to the fakes of [`crate::testing`], so that an adapter's logic runs unchanged in a test.

pub mod channels;
pub mod clock;
pub mod files;
pub mod http;
pub mod kept;
pub mod log;
pub mod notices;
pub mod programs;
pub mod state;
