//! Logging: warnings by default, more by `RELAY_LOG`. While something draws the terminal, lines wait until it is given back.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};

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
    let lines = fmt::layer().with_writer(|| LogLines).with_ansi(false).without_time().with_target(named.is_some());
    let outcome = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(targets).with(lines));
    // Only `main` starts logging; a second start would have no effect.
    debug_assert!(outcome.is_ok(), "logging is started once");
    if let Some((name, error)) = unreadable {
        tracing::warn!("`{name}` is not a filter ({error}); only warnings are shown");
    }
}

/// Lines that wait until the terminal is given back, written by whoever logs; none while nothing draws it.
static WITHHELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);
/// So many bytes of them are kept.
const MOST_WITHHELD: usize = 64 * 1024;

/// Where lines of the log go.
struct LogLines;

impl Write for LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut withheld = WITHHELD.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lines) = withheld.as_mut() else { return io::stderr().write(line) };
        if lines.len() + line.len() <= MOST_WITHHELD {
            lines.extend_from_slice(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// While it is there, nothing is logged to a terminal: a line would stand across what is drawn there. Dropping it logs
/// what was withheld.
pub(crate) struct Withheld(());

/// Withholds lines of the log, if they would go to a terminal.
pub(crate) fn withhold() -> Option<Withheld> {
    io::stderr().is_terminal().then(|| {
        WITHHELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
        Withheld(())
    })
}

impl Drop for Withheld {
    fn drop(&mut self) {
        let lines = WITHHELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A terminal that is gone hears nothing.
        let _gone = io::stderr().write_all(&lines.unwrap_or_default());
    }
}

/// Warnings, but none of the NATS client: we report server trouble ourselves, once and with a hint.
fn usual() -> Targets {
    Targets::new().with_default(Level::WARN).with_target("async_nats", LevelFilter::OFF)
}
