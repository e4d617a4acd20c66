//! Logging: warnings by default, more by `RELAY_LOG`.

use std::io;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;

use crate::environment::Environment;

/// Starts logging to standard error. `RELAY_LOG` (or `RUST_LOG`) takes a level or levels per crate, as in
/// `RELAY_LOG=debug` or `RELAY_LOG=warn,mesh=trace`. Without it no filter is parsed and warnings are shown. An invalid
/// filter is reported, and warnings are shown.
pub(crate) fn start(environment: &Environment) {
    let named = ["RELAY_LOG", "RUST_LOG"].into_iter().find_map(|name| Some((name, environment.get(name)?)));
    let (targets, unreadable) = match named {
        None => (usual(), None),
        Some((name, filter)) => match filter.parse::<Targets>() {
            Ok(targets) => (targets, None),
            Err(error) => (usual(), Some((name, error))),
        },
    };
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(false).without_time().with_target(named.is_some());
    let outcome = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(targets).with(lines));
    // Only `main` starts logging; a second start would have no effect.
    debug_assert!(outcome.is_ok(), "logging is started once");
    if let Some((name, error)) = unreadable {
        tracing::warn!("`{name}` is not a filter ({error}); only warnings are shown");
    }
}

/// Warnings, but none of the NATS client: we report server trouble ourselves, once and with a hint.
fn usual() -> Targets {
    Targets::new().with_default(Level::WARN).with_target("async_nats", LevelFilter::OFF)
}
