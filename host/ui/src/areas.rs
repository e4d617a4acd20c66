//! Where each part of the view is, by the size of the terminal.

use ratatui::layout::Rect;
use view::live::{Pane, Tab};

/// From so many columns on, three panes are side by side.
const WIDE: u16 = 110;
/// From so many columns on, two are; below, one pane has the whole screen.
const MIDDLING: u16 = 64;
/// From so many lines on, the detail is below the middle, and panes have frames.
const TALL: u16 = 14;

/// Where each part is. A part without space is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    /// The tabs.
    pub head: Rect,
    /// Why what is shown is only the last known state.
    pub alert: Rect,
    /// The agents.
    pub agents: Rect,
    /// The lists.
    pub middle: Rect,
    /// What is chosen.
    pub detail: Rect,
    /// The keys, or what is typed.
    pub foot: Rect,
    /// Whether panes have frames.
    pub framed: bool,
    /// Where each tab can be clicked; known once it is drawn.
    pub tabs: Vec<(Rect, Tab)>,
}

impl Areas {
    /// Where a pane is.
    pub fn of(&self, pane: Pane) -> Rect {
        match pane {
            Pane::Agents => self.agents,
            Pane::Middle => self.middle,
            Pane::Detail => self.detail,
        }
    }

    /// The part of a pane that has its lines: without its frame and its title.
    pub fn inside(&self, pane: Pane) -> Rect {
        let outer = self.of(pane);
        if outer.is_empty() {
            return outer;
        }
        if self.framed {
            let inner = Rect { x: outer.x + 1, y: outer.y + 1, ..outer };
            Rect { width: outer.width.saturating_sub(2), height: outer.height.saturating_sub(2), ..inner }
        } else {
            Rect { y: outer.y + 1, height: outer.height.saturating_sub(1), ..outer }
        }
    }
}

/// The parts of a terminal of this size. Where not all panes have space, the one with the focus does.
pub fn areas(size: Rect, focus: Pane, alerts: bool) -> Areas {
    let mut areas = Areas { framed: size.width >= MIDDLING && size.height >= TALL, ..Areas::default() };
    let line = |y: u16| Rect { y, height: 1, ..size };
    let (top, bottom) = (size.y, size.y.saturating_add(size.height));
    if size.height == 0 || size.width == 0 {
        return areas;
    }
    areas.foot = line(bottom - 1);
    let mut body = Rect { height: size.height - 1, ..size };
    if body.height >= 2 {
        areas.head = line(top);
        body = Rect { y: body.y + 1, height: body.height - 1, ..body };
    }
    if alerts && body.height >= 3 {
        areas.alert = line(body.y);
        body = Rect { y: body.y + 1, height: body.height - 1, ..body };
    }
    let left = |width: u16| (Rect { width, ..body }, Rect { x: body.x + width, width: body.width - width, ..body });
    if size.width >= WIDE {
        let (agents, rest) = left((size.width / 4).min(44));
        let middle = Rect { width: rest.width * 11 / 20, ..rest };
        (areas.agents, areas.middle) = (agents, middle);
        areas.detail = Rect { x: middle.x + middle.width, width: rest.width - middle.width, ..rest };
    } else if size.width >= MIDDLING && size.height >= TALL {
        let (agents, rest) = left((size.width * 3 / 10).min(30));
        let middle = Rect { height: rest.height / 2, ..rest };
        (areas.agents, areas.middle) = (agents, middle);
        areas.detail = Rect { y: middle.y + middle.height, height: rest.height - middle.height, ..rest };
    } else {
        match focus {
            Pane::Agents => areas.agents = body,
            Pane::Middle => areas.middle = body,
            Pane::Detail => areas.detail = body,
        }
    }
    areas
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(width: u16, height: u16, focus: Pane) -> Vec<Pane> {
        let areas = areas(Rect::new(0, 0, width, height), focus, false);
        Pane::ALL.into_iter().filter(|pane| !areas.of(*pane).is_empty()).collect()
    }

    #[test]
    fn a_narrow_terminal_shows_the_pane_with_the_focus_and_a_wide_one_all() {
        let all = Pane::ALL.to_vec();
        for (width, height, focus, expected) in [
            (160, 48, Pane::Agents, all.clone()),
            (80, 24, Pane::Agents, all.clone()),
            (120, 8, Pane::Middle, all),
            (80, 10, Pane::Middle, vec![Pane::Middle]),
            (40, 24, Pane::Detail, vec![Pane::Detail]),
            (20, 5, Pane::Agents, vec![Pane::Agents]),
            (20, 1, Pane::Agents, vec![]),
            (0, 0, Pane::Agents, vec![]),
        ] {
            assert_eq!(shown(width, height, focus), expected, "{width}x{height}");
        }
    }

    proptest! {
        /// Parts lie on the screen, do not overlap, and one of the panes is there if there are three lines.
        #[test]
        fn parts_share_the_screen(width in 0_u16..300, height in 0_u16..100, focus in 0_usize..3, alerts: bool) {
            let size = Rect::new(0, 0, width, height);
            let areas = areas(size, Pane::ALL[focus], alerts);
            let parts = [areas.head, areas.alert, areas.agents, areas.middle, areas.detail, areas.foot];
            for (number, part) in parts.iter().enumerate() {
                prop_assert!(part.is_empty() || size.union(*part) == size, "{part:?}");
                for other in &parts[number + 1..] {
                    prop_assert!(part.is_empty() || other.is_empty() || !part.intersects(*other), "{part:?} {other:?}");
                }
            }
            for pane in Pane::ALL {
                prop_assert_eq!(size.union(areas.inside(pane)), size);
            }
            prop_assert!(height < 3 || width == 0 || !areas.of(Pane::ALL[focus]).is_empty());
        }
    }
}
