//! The first lines: the tabs, how many agents there are, and why what is shown may be old.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;
use view::live::{Live, Tab, Tone};
use view::{counted, visible_line};

use super::{Screen, write};
use crate::text::cut;

pub(super) fn draw(buffer: &mut Buffer, live: &Live, screen: &mut Screen) {
    let palette = screen.palette;
    let head = screen.areas.head;
    let mut x = head.x;
    let end = head.x.saturating_add(head.width);
    for tab in Tab::ALL {
        let count = live.count(tab);
        let is_shown = tab == live.tab();
        let label = match tab {
            Tab::Log => tab.title().to_owned(),
            _ if count == 0 => tab.title().to_owned(),
            _ => format!("{} {count}", tab.title()),
        };
        let width = u16::try_from(label.width()).unwrap_or(u16::MAX);
        if head.is_empty() || x >= end {
            break;
        }
        let style = match tab {
            Tab::Asks if count > 0 => palette.of(Tone::Calls),
            Tab::Stuck if count > 0 => palette.of(Tone::Warn),
            _ if is_shown => palette.of(Tone::Strong),
            _ => palette.of(Tone::Faint),
        };
        let style = if is_shown { style.add_modifier(Modifier::REVERSED) } else { style };
        let area = Rect { x, width: width.min(end - x), ..head };
        write(buffer, area, &Line::from(Span::styled(label, style)));
        screen.areas.tabs.push((area, tab));
        x = x.saturating_add(width).saturating_add(2);
    }
    let agents = counted(live.agent_count(), "agent");
    let summary = match live.needing() {
        _ if !live.is_read() => "reading the mesh…".to_owned(),
        0 => agents,
        1 => format!("1 needs you · {agents}"),
        some => format!("{some} need you · {agents}"),
    };
    let width = u16::try_from(summary.width()).unwrap_or(u16::MAX);
    // What there is no space for is in the list of agents too.
    if x.saturating_add(width) <= end {
        let tone = if live.needing() > 0 { Tone::Calls } else { Tone::Faint };
        let area = Rect { x: end - width, width, ..head };
        write(buffer, area, &Line::from(Span::styled(summary, palette.of(tone))));
    }
    let alert = screen.areas.alert;
    let text = match (live.lost(), live.damaged()) {
        (Some(why), _) => format!("last known state: {}", visible_line(why)),
        (None, [first, ..]) => format!("not everything could be read: {}", visible_line(first)),
        (None, []) => return,
    };
    let style = palette.of(Tone::Bad).add_modifier(Modifier::REVERSED);
    write(buffer, alert, &Line::from(Span::styled(cut(&text, usize::from(alert.width)), style)));
}
