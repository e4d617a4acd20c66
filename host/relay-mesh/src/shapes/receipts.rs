//! The delivery of a message, recipient by recipient: `message ID`.

use mesh::MessageStatus;
use mesh::ports::machine::Instant;
use serde::Serialize;
use view::{MessageView, RecipientView};

use super::mail::{headline, message_text};
use crate::render::{Show, printable_line, table};
use crate::screen::Screen;

fn rows(recipient: &RecipientView) -> Vec<Vec<String>> {
    let row = |what: &str, at: String, by: &str, detail: &str| {
        vec![recipient.to.clone(), what.to_owned(), at, by.to_owned(), printable_line(detail)]
    };
    let unstamped = |what: &str, why: &str| row(what, String::new(), "", why);
    let steps = recipient.history.iter().map(|step| {
        let evidence = step.evidence.as_ref().map_or_else(String::new, ToString::to_string);
        row(step.status.as_str(), step.at.to_string(), step.route.as_deref().unwrap_or_default(), &evidence)
    });
    let refused = recipient.refused.iter().map(|one| row("refused", one.at.to_string(), &one.route, &one.reason));
    let open = recipient.open.iter().map(|reason| unstamped("open", reason));
    let waits = recipient.waits.iter().map(|reason| unstamped("waits", reason));
    let cut = recipient.cut.iter().map(|part| unstamped("cut", part));
    let held = recipient.held.iter().map(|reason| unstamped("held", reason));
    let undeliverable = recipient.undeliverable.iter().map(|reason| unstamped("undeliverable", reason));
    let expired = recipient.expired.then(|| unstamped("expired", "it lay longer than mail is kept"));
    steps.chain(refused).chain(open).chain(waits).chain(cut).chain(held).chain(undeliverable).chain(expired).collect()
}

/// `relay-mesh message ID`.
#[derive(Debug, Serialize)]
pub(crate) struct MessageStatusShape {
    /// The message, as its first recipient has it.
    pub(crate) message: MessageView,
    /// Each recipient.
    pub(crate) recipients: Vec<RecipientView>,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    now: Instant,
}

impl MessageStatusShape {
    pub(crate) fn of(status: &MessageStatus, now: Instant) -> MessageStatusShape {
        let recipients = status.recipients.iter().map(RecipientView::from).collect();
        MessageStatusShape { message: (&status.message).into(), recipients, now }
    }
}

const HEAD: [&str; 5] = ["TO", "STATUS", "AT", "BY", "EVIDENCE"];

impl MessageStatusShape {
    fn rows(&self) -> Vec<Vec<String>> {
        self.recipients.iter().flat_map(rows).collect()
    }
}

impl Show for MessageStatusShape {
    fn text(&self) -> String {
        let steps = table(&HEAD, &self.rows());
        format!("{}\n{}\n\n{steps}", headline(&self.message, self.now), message_text(&self.message))
    }

    fn text_on(&self, screen: &Screen) -> String {
        let headline = screen.sentences(&headline(&self.message, self.now));
        let steps = screen.last_below(&HEAD, &self.rows());
        format!("{headline}\n{}\n\n{steps}", message_text(&self.message))
    }
}
