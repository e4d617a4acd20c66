//! What a meaning looks like. Colour never carries it alone: each has its word, its sign or its place too.

use ratatui::style::{Color, Modifier, Style};
use view::live::Tone;

/// Whether colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// The sixteen colours that every theme has.
    #[default]
    Coloured,
    /// Bold, dim and reversed alone, as NO_COLOR wants it.
    Plain,
}

impl Palette {
    /// The style of a meaning.
    pub(crate) fn of(self, tone: Tone) -> Style {
        let style = Style::new();
        let coloured = |colour: Color| match self {
            Palette::Coloured => style.fg(colour),
            Palette::Plain => style,
        };
        match tone {
            Tone::Plain => style,
            Tone::Strong => style.add_modifier(Modifier::BOLD),
            Tone::Faint => style.add_modifier(Modifier::DIM),
            Tone::Good => coloured(Color::Green),
            Tone::Calm => coloured(Color::Cyan),
            Tone::Warn => coloured(Color::Yellow),
            Tone::Bad => coloured(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Calls => coloured(Color::Magenta).add_modifier(Modifier::BOLD),
        }
    }

    /// The meaning of a state's word.
    pub(crate) fn of_state(self, state: &str) -> Style {
        self.of(match state {
            "running" => Tone::Good,
            "needs-input" => Tone::Calls,
            "pending" | "open" | "answered" => Tone::Calm,
            "held" | "queued" | "taken" => Tone::Warn,
            "failed" | "undeliverable" => Tone::Bad,
            _ => Tone::Plain,
        })
    }

    /// The frame of a pane.
    pub(crate) fn frame(self, has_focus: bool) -> Style {
        if has_focus { self.of(Tone::Calm) } else { self.of(Tone::Faint) }
    }
}
