//! What a page gets, and when: once each, nothing twice, nothing without a bound.

use proptest::prelude::*;
use serde_json::Value;
use view::live::testing::{NOW, ask, message, overview, read, summary, thread};
use view::live::{LogRow, Overview, SHOWN};

use std::collections::BTreeMap;

use super::state::{LOGGED, MESSAGES};
use super::*;

/// The events of a stream: kind, id and data.
fn events(frames: &[u8]) -> Vec<(String, Option<String>, Value)> {
    let text = std::str::from_utf8(frames).expect("text");
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let data = serde_json::from_str(&field("data: ").expect("data")).expect("JSON");
        (field("event: ").expect("a kind"), field("id: "), data)
    };
    text.split_terminator("\n\n").map(event).collect()
}

/// What a page gets, in one word each.
fn kinds(page: &mut Page) -> String {
    let told = events(&page.missing(NOW, true).frames);
    let word = |(kind, _, data): &(String, Option<String>, Value)| match kind.as_str() {
        "list" => data["tab"].as_str().expect("a tab").to_owned(),
        other => other.to_owned(),
    };
    told.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn open(hub: &Arc<Hub>, thread: Option<&str>, last: Option<&str>) -> Page {
    hub.open(thread.map(str::to_owned), last.map(str::to_owned)).expect("a page")
}

fn logged(numbers: std::ops::Range<u64>) -> News {
    let row = |number: u64| LogRow { key: number.to_string(), at: NOW, kind: "woke".to_owned(), text: String::new() };
    News::Log(numbers.map(row).collect())
}

#[test]
fn a_page_gets_what_is_known_once_and_then_what_has_changed() {
    let hub = Arc::new(Hub::new());
    let mut page = open(&hub, None, None);
    assert_eq!(kinds(&mut page), "state log", "nothing is said of what was not read");
    hub.tell(News::Agents(NOW, overview().agents));
    assert_eq!(kinds(&mut page), "agents");
    hub.tell(News::Overview(Box::new(overview())));
    assert_eq!(kinds(&mut page), "state agents asks reservations commands runs held");
    hub.tell(News::Threads(vec![summary("01A", "a port", &["alice"], 5)]));
    assert_eq!(kinds(&mut page), "threads");
    assert_eq!(kinds(&mut page), "");
    hub.tell(News::Overview(Box::new(Overview { now: mesh::ports::machine::Instant(NOW.0 + 9_000), ..overview() })));
    assert_eq!(kinds(&mut page), "", "that time passes changes nothing");
    let fewer = Overview { asks: Vec::new(), ..overview() };
    hub.tell(News::Overview(Box::new(fewer)));
    assert_eq!(kinds(&mut page), "agents asks", "who asked needs nobody any more");
    assert_eq!(kinds(&mut open(&hub, None, None)), "state agents threads asks reservations commands runs held log");
    hub.tell(News::Lost("the disk is gone".to_owned()));
    let told = events(&page.missing(NOW, true).frames);
    assert_eq!((told[0].0.as_str(), &told[0].2["lost"]), ("state", &Value::from("the disk is gone")));
    assert_eq!(told[0].2["now"], NOW.0);
}

#[test]
fn a_new_message_is_there_at_once_and_its_conversation_follows() {
    let hub = Arc::new(Hub::new());
    let (mut reads, mut other) = (open(&hub, Some("01A"), None), open(&hub, None, None));
    assert_eq!(hub.watched().borrow().threads, ["01A"]);
    hub.tell(News::Overview(Box::new(overview())));
    hub.tell(News::Threads(Vec::new()));
    hub.tell(read(thread()));
    assert!(kinds(&mut reads).ends_with("log thread"));
    assert!(!kinds(&mut other).contains("thread "));
    let sent = News::Sent(Box::new(message("01Z", "bob", "alice", "01A", "Thanks", 0)), vec!["alice".to_owned()]);
    hub.tell(sent);
    let told = events(&reads.missing(NOW, true).frames);
    assert_eq!((told[0].2["tab"].as_str(), told[1].0.as_str()), (Some("threads"), "message"));
    let recipient = &told[1].2["recipients"][0];
    assert_eq!((recipient["to"].as_str(), recipient["dot"]["word"].as_str()), (Some("alice"), Some("stored")));
    hub.tell(read(thread()));
    assert_eq!(kinds(&mut reads), "", "it is the same as before");
    hub.tell(News::NoThread("01A".to_owned(), "it was deleted".to_owned()));
    assert_eq!(events(&reads.missing(NOW, true).frames)[0].2["gone"], "it was deleted");
    drop(reads);
    assert_eq!(*hub.watched().borrow(), Watched { pages: 1, threads: Vec::new() });
}

#[test]
fn what_is_sent_whole_waits_and_messages_do_not() {
    let hub = Arc::new(Hub::new());
    let mut page = open(&hub, Some("01A"), None);
    hub.tell(News::Threads(Vec::new()));
    assert!(page.missing(NOW, false).frames.is_empty() && page.missing(NOW, false).parts_left);
    assert_eq!(kinds(&mut page), "state threads log");
    assert!(!page.missing(NOW, false).parts_left, "it has everything");
    hub.tell(News::Sent(Box::new(message("01Z", "bob", "alice", "01A", "x", 0)), vec!["alice".to_owned()]));
    let missing = page.missing(NOW, false);
    assert_eq!(events(&missing.frames).len(), 1, "the message alone");
    assert!(missing.parts_left && page.missing(NOW, false).frames.is_empty());
    assert_eq!(kinds(&mut page), "threads");
    hub.tell(read(thread()));
    assert!(page.missing(NOW, false).parts_left, "its conversation was read");
    assert_eq!(kinds(&mut page), "thread");
}

#[test]
fn a_page_that_comes_back_misses_no_event_and_gets_none_twice() {
    let hub = Arc::new(Hub::new());
    hub.tell(logged(1..4));
    let rows = |page: &mut Page| {
        let told = events(&page.missing(NOW, true).frames);
        let keys = |data: &Value| {
            let rows = data["rows"].as_array().expect("rows").iter();
            rows.map(|row| row["key"].as_str().expect("a key").to_owned()).collect::<Vec<_>>().join(" ")
        };
        let mut said: Vec<String> = Vec::new();
        for (kind, id, data) in told {
            match kind.as_str() {
                "log" => said.push(format!("{} to {}", keys(&data), id.expect("an id"))),
                "reset" => said.push(kind),
                _ => {}
            }
        }
        said.join(", ")
    };
    let mut page = open(&hub, None, None);
    assert_eq!(rows(&mut page), "reset, 1 2 3 to 3");
    hub.tell(logged(4..6));
    assert_eq!(rows(&mut page), "4 5 to 5");
    drop(page);
    hub.tell(logged(6..8));
    assert_eq!(rows(&mut open(&hub, None, Some("5"))), "6 7 to 7");
    assert_eq!(rows(&mut open(&hub, None, Some("7"))), "");
    for unknown in ["99", "x", ""] {
        assert_eq!(rows(&mut open(&hub, None, Some(unknown))), "reset, 1 2 3 4 5 6 7 to 7", "{unknown}");
    }
    // The server was started anew: it knows nothing yet, and then the log again.
    let anew = Arc::new(Hub::new());
    let mut back = open(&anew, None, Some("5"));
    assert_eq!(rows(&mut back), "");
    anew.tell(logged(1..9));
    assert_eq!(rows(&mut back), "6 7 8 to 8");
}

#[test]
fn pages_are_counted_and_too_many_are_refused() {
    let hub = Arc::new(Hub::new());
    let pages: Vec<Page> = (0..PAGES).map(|_| open(&hub, Some("a"), None)).collect();
    assert!(hub.open(None, None).is_none());
    assert_eq!(*hub.watched().borrow(), Watched { pages: PAGES, threads: vec!["a".to_owned()] });
    drop(pages);
    assert_eq!(*hub.watched().borrow(), Watched::default());
}

#[test]
fn nothing_is_kept_without_a_bound() {
    let hub = Arc::new(Hub::new());
    let mut slow = open(&hub, None, None);
    for number in 0..2_000 {
        hub.tell(News::Sent(Box::new(message(&number.to_string(), "a", "b", "t", "x", 0)), vec!["b".to_owned()]));
        hub.tell(logged(number..number + 1));
    }
    let told = events(&slow.missing(NOW, true).frames);
    assert_eq!(told.iter().filter(|(kind, ..)| kind == "message").count(), MESSAGES);
    let log = told.iter().find(|(kind, ..)| kind == "log").expect("the log");
    assert_eq!(log.2["rows"].as_array().expect("rows").len(), LOGGED);
}

#[test]
fn what_agents_write_is_harmless_text() {
    const EVIL: &str = "\u{1b}[2J\u{202e}<script>\u{7}\n\nevent: forged";
    let hub = Arc::new(Hub::new());
    let mut page = open(&hub, Some("01A"), None);
    let mut bad = overview();
    bad.agents[0].agent.task = Some(EVIL.to_owned());
    bad.asks = vec![ask("1", "alice", "question", EVIL, &["TEXT"])];
    bad.stuck[0].why = EVIL.to_owned();
    bad.damaged = vec![EVIL.to_owned()];
    hub.tell(News::Overview(Box::new(bad)));
    hub.tell(News::Threads(vec![summary(EVIL, EVIL, &[EVIL], 5)]));
    let mut evil = thread();
    evil.messages[0].message.body = format!("{EVIL}{}", "x".repeat(300_000));
    evil.messages[0].message.subject = EVIL.to_owned();
    hub.tell(read(evil));
    let frames = page.missing(NOW, true).frames;
    let told = events(&frames);
    assert!(told.iter().all(|(kind, ..)| kind != "forged"), "no text ends an event");
    let text = String::from_utf8(frames).expect("text");
    let body = told.iter().find(|(kind, ..)| kind == "thread").expect("the thread").2["messages"][0].clone();
    assert_eq!((body["cut"].as_bool(), body["body"].as_str().expect("a text").len() <= SHOWN + 64), (Some(true), true));
    // Names of agents and threads are addresses; everything else is shown as it is made harmless.
    for text in [&body["body"], &body["subject"]] {
        assert!(!text.as_str().expect("a text").contains(['\u{1b}', '\u{202e}', '\u{7}']));
    }
    assert!(!text.contains("\\u001b[2J\u{202e}<script>\\u0007\\n\\nevent: forged\",\"tone"));
}

fn any_news() -> impl Strategy<Value = News> {
    prop_oneof![
        Just(News::Agents(NOW, overview().agents)),
        (0_usize..3).prop_map(|asks| {
            let mut overview = overview();
            overview.asks.truncate(asks);
            News::Overview(Box::new(overview))
        }),
        (0_usize..4).prop_map(|count| {
            News::Threads((0..count).map(|at| summary(&format!("t{at}"), "x", &["alice"], 5)).collect())
        }),
        (0_usize..9).prop_map(|id| {
            let message = message(&format!("m{id}"), "alice", "bob", "01A", "text", 0);
            News::Sent(Box::new(message), vec!["bob".to_owned()])
        }),
        Just(read(thread())),
        Just(News::Lost("gone".to_owned())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever comes, and whenever a page asks: what it has then is what a page has that opens now.
    #[test]
    fn a_page_that_was_there_knows_what_one_learns_that_opens_now(
        steps in proptest::collection::vec((any_news(), any::<bool>()), 0..20)
    ) {
        let hub = Arc::new(Hub::new());
        let mut page = open(&hub, Some("01A"), None);
        let mut known = BTreeMap::new();
        let learn = |known: &mut BTreeMap<String, Value>, page: &mut Page| {
            for (kind, _, mut data) in events(&page.missing(NOW, true).frames) {
                if ["message", "log", "reset"].contains(&kind.as_str()) {
                    continue;
                }
                data["now"].take();
                known.insert(format!("{kind} {}", data["tab"]), data);
            }
        };
        for (news, asks) in steps {
            hub.tell(news);
            if asks {
                learn(&mut known, &mut page);
            }
        }
        learn(&mut known, &mut page);
        let mut anew = BTreeMap::new();
        learn(&mut anew, &mut open(&hub, Some("01A"), None));
        prop_assert_eq!(known, anew);
    }
}
