//! The log: an adapter's lines, named and bounded, in the host's own log. No guest can fill a disk or write control
//! characters to a terminal.

use crate::bindings::relay::adapter::log::{Host, Level};
use crate::guest::Guest;

/// The longest line, in bytes. The rest of it is cut.
const LONGEST_LINE: usize = 2048;
/// The most lines of one call.
const MOST_LINES: u32 = 64;

/// How much one call has logged.
#[derive(Debug, Default)]
pub struct LogBudget {
    lines: u32,
}

impl Host for Guest {
    async fn write(&mut self, level: Level, text: String) -> wasmtime::Result<()> {
        self.log.lines = self.log.lines.saturating_add(1);
        let adapter = self.host_side.name.as_str();
        if self.log.lines == MOST_LINES + 1 {
            tracing::warn!(adapter, "it logs more than {MOST_LINES} lines in one call; the rest is dropped");
        }
        if self.log.lines > MOST_LINES {
            return Ok(());
        }
        let text = plain(&text);
        match level {
            Level::Debug => tracing::debug!(adapter, "{text}"),
            Level::Info => tracing::info!(adapter, "{text}"),
            Level::Warn => tracing::warn!(adapter, "{text}"),
            Level::Error => tracing::error!(adapter, "{text}"),
        }
        Ok(())
    }
}

/// One line without control characters, cut to its longest.
pub(crate) fn plain(text: &str) -> String {
    let mut line = String::new();
    for character in text.chars() {
        if line.len() >= LONGEST_LINE {
            line.push('…');
            break;
        }
        if character.is_control() { line.extend(character.escape_default()) } else { line.push(character) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert_eq!(plain("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(plain(&"x".repeat(5000)).chars().count(), 2049);
    }
}
