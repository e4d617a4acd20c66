//! The last line: what was done, what is typed, or what can be done; and all keys.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Widget as _};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use view::live::{Action, Dot, Live, Tone, Typing};
use view::visible_line;

use super::{Screen, row, write};
use crate::keys::KEYS;
use crate::text::{cut, fitted};

/// Draws the last line. Returns where the cursor is while something is typed.
pub(super) fn draw(buffer: &mut Buffer, live: &Live, screen: &Screen) -> Option<Position> {
    let area = screen.areas.foot;
    if area.is_empty() {
        return None;
    }
    let width = usize::from(area.width);
    let palette = screen.palette;
    if let Some(note) = live.note() {
        let style = palette.of(if note.is_bad { Tone::Bad } else { Tone::Good });
        let text = cut(&visible_line(&note.text), width);
        write(buffer, area, &Line::from(Span::styled(text, style)));
        return None;
    }
    if let Some(typing) = live.typing() {
        return Some(typed(buffer, area, typing, screen));
    }
    let mut line = Line::default();
    let keys: [(&str, &str, Option<Action>); 10] = [
        ("y", "yes", Some(Action::Yes)),
        ("n", "no", Some(Action::No)),
        ("a", "answer", Some(Action::Answer)),
        ("c", "write", Some(Action::Compose)),
        ("w", "wake", Some(Action::Wake)),
        ("p", "pause", Some(Action::Pause)),
        ("e", "export", Some(Action::Export)),
        ("/", "search", None),
        ("?", "keys", None),
        ("q", "quit", None),
    ];
    // Only what can be done with what is chosen; the help has all keys.
    let can = |action: Option<Action>| action.is_none_or(|action| live.can(action).is_ok());
    let mut shown: Vec<(&str, &str)> =
        keys.into_iter().filter(|(.., action)| can(*action)).map(|(key, what, _)| (key, what)).collect();
    let columns =
        |shown: &[(&str, &str)]| shown.iter().map(|(key, what)| key.len() + what.len() + 3).sum::<usize>() - 2;
    for leaves_first in ["e", "p", "w", "c", "/", "a"] {
        if columns(&shown) > width {
            shown.retain(|(key, _)| *key != leaves_first);
        }
    }
    for (key, what) in shown {
        line.push_span(Span::styled(key, palette.of(Tone::Strong)));
        line.push_span(Span::styled(format!(" {what}  "), palette.of(Tone::Faint)));
    }
    write(buffer, area, &line);
    None
}

/// The line that is typed: where it is longer than the screen, the part around its cursor.
fn typed(buffer: &mut Buffer, area: Rect, typing: &Typing, screen: &Screen) -> Position {
    let width = usize::from(area.width);
    let label = cut(&format!("{}: ", visible_line(&typing.label())), width / 2);
    let space = width.saturating_sub(label.width() + 1);
    let shown = |text: &str| visible_line(&text.replace('\n', "⏎")).into_owned();
    let (before, after) = typing.line.parts();
    let before = tail(&shown(before), space);
    let after = cut(&shown(after), space.saturating_sub(before.width()) + 1);
    let column = label.width() + before.width();
    let style = screen.palette.of(Tone::Strong);
    write(buffer, area, &Line::from(vec![Span::styled(label, style), Span::raw(format!("{before}{after}"))]));
    let column = u16::try_from(column).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
    Position { x: area.x + column, y: area.y }
}

/// The end of a text that takes at most so many columns.
fn tail(text: &str, columns: usize) -> String {
    let mut width = 0;
    let begin = text.char_indices().rev().find(|(_, character)| {
        width += character.width().unwrap_or_default();
        width > columns
    });
    begin.map_or_else(|| text.to_owned(), |(at, character)| text[at + character.len_utf8()..].to_owned())
}

/// All keys, over everything else.
pub(super) fn help(buffer: &mut Buffer, screen: &Screen) {
    let size = *buffer.area();
    let width = 72.min(size.width);
    let lines = KEYS.len() + 3;
    let height = u16::try_from(lines + 2).unwrap_or(u16::MAX).min(size.height);
    let area = Rect { x: size.x + (size.width - width) / 2, y: size.y + (size.height - height) / 2, width, height };
    if area.is_empty() {
        return;
    }
    Clear.render(area, buffer);
    let is_framed = width > 40 && height > 6;
    let inside = if is_framed {
        let frame = screen.palette.frame(true);
        Block::bordered().border_type(BorderType::Thick).border_style(frame).title(" Keys ").render(area, buffer);
        Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 }
    } else {
        area
    };
    for (number, (key, what)) in KEYS.iter().enumerate() {
        let Some(area) = row(inside, number) else { return };
        let key = Span::styled(fitted(key, 12), screen.palette.of(Tone::Strong));
        write(buffer, area, &Line::from(vec![key, Span::raw(format!(" {what}"))]));
    }
    let legend = |some: &[Dot]| {
        let spans = some.iter().flat_map(|dot| {
            let glyph = Span::styled(dot.glyph().to_string(), screen.palette.of(dot.tone()));
            [glyph, Span::raw(format!(" {}  ", dot.word()))]
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    for (number, some) in Dot::ALL.chunks(5).enumerate() {
        let Some(area) = row(inside, KEYS.len() + 1 + number) else { return };
        write(buffer, area, &legend(some));
    }
}
