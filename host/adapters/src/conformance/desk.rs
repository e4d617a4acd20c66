//! The host's part of a hook, as the kit plays it, and what replies and readings say.

use async_trait::async_trait;
use mesh::harness::{Desk, Findings, HookEvent, Mail, Reading, Reply};
use mesh::message::Priority;
use serde_json::Value;

use super::context::MOMENTS;

/// What the host finds when a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// Mail, protocol and a refusal, as far as the reading makes room for them.
    Everything,
}

/// A host that finds what it is told to find.
pub(super) struct ScriptedDesk {
    found: Found,
    bell: String,
    /// What the adapter read.
    pub(super) read: Option<Reading>,
    /// What it was then given.
    pub(super) gave: Gave,
}

/// What the adapter was given to place.
#[derive(Clone, Debug, Default)]
pub(super) struct Gave {
    /// Mail.
    pub(super) mail: Option<String>,
    /// Protocol text.
    pub(super) protocol: Option<String>,
    /// Why an edit must not happen.
    pub(super) refusal: Option<String>,
}

impl ScriptedDesk {
    pub(super) fn finding(found: Found) -> ScriptedDesk {
        ScriptedDesk { found, bell: BELL.to_owned(), read: None, gave: Gave::default() }
    }

    /// With the bell that a payload is about.
    pub(super) fn ringing(self, bell: Option<&str>) -> ScriptedDesk {
        ScriptedDesk { bell: bell.unwrap_or(BELL).to_owned(), ..self }
    }
}

#[async_trait]
impl Desk for ScriptedDesk {
    async fn look_up(&mut self, reading: Reading) -> Findings {
        self.gave = match self.found {
            Found::Nothing => Gave::default(),
            Found::Everything => Gave {
                mail: (reading.room >= LEAST_ROOM).then(|| letter(reading.room)),
                protocol: reading.moment.map(|_| PROTOCOL.to_owned()),
                refusal: (!reading.edits.is_empty()).then(|| REFUSAL.to_owned()),
            },
        };
        self.read = Some(reading);
        let gave = self.gave.clone();
        Findings {
            agent: Some("alice".to_owned()),
            mail: gave.mail.map(|text| Mail { ids: Vec::new(), text, priority: Priority::Normal }),
            protocol: gave.protocol,
            refusal: gave.refusal,
            bell: self.bell.clone(),
            ticket: "{\"ticket\":\"scratch\"}".to_owned(),
        }
    }
}

const BELL: &str = "/scratch/bells/session";
const PROTOCOL: &str = "kit-protocol: you are `alice`; \"quoted\" \\ and\nin two lines";
const REFUSAL: &str = "kit-refusal: `a.txt` is held by `bob`, \"until\" noon";
/// Less room than this holds no envelope.
const LEAST_ROOM: u32 = 200;

/// Mail that fills the room it was given to the last byte, up to what mail ever has, in an envelope
/// and with characters that have to be escaped in JSON and in shells.
fn letter(room: u32) -> String {
    let head = "<relay-mesh-message id=\"01JD0000000000000000000000\" from=\"bob\">\n\"quoted\" \\ $(id) 'it' é🥊\n";
    let foot = "\n</relay-mesh-message>";
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(12_000);
    let filler = room.saturating_sub(head.len() + foot.len());
    format!("{head}{}{foot}", "x".repeat(filler))
}

/// Where a text stands in a reply: in a string of the JSON on standard output, or in either stream.
pub(super) fn place_of(reply: &Reply, text: &str) -> Option<String> {
    let stdout = reply.stdout.as_deref().unwrap_or_default();
    if let Ok(value) = serde_json::from_str::<Value>(stdout)
        && let Some(pointer) = pointer_to(&value, text, String::new())
    {
        return Some(pointer);
    }
    if stdout.contains(text) {
        return Some("stdout".to_owned());
    }
    reply.stderr.as_deref().unwrap_or_default().contains(text).then(|| "stderr".to_owned())
}

/// The JSON pointer to the string that holds a text.
fn pointer_to(value: &Value, text: &str, at: String) -> Option<String> {
    match value {
        Value::String(string) => string.contains(text).then_some(at),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| pointer_to(item, text, format!("{at}/{index}")))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            pointer_to(field, text, format!("{at}/{name}"))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// What happened, in the words of fixtures. A session is named where it is not the speaker.
pub(super) fn events(reading: &Reading) -> Vec<String> {
    let speaker = reading.speaker.as_ref().map(|session| session.id.as_str());
    let about = |word: &str, id: &str| match speaker == Some(id) {
        true => word.to_owned(),
        false => format!("{word} {id}"),
    };
    let worded = |event: &HookEvent| match event {
        HookEvent::Seen(session) => about("seen", &session.id),
        HookEvent::Activity { session, activity } => about(activity.as_str(), session),
        HookEvent::Rebound { from, to } => format!("rebound {from} {to}"),
        HookEvent::HumanSpoke(id) => about("human-spoke", id),
        HookEvent::Ended(id) => about("ended", id),
    };
    reading.events.iter().map(worded).collect()
}

/// Why protocol text fits, in the word of fixtures.
pub(super) fn moment(reading: &Reading) -> Option<&'static str> {
    let moment = reading.moment?;
    MOMENTS.iter().find(|(known, _)| *known == moment).map(|(_, word)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdout: &str, stderr: &str, expected: Option<&str>) {
        let reply =
            Reply { stdout: Some(stdout.to_owned()), stderr: Some(stderr.to_owned()), exit_code: 0, shows_mail: true };
        assert_eq!(place_of(&reply, "a \"b\"").as_deref(), expected, "{stdout} {stderr}");
    }

    #[test]
    fn a_text_is_found_wherever_a_harness_wants_it() {
        check(r#"{"x":{"y/z":["no","so: a \"b\""]}}"#, "", Some("/x/y~1z/1"));
        check(r#"plain a "b""#, "", Some("stdout"));
        check("", r#"a "b""#, Some("stderr"));
        check(r#"{"x":"a 'b'"}"#, "", None);
    }

    #[test]
    fn mail_fills_its_room_and_no_more() {
        for room in [200, 6_500, 9_000] {
            assert_eq!(letter(room).len(), usize::try_from(room).expect("small"));
        }
    }
}
