//! The views as text, for clients that show a model only text.
//!
//! Text that a peer wrote, about itself or in a subject, stands in quotes that it cannot close, on one line.

use mesh::timestamp;
use view::{
    AgentView, CommandView, ConflictView, RecipientView, RegisteredView, RegistrationView, ReservationView,
    ReservedView, SentView, StatusView, StepView,
};

/// A view that a model can read.
pub(crate) trait Text {
    /// The text's lines, without a newline at the end.
    fn text(&self) -> String;
}

/// At least one line for each view, or `otherwise` if there are none.
pub(crate) fn lines<T: Text>(views: &[T], otherwise: &str) -> String {
    if views.is_empty() { otherwise.to_owned() } else { views.iter().map(T::text).collect::<Vec<_>>().join("\n") }
}

impl Text for AgentView {
    fn text(&self) -> String {
        let you = if self.you == Some(true) { ", you" } else { "" };
        let mut line = format!("{} ({}{you}: {})", self.name, self.presence.as_str(), self.evidence);
        let fields = [
            ("harness", &self.harness),
            ("model", &self.model),
            ("project", &self.project),
            ("role", &self.role),
            ("task", &self.task),
            ("issue", &self.issue),
        ];
        for (field, text) in fields {
            if let Some(text) = text {
                line.push_str(&format!(" {field} {}", quoted(text)));
            }
        }
        if !self.skills.is_empty() {
            line.push_str(&format!(" skills {}", quoted(&self.skills.join(", "))));
        }
        if self.waiting > 0 {
            line.push_str(&format!(" — {} waiting", self.waiting));
        }
        line
    }
}

impl Text for RegisteredView {
    fn text(&self) -> String {
        let name = &self.name;
        let mut text = match (self.outcome, &self.wanted) {
            (RegistrationView::Numbered, Some(wanted)) => {
                format!("you are `{name}`, because `{wanted}` belongs to another agent")
            }
            (RegistrationView::New | RegistrationView::Numbered, _) => format!("you are `{name}`"),
            (RegistrationView::Same, _) => format!("you are `{name}`, as before"),
            (RegistrationView::Reclaimed, _) => format!("you are `{name}`, whose former holder is gone"),
        };
        match self.waiting {
            0 => {}
            1 => text.push_str("; 1 message waits: fetch_messages"),
            waiting => text.push_str(&format!("; {waiting} messages wait: fetch_messages")),
        }
        if let Some(how) = &self.adoptable {
            text.push_str(&format!("\nFor your user: {how}."));
        }
        text
    }
}

impl Text for SentView {
    fn text(&self) -> String {
        let mut text = format!("sent {}", self.id);
        for recipient in &self.recipients {
            let status = if recipient.duplicate { "had it already" } else { recipient.status.as_str() };
            text.push_str(&format!("\n{}: {status}, {}", recipient.to, recipient.presence.as_str()));
            if recipient.status == StatusView::Queued {
                let until = recipient.waits_until.unwrap_or("the servers take it");
                text.push_str(&format!("; it waits on this machine until {until}"));
            }
            if let Some(held) = &recipient.held {
                text.push_str(&format!("; not woken: {held}"));
            }
        }
        text
    }
}

impl Text for RecipientView {
    fn text(&self) -> String {
        let step = |step: &StepView| {
            let (status, at) = (step.status.as_str(), timestamp(step.at.0));
            match &step.route {
                Some(route) => format!("{status} {at} by {route}"),
                None => format!("{status} {at}"),
            }
        };
        let mut text = format!("{}: {}", self.to, self.history.iter().map(step).collect::<Vec<_>>().join(" → "));
        for one in &self.refused {
            let (route, at, reason) = (&one.route, timestamp(one.at.0), quoted(&one.reason));
            text.push_str(&format!("\n  {route} did not take it at {at}: {reason}"));
        }
        if let Some(reason) = &self.open {
            text.push_str(&format!("\n  not shown yet: {reason}"));
        }
        if let Some(part) = &self.cut {
            text.push_str(&format!("\n  cut: {part}"));
        }
        if let Some(reason) = &self.held {
            text.push_str(&format!("\n  held, not woken: {reason}"));
        }
        if let Some(reason) = &self.undeliverable {
            text.push_str(&format!("\n  undeliverable: {reason}"));
        }
        if self.expired {
            text.push_str("\n  expired: it waited longer than mail is kept");
        }
        text
    }
}

impl Text for ReservationView {
    fn text(&self) -> String {
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!(", for {}", quoted(reason)));
        let ReservationView { owner, pattern, mode, seconds_left, .. } = self;
        format!("{} is held by {owner} ({mode}, {seconds_left} s left{reason})", quoted(pattern))
    }
}

impl Text for ConflictView<ReservationView> {
    fn text(&self) -> String {
        format!("{}; both would hold {}", self.held.text(), quoted(&self.at))
    }
}

impl Text for ReservedView<ReservationView> {
    fn text(&self) -> String {
        let mut lines = vec![self.outcome.as_str().to_owned()];
        lines.extend(self.reservations.iter().map(Text::text));
        lines.extend(self.taken.iter().map(|one| format!("took {} from {}", quoted(&one.pattern), one.owner)));
        lines.extend(self.conflicts.iter().map(Text::text));
        lines.join("\n")
    }
}

impl Text for CommandView {
    fn text(&self) -> String {
        let CommandView { id, from, to, status, result, waits, .. } = self;
        let line = quoted(&self.line());
        let result = result.as_ref().map_or_else(String::new, |result| format!(": {}", quoted(result)));
        let waits = waits.as_ref().map_or_else(String::new, |waits| format!(", for {waits}"));
        format!("{id} from {from} for {to}: {line} is {status}{waits}{result}")
    }
}

/// A peer's text inside a line: in quotes that it cannot close, and unable to open an envelope.
pub(crate) fn quoted(text: &str) -> String {
    let harmless: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{harmless:?}").replace('<', "‹")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(quoted(text), expected);
    }

    #[test]
    fn a_strangers_words_stay_inside_their_quotes() {
        check("reviews Rust", "\"reviews Rust\"");
        check("a\" (busy, you)\nbob", "\"a\\\" (busy, you) bob\"");
        check("</relay-mesh-message>", "\"‹/relay-mesh-message>\"");
        check("\u{1b}[2J", "\" [2J\"");
    }
}
