//! What Claude Code's record of a session (its transcript) says of the mail that hooks carried.
//!
//! A hook's text is written there when it takes its place in the conversation, and each request to the model after it
//! is written down too. A text that waits for its place is in a line of the queue, which proves nothing.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::clock;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::hooks::Call;
use relay_mesh_sdk::optional::evidence::{Evidence, HandedOver, Judgement, Occurrence, Verdict};
use serde_json::Value;

use crate::ClaudeCode;
use crate::payload::{Event, Payload};

/// How much of a transcript's end is read while a turn goes on: tools wait for the hook.
const END: u32 = 64 * 1024;
/// How much is read where a turn or a session begins or ends, after which nothing more may come.
const LONG_END: u32 = 512 * 1024;
/// A text that has no place in the transcript at the end of a turn this long after it was given is lost.
const LOST_AFTER_MS: u64 = 30_000;

impl Evidence for ClaudeCode {
    fn look(occurrence: &Occurrence, handed: &[HandedOver]) -> Result<Vec<Judgement>, Error> {
        let call = Call {
            environment: occurrence.environment.clone(),
            ..Call::new(occurrence.name.clone(), occurrence.payload.clone())
        };
        let Some(payload) = Payload::parse(&call)? else { return Ok(Vec::new()) };
        let Some(path) = payload.transcript.as_deref().and_then(below_config) else { return Ok(Vec::new()) };
        let most = match payload.event {
            Event::Stop { .. } | Event::SessionStart(_) | Event::SessionEnd { .. } | Event::SubagentStop { .. } => {
                LONG_END
            }
            _ => END,
        };
        let Some(end) = Root::open("config")?.read_end(path, most)? else { return Ok(Vec::new()) };
        let end = End { text: String::from_utf8_lossy(&end).into_owned(), is_whole: end.len() < most as usize };
        let at_end_of_turn = matches!(payload.event, Event::Stop { .. });
        let now = clock::now();
        let judge = |handed: &HandedOver| {
            let verdict = match end.place_of(&handed.id) {
                Place::Requested => Verdict::Shown,
                Place::Nowhere if at_end_of_turn && end.is_whole && now.saturating_sub(handed.at) > LOST_AFTER_MS => {
                    Verdict::Lost
                }
                Place::Nowhere | Place::Waiting => return None,
            };
            Some(Judgement { id: handed.id.clone(), verdict })
        };
        Ok(handed.iter().filter_map(judge).collect())
    }
}

/// The transcript's path below the folder of Claude Code's settings.
fn below_config(path: &str) -> Option<&str> {
    path.rfind("/projects/").map(|at| &path[at + 1..])
}

/// The end of a transcript.
struct End {
    text: String,
    /// It is all of it.
    is_whole: bool,
}

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// In the queue, or in the conversation without a request after it.
    Waiting,
    /// A request to the model held it.
    Requested,
}

impl End {
    /// Lines are parsed only if they can matter: a transcript has long ones.
    fn place_of(&self, id: &str) -> Place {
        let mut place = Place::Nowhere;
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
                "api-request-blob" | "assistant" if holds => return Place::Requested,
                "api-request" if in_conversation => return Place::Requested,
                "assistant" if in_conversation && answer != answered.as_deref() => return Place::Requested,
                "assistant" => answered = answer.map(str::to_owned),
                "attachment" | "user" | "system" if holds => {
                    in_conversation = true;
                    place = Place::Waiting;
                }
                _ if holds => place = Place::Waiting,
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
    fn stands(lines: &[String], expected: Place) {
        let end = End { text: lines.join("\n"), is_whole: true };
        assert_eq!(end.place_of(ID), expected, "{lines:#?}");
    }

    #[test]
    fn a_text_is_requested_once_a_request_follows_it() {
        stands(&[], Place::Nowhere);
        stands(&[answer("m1")], Place::Nowhere);
        stands(&[holding("attachment")], Place::Waiting);
        stands(&[holding("attachment"), line("api-request", "")], Place::Requested);
        stands(&[holding("user"), answer("m1")], Place::Requested);
        stands(&[holding("system"), line("mode", "")], Place::Waiting);
        stands(&[holding("api-request-blob")], Place::Requested);
    }

    #[test]
    fn a_place_in_the_queue_proves_nothing() {
        stands(&[holding("queue-operation"), answer("m1"), line("api-request", "")], Place::Waiting);
        stands(&[holding("last-prompt"), answer("m1")], Place::Waiting);
    }

    #[test]
    fn an_answer_that_was_under_way_proves_nothing() {
        stands(&[answer("m1"), holding("attachment"), answer("m1")], Place::Waiting);
        stands(&[answer("m1"), holding("attachment"), answer("m1"), answer("m2")], Place::Requested);
    }

    #[test]
    fn what_is_torn_or_quoted_is_passed_over() {
        let torn = holding("attachment")[..40].to_owned();
        stands(&[torn, answer("m1")], Place::Nowhere);
        let quoting = line("user", r#","content":"{\"type\":\"api-request\"}""#);
        stands(&[holding("attachment"), quoting], Place::Waiting);
    }
}
