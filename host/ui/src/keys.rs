//! What keys and mouse mean.

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;
use view::live::{AgentLine, Edit, Live, Pane, Press, Tab};

use crate::draw::Screen;

/// The keys and what they do, as the help shows them.
pub(crate) const KEYS: [(&str, &str); 19] = [
    ("j k ↑ ↓", "move"),
    ("g G", "first, last"),
    ("PgUp PgDn", "a page up, down"),
    ("Tab S-Tab", "next pane, back"),
    ("h l [ ] 1-7", "tabs"),
    ("Enter", "open"),
    ("Esc", "back"),
    ("/", "search all mail; lists narrow down while you type"),
    ("c", "write to the agent or in the conversation, as you"),
    ("a", "answer a question in words"),
    ("y n", "agree to a question, refuse it"),
    ("w", "wake the agent"),
    ("p", "pause the agent, or let it go on"),
    ("e", "write the conversation into a file"),
    ("o", "show it on the server's page, in your browser"),
    ("mouse", "click chooses, a second click opens, the wheel moves"),
    ("Alt-Enter", "a line break, while you type"),
    ("?", "these keys"),
    ("q Ctrl-C", "quit"),
];

/// What an event of the terminal means.
pub fn presses(event: &Event, live: &Live, screen: &Screen) -> Vec<Press> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            let press = if live.typing().is_some() { typed(key) } else { command(key, screen.page(live.focus())) };
            press.into_iter().collect()
        }
        Event::Paste(text) if live.typing().is_some() => {
            vec![Press::Type(text.replace("\r\n", "\n").replace('\r', "\n"))]
        }
        Event::Mouse(mouse) if live.typing().is_none() => pointed(mouse, live, screen),
        // A new size is drawn like anything else.
        Event::Key(_)
        | Event::Paste(_)
        | Event::Mouse(_)
        | Event::Resize(..)
        | Event::FocusGained
        | Event::FocusLost => Vec::new(),
    }
}

fn command(key: &KeyEvent, page: isize) -> Option<Press> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Press::Quit),
            KeyCode::Char('d') => Some(Press::Move(page)),
            KeyCode::Char('u') => Some(Press::Move(-page)),
            _ => None,
        };
    }
    let press = match key.code {
        KeyCode::Down | KeyCode::Char('j') => Press::Move(1),
        KeyCode::Up | KeyCode::Char('k') => Press::Move(-1),
        KeyCode::PageDown => Press::Move(page),
        KeyCode::PageUp => Press::Move(-page),
        KeyCode::Home | KeyCode::Char('g') => Press::First,
        KeyCode::End | KeyCode::Char('G') => Press::Last,
        KeyCode::Tab => Press::Pane(1),
        KeyCode::BackTab => Press::Pane(-1),
        KeyCode::Left | KeyCode::Char('h' | '[') => Press::Tab(-1),
        KeyCode::Right | KeyCode::Char('l' | ']') => Press::Tab(1),
        KeyCode::Char(digit @ '1'..='7') => {
            Press::ShowTab(*Tab::ALL.get(usize::try_from(digit.to_digit(10)?).ok()?.checked_sub(1)?)?)
        }
        KeyCode::Enter => Press::Enter,
        KeyCode::Esc => Press::Leave,
        KeyCode::Char('/') => Press::Search,
        KeyCode::Char('c') => Press::Compose,
        KeyCode::Char('a') => Press::Answer,
        KeyCode::Char('y') => Press::Yes,
        KeyCode::Char('n') => Press::No,
        KeyCode::Char('w') => Press::Wake,
        KeyCode::Char('p') => Press::Pause,
        KeyCode::Char('e') => Press::Export,
        KeyCode::Char('o') => Press::Browse,
        KeyCode::Char('?') => Press::Help,
        KeyCode::Char('q') => Press::Quit,
        _ => return None,
    };
    Some(press)
}

fn typed(key: &KeyEvent) -> Option<Press> {
    let has = |modifier: KeyModifiers| key.modifiers.contains(modifier);
    let press = match key.code {
        KeyCode::Char('c') if has(KeyModifiers::CONTROL) => Press::Leave,
        KeyCode::Char('j') if has(KeyModifiers::CONTROL) => Press::Type("\n".to_owned()),
        KeyCode::Char('w') if has(KeyModifiers::CONTROL) => Press::Edit(Edit::EraseWord),
        KeyCode::Char('u') if has(KeyModifiers::CONTROL) => Press::Edit(Edit::EraseAll),
        KeyCode::Char('a') if has(KeyModifiers::CONTROL) => Press::Edit(Edit::First),
        KeyCode::Char('e') if has(KeyModifiers::CONTROL) => Press::Edit(Edit::Last),
        KeyCode::Char('h') if has(KeyModifiers::CONTROL) => Press::Edit(Edit::Erase),
        KeyCode::Char(_) if has(KeyModifiers::CONTROL) => return None,
        KeyCode::Char(character) => Press::Type(character.to_string()),
        KeyCode::Enter if has(KeyModifiers::ALT) => Press::Type("\n".to_owned()),
        KeyCode::Enter => Press::Enter,
        KeyCode::Esc => Press::Leave,
        KeyCode::Backspace => Press::Edit(Edit::Erase),
        KeyCode::Left => Press::Edit(Edit::Left),
        KeyCode::Right => Press::Edit(Edit::Right),
        KeyCode::Home => Press::Edit(Edit::First),
        KeyCode::End => Press::Edit(Edit::Last),
        _ => return None,
    };
    Some(press)
}

fn pointed(mouse: &MouseEvent, live: &Live, screen: &Screen) -> Vec<Press> {
    let place = Position { x: mouse.column, y: mouse.row };
    let pane = Pane::ALL.into_iter().find(|pane| screen.areas().of(*pane).contains(place));
    match (mouse.kind, pane) {
        (MouseEventKind::ScrollDown, Some(pane)) => vec![Press::Focus(pane), Press::Move(1)],
        (MouseEventKind::ScrollUp, Some(pane)) => vec![Press::Focus(pane), Press::Move(-1)],
        (MouseEventKind::Down(MouseButton::Left), None) => {
            let tab = screen.areas().tabs.iter().find(|(area, _)| area.contains(place));
            tab.map(|(_, tab)| Press::ShowTab(*tab)).into_iter().collect()
        }
        (MouseEventKind::Down(MouseButton::Left), Some(pane)) => clicked(place, pane, live, screen),
        _ => Vec::new(),
    }
}

/// A click chooses what it meets; on what is chosen already it opens it.
fn clicked(place: Position, pane: Pane, live: &Live, screen: &Screen) -> Vec<Press> {
    let line = screen.line_at(pane, place.y);
    let chosen = match (pane, line) {
        (Pane::Agents, Some(line)) => match live.agent_lines().get(line) {
            Some(AgentLine::Agent(at, _)) => Some((*at, live.agent_at(), Press::ChooseAgent(*at))),
            Some(AgentLine::Heading(..)) | None => None,
        },
        (Pane::Middle, Some(line)) if line < live.middle_count() => {
            Some((line, live.middle_at(), Press::ChooseItem(line)))
        }
        (Pane::Middle | Pane::Detail, _) | (Pane::Agents, None) => None,
    };
    match chosen {
        Some((at, current, _)) if at == current && live.focus() == pane => vec![Press::Enter],
        Some((_, _, choose)) => vec![choose],
        None => vec![Press::Focus(pane)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(code, modifiers))
    }

    fn check(live: &Live, code: KeyCode, modifiers: KeyModifiers, expected: &[Press]) {
        assert_eq!(presses(&key(code, modifiers), live, &Screen::default()), expected, "{code:?} {modifiers:?}");
    }

    #[test]
    fn keys_are_those_that_people_know() {
        let live = Live::default();
        let none = KeyModifiers::NONE;
        for (code, press) in [
            (KeyCode::Char('j'), Press::Move(1)),
            (KeyCode::Up, Press::Move(-1)),
            (KeyCode::Char('G'), Press::Last),
            (KeyCode::BackTab, Press::Pane(-1)),
            (KeyCode::Char(']'), Press::Tab(1)),
            (KeyCode::Char('2'), Press::ShowTab(Tab::Asks)),
            (KeyCode::Char('7'), Press::ShowTab(Tab::Log)),
            (KeyCode::Char('/'), Press::Search),
            (KeyCode::Char('y'), Press::Yes),
            (KeyCode::Char('q'), Press::Quit),
        ] {
            check(&live, code, none, &[press]);
        }
        check(&live, KeyCode::Char('c'), KeyModifiers::CONTROL, &[Press::Quit]);
        check(&live, KeyCode::Char('y'), KeyModifiers::CONTROL, &[]);
        check(&live, KeyCode::F(5), none, &[]);
        assert!(presses(&Event::Paste("rm".to_owned()), &live, &Screen::default()).is_empty(), "no paste is commands");
    }

    #[test]
    fn while_something_is_typed_letters_are_letters() {
        let mut live = Live::default();
        live.press(Press::Search);
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        check(&live, KeyCode::Char('q'), none, &[Press::Type("q".to_owned())]);
        check(&live, KeyCode::Enter, KeyModifiers::ALT, &[Press::Type("\n".to_owned())]);
        check(&live, KeyCode::Char('c'), control, &[Press::Leave]);
        check(&live, KeyCode::Char('w'), control, &[Press::Edit(Edit::EraseWord)]);
        let pasted = presses(&Event::Paste("a\r\nb\rc".to_owned()), &live, &Screen::default());
        assert_eq!(pasted, [Press::Type("a\nb\nc".to_owned())], "a paste is text and ends nothing");
    }
}
