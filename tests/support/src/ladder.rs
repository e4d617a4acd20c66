//! What became of a message, as the person sees it with `relay-mesh message ID --json`.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::stage::Stage;
use crate::waiting::wait_or_show;

/// The rungs that a message climbed with its one recipient.
#[derive(Clone, Debug)]
pub struct Ladder(Value);

impl Ladder {
    /// Asks for it.
    pub fn of(stage: &Stage, id: &str) -> Ladder {
        Ladder(serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("--json writes JSON"))
    }

    /// Waits until the message has come as far as this rung, and gives what it climbed.
    pub fn up_to(stage: &Stage, id: &str, rung: &str) -> Ladder {
        let look = || Some(Ladder::of(stage, id)).filter(|ladder| ladder.step(rung).is_some());
        wait_or_show(&format!("{id} is {rung}"), look, || format!("{:#}", Ladder::of(stage, id).0))
    }

    /// The names of the rungs, in order.
    pub fn rungs(&self) -> Vec<String> {
        self.steps().iter().filter_map(|step| step["rung"].as_str().map(str::to_owned)).collect()
    }

    /// By which route a rung was reached; nothing where it was not, or by none.
    pub fn route(&self, rung: &str) -> Option<String> {
        self.step(rung)?["route"].as_str().map(str::to_owned)
    }

    /// How long it took from one rung to another.
    pub fn between(&self, from: &str, to: &str) -> Option<Duration> {
        self.at(to)?.duration_since(self.at(from)?).ok()
    }

    /// When a rung was reached.
    pub fn at(&self, rung: &str) -> Option<SystemTime> {
        humantime::parse_rfc3339(self.step(rung)?["at"].as_str()?).ok()
    }

    fn step(&self, rung: &str) -> Option<Value> {
        self.steps().into_iter().find(|step| step["rung"] == rung)
    }

    fn steps(&self) -> Vec<Value> {
        self.0["recipients"][0]["steps"].as_array().cloned().unwrap_or_default()
    }
}

/// Sends from the person's shell; gives the message's id.
pub fn send(stage: &Stage, to: &str, body: &str) -> String {
    send_with(stage, to, body, &[])
}

/// The same with further arguments, such as `--from` or `--priority`.
pub fn send_with(stage: &Stage, to: &str, body: &str, further: &[&str]) -> String {
    let report = stage.relay(&["send", to, body, "--json"]).args(further).succeed();
    let sent: Value = serde_json::from_str(&report).expect("--json writes JSON");
    sent["id"].as_str().expect("a message has an id").to_owned()
}

/// The id of the envelope that holds a text.
///
/// # Panics
/// Where the text stands in none.
pub fn id_of(news: &str, text: &str) -> String {
    let before = news.find(text).map(|at| &news[..at]).expect("the text is among the news");
    let Some((_, envelope)) = before.rsplit_once("<relay-mesh-message id=\"") else {
        panic!("mail comes in an envelope, and this has none: {news}");
    };
    envelope.split('"').next().unwrap_or_default().to_owned()
}
