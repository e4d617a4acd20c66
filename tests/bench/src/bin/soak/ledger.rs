//! What became of each message: what the mesh says of it, against what the models were told.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use test_support::{Heard, REPEATED, time_of};

use crate::drive::Drive;

/// One request of a player's client.
pub(crate) struct Seen {
    player: usize,
    /// A request holds its whole conversation: of those of one conversation, the fullest counts. Claude Code and Codex
    /// name it.
    conversation: String,
    at: SystemTime,
    /// Each envelope in it in order: the message's id, and whether it is marked as repeated.
    envelopes: Vec<(String, bool)>,
}

impl Seen {
    pub(crate) fn of(player: usize, heard: &Heard) -> Seen {
        // A hook's text may be escaped, and a tool's result is quoted.
        let told = told_once(heard).replace("&lt;", "<").replace("&gt;", ">").replace("\\\"", "\"");
        let envelopes = told.match_indices(OPENS).map(|(at, _)| {
            let head = told[at + OPENS.len()..].split('>').next().unwrap_or_default();
            (head.split('"').next().unwrap_or_default().to_owned(), head.contains(REPEATED))
        });
        let named = heard.body["prompt_cache_key"].as_str().or(heard.body["metadata"]["user_id"].as_str());
        Seen {
            player,
            conversation: named.unwrap_or_default().to_owned(),
            at: heard.at,
            envelopes: envelopes.collect(),
        }
    }
}

/// All text of a request. Once its session was resumed, Gemini CLI 0.61.0 gives the result of every tool twice, under
/// one call's id; that is its own affair, and counts once.
fn told_once(heard: &Heard) -> String {
    let mut heard = heard.clone();
    let contents = heard.body["contents"].as_array_mut().into_iter().flatten();
    for parts in contents.filter_map(|content| content["parts"].as_array_mut()) {
        parts.dedup_by(|later, before| later.get("functionResponse").is_some() && later == before);
    }
    heard.everything()
}

const OPENS: &str = "<relay-mesh-message id=\"";

/// What became of one message.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) id: String,
    pub(crate) player: usize,
    pub(crate) from: String,
    priority: usize,
    /// The mesh says that the model has it.
    settled: bool,
    /// Why it waits, if the mesh says so.
    pub(crate) reason: Option<String>,
    /// How often a model was told, without the mark and with it.
    pub(crate) plain: usize,
    pub(crate) marked: usize,
    pub(crate) body: String,
    /// The statuses that it had, each with its route.
    pub(crate) history: String,
    /// When it was first told, by request and place.
    pub(crate) first: Option<(usize, usize)>,
    pub(crate) latency: Option<Duration>,
}

impl Fate {
    pub(crate) fn is_lost(&self) -> bool {
        self.settled && self.first.is_none()
    }

    pub(crate) fn is_repeated_unmarked(&self) -> bool {
        self.plain > 1
    }

    pub(crate) fn waits(&self) -> bool {
        !self.settled && self.first.is_none()
    }
}

/// What became of all messages.
pub(crate) struct Judged {
    pub(crate) fates: Vec<Fate>,
    /// Pairs of messages of one sender to one recipient: the second was told first.
    pub(crate) overtaken: Vec<(String, String)>,
    /// What was acknowledged to its sender and is in no inbox.
    pub(crate) missing: Vec<String>,
}

impl Judged {
    pub(crate) fn is_well(&self) -> bool {
        let wrong =
            |fate: &Fate| fate.is_lost() || fate.is_repeated_unmarked() || (fate.waits() && fate.reason.is_none());
        self.missing.is_empty() && self.overtaken.is_empty() && !self.fates.iter().any(wrong)
    }

    pub(crate) fn of_player(&self, player: usize) -> impl Iterator<Item = &Fate> {
        self.fates.iter().filter(move |fate| fate.player == player)
    }
}

pub(crate) fn judge(drive: &Drive<'_>) -> Judged {
    let mut fates = Vec::new();
    let mut overtaken = Vec::new();
    for (player, one) in drive.players.iter().enumerate() {
        let read = drive.stage.relay_ok(&["read", "--agent", &one.name, "--last", "100000", "--peek", "--json"]);
        let read: Value = serde_json::from_str(&read).unwrap_or_default();
        let messages = read["messages"].as_array().cloned().unwrap_or_default();
        let online = one.is_open() && one.agent()["presence"] != "offline";
        let own: Vec<Fate> = messages.iter().map(|message| fate(drive, player, message, online)).collect();
        overtaken.extend(out_of_order(&own));
        fates.extend(own);
    }
    let known = |id: &str| fates.iter().any(|fate| fate.id == id);
    let missing = drive.sent.iter().filter(|(id, _)| !known(id)).map(|(id, to)| format!("{id} to {to}")).collect();
    Judged { fates, overtaken, missing }
}

fn fate(drive: &Drive<'_>, player: usize, message: &Value, online: bool) -> Fate {
    let word = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
    let id = word("id");
    let mut first = None;
    let mut at = None;
    // Per conversation, the most at once.
    let mut told: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
    for (number, seen) in drive.seen.iter().enumerate().filter(|(_, seen)| seen.player == player) {
        let places: Vec<usize> = (0..seen.envelopes.len()).filter(|place| seen.envelopes[*place].0 == id).collect();
        let Some(place) = places.first() else { continue };
        if first.is_none() {
            (first, at) = (Some((number, *place)), Some(seen.at));
        }
        let marked = places.iter().filter(|place| seen.envelopes[**place].1).count();
        let most = told.entry(&seen.conversation).or_default();
        *most = (most.0.max(places.len() - marked), most.1.max(marked));
    }
    let said = drive.stage.relay_ok(&["message", &id, "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    let recipient = &said["recipients"][0];
    let status = recipient["status"].as_str().unwrap_or_default().to_owned();
    let reason = ["held", "undeliverable"].into_iter().find_map(|name| recipient[name].as_str().map(str::to_owned));
    let is_low = word("priority") == "low";
    // Nothing wakes a session for it.
    let reason = reason.or_else(|| is_low.then(|| "of low priority: it waits for a prompt in its session".to_owned()));
    let stored = time_of(&word("at"));
    Fate {
        player,
        from: word("from"),
        priority: ["low", "normal", "high", "urgent"].iter().position(|one| *one == word("priority")).unwrap_or(1),
        settled: ["shown", "read", "acknowledged"].contains(&status.as_str()),
        reason: reason.or_else(|| (!online).then(|| "its session is closed".to_owned())),
        body: word("body"),
        history: history(&recipient["history"]),
        plain: told.values().map(|(plain, _)| plain).sum(),
        marked: told.values().map(|(_, marked)| marked).sum(),
        first,
        latency: at.and_then(|at| at.duration_since(stored?).ok()),
        id,
    }
}

fn history(steps: &Value) -> String {
    let step = |step: &Value| {
        let word = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", word("at"), word("status"), word("route"))
    };
    steps.as_array().into_iter().flatten().map(step).collect::<Vec<_>>().join("; ")
}

/// Of one recipient's messages, in the order of the inbox. What one request was the first to hold came at once: the
/// harness places what its hooks gave it.
fn out_of_order(own: &[Fate]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, later) in own.iter().enumerate() {
        let Some(told) = later.first else { continue };
        let earlier = own[..at].iter().filter(|one| one.from == later.from && one.priority >= later.priority);
        let overtaken = earlier.filter(|one| one.reason.is_none() && one.first.is_none_or(|first| first.0 > told.0));
        found.extend(overtaken.map(|one| (one.id.clone(), later.id.clone())).next());
    }
    found
}
