//! Draws the view model into a frame.

mod detail;
mod foot;
mod head;
mod lists;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Widget as _};
use view::live::{Live, Pane};
use view::visible_line;

use crate::areas::{Areas, areas};
use crate::palette::Palette;
use crate::text::cut;

/// What is known of the screen beside the model: where its parts are, and which line of each list is the first that is
/// seen.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    palette: Palette,
    areas: Areas,
    /// The first line of the agents that is seen.
    agents_from: usize,
    /// The first item of the middle that is seen.
    middle_from: usize,
}

impl Screen {
    /// A screen with these colours.
    pub fn of(palette: Palette) -> Screen {
        Screen { palette, ..Screen::default() }
    }

    /// Where its parts are.
    pub fn areas(&self) -> &Areas {
        &self.areas
    }

    /// How many lines a page of a pane has.
    pub(crate) fn page(&self, pane: Pane) -> isize {
        isize::try_from(self.areas.inside(pane).height.saturating_sub(2).max(1)).unwrap_or(1)
    }

    /// Which line of the agents, or which item of the middle, is at a line of the screen.
    pub(crate) fn line_at(&self, pane: Pane, y: u16) -> Option<usize> {
        let inside = self.areas.inside(pane);
        let line = usize::from(y.checked_sub(inside.y).filter(|line| *line < inside.height)?);
        match pane {
            Pane::Agents => Some(self.agents_from + line),
            // The first line has the names of the columns.
            Pane::Middle => Some(self.middle_from + line.checked_sub(1)?),
            Pane::Detail => None,
        }
    }
}

/// Draws the view. Returns how many lines of the detail are beyond those that are seen.
pub fn draw(frame: &mut Frame<'_>, live: &Live, screen: &mut Screen) -> usize {
    let alerts = live.lost().is_some() || !live.damaged().is_empty();
    screen.areas = areas(frame.area(), live.focus(), alerts);
    let buffer = frame.buffer_mut();
    head::draw(buffer, live, screen);
    lists::agents(buffer, live, screen);
    lists::middle(buffer, live, screen);
    let beyond = detail::draw(buffer, live, screen);
    let cursor = foot::draw(buffer, live, screen);
    if live.helps() {
        foot::help(buffer, screen);
    } else if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
    beyond
}

/// Where a list of so many lines begins, so that the chosen one is seen and as little moves as possible.
fn first_seen(from: usize, chosen: usize, lines: usize, height: usize) -> usize {
    let last = lines.saturating_sub(height);
    let lowest = (chosen + 1).saturating_sub(height);
    from.clamp(lowest.min(chosen), chosen.max(lowest)).min(last)
}

/// The title and the frame of a pane.
fn pane(buffer: &mut Buffer, screen: &Screen, live: &Live, pane: Pane, title: &str) {
    let area = screen.areas.of(pane);
    if area.is_empty() {
        return;
    }
    let has_focus = live.focus() == pane && live.typing().is_none();
    let style = screen.palette.frame(has_focus);
    let title = cut(&visible_line(title), usize::from(area.width).saturating_sub(4));
    if screen.areas.framed {
        let kind = if has_focus { BorderType::Thick } else { BorderType::Plain };
        let weight = if has_focus { Modifier::BOLD } else { Modifier::empty() };
        let title = Span::styled(format!(" {title} "), style.add_modifier(weight));
        Block::bordered().border_type(kind).border_style(style).title(title).render(area, buffer);
    } else {
        let weight = if has_focus { Modifier::REVERSED } else { Modifier::UNDERLINED };
        write(buffer, Rect { height: 1, ..area }, &Line::from(Span::styled(title, style.add_modifier(weight))));
    }
}

/// A line at the top of an area. Nothing is drawn beyond its edge.
fn write(buffer: &mut Buffer, area: Rect, line: &Line<'_>) {
    let area = area.intersection(*buffer.area());
    if !area.is_empty() {
        buffer.set_line(area.x, area.y, line, area.width);
    }
}

/// The area of the line so many lines below the top; none if it is beyond the bottom.
fn row(area: Rect, line: usize) -> Option<Rect> {
    let line = u16::try_from(line).ok().filter(|line| *line < area.height)?;
    Some(Rect { y: area.y + line, height: 1, ..area })
}

/// What is chosen, where the keys go and elsewhere.
fn chosen(style: Style, has_focus: bool) -> Style {
    style.add_modifier(if has_focus { Modifier::REVERSED } else { Modifier::BOLD })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_moves_only_as_far_as_it_must() {
        for (from, chosen, lines, height, expected) in [
            (0, 0, 3, 10, 0),
            (0, 9, 100, 10, 0),
            (0, 10, 100, 10, 1),
            (5, 4, 100, 10, 4),
            (95, 99, 100, 10, 90),
            (7, 2, 3, 10, 0),
            (3, 4, 5, 0, 4),
        ] {
            assert_eq!(first_seen(from, chosen, lines, height), expected, "{from} {chosen} {lines} {height}");
        }
    }

    proptest! {
        /// The chosen line is seen wherever the list was before.
        #[test]
        fn what_is_chosen_is_seen(from in 0_usize..200, lines in 1_usize..200, chosen in 0_usize..200, height in 1_usize..50) {
            let chosen = chosen.min(lines - 1);
            let first = first_seen(from, chosen, lines, height);
            prop_assert!(first <= chosen && chosen < first + height);
        }
    }
}
