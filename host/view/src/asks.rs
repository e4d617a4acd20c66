//! Questions to the user.

use mesh::asks::{Ask, AskKind, AskStage, answer_text};
use mesh::ports::machine::Instant;
use serde::Serialize;

use crate::{SessionRefView, Timestamp};

// Who asks.
#[derive(Clone, Debug, Serialize)]
pub struct AskedByView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRefView>,
}

// Something that can be chosen.
#[derive(Clone, Debug, Serialize)]
pub struct AskChoiceView {
    pub id: String,
    pub label: String,
}

// The answer that counts.
#[derive(Clone, Debug, Serialize)]
pub struct AskAnswerView {
    // As one would type it.
    pub answer: String,
    // Where it was given.
    pub via: String,
    pub at: Timestamp,
}

// A question to the user.
#[derive(Clone, Debug, Serialize)]
pub struct AskDetail {
    pub id: String,
    // open, answered, settled or expired
    pub status: &'static str,
    pub by: AskedByView,
    // approval, question, consent or held-loop
    pub kind: &'static str,
    // What is asked, in words that begin with what would happen.
    pub what: String,
    // What would be done, as the harness or the asker gave it.
    pub raw: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<AskChoiceView>,
    // What can be answered.
    pub answers: Vec<String>,
    pub asked: Timestamp,
    // Until when it can be answered. Then it is refused.
    pub until: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<AskAnswerView>,
    // Why no answer is needed any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<String>,
}

impl AskDetail {
    /// A question at a time.
    pub fn of(ask: &Ask, now: Instant) -> AskDetail {
        let choice = |(id, label): &(String, String)| AskChoiceView { id: id.clone(), label: label.clone() };
        let (answered, settled) = match &ask.stage {
            AskStage::Open => (None, None),
            AskStage::Answered { at, answer, via, .. } => {
                let answered = AskAnswerView { answer: answer_text(answer), via: via.clone(), at: Timestamp(*at) };
                (Some(answered), None)
            }
            AskStage::Settled { why, .. } => (None, Some(why.clone())),
        };
        AskDetail {
            id: ask.id.to_string(),
            status: ask.status(now).as_str(),
            by: AskedByView {
                agent: ask.by.agent.as_ref().map(ToString::to_string),
                harness: ask.by.harness.clone(),
                session: ask.by.session.clone().map(SessionRefView::from),
            },
            kind: kind(&ask.what),
            what: ask.what.text(),
            raw: serde_json::to_value(&ask.what).unwrap_or_default()["what"].take(),
            reason: ask.reason.clone(),
            choices: ask.choices.iter().map(choice).collect(),
            answers: ask.offers(),
            asked: Timestamp(ask.at),
            until: Timestamp(ask.until),
            answered,
            settled,
        }
    }
}

fn kind(what: &AskKind) -> &'static str {
    match what {
        AskKind::Approval(_) => "approval",
        AskKind::Question(_) => "question",
        AskKind::Consent(_) => "consent",
        AskKind::HeldLoop(_) => "held-loop",
    }
}
