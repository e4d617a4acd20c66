//! The host's part of a hook, played by the kit, and the words for replies and readings.

use async_trait::async_trait;
use mesh::messages::Priority;
use mesh::ports::harness::{Findings, Harness, HookEvent, HookHost, Mail, Reading, Reply};
use serde_json::Value;

use crate::context::OCCASIONS;

/// What the kit's host finds when a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookFindings {
    Nothing,
    /// Mail, protocol text and a refusal, if the reading leaves room for each.
    Everything,
}

pub(crate) struct ScriptedHookHost {
    found: HookFindings,
    wake_file: String,
    pub(crate) read: Option<Reading>,
    /// What the kit then gave the adapter to place.
    pub(crate) gave: GivenTexts,
}

/// The texts that the adapter was given to place in its reply.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenTexts {
    pub(crate) mail: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) refusal: Option<String>,
}

impl ScriptedHookHost {
    pub(crate) fn finding(found: HookFindings) -> ScriptedHookHost {
        ScriptedHookHost { found, wake_file: WAKE_FILE.to_owned(), read: None, gave: GivenTexts::default() }
    }

    /// What the adapter was really given of the protocol: what its own `context.protocol` makes of the host's text.
    pub(crate) async fn fit_protocol(&mut self, adapter: &dyn Harness) {
        let occasion = self.read.as_ref().and_then(|reading| reading.occasion);
        if let (Some(base), Some(occasion)) = (self.gave.protocol.take(), occasion) {
            self.gave.protocol = adapter.protocol(&base, occasion, Some(AGENT)).await.ok().flatten();
        }
    }

    /// With the wake file that a payload names.
    pub(crate) fn ringing(self, wake_file: Option<&str>) -> ScriptedHookHost {
        ScriptedHookHost { wake_file: wake_file.unwrap_or(WAKE_FILE).to_owned(), ..self }
    }
}

#[async_trait]
impl HookHost for ScriptedHookHost {
    async fn look_up(&mut self, reading: Reading) -> Findings {
        self.gave = match self.found {
            HookFindings::Nothing => GivenTexts::default(),
            HookFindings::Everything => GivenTexts {
                mail: (reading.max_bytes >= LEAST_ROOM).then(|| message(reading.max_bytes)),
                protocol: reading.occasion.map(|_| PROTOCOL.to_owned()),
                refusal: (!reading.edits.is_empty()).then(|| REFUSAL.to_owned()),
            },
        };
        self.read = Some(reading);
        let gave = self.gave.clone();
        Findings {
            agent: Some(AGENT.to_owned()),
            mail: gave.mail.map(|text| Mail { ids: Vec::new(), text, priority: Priority::Normal }),
            protocol: gave.protocol,
            refusal: gave.refusal,
            wake_file: self.wake_file.clone(),
            ticket: "{\"ticket\":\"scratch\"}".to_owned(),
        }
    }
}

const AGENT: &str = "alice";
const WAKE_FILE: &str = "/scratch/wakes/session";
const PROTOCOL: &str = "kit-protocol: you are `alice`; \"quoted\" \\ and\nin two lines";
const REFUSAL: &str = "kit-refusal: `a.txt` is held by `bob`, \"until\" noon";
/// The smallest `max-bytes` into which an envelope fits.
const LEAST_ROOM: u32 = 200;

/// Mail of exactly `max_bytes`, up to the most that mail ever has. It is in an envelope and has characters that JSON
/// and shells must escape.
fn message(max_bytes: u32) -> String {
    let head = "<relay-mesh-message id=\"01JD0000000000000000000000\" from=\"bob\">\n\"quoted\" \\ $(id) 'it' é🥊\n";
    let foot = "\n</relay-mesh-message>";
    let room = usize::try_from(max_bytes).unwrap_or(usize::MAX).min(12_000);
    let filler = room.saturating_sub(head.len() + foot.len());
    format!("{head}{}{foot}", "x".repeat(filler))
}

/// Where a reply holds a text: a pointer into the JSON on standard output, or the name of the stream.
pub(crate) fn place_of(reply: &Reply, text: &str) -> Option<String> {
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

/// The events of a reading, in the words of fixtures. A session is named only if it is not the calling one.
pub(crate) fn events(reading: &Reading) -> Vec<String> {
    let speaker = reading.speaker.as_ref().map(|session| session.id.as_str());
    let about = |word: &str, id: &str| match speaker == Some(id) {
        true => word.to_owned(),
        false => format!("{word} {id}"),
    };
    let worded = |event: &HookEvent| match event {
        HookEvent::Alive(session) => about("alive", &session.id),
        HookEvent::Activity { session, activity } => about(activity.as_str(), session),
        HookEvent::Rebound { from, to } => format!("rebound {from} {to}"),
        HookEvent::UserSpoke(id) => about("user-spoke", id),
        HookEvent::Stopped(id) => about("stopped", id),
        HookEvent::Ended(id) => about("ended", id),
    };
    reading.events.iter().map(worded).collect()
}

/// The reading's occasion, in the word of fixtures.
pub(crate) fn occasion(reading: &Reading) -> Option<&'static str> {
    let occasion = reading.occasion?;
    OCCASIONS.iter().find(|(known, _)| *known == occasion).map(|(_, word)| *word)
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
    fn mail_fills_its_bytes_and_no_more() {
        for max_bytes in [200, 6_500, 9_000] {
            assert_eq!(message(max_bytes).len(), usize::try_from(max_bytes).expect("small"));
        }
    }
}
