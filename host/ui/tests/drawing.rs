//! What the view looks like, and that it is drawn at every size and with every text.

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ui::{Palette, Screen, draw, presses};
use unicode_width::UnicodeWidthStr as _;
use view::PresenceView;
use view::live::testing::{agent, live, message, overview, read, summary, thread};
use view::live::{Live, News, Pane, Press, Tab};

/// A terminal with what is drawn into it.
struct Shown {
    terminal: Terminal<TestBackend>,
    screen: Screen,
}

impl Shown {
    fn of(width: u16, height: u16) -> Shown {
        let terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        Shown { terminal, screen: Screen::of(Palette::Plain) }
    }

    fn draw(&mut self, live: &mut Live) -> String {
        let mut beyond = 0;
        self.terminal.draw(|frame| beyond = draw(frame, live, &mut self.screen)).expect("drawn");
        live.fit_detail(beyond);
        let backend = self.terminal.backend();
        // A terminal without columns has no lines to show.
        if backend.buffer().area.is_empty() { String::new() } else { backend.to_string() }
    }
}

fn drawn(width: u16, height: u16, live: &mut Live) -> String {
    Shown::of(width, height).draw(live)
}

/// A view with an open conversation.
fn in_thread() -> Live {
    let mut live = live();
    live.press(Press::ShowTab(Tab::Threads));
    live.press(Press::Enter);
    live.take(read(thread()));
    live.press(Press::Move(-1));
    live
}

#[test]
fn a_wide_terminal_shows_agents_conversations_and_what_is_chosen() {
    insta::assert_snapshot!("wide", drawn(150, 24, &mut live()));
}

#[test]
fn a_conversation_has_a_dot_for_each_recipient_and_the_delivery_of_the_chosen_message() {
    insta::assert_snapshot!("thread", drawn(150, 24, &mut in_thread()));
}

#[test]
fn a_terminal_of_80_columns_shows_the_detail_below() {
    insta::assert_snapshot!("narrow", drawn(80, 24, &mut in_thread()));
}

#[test]
fn a_terminal_of_20_columns_and_5_lines_shows_the_pane_with_the_focus() {
    let mut live = live();
    insta::assert_snapshot!("tiny-agents", drawn(20, 5, &mut live));
    live.press(Press::Pane(1));
    insta::assert_snapshot!("tiny-threads", drawn(20, 5, &mut live));
}

#[test]
fn a_question_is_shown_with_what_can_be_answered_and_is_answered_in_the_last_line() {
    let mut live = live();
    live.press(Press::Answer);
    live.press(Press::Type("refuse 日本\nlater".to_owned()));
    insta::assert_snapshot!("answering", drawn(100, 16, &mut live));
}

#[test]
fn all_keys_are_shown_on_demand() {
    let mut live = live();
    live.press(Press::Help);
    insta::assert_snapshot!("help", drawn(90, 26, &mut live));
}

#[test]
fn a_mesh_that_is_not_read_yet_and_one_that_is_lost_say_so() {
    let first = drawn(80, 14, &mut Live::default());
    assert!(first.contains("reading the mesh…") && first.contains("reading the conversations…"), "{first}");
    let mut begun = Live::default();
    begun.take(News::Agents(live().now(), vec![agent("bob", PresenceView::Idle, "codex", "")]));
    begun.press(Press::ShowTab(Tab::Asks));
    let shown = drawn(80, 14, &mut begun);
    assert!(shown.contains("bob") && shown.matches("reading the mesh…").count() == 2, "{shown}");
    let mut lost = live();
    lost.take(News::Lost("no server answers at nats://10.0.0.1:4222".to_owned()));
    let shown = drawn(80, 14, &mut lost);
    assert!(shown.contains("last known state: no server answers") && shown.contains("worker-10"), "{shown}");
}

#[test]
fn every_list_is_drawn() {
    let mut live = live();
    for (tab, words) in [
        (Tab::Threads, "the build is red"),
        (Tab::Asks, "run `make deploy`"),
        (Tab::Reservations, "host/view/src/**"),
        (Tab::Commands, "no command waits or runs"),
        (Tab::Runs, "Review the change"),
        (Tab::Stuck, "worker-2 → carol"),
        (Tab::Log, "agent=alice"),
    ] {
        live.press(Press::ShowTab(tab));
        let shown = drawn(120, 20, &mut live);
        assert!(shown.contains(words), "{tab:?}: {shown}");
    }
}

#[test]
fn no_text_of_a_peer_steers_the_terminal() {
    const EVIL: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}live\r\n\u{9b}31m";
    let mut bad = overview();
    for agent in &mut bad.agents {
        agent.agent.task = Some(EVIL.to_owned());
    }
    bad.asks[0].what = EVIL.to_owned();
    let mut live = live();
    live.take(News::Overview(Box::new(bad)));
    live.take(News::Threads(vec![summary("evil", EVIL, &["alice"], 3)]));
    live.take(News::Failed(EVIL.to_owned()));
    let check = |live: &mut Live, what: &str| {
        let shown = drawn(140, 30, live);
        let steers = |character: char| character.is_control() && character != '\n';
        assert!(!shown.contains(steers) && !shown.contains('\u{202e}'), "{what}: {shown:?}");
        assert!(shown.contains("\\u{1b}[2J"), "{what} shows what was sent: {shown}");
    };
    check(&mut live, "a list and a note");
    live.press(Press::Enter);
    check(&mut live, "a question");
    live.press(Press::ShowTab(Tab::Threads));
    live.press(Press::Enter);
    let mut evil = thread();
    evil.messages[2].message = message("01C", "alice", "carol", "evil", &EVIL.repeat(2_000), 3);
    live.take(News::Thread("evil".to_owned(), Box::new(evil)));
    check(&mut live, "a message");
}

#[test]
fn without_colours_no_cell_has_one_and_what_is_chosen_is_still_seen() {
    let mut shown = Shown::of(120, 20);
    shown.draw(&mut live());
    let buffer = shown.terminal.backend().buffer();
    let reset = ratatui::style::Color::Reset;
    assert!(buffer.content.iter().all(|cell| cell.fg == reset && cell.bg == reset));
    let reversed = |cell: &&ratatui::buffer::Cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED);
    assert!(buffer.content.iter().filter(reversed).count() > 10);
    assert!(shown.terminal.backend().to_string().contains("▸ alice"));
}

#[test]
fn the_mouse_chooses_what_it_points_at_and_opens_what_is_chosen() {
    let mut live = live();
    let mut shown = Shown::of(150, 24);
    let text = shown.draw(&mut live);
    // Lines of the backend begin with a quotation mark.
    let place = |words: &str| {
        let (row, line) = text.lines().enumerate().find(|(_, line)| line.contains(words)).expect("it is shown");
        let before = line.split(words).next().unwrap_or_default().width() - 1;
        (u16::try_from(before).expect("a column"), u16::try_from(row).expect("a row"))
    };
    let mouse = |kind: MouseEventKind, (column, row): (u16, u16)| {
        Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
    };
    let click = MouseEventKind::Down(MouseButton::Left);
    let at = |words: &str, kind: MouseEventKind| presses(&mouse(kind, place(words)), &live, &shown.screen);
    assert_eq!(at("carol   ", click), [Press::ChooseAgent(3)]);
    assert_eq!(at("▸ alice", click), [Press::Enter], "it is chosen already");
    assert_eq!(at("Busy", click), [Press::Focus(Pane::Agents)], "a heading is nothing to choose");
    assert_eq!(at("the build is red", click), [Press::ChooseItem(1)]);
    assert_eq!(at("Reservations", click), [Press::ShowTab(Tab::Reservations)]);
    assert_eq!(at("the build is red", MouseEventKind::ScrollDown), [Press::Focus(Pane::Middle), Press::Move(1)]);
    assert_eq!(at("▸ alice", MouseEventKind::Moved), []);
}

#[test]
fn a_long_message_is_scrolled_to_its_end_and_no_further() {
    let mut live = in_thread();
    let mut long = thread();
    long.messages[1].message.body = (0..200).map(|line| format!("line {line}\n")).collect();
    live.take(read(long));
    live.press(Press::Focus(Pane::Detail));
    let mut shown = Shown::of(120, 20);
    assert!(!shown.draw(&mut live).contains("line 199"));
    live.press(Press::Last);
    shown.draw(&mut live);
    assert!(shown.draw(&mut live).contains("line 199"));
    let end = live.scrolled();
    live.press(Press::Move(-1));
    assert_eq!(live.scrolled(), end - 1, "the way back begins at once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// No size and no text makes it panic.
    #[test]
    fn it_is_drawn_at_every_size(
        width in 0_u16..260,
        height in 0_u16..70,
        text in "[a-z 日🦀👩\u{200d}💻\u{1b}\u{202e}\n]{0,40}",
        tab in 0_usize..7,
        focus in 0_usize..3,
        helps: bool,
        types: bool,
    ) {
        let mut live = live();
        let mut named = overview();
        named.agents[0].agent.task = Some(text.clone());
        named.asks[0].what = text.clone();
        live.take(News::Overview(Box::new(named)));
        live.take(News::Threads(vec![summary(&text, &text, &["alice"], 3)]));
        live.press(Press::ShowTab(Tab::ALL[tab]));
        live.press(Press::Focus(Pane::ALL[focus]));
        if types {
            live.press(Press::Search);
            live.press(Press::Type(text));
        } else if helps {
            live.press(Press::Help);
        }
        let mut shown = Shown::of(width, height);
        shown.draw(&mut live);
        for row in 0..height {
            for column in [0, width / 2, width.saturating_sub(1)] {
                let kind = MouseEventKind::Down(MouseButton::Left);
                let click = Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
                for press in presses(&click, &live, &shown.screen) {
                    live.press(press);
                }
            }
        }
        shown.draw(&mut live);
    }
}
