//! Logging: warnings by default, as commands print theirs; more by `RELAY_LOG`, with level and target. While something
//! draws the terminal, lines wait until it is given back.

use std::fmt::{self, Debug};
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use crate::environment::Environment;
use crate::render::{Talk, printable_line};

/// Starts logging to standard error. `RELAY_LOG` (or `RUST_LOG`) takes a level or levels per crate, as in
/// `RELAY_LOG=debug` or `RELAY_LOG=warn,mesh=trace`. Without it no filter is parsed and warnings are shown, or errors
/// alone if quiet. An invalid filter is reported, and warnings are shown.
pub(crate) fn start(environment: &Environment, talk: Talk) {
    let named = ["RELAY_LOG", "RUST_LOG"].into_iter().find_map(|name| Some((name, environment.get(name)?)));
    let (targets, unreadable) = match named {
        None => (usual(talk), None),
        Some((name, filter)) => match filter.parse::<Targets>() {
            Ok(targets) => (targets, None),
            Err(error) => (usual(Talk::Normal), Some((name, error))),
        },
    };
    let lines = named.is_some().then(|| layer().with_writer(|| LogLines).with_ansi(false).without_time());
    let sentences = named.is_none().then(|| layer().with_writer(|| LogLines).with_ansi(false).event_format(Sentence));
    let registry = tracing_subscriber::registry().with(targets);
    let outcome = tracing::subscriber::set_global_default(registry.with(lines).with(sentences));
    // Only `main` starts logging; a second start would have no effect.
    debug_assert!(outcome.is_ok(), "logging is started once");
    if let Some((name, error)) = unreadable {
        tracing::warn!("`{name}` is not a filter ({error}); only warnings are shown");
    }
}

/// `warning: MESSAGE (NAME VALUE, …)`, as every other warning of a command: users read it who know of no log.
struct Sentence;

impl<S, N> FormatEvent<S, N> for Sentence
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        writeln!(line, "{}", said.sentence(*event.metadata().level()))
    }
}

/// What an event says, and its fields.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<String>,
}

impl Said {
    fn take(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            name => self.fields.push(format!("{} {value}", name.replace('_', " "))),
        }
    }

    fn sentence(&self, level: Level) -> String {
        let word = if level == Level::ERROR { "error" } else { "warning" };
        let fields = match self.fields.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.fields.join(", ")),
        };
        printable_line(&format!("{word}: {}{fields}", self.message))
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field, format!("{value:?}"));
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

/// Warnings, or errors alone if quiet, but nothing of the NATS client: we report server trouble ourselves, once and with
/// a hint.
fn usual(talk: Talk) -> Targets {
    let level = match talk {
        Talk::Normal => Level::WARN,
        Talk::Quiet => Level::ERROR,
    };
    Targets::new().with_default(level).with_target("async_nats", LevelFilter::OFF)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn who_wants_no_notes_hears_of_errors_alone() {
        for (talk, target, warnings, errors) in [
            (Talk::Normal, "mesh", true, true),
            (Talk::Quiet, "mesh", false, true),
            (Talk::Normal, "async_nats", false, false),
            (Talk::Quiet, "async_nats", false, false),
        ] {
            let heard = [Level::WARN, Level::ERROR].map(|level| usual(talk).would_enable(target, &level));
            assert_eq!(heard, [warnings, errors], "{talk:?} {target}");
        }
    }

    #[test]
    fn a_warning_is_a_sentence_as_those_of_commands() {
        let (mut lines, writer) = io::pipe().expect("a pipe");
        let sentences = layer().with_writer(move || writer.try_clone().expect("a pipe"));
        let sentences = sentences.with_ansi(false).event_format(Sentence);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(sentences), || {
            tracing::warn!(path = %"/d/inbox.jsonl", torn = 199, "cut off a line that was torn");
            tracing::error!("it {} badly", "ended");
            tracing::warn!(why = "a\nb\u{1b}[2J", "two lines");
        });
        let mut told = String::new();
        lines.read_to_string(&mut told).expect("text");
        let expected = "warning: cut off a line that was torn (path /d/inbox.jsonl, torn 199)\nerror: it ended badly\n\
                        warning: two lines (why a b\\u{1b}[2J)\n";
        assert_eq!(told, expected);
    }
}
