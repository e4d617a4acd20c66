//! How far a message got: a dot for each recipient, and the time line of one of them.

use mesh::ports::machine::Instant;

use crate::{RecipientView, StatusView, visible_line};

/// How far a message got with one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dot {
    /// It has this status, and may get a further one.
    At(StatusView),
    /// The loop guard keeps it from waking its recipient.
    Held,
    /// It can never be delivered.
    Undeliverable,
    /// It waited longer than mail is kept.
    Expired,
}

impl Dot {
    /// The dot of a recipient.
    pub fn of(recipient: &RecipientView) -> Dot {
        match recipient {
            RecipientView { undeliverable: Some(_), .. } => Dot::Undeliverable,
            RecipientView { expired: true, .. } => Dot::Expired,
            RecipientView { held: Some(_), status: StatusView::Stored | StatusView::Notified, .. } => Dot::Held,
            RecipientView { status, .. } => Dot::At(*status),
        }
    }

    /// One character that tells it from the others without colour.
    pub fn glyph(self) -> char {
        match self {
            Dot::At(StatusView::Queued) => '◌',
            Dot::At(StatusView::Stored) => '○',
            Dot::At(StatusView::Notified) => '◔',
            Dot::At(StatusView::Accepted) => '◑',
            Dot::At(StatusView::Shown) => '◕',
            Dot::At(StatusView::Read) => '●',
            Dot::At(StatusView::Acknowledged) => '✓',
            Dot::Held => '!',
            Dot::Undeliverable => '✗',
            Dot::Expired => '×',
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Dot::At(status) => status.as_str(),
            Dot::Held => "held",
            Dot::Undeliverable => "undeliverable",
            Dot::Expired => "expired",
        }
    }

    /// Every dot, for the legend.
    pub const ALL: [Dot; 10] = [
        Dot::At(StatusView::Queued),
        Dot::At(StatusView::Stored),
        Dot::At(StatusView::Notified),
        Dot::At(StatusView::Accepted),
        Dot::At(StatusView::Shown),
        Dot::At(StatusView::Read),
        Dot::At(StatusView::Acknowledged),
        Dot::Held,
        Dot::Undeliverable,
        Dot::Expired,
    ];
}

/// What happened to a message on its way to one recipient, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLine {
    /// The recipient.
    pub to: String,
    /// How far it got.
    pub dot: Dot,
    /// What happened.
    pub steps: Vec<TimeStep>,
    /// What keeps it from going further, or what has yet to happen. Reasons are other people's text, made harmless.
    pub waits: Vec<String>,
    /// How long nothing has happened, in milliseconds; none if nothing more can.
    pub since: Option<u64>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeStep {
    /// When.
    pub at: Instant,
    /// The status, or `refused`.
    pub what: &'static str,
    /// By which route.
    pub route: String,
    /// The evidence, or the reason of a refusal.
    pub evidence: String,
    /// How long after the one before, in milliseconds; none for the first, and none if clocks differ.
    pub gap: Option<u64>,
}

/// The time line of a recipient.
pub fn time_line(recipient: &RecipientView, now: Instant) -> TimeLine {
    let reached = recipient.history.iter().map(|step| TimeStep {
        at: step.at.0,
        what: step.status.as_str(),
        route: step.route.as_deref().map(|route| visible_line(route).into_owned()).unwrap_or_default(),
        evidence: step.evidence.as_ref().map(evidence).unwrap_or_default(),
        gap: None,
    });
    let refused = recipient.refused.iter().map(|refused| TimeStep {
        at: refused.at.0,
        what: "refused",
        route: visible_line(&refused.route).into_owned(),
        evidence: visible_line(&refused.reason).into_owned(),
        gap: None,
    });
    // Statuses keep their order, whatever the clocks of the machines say; a refusal comes before the first later one.
    let mut steps: Vec<TimeStep> = reached.collect();
    for step in refused {
        let place = steps.iter().position(|other| other.what != "refused" && other.at > step.at);
        steps.insert(place.unwrap_or(steps.len()), step);
    }
    for at in 1..steps.len() {
        let (before, after) = (steps[at - 1].at, steps[at].at);
        steps[at].gap = (after >= before).then(|| after.since(before));
    }
    let dot = Dot::of(recipient);
    let is_over = match dot {
        Dot::At(StatusView::Read | StatusView::Acknowledged) | Dot::Undeliverable | Dot::Expired => true,
        Dot::At(
            StatusView::Queued | StatusView::Stored | StatusView::Notified | StatusView::Accepted | StatusView::Shown,
        )
        | Dot::Held => false,
    };
    let said = |what: &str, why: &Option<String>| why.as_ref().map(|why| format!("{what}{}", visible_line(why)));
    let waits = [
        said("", &recipient.open),
        recipient.waits.clone(),
        said("", &recipient.cut),
        said("held: ", &recipient.held),
        said("undeliverable: ", &recipient.undeliverable),
        recipient.expired.then(|| "expired: it waited longer than mail is kept".to_owned()),
    ];
    TimeLine {
        to: recipient.to.clone(),
        dot,
        since: steps.last().filter(|_| !is_over).map(|step| now.since(step.at)),
        steps,
        waits: waits.into_iter().flatten().collect(),
    }
}

/// Evidence on one line: the fields of an object with their values, anything else as it is.
fn evidence(value: &serde_json::Value) -> String {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = match value {
        serde_json::Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join(" ")
        }
        other => text(other),
    };
    visible_line(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{RefusedRouteView, StepView, Timestamp};

    fn recipient(steps: &[(StatusView, u64, &str)]) -> RecipientView {
        let history = steps.iter().map(|(status, at, route)| StepView {
            status: *status,
            at: Timestamp(Instant(*at)),
            route: (!route.is_empty()).then(|| (*route).to_owned()),
            evidence: None,
        });
        RecipientView::with_history("bob".to_owned(), history.collect())
    }

    fn line(recipient: &RecipientView, now: u64) -> String {
        let line = time_line(recipient, Instant(now));
        let steps = line.steps.iter().map(|step| {
            let gap = step.gap.map_or_else(String::new, |gap| format!(" +{gap}"));
            format!("{}{gap} {}{}", step.what, step.route, step.evidence)
        });
        let since = line.since.map_or_else(String::new, |since| format!("; open for {since}"));
        format!("{} {}{since}", line.dot.glyph(), steps.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn a_time_line_has_each_step_its_route_and_the_gap_before_it() {
        let mut one = recipient(&[(StatusView::Stored, 1_000, ""), (StatusView::Notified, 1_200, "wake-file")]);
        assert_eq!(line(&one, 61_200), "◔ stored , notified +200 wake-file; open for 60000");
        let refused = |route: &str, at| RefusedRouteView {
            route: route.to_owned(),
            reason: " said no".to_owned(),
            at: Timestamp(Instant(at)),
        };
        one.refused = vec![refused("app-server", 1_100)];
        assert_eq!(
            line(&one, 1_300),
            "◔ stored , refused +100 app-server said no, notified +100 wake-file; open for 100"
        );
        let read = recipient(&[(StatusView::Stored, 5_000, ""), (StatusView::Read, 4_000, "fetch")]);
        assert_eq!(line(&read, 9_000), "● stored , read fetch", "clocks that differ have no gap, and nothing is open");
    }

    #[test]
    fn evidence_is_one_harmless_line() {
        let mut one = recipient(&[(StatusView::Shown, 1, "hook")]);
        one.history[0].evidence = Some(json!({"event": "PostToolUse", "text": "\u{1b}[2J\nx", "n": 3}));
        assert_eq!(line(&one, 1), "◕ shown hookevent=PostToolUse text=\\u{1b}[2J x n=3; open for 0");
    }

    #[test]
    fn what_keeps_a_message_counts_for_more_than_its_status() {
        let stored = || recipient(&[(StatusView::Stored, 1, "")]);
        let held = RecipientView { held: Some("8 in a row".to_owned()), ..stored() };
        let gone = RecipientView { undeliverable: Some("no \u{7}route".to_owned()), ..held.clone() };
        let expired = RecipientView { expired: true, ..stored() };
        for (recipient, word, waits) in [
            (&stored(), "stored", ""),
            (&held, "held", "held: 8 in a row"),
            (&gone, "undeliverable", "held: 8 in a row|undeliverable: no \\u{7}route"),
            (&expired, "expired", "expired: it waited longer than mail is kept"),
        ] {
            let line = time_line(recipient, Instant(1));
            assert_eq!((line.dot.word(), line.waits.join("|").as_str()), (word, waits));
        }
        let mut glyphs: Vec<char> = Dot::ALL.iter().map(|dot| dot.glyph()).collect();
        glyphs.sort_unstable();
        glyphs.dedup();
        assert_eq!(glyphs.len(), Dot::ALL.len(), "each can be told without colour");
    }
}
