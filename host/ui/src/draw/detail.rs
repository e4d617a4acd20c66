//! What is said of the chosen thing.

use ratatui::buffer::Buffer;
use ratatui::text::{Line, Span};
use view::live::{Live, Pane};

use super::{Screen, pane, row, write};
use crate::text::wrapped;

/// Draws it. Returns how many of its lines are beyond those that are seen.
pub(super) fn draw(buffer: &mut Buffer, live: &Live, screen: &Screen) -> usize {
    let area = screen.areas.inside(Pane::Detail);
    if area.is_empty() {
        return 0;
    }
    let detail = live.detail();
    pane(buffer, screen, live, Pane::Detail, &detail.title);
    let width = usize::from(area.width);
    let mut lines = Vec::new();
    for line in &detail.lines {
        // What is deep is not pushed out of a narrow pane.
        let indent = line.indent.min(width / 4);
        let style = screen.palette.of(line.tone);
        let parts = wrapped(&line.text, width.saturating_sub(indent));
        lines.extend(parts.into_iter().map(|part| Line::from(Span::styled(format!("{:indent$}{part}", ""), style))));
    }
    let beyond = lines.len().saturating_sub(usize::from(area.height));
    let first = live.scrolled().min(beyond);
    for (number, line) in lines.iter().skip(first).enumerate() {
        let Some(area) = row(area, number) else { break };
        write(buffer, area, line);
    }
    beyond
}
