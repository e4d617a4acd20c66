//! The delivery of a message, as the user sees it with `relay-mesh message ID --json`.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::stage::Stage;
use crate::waiting::wait_or_show;

/// The statuses of a message with one recipient.
#[derive(Clone, Debug)]
pub struct DeliveryHistory(Value);

impl DeliveryHistory {
    /// Queries the current history.
    pub fn of(stage: &Stage, id: &str) -> DeliveryHistory {
        DeliveryHistory(serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("--json writes JSON"))
    }

    /// Waits until the message reaches this status and returns its history.
    pub fn up_to(stage: &Stage, id: &str, status: &str) -> DeliveryHistory {
        let look = || Some(DeliveryHistory::of(stage, id)).filter(|history| history.step(status).is_some());
        wait_or_show(&format!("{id} is {status}"), look, || format!("{:#}", DeliveryHistory::of(stage, id).0))
    }

    /// The names of the statuses, in order.
    pub fn statuses(&self) -> Vec<String> {
        self.steps().iter().filter_map(|step| step["status"].as_str().map(str::to_owned)).collect()
    }

    /// The route by which a status was reached; none if it was not, or by no route.
    pub fn route(&self, status: &str) -> Option<String> {
        self.step(status)?["route"].as_str().map(str::to_owned)
    }

    /// The route that brought the text: a reply may come before there is evidence that the message was shown.
    pub fn carried_by(&self) -> Option<String> {
        self.route("shown").or_else(|| self.route("accepted"))
    }

    /// The time between two statuses.
    pub fn between(&self, from: &str, to: &str) -> Option<Duration> {
        self.at(to)?.duration_since(self.at(from)?).ok()
    }

    /// When a status was reached.
    pub fn at(&self, status: &str) -> Option<SystemTime> {
        humantime::parse_rfc3339(self.step(status)?["at"].as_str()?).ok()
    }

    fn step(&self, status: &str) -> Option<Value> {
        self.steps().into_iter().find(|step| step["status"] == status)
    }

    fn steps(&self) -> Vec<Value> {
        self.0["recipients"][0]["history"].as_array().cloned().unwrap_or_default()
    }
}

/// Sends from the user's shell and returns the message's id.
pub fn send(stage: &Stage, to: &str, body: &str) -> String {
    send_with(stage, to, body, &[])
}

/// As `send`, with further arguments such as `--from` or `--priority`.
pub fn send_with(stage: &Stage, to: &str, body: &str, further: &[&str]) -> String {
    let report = stage.relay(&["send", to, body, "--json"]).args(further).succeed();
    let sent: Value = serde_json::from_str(&report).expect("--json writes JSON");
    sent["id"].as_str().expect("a message has an id").to_owned()
}

/// The id of the envelope that contains a text. Codex escapes what a hook says at the end of a turn.
///
/// # Panics
/// If no envelope contains the text.
pub fn id_of(news: &str, text: &str) -> String {
    let news = news.replace("&lt;", "<");
    let before = news.find(text).map(|at| &news[..at]).expect("the text is among the news");
    let Some((_, envelope)) = before.rsplit_once("<relay-mesh-message id=\"") else {
        panic!("mail comes in an envelope, and this has none: {news}");
    };
    envelope.split('"').next().unwrap_or_default().to_owned()
}
