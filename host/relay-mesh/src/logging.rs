//! What the crates below report: warnings, unless somebody asks for more.

use std::io;

use tracing::Level;
use tracing_subscriber::{EnvFilter, fmt};

use crate::environment::Environment;

/// Starts logging to standard error. `RELAY_LOG` (or `RUST_LOG`) takes tracing's filters, as in
/// `RELAY_LOG=debug` or `RELAY_LOG=mesh=trace`; without it nothing is parsed and warnings show.
pub(crate) fn start(environment: &Environment) {
    let outcome = match environment.get("RELAY_LOG").or_else(|| environment.get("RUST_LOG")) {
        None => tracing::subscriber::set_global_default(
            fmt()
                .with_writer(io::stderr)
                .with_ansi(false)
                .without_time()
                .with_target(false)
                .with_max_level(Level::WARN)
                .finish(),
        ),
        Some(filter) => tracing::subscriber::set_global_default(
            fmt().with_writer(io::stderr).with_ansi(false).with_env_filter(EnvFilter::new(filter)).finish(),
        ),
    };
    // Only main starts logging, and only once; a second start would change nothing.
    debug_assert!(outcome.is_ok(), "logging is started once");
}
