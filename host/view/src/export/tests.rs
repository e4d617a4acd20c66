//! Whatever agents wrote, it is text in an exported file and nothing else.

use mesh::messages::Message;
use mesh::messages::receipt::{DeliveryHistory, RecipientStatus};
use mesh::ports::machine::Instant;
use mesh::{MessageStatus, Thread};
use serde_json::json;

use super::{html, markdown};
use crate::ThreadView;

/// A thread of one message with this subject and body, to bob and carol.
fn thread(name: &str, subject: &str, body: &str) -> ThreadView {
    let message: Message = serde_json::from_value(json!({
        "id": "01JD8Z3K5V0000000000000000", "at": 1_000, "from": "alice", "to": "bob", "subject": subject, "body": body,
        "thread": name, "trace": {"root": "01JD8Z3K5V0000000000000000", "hops": 0},
    }))
    .expect("a message");
    let recipient = |to: &str| RecipientStatus {
        to: to.parse().expect("a name"),
        stored: Instant(1_000),
        history: DeliveryHistory { undeliverable: Some("<b>no route</b>".to_owned()), ..DeliveryHistory::default() },
        awaits: None,
    };
    let messages = vec![MessageStatus { message, recipients: vec![recipient("bob"), recipient("carol")] }];
    ThreadView::from(&Thread { thread: name.to_owned(), messages, earlier: 2, damaged: 0 })
}

/// Texts that try to be more than text.
const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "</pre></article><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "&lt;script&gt;",
    "```\n# not ours\n[link](javascript:alert(1))\n````",
    "\u{1b}[2J\u{1b}]0;title\u{7}",
    "\u{202e}sdrawkcab \u{2066}hidden\u{200b}",
    "</title><meta http-equiv=refresh content=0>",
];

#[test]
fn text_of_a_message_is_no_html() {
    for text in HOSTILE {
        let page = html(&thread(text, text, &format!("before\n{text}")));
        for tag in ["<script", "<img", "<svg", "</pre></article><", "<meta http-equiv=refresh", "<b>"] {
            assert!(!page.contains(tag), "{text}: {tag}");
        }
        assert_eq!(page.matches("<article").count(), 1, "{text}");
        assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}', '\u{200b}']), "{text}");
        assert!(page.contains("default-src 'none'") && !page.contains(" src=\""), "it loads nothing: {text}");
    }
}

#[test]
fn text_of_a_message_closes_no_block_of_markdown() {
    for text in HOSTILE {
        let page = markdown(&thread(text, text, text));
        let outside: Vec<&str> = {
            let mut fence: Option<&str> = None;
            let mut outside = Vec::new();
            for line in page.lines() {
                match fence {
                    None if line.starts_with("```") => fence = line.strip_suffix("text"),
                    None => outside.push(line),
                    Some(end) if line == end => fence = None,
                    Some(_) => {}
                }
            }
            assert_eq!(fence, None, "{text}: the block is closed");
            outside
        };
        assert_eq!(outside.iter().filter(|line| line.starts_with('#')).count(), 2, "{text}: {outside:?}");
        assert!(
            outside.iter().all(|line| !line.contains("](") && !line.replace("\\<", "").contains('<')),
            "{outside:?}"
        );
        assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}', '\u{200b}']), "{text}");
    }
}

#[test]
fn each_recipient_has_its_status_in_the_file() {
    let view = thread("build", "", "the port");
    for page in [html(&view), markdown(&view)] {
        assert!(page.contains("bob: stored 1970-01-01T00:00:01.000Z; undeliverable:"), "{page}");
        assert!(page.contains("carol: stored") && page.contains("2 earlier messages"), "{page}");
    }
}
