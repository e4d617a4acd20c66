//! The end of Gemini CLI's record of a session: a file of lines, one for each message, written before the request that
//! holds it is sent. A message that changes, such as by the result of a tool that it calls, is written once more.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::files::Root;
use serde_json::Value;

/// The end of a record.
pub(crate) struct End {
    text: String,
    /// It is all of it.
    pub(crate) is_whole: bool,
}

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownProgress {
    Nowhere,
    /// In the conversation, and the model has said nothing since.
    Waiting,
    /// The model has answered since.
    Answered,
}

impl End {
    /// Reads as much of a record; none if there is none.
    pub(crate) fn read(path: Option<&str>, most: u32) -> Result<Option<End>, Error> {
        let Some(path) = path.and_then(below_config) else { return Ok(None) };
        let Some(end) = Root::open("config")?.read_end(path, most)? else { return Ok(None) };
        Ok(Some(End { text: String::from_utf8_lossy(&end).into_owned(), is_whole: end.len() < most as usize }))
    }

    /// Lines are parsed only if they can matter: a record has long ones.
    pub(crate) fn place_of(&self, id: &str) -> ShownProgress {
        let mut found = Occurrence { id, place: ShownProgress::Nowhere, said_before: Vec::new() };
        for line in self.text.lines() {
            if !line.contains(id) && !line.contains(ANSWER) && !line.contains(ANEW) {
                continue;
            }
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            match line["$set"]["messages"].as_array() {
                Some(messages) => found.begin_anew(messages),
                None => found.take(&line),
            }
            if found.place == ShownProgress::Answered {
                break;
            }
        }
        found.place
    }
}

/// What every answer's line holds.
const ANSWER: &str = r#""type":"gemini""#;
/// How a line begins that holds the whole conversation anew. Such a line follows when the user stops a turn: Gemini CLI
/// forgets all that came since their prompt.
const ANEW: &str = r#"{"$set":{"messages":"#;

/// Where a text was found so far.
struct Occurrence<'a> {
    id: &'a str,
    place: ShownProgress,
    /// The answers before it. Each may be written again.
    said_before: Vec<String>,
}

impl Occurrence<'_> {
    fn begin_anew(&mut self, messages: &[Value]) {
        self.place = ShownProgress::Nowhere;
        self.said_before.clear();
        messages.iter().for_each(|message| self.take(message));
    }

    fn take(&mut self, message: &Value) {
        if self.place == ShownProgress::Answered {
            return;
        }
        let holds = || message.to_string().contains(self.id);
        match message["type"].as_str() {
            Some("gemini") => {
                let answer = message["id"].as_str().unwrap_or_default();
                let is_new = !self.said_before.iter().any(|before| before == answer);
                if self.place == ShownProgress::Waiting && is_new || says(message, self.id) {
                    self.place = ShownProgress::Answered;
                } else if holds() {
                    self.place = ShownProgress::Waiting;
                }
                if is_new {
                    self.said_before.push(answer.to_owned());
                }
            }
            Some("user") if holds() => self.place = ShownProgress::Waiting,
            _ => {}
        }
    }
}

/// The record's path below the folder of Gemini CLI's settings.
fn below_config(path: &str) -> Option<&str> {
    path.rfind("/tmp/").map(|at| &path[at + 1..])
}

/// Whether the model itself names it, and not only a tool's result.
fn says(answer: &Value, id: &str) -> bool {
    let calls = answer["toolCalls"].as_array();
    let arguments = calls.into_iter().flatten().map(|call| &call["args"]);
    arguments.chain([&answer["content"]]).any(|said| said.to_string().contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01JD8Z3K5V0000000000000000";

    fn line(kind: &str, id: &str, more: &str) -> String {
        format!(r#"{{"id":"{id}","timestamp":"2026-11-26T09:00:00.000Z","type":"{kind}"{more}}}"#)
    }

    fn prompt() -> String {
        line("user", "u1", &format!(r#","content":[{{"text":"&lt;relay-mesh-message id=\"{ID}\""}}]"#))
    }

    fn answer(id: &str) -> String {
        line("gemini", id, r#","content":"I see.""#)
    }

    fn call(id: &str, arguments: &str, result: &str) -> String {
        line(
            "gemini",
            id,
            &format!(r#","content":"","toolCalls":[{{"args":{{"a":"{arguments}"}},"result":["{result}"]}}]"#),
        )
    }

    #[track_caller]
    fn stands(lines: &[String], expected: ShownProgress) {
        let end = End { text: lines.join("\n"), is_whole: true };
        assert_eq!(end.place_of(ID), expected, "{lines:#?}");
    }

    #[test]
    fn a_text_is_answered_once_the_model_says_something_new() {
        stands(&[], ShownProgress::Nowhere);
        stands(&[answer("g1")], ShownProgress::Nowhere);
        stands(&[answer("g1"), prompt()], ShownProgress::Waiting);
        stands(&[answer("g1"), prompt(), answer("g2")], ShownProgress::Answered);
        stands(&[prompt(), line("info", "i1", "")], ShownProgress::Waiting);
    }

    #[test]
    fn an_answer_of_before_that_is_written_once_more_proves_nothing() {
        stands(&[answer("g1"), prompt(), answer("g1")], ShownProgress::Waiting);
        stands(&[call("g1", "", ""), call("g1", "", ID)], ShownProgress::Waiting);
        stands(&[call("g1", "", ""), call("g1", "", ID), call("g1", "", ID)], ShownProgress::Waiting);
        stands(&[call("g1", "", ""), call("g1", "", ID), answer("g2")], ShownProgress::Answered);
    }

    #[test]
    fn what_its_user_stops_is_forgotten_and_all_since_their_prompt() {
        let anew = |messages: &[String]| format!(r#"{{"$set":{{"messages":[{}]}}}}"#, messages.join(","));
        stands(&[answer("g1"), prompt(), anew(&[answer("g1")])], ShownProgress::Nowhere);
        stands(
            &[answer("g1"), prompt(), anew(&[answer("g1")]), line("user", "u2", ""), answer("g2")],
            ShownProgress::Nowhere,
        );
        stands(&[call("g1", "", ID), anew(&[])], ShownProgress::Nowhere);
        stands(&[prompt(), answer("g1"), anew(&[])], ShownProgress::Answered);
        stands(&[anew(&[prompt()])], ShownProgress::Waiting);
        stands(&[anew(&[prompt(), answer("g1")])], ShownProgress::Answered);
    }

    #[test]
    fn what_the_model_itself_names_it_has_read() {
        stands(&[call("g1", ID, "")], ShownProgress::Answered);
    }

    #[test]
    fn a_torn_line_is_left_out() {
        stands(&[prompt(), answer("g2")[..30].to_owned()], ShownProgress::Waiting);
    }

    #[test]
    fn a_record_is_below_the_folder_of_the_settings() {
        assert_eq!(below_config("/home/u/.gemini/tmp/app/chats/s.jsonl"), Some("tmp/app/chats/s.jsonl"));
        assert_eq!(below_config("/tmp/home/.gemini/tmp/app/chats/s.jsonl"), Some("tmp/app/chats/s.jsonl"));
        assert_eq!(below_config(""), None);
    }
}
