//! The end of Claude Code's record of a session, its transcript.
//!
//! A hook's text is written there when it takes its place in the conversation, and each request to the model after it
//! is written down too. A text that waits for its place is in a line of the queue, which proves nothing. No hook runs
//! when a user stops a turn, but a line says it.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::files::Root;
use serde_json::Value;

use crate::payload::Payload;

/// How a user's line begins that Claude Code writes when they stop a turn, or refuse a tool.
const STOPPED: &str = "[Request interrupted by user";

/// How much of a transcript's end is read while a turn goes on: tools wait for the hook.
pub(crate) const END: u32 = 64 * 1024;

/// The transcript's path below the folder of Claude Code's settings.
fn below_config(path: &str) -> Option<&str> {
    path.rfind("/projects/").map(|at| &path[at + 1..])
}

/// The end of a transcript.
pub(crate) struct End {
    text: String,
    /// It is all of it.
    pub(crate) is_whole: bool,
}

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownProgress {
    Nowhere,
    /// In the queue, or in the conversation without a request after it.
    Waiting,
    /// A request to the model held it.
    Requested,
}

impl End {
    /// Reads as much of the session's transcript; none if there is none.
    pub(crate) fn read(payload: &Payload, most: u32) -> Result<Option<End>, Error> {
        let Some(path) = payload.transcript.as_deref().and_then(below_config) else { return Ok(None) };
        let Some(end) = Root::open("config")?.read_end(path, most)? else { return Ok(None) };
        Ok(Some(End { text: String::from_utf8_lossy(&end).into_owned(), is_whole: end.len() < most as usize }))
    }

    /// Whether the conversation ends with its user stopping the turn, or refusing what it was about to do.
    pub(crate) fn was_stopped(&self) -> bool {
        let lines = self
            .text
            .lines()
            .rev()
            .filter(|line| line.contains(r#""type":"user""#) || line.contains(r#""type":"assistant""#));
        let last = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(|line| {
            // Other lines only quote one, or are a subagent's.
            matches!(line["type"].as_str(), Some("user" | "assistant")) && line["isSidechain"] != Value::Bool(true)
        });
        let Some(last) = last.filter(|last| last["type"] == "user") else { return false };
        let content = &last["message"]["content"];
        let texts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        texts.chain(content.as_str()).any(|text| text.starts_with(STOPPED))
    }

    /// Lines are parsed only if they can matter: a transcript has long ones.
    pub(crate) fn place_of(&self, id: &str) -> ShownProgress {
        let mut place = ShownProgress::Nowhere;
        let mut in_conversation = false;
        // A request that was under way when the text took its place did not hold it, and its answer comes later.
        let mut answered: Option<String> = None;
        for line in self.text.lines() {
            let holds = line.contains(id);
            let is_answer = line.contains(r#""type":"assistant""#);
            let is_request = line.contains(r#""type":"api-request""#);
            if !holds && !is_answer && !is_request {
                continue;
            }
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let kind = line["type"].as_str().unwrap_or_default();
            let answer = line["message"]["id"].as_str();
            match kind {
                // A part of a request, or the model's own words.
                "api-request-blob" | "assistant" if holds => return ShownProgress::Requested,
                "api-request" if in_conversation => return ShownProgress::Requested,
                "assistant" if in_conversation && answer != answered.as_deref() => return ShownProgress::Requested,
                "assistant" => answered = answer.map(str::to_owned),
                "attachment" | "user" | "system" if holds => {
                    in_conversation = true;
                    place = ShownProgress::Waiting;
                }
                _ if holds => place = ShownProgress::Waiting,
                _ => {}
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01JD8Z3K5V0000000000000000";

    fn line(kind: &str, more: &str) -> String {
        format!(r#"{{"type":"{kind}"{more}}}"#)
    }

    fn holding(kind: &str) -> String {
        line(kind, &format!(r#","content":"<relay-mesh-message id=\"{ID}\" from=\"bob\">""#))
    }

    fn answer(id: &str) -> String {
        line("assistant", &format!(r#","message":{{"id":"{id}","role":"assistant"}}"#))
    }

    #[track_caller]
    fn stands(lines: &[String], expected: ShownProgress) {
        let end = End { text: lines.join("\n"), is_whole: true };
        assert_eq!(end.place_of(ID), expected, "{lines:#?}");
    }

    #[test]
    fn a_text_is_requested_once_a_request_follows_it() {
        stands(&[], ShownProgress::Nowhere);
        stands(&[answer("m1")], ShownProgress::Nowhere);
        stands(&[holding("attachment")], ShownProgress::Waiting);
        stands(&[holding("attachment"), line("api-request", "")], ShownProgress::Requested);
        stands(&[holding("user"), answer("m1")], ShownProgress::Requested);
        stands(&[holding("system"), line("mode", "")], ShownProgress::Waiting);
        stands(&[holding("api-request-blob")], ShownProgress::Requested);
    }

    #[test]
    fn a_place_in_the_queue_proves_nothing() {
        stands(&[holding("queue-operation"), answer("m1"), line("api-request", "")], ShownProgress::Waiting);
        stands(&[holding("last-prompt"), answer("m1")], ShownProgress::Waiting);
    }

    #[test]
    fn an_answer_that_was_under_way_proves_nothing() {
        stands(&[answer("m1"), holding("attachment"), answer("m1")], ShownProgress::Waiting);
        stands(&[answer("m1"), holding("attachment"), answer("m1"), answer("m2")], ShownProgress::Requested);
    }

    #[track_caller]
    fn stopped(lines: &[&str], expected: bool) {
        let end = End { text: lines.join("\n"), is_whole: true };
        assert_eq!(end.was_stopped(), expected, "{lines:#?}");
    }

    #[test]
    fn a_stop_counts_until_something_follows_it() {
        let prompt = r#"{"type":"user","message":{"role":"user","content":"go on"}}"#;
        let answer = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        let stop = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        let refusal = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#;
        let beside = r#"{"type":"system","subtype":"turn_duration","content":"\"type\":\"user\""}"#;
        let of_subagent = r#"{"type":"assistant","isSidechain":true,"message":{"id":"m2"}}"#;
        stopped(&[], false);
        stopped(&[prompt], false);
        stopped(&[prompt, answer], false);
        stopped(&[prompt, answer, stop], true);
        stopped(&[prompt, answer, refusal, beside, of_subagent], true);
        stopped(&[stop, prompt], false);
        stopped(&[stop, &prompt[..40]], true);
    }

    #[test]
    fn what_is_torn_or_quoted_is_passed_over() {
        let torn = holding("attachment")[..40].to_owned();
        stands(&[torn, answer("m1")], ShownProgress::Nowhere);
        let quoting = line("user", r#","content":"{\"type\":\"api-request\"}""#);
        stands(&[holding("attachment"), quoting], ShownProgress::Waiting);
    }
}
