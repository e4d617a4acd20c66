//! What the view decides: who comes first, what a press changes, what can be done and why not.

use proptest::prelude::*;

use super::testing::{NOW, agent, ask, live, message, overview, read, summary, thread};
use super::*;
use crate::PresenceView;

/// The presses that a line of keys stands for: a letter is a key, `⏎` Enter, `⎋` Esc, `⇥` the next pane, `>` the next tab.
fn press(live: &mut Live, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for key in keys.chars() {
        let press = match key {
            _ if live.typing().is_some() && !"⏎⎋⌫".contains(key) => Press::Type(key.to_string()),
            'j' => Press::Move(1),
            'k' => Press::Move(-1),
            'g' => Press::First,
            'G' => Press::Last,
            '⇥' => Press::Pane(1),
            '>' => Press::Tab(1),
            '⏎' => Press::Enter,
            '⎋' => Press::Leave,
            '⌫' => Press::Edit(Edit::Erase),
            '/' => Press::Search,
            'c' => Press::Compose,
            'a' => Press::Answer,
            'y' => Press::Yes,
            'n' => Press::No,
            'w' => Press::Wake,
            'p' => Press::Pause,
            'e' => Press::Export,
            '?' => Press::Help,
            _ => Press::Quit,
        };
        effects.extend(live.press(press));
    }
    effects
}

/// The list of agents in one line.
fn agents(live: &Live) -> String {
    let line = |line: &AgentLine<'_>| match line {
        AgentLine::Heading(group, count) => format!("[{} {count}]", group.title()),
        AgentLine::Agent(at, agent) if *at == live.agent_at() => format!("*{}", agent.name()),
        AgentLine::Agent(_, agent) => agent.name().to_owned(),
    };
    live.agent_lines().iter().map(line).collect::<Vec<_>>().join(" ")
}

fn note(live: &Live) -> String {
    live.note().map(|note| note.text.clone()).unwrap_or_default()
}

#[test]
fn who_needs_the_person_comes_first_and_names_are_in_the_order_in_which_people_count() {
    let live = live();
    assert_eq!(agents(&live), "[Needs you 1] *alice [Busy 2] worker-2 worker-10 [Idle 2] carol dave [Offline 1] bob");
    for (presence, asks, expected) in [
        (PresenceView::NeedsInput, 0, Group::NeedsYou),
        (PresenceView::Busy, 1, Group::NeedsYou),
        (PresenceView::Busy, 0, Group::Busy),
        (PresenceView::Idle, 0, Group::Idle),
        (PresenceView::Away, 0, Group::Away),
        (PresenceView::Offline, 0, Group::Offline),
        (PresenceView::Offline, 1, Group::NeedsYou),
    ] {
        assert_eq!(Group::of(presence, asks), expected, "{presence:?} {asks}");
    }
}

#[test]
fn the_chosen_agent_stays_chosen_when_it_goes_to_another_group() {
    let mut live = live();
    press(&mut live, "j");
    assert_eq!(live.chosen_agent().map(AgentRow::name), Some("worker-2"));
    let mut later = overview();
    later.agents[1].agent.presence = PresenceView::Away;
    later.agents.push(agent("aaron", PresenceView::NeedsInput, "codex", ""));
    live.take(News::Overview(Box::new(later)));
    assert_eq!(
        agents(&live),
        "[Needs you 2] aaron alice [Busy 1] worker-10 [Idle 2] carol dave [Away 1] *worker-2 [Offline 1] bob"
    );
}

#[test]
fn who_is_here_is_listed_before_their_mail_is_counted() {
    let mut live = Live::default();
    live.take(News::Agents(NOW, vec![agent("bob", PresenceView::Idle, "codex", "")]));
    let unread = |live: &Live| live.detail().lines.iter().find(|line| line.text.contains("unread")).cloned();
    assert_eq!((agents(&live).as_str(), live.is_read(), unread(&live)), ("[Idle 1] *bob", false, None));
    live.take(News::Overview(Box::new(overview())));
    assert!(live.is_read() && unread(&live).is_some(), "{:?}", live.detail());
    live.take(News::Agents(NOW, Vec::new()));
    assert_eq!(live.agent_count(), 6, "what was read before says more");
}

#[test]
fn keys_find_the_agent_that_waits_and_answer_it() {
    let mut live = live();
    // What is answered is on screen first.
    assert_eq!(press(&mut live, "y"), []);
    assert_eq!((live.tab(), note(&live)), (Tab::Asks, "this is what it asks: press again to answer".to_owned()));
    assert!(live.detail().lines.iter().any(|line| line.text == "run `make deploy`"), "{:?}", live.detail());
    let answer = |words: &str| vec![Effect::Answer { ask: "01Q".to_owned(), words: words.to_owned() }];
    assert_eq!(press(&mut live, "y"), answer("allow"));
    assert_eq!(press(&mut live, "n"), answer("refuse"));
    assert_eq!(press(&mut live, "a"), []);
    assert_eq!(live.typing().map(Typing::label).as_deref(), Some("Answer (allow, allow-session, refuse, stop)"));
    assert_eq!(press(&mut live, "refuse not now⏎"), answer("refuse not now"));
    assert!(live.typing().is_none());
}

#[test]
fn a_question_that_went_away_is_not_answered_by_the_key_that_was_meant_for_it() {
    let mut live = live();
    let mut two = overview();
    two.asks.push(ask("02Q", "carol", "approval", "delete everything", &["allow", "refuse"]));
    live.take(News::Overview(Box::new(two.clone())));
    press(&mut live, "⏎");
    two.asks.remove(0);
    live.take(News::Overview(Box::new(two)));
    assert_eq!(press(&mut live, "y"), []);
    assert!(note(&live).contains("is gone"), "{}", note(&live));
    assert_eq!(press(&mut live, "y"), [Effect::Answer { ask: "02Q".to_owned(), words: "allow".to_owned() }]);
}

#[test]
fn what_can_be_done_depends_on_what_is_chosen_and_the_reason_says_why_not() {
    for (keys, key, expected) in [
        ("", "w", "effect: Wake(\"alice\")"),
        ("", "p", "effect: Pause(\"alice\")"),
        ("jjjj", "p", "effect: Resume(\"dave\")"),
        ("jjjj", "w", "dave is paused: `p` lets it go on"),
        ("j", "y", "worker-2 asks nothing"),
        ("j", "a", "worker-2 asks nothing"),
        ("", "c", "To alice"),
        ("", "e", "Write to (.html, .md, .json)"),
        ("⇥", "c", "To alice, bob, carol, dave"),
        ("⇥", "w", "choose the agent to wake first"),
        ("⇥", "y", "choose a question first, or an agent that asks one"),
        ("⇥>>", "c", "choose an agent or a conversation first"),
        ("⇥>>", "e", "choose a conversation first"),
        ("⇥>>>", "⏎", ""),
    ] {
        let mut live = live();
        press(&mut live, keys);
        let effects = press(&mut live, key);
        let outcome = match (effects.first(), live.typing()) {
            (Some(effect), _) => format!("effect: {effect:?}"),
            (None, Some(typing)) => typing.label(),
            (None, None) => note(&live),
        };
        assert_eq!(outcome, expected, "{keys} {key}");
    }
    let mut nobody = Live::default();
    for key in ["w", "p", "c", "y", "a"] {
        press(&mut nobody, key);
        assert_eq!(note(&nobody), "no agent is here", "{key}");
    }
    let mut elsewhere = live();
    let mut other = overview();
    other.machine = "another".to_owned();
    elsewhere.take(News::Overview(Box::new(other)));
    press(&mut elsewhere, "p");
    assert_eq!(note(&elsewhere), "alice runs on the machine here: pause it there");
}

#[test]
fn questions_that_want_words_are_not_agreed_to() {
    let mut live = live();
    let mut asked = overview();
    asked.asks = vec![ask("01Q", "alice", "question", "Which port?", &["TEXT", "refuse"])];
    live.take(News::Overview(Box::new(asked.clone())));
    press(&mut live, "⏎y");
    assert_eq!(note(&live), "that question wants words or a choice: press `a`");
    let choice = |id: &str| crate::AskChoiceView { id: id.to_owned(), label: id.to_owned() };
    asked.asks[0].choices = vec![choice("Yes"), choice("no")];
    live.take(News::Overview(Box::new(asked)));
    let words = |effects: Vec<Effect>| match effects.as_slice() {
        [Effect::Answer { words, .. }] => words.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(words(press(&mut live, "y")), "Yes");
    assert_eq!(words(press(&mut live, "n")), "no");
}

#[test]
fn a_conversation_is_opened_read_and_answered() {
    let mut live = live();
    assert_eq!(press(&mut live, "⇥⏎"), [Effect::Open("01A".to_owned())]);
    assert_eq!(live.middle_count(), 0, "nothing is shown before it is read");
    live.take(read(thread()));
    assert_eq!(live.chosen_message().map(|one| one.message.id.as_str()), Some("01C"), "the newest is chosen");
    let dots: Vec<String> =
        live.middle_rows(0..3).iter().map(|row| row.dots.iter().map(|dot| dot.glyph()).collect()).collect();
    assert_eq!(dots, ["✓", "◕", "○✗"]);
    // A message that comes is shown at once, and chosen as long as the newest one is.
    let next =
        |id: &str| News::Sent(Box::new(message(id, "carol", "alice", "01A", "Thanks", 0)), vec!["alice".to_owned()]);
    live.take(next("01E"));
    live.take(next("01E"));
    assert_eq!((live.middle_count(), live.middle_at()), (4, 3));
    press(&mut live, "k");
    live.take(next("01F"));
    assert_eq!((live.middle_count(), live.middle_at()), (5, 2), "who reads an older one is left there");
    press(&mut live, "kc");
    assert_eq!(live.typing().map(Typing::label).as_deref(), Some("Reply to bob"));
    let compose =
        Compose { to: vec!["bob".to_owned()], thread: Some("01A".to_owned()), reply_to: Some("01B".to_owned()) };
    let sent = Effect::Send { compose, body: "Good.".to_owned() };
    assert_eq!(press(&mut live, "Good.⏎"), [sent]);
    assert_eq!(press(&mut live, "⎋"), [Effect::Close]);
    assert!(matches!(live.middle(), Middle::List(Tab::Threads)));
}

#[test]
fn a_search_narrows_lists_down_and_then_looks_through_all_mail() {
    let mut live = live();
    press(&mut live, "/RED");
    assert_eq!((live.narrowed(), live.middle_count(), agents(&live).as_str()), ("RED", 1, ""));
    press(&mut live, "⌫⌫⌫");
    assert_eq!(live.middle_count(), 3);
    assert_eq!(press(&mut live, "port⏎"), [Effect::Search("port".to_owned())]);
    assert!(matches!(live.middle(), Middle::Found(found) if found.hits.is_none()));
    let hit = |id: &str| crate::SearchHitView {
        message: message(id, "alice", "bob", "01A", "Which port?", 300),
        recipients: vec!["bob".to_owned()],
        excerpt: "Which port?".to_owned(),
        score: 1,
    };
    live.take(News::Found("another".to_owned(), vec![hit("0")], 1));
    assert_eq!(live.middle_count(), 0, "what an older search found is not shown");
    live.take(News::Found("port".to_owned(), vec![hit("01A"), hit("01B")], 2));
    assert_eq!(press(&mut live, "j⏎"), [Effect::Open("01A".to_owned())]);
    live.take(read(thread()));
    assert_eq!(live.chosen_message().map(|one| one.message.id.as_str()), Some("01B"), "the message that was found");
    assert_eq!(press(&mut live, "⎋"), [Effect::Close]);
    assert!(matches!(live.middle(), Middle::Found(_)), "one step back are the messages that were found");
    press(&mut live, "⎋");
    assert_eq!(live.middle_count(), 3);
}

#[test]
fn a_new_message_moves_its_conversation_to_the_top_and_a_new_one_begins_one() {
    let mut live = live();
    press(&mut live, "⇥j");
    let sent = |thread: &str| {
        let message = message("01Z", "worker-2", "alice", thread, "green again", 0);
        News::Sent(Box::new(message), vec!["alice".to_owned(), "dave".to_owned()])
    };
    live.take(sent("build"));
    let threads =
        |live: &Live| live.threads.iter().map(|one| format!("{} {}", one.thread, one.messages)).collect::<Vec<_>>();
    assert_eq!(threads(&live), ["build 3", "01A 2", "01D 2"]);
    assert_eq!(live.threads[0].agents, ["alice", "dave", "worker-2"]);
    assert_eq!(live.threads[0].waiting, 2);
    assert_eq!(live.middle_at(), 0, "what was chosen is where it went");
    live.take(sent("new"));
    assert_eq!(threads(&live)[0], "new 1");
    assert_eq!(live.middle_at(), 1);
}

#[test]
fn a_mesh_that_cannot_be_read_leaves_what_was_known_and_says_so() {
    let mut live = live();
    live.take(News::Lost("the data folder is gone".to_owned()));
    assert_eq!((live.lost(), live.agent_count()), (Some("the data folder is gone"), 6));
    live.take(News::Overview(Box::new(overview())));
    assert_eq!(live.lost(), None);
    let unreachable = Overview { out_of_reach: Some("no server answers".to_owned()), ..overview() };
    live.take(News::Overview(Box::new(unreachable)));
    assert_eq!(live.lost(), Some("no server answers"));
}

#[test]
fn hostile_text_is_harmless_in_every_row_and_every_detail() {
    const EVIL: &str = "\u{1b}[2J\u{202e}evil\u{7}\r";
    let mut live = live();
    let mut bad = overview();
    for agent in &mut bad.agents {
        agent.agent.task = Some(EVIL.to_owned());
        agent.agent.evidence = EVIL.to_owned();
    }
    bad.asks[0].what = EVIL.to_owned();
    bad.reservations[0].reservation.pattern = EVIL.to_owned();
    bad.runs[0].about = EVIL.to_owned();
    bad.stuck[0].why = EVIL.to_owned();
    live.take(News::Overview(Box::new(bad)));
    live.take(News::Threads(vec![summary(EVIL, EVIL, &[EVIL], 5)]));
    let hides = |text: &str| text.chars().any(crate::visible::is_hidden) || text.contains('\n');
    for tab in Tab::ALL {
        live.press(Press::ShowTab(tab));
        let cells = live.middle_rows(0..10).into_iter().flat_map(|row| row.cells).map(|cell| cell.text(NOW));
        let detail = live.detail();
        let said = cells.chain(detail.lines.into_iter().map(|line| line.text)).chain([detail.title]);
        assert!(said.into_iter().all(|text| !hides(&text)), "{tab:?}");
    }
    let mut evil = thread();
    evil.messages[2].message.body = format!("{EVIL}\n{}", "x".repeat(300_000));
    evil.messages[2].message.from = EVIL.to_owned();
    live.press(Press::ShowTab(Tab::Threads));
    live.press(Press::Enter);
    live.take(News::Thread(EVIL.to_owned(), Box::new(evil)));
    let detail = live.detail();
    assert!(detail.lines.iter().all(|line| !hides(&line.text)) && !hides(&detail.title));
    assert!(detail.lines.iter().any(|line| line.text.contains("bytes more: `relay-mesh thread 01C`")), "it is cut");
}

#[test]
fn every_key_is_a_way_out_of_the_help() {
    let mut live = live();
    press(&mut live, "?");
    assert!(live.helps());
    assert_eq!(press(&mut live, "y"), [], "and does nothing else");
    assert!(!live.helps() && live.note().is_none());
    assert_eq!(press(&mut live, "?q"), [Effect::Quit]);
}

fn any_press() -> impl Strategy<Value = Press> {
    prop_oneof![
        4 => (-3_isize..4).prop_map(Press::Move),
        1 => Just(Press::First),
        1 => Just(Press::Last),
        2 => (-1_isize..2).prop_map(Press::Pane),
        2 => (-1_isize..2).prop_map(Press::Tab),
        3 => Just(Press::Enter),
        2 => Just(Press::Leave),
        1 => Just(Press::Search),
        1 => Just(Press::Compose),
        1 => Just(Press::Answer),
        1 => Just(Press::Yes),
        1 => Just(Press::No),
        1 => Just(Press::Wake),
        1 => Just(Press::Pause),
        1 => Just(Press::Export),
        1 => Just(Press::Help),
        1 => (0_usize..9).prop_map(Press::ChooseAgent),
        1 => (0_usize..9).prop_map(Press::ChooseItem),
        1 => "[a-z\u{1b}日\n]{0,3}".prop_map(Press::Type),
        1 => Just(Press::Edit(Edit::EraseWord)),
    ]
}

fn any_news() -> impl Strategy<Value = News> {
    let overview = proptest::collection::vec((0_usize..8, 0_usize..5), 0..8).prop_map(|some| {
        let mut overview = overview();
        overview.agents.clear();
        for (name, presence) in some {
            let all = [
                PresenceView::NeedsInput,
                PresenceView::Busy,
                PresenceView::Idle,
                PresenceView::Away,
                PresenceView::Offline,
            ];
            let name = format!("worker-{name}");
            if overview.agents.iter().all(|agent| agent.agent.name != name) {
                overview.agents.push(agent(&name, all[presence], "codex", ""));
            }
        }
        overview.asks.truncate(overview.agents.len() % 2);
        News::Overview(Box::new(overview))
    });
    prop_oneof![
        overview,
        (0_usize..4).prop_map(|count| {
            News::Threads((0..count).map(|number| summary(&format!("t{number}"), "about", &["alice"], 5)).collect())
        }),
        Just(read(thread())),
        (0_usize..9).prop_map(|id| {
            let message = message(&format!("m{id}"), "alice", "bob", &format!("t{}", id % 5), "text", 0);
            News::Sent(Box::new(message), vec!["bob".to_owned()])
        }),
        Just(News::Lost("gone".to_owned())),
        Just(News::Done("done".to_owned())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever comes in and whatever is pressed, in whatever order: what is chosen is there, and groups are in order.
    #[test]
    fn what_is_chosen_is_always_there(steps in proptest::collection::vec(prop_oneof![
        any_press().prop_map(Ok), any_news().prop_map(Err),
    ], 0..60)) {
        let mut live = Live::default();
        for step in steps {
            match step {
                Ok(press) => drop(live.press(press)),
                Err(news) => live.take(news),
            }
            let agents: Vec<&AgentRow> = live.agent_lines().iter().filter_map(|line| match line {
                AgentLine::Agent(_, agent) => Some(*agent),
                AgentLine::Heading(..) => None,
            }).collect();
            prop_assert!(agents.is_empty() || live.agent_at() < agents.len());
            prop_assert_eq!(live.chosen_agent().is_none(), agents.is_empty());
            let keys: Vec<(Group, &str)> = agents.iter().map(|agent| (agent.group, agent.name())).collect();
            prop_assert!(keys.windows(2).all(|pair| pair[0].0 < pair[1].0
                || (pair[0].0 == pair[1].0 && crate::natural_order(pair[0].1, pair[1].1).is_lt())));
            let count = live.middle_count();
            prop_assert!(count == 0 || live.middle_at() < count);
            prop_assert_eq!(live.middle_rows(0..count).len(), count);
            prop_assert!(live.middle_rows(0..count).iter().all(|row| row.cells.len() == live.middle_columns().len()));
            let _detail = live.detail();
        }
    }
}

#[test]
fn times_are_told_from_the_newest_thing_that_is_known() {
    let mut live = live();
    assert_eq!(live.now(), NOW);
    live.take(News::Log(vec![LogRow {
        key: "3".to_owned(),
        at: NOW.plus(60_000),
        kind: "woke".to_owned(),
        text: String::new(),
    }]));
    live.press(Press::ShowTab(Tab::Log));
    let shown: Vec<String> = live.middle_rows(0..3).into_iter().map(|row| row.cells[0].text(live.now())).collect();
    assert_eq!(shown, ["just now", "1 min ago", "6 min ago"], "the newest comes first");
}
