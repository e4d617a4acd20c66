//! What the views promise: words, times, and the step for which the mesh writes no receipt.

use mesh::agents::Presence;
use mesh::messages::Priority;
use mesh::messages::receipt::{DeliveryHistory, DeliveryStatus, Event, RecipientStatus};
use mesh::ports::machine::Instant;
use serde_json::{Value, json};

use crate::{PresenceView, PriorityView, RecipientView, StatusView, rfc3339};

#[test]
fn times_are_rfc_3339_in_utc() {
    assert_eq!(rfc3339(Instant(1_795_258_742_120)), "2026-11-21T10:59:02.120Z");
    assert_eq!(rfc3339(Instant(u64::MAX)), "9999-12-31T23:59:59.000Z");
}

fn json_of(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}

#[test]
fn a_word_is_the_same_in_json_and_in_text() {
    for presence in [Presence::Busy, Presence::Idle, Presence::Away, Presence::Offline] {
        let view = PresenceView::from(presence);
        assert_eq!((json_of(&view), view.as_str()), (Value::from(presence.as_str()), presence.as_str()));
    }
    for priority in [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent] {
        let view = PriorityView::from(priority);
        assert_eq!((json_of(&view), Priority::from(view)), (Value::from(view.as_str()), priority));
    }
    for status in [
        DeliveryStatus::Queued,
        DeliveryStatus::Stored,
        DeliveryStatus::Notified,
        DeliveryStatus::Accepted,
        DeliveryStatus::Shown,
        DeliveryStatus::Read,
        DeliveryStatus::Acknowledged,
    ] {
        let view = StatusView::from(status);
        assert_eq!((json_of(&view), view.as_str()), (Value::from(status.as_str()), status.as_str()));
    }
}

/// The steps of a message that was stored at 1 s, as words, after these receipts of 2 s.
fn check(receipts: &[DeliveryStatus], expected: &[&str]) {
    let mut history = DeliveryHistory::default();
    for status in receipts {
        history.take(Instant(2_000), Event::Status { status: *status, route: "fetch".to_owned(), evidence: None });
    }
    let status = RecipientStatus { to: "bob".parse().expect("a name"), stored: Instant(1_000), history, awaits: None };
    let view = RecipientView::from(&status);
    let word = |step: &crate::StepView| format!("{} {}", step.status.as_str(), step.at);
    assert_eq!(view.history.iter().map(word).collect::<Vec<_>>(), expected);
}

#[test]
fn every_message_in_an_inbox_shows_when_it_was_stored() {
    check(&[], &["stored 1970-01-01T00:00:01.000Z"]);
    check(&[DeliveryStatus::Shown], &["stored 1970-01-01T00:00:01.000Z", "shown 1970-01-01T00:00:02.000Z"]);
    check(&[DeliveryStatus::Stored], &["stored 1970-01-01T00:00:02.000Z"]);
    check(&[DeliveryStatus::Queued], &["queued 1970-01-01T00:00:02.000Z"]);
    check(
        &[DeliveryStatus::Queued, DeliveryStatus::Stored],
        &["queued 1970-01-01T00:00:02.000Z", "stored 1970-01-01T00:00:02.000Z"],
    );
}

#[test]
fn what_is_not_known_is_left_out() {
    let view = RecipientView::from(&RecipientStatus {
        to: "bob".parse().expect("a name"),
        stored: Instant(0),
        history: DeliveryHistory::default(),
        awaits: None,
    });
    let expected = json!({
        "to": "bob", "status": "stored", "history": [{"status": "stored", "at": "1970-01-01T00:00:00.000Z"}],
        "expired": false,
    });
    assert_eq!(json_of(&view), expected);
}
