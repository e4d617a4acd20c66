//! Reading what a harness prints, line by line, on an instance that may be fresh each time.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use super::json::{Json, Line};
use super::{Denial, Ending, Outcome, OutputLine, OutputReading, RunEvent};
use crate::Error;

/// The longest text of one denial, reason or description, in bytes.
const LONGEST_WORDS: usize = 300;
/// The most denials that an outcome lists.
const MOST_DENIALS: usize = 50;

/// What an adapter remembers from one read to the next: any type that becomes JSON. Keep it small; the host refuses
/// more than 64 KiB. The last thing that the model said need not be in it: without an answer in the outcome, the
/// host takes the last event `said`.
pub trait Memory: Serialize + DeserializeOwned + Default {
    /// What an earlier call returned.
    fn remembered(memory: Option<&str>) -> Result<Self, Error> {
        match memory {
            None => Ok(Self::default()),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| Error::Failed(format!("what this adapter remembered is not its own: {error}"))),
        }
    }

    /// As the host keeps it.
    fn kept(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|error| Error::Failed(error.to_string()))
    }
}

impl<M: Serialize + DeserializeOwned + Default> Memory for M {}

/// Reads lines of JSON. `step` gets each object, which borrows from the line, the memory and the list of events.
/// Everything else that a harness prints, such as a warning of the runtime or a line that was torn or cut, is left out.
pub fn lines<M: Memory>(
    memory: Option<&str>,
    lines: &[OutputLine],
    mut step: impl FnMut(&mut M, &Line<'_>, &mut Vec<RunEvent>),
) -> Result<OutputReading, Error> {
    let mut memory = M::remembered(memory)?;
    let mut events = Vec::new();
    for line in lines {
        match object(line) {
            Some(object) => step(&mut memory, &object, &mut events),
            None if line.cut => events.push(RunEvent::Note("a line was too long, and its end was left out".into())),
            None => {}
        }
    }
    Ok(OutputReading { memory: Some(memory.kept()?), events })
}

/// The JSON object of a line; none if it is anything else.
pub fn object(line: &OutputLine) -> Option<Line<'_>> {
    let text = line.text.trim();
    if line.cut || !text.starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The value at a path like `/message/content/0`. Unlike with [`serde_json::Value::pointer`], a key with `/` in it
/// cannot be written: it looks for no escapes, because it is called several times for each line.
///
/// ```
/// use relay_mesh_sdk::optional::runner::reading::at;
///
/// let line = serde_json::json!({"message": {"content": [{"type": "text"}]}});
/// assert_eq!(at(&line, "/message/content/0/type"), line.pointer("/message/content/0/type"));
/// assert_eq!(at(&line, "/message/role"), None);
/// ```
pub fn at<'v, J: Json>(value: &'v J, path: &str) -> Option<&'v J> {
    path.split('/').skip(1).try_fold(value, |value, key| match value.items() {
        [] => value.member(key),
        items => items.get(key.parse::<usize>().ok()?),
    })
}

/// A text field; empty if it is missing.
pub fn text<'v, J: Json>(value: &'v J, path: &str) -> &'v str {
    at(value, path).and_then(Json::as_str).unwrap_or_default()
}

/// A whole number; none if it is missing or negative.
pub fn number<J: Json>(value: &J, path: &str) -> Option<u64> {
    at(value, path).and_then(Json::as_u64)
}

/// A count; 0 if it is missing or negative.
pub fn count<J: Json>(value: &J, path: &str) -> u64 {
    number(value, path).unwrap_or_default()
}

/// Whether a field is `true`.
pub fn flag<J: Json>(value: &J, path: &str) -> bool {
    at(value, path).and_then(Json::as_bool) == Some(true)
}

/// The items of a list; none if it is missing.
pub fn list<'v, J: Json>(value: &'v J, path: &str) -> &'v [J] {
    at(value, path).map(Json::items).unwrap_or_default()
}

/// A field with dollars, in millionths; 0 if it is missing.
pub fn cost<J: Json>(value: &J, path: &str) -> u64 {
    millionths(at(value, path).and_then(Json::as_f64).unwrap_or_default())
}

/// Dollars in millionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
pub fn millionths(dollars: f64) -> u64 {
    (dollars * 1_000_000.0).round().clamp(0.0, 1e15) as u64
}

/// A text on one line, cut to a few words.
///
/// ```
/// use relay_mesh_sdk::optional::runner::reading::short;
///
/// assert_eq!(short("  a\n  b "), "a b");
/// assert!(short(&"é".repeat(1000)).ends_with('…'));
/// ```
pub fn short(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        for character in word.chars() {
            if words.len() >= LONGEST_WORDS {
                words.push('…');
                return words;
            }
            words.push(character);
        }
    }
    words
}

/// What a tool call does, in a few words: the first of these fields of its input that is a text.
pub fn about<J: Json>(input: &J, fields: &[&str]) -> String {
    short(fields.iter().find_map(|field| input.member(field)?.as_str()).unwrap_or_default())
}

/// What the model said last, as a checksum: harnesses repeat the last message in their result. The text itself need not
/// be remembered, because the host has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastSaid(Option<u64>);

impl LastSaid {
    /// The model said this. An empty text, and one that it has just said, are left out.
    pub fn says(&mut self, text: &str, events: &mut Vec<RunEvent>) {
        let sum = Some(checksum(text));
        if !text.is_empty() && self.0 != sum {
            self.0 = sum;
            events.push(RunEvent::Said(text.to_owned()));
        }
    }
}

/// FNV-1a, which is the same in every instance.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Adds a denial, unless there are enough already.
pub fn deny(denials: &mut Vec<(String, String)>, tool: &str, why: &str) -> RunEvent {
    let (tool, why) = (short(tool), short(why));
    if denials.len() < MOST_DENIALS {
        denials.push((tool.clone(), why.clone()));
    }
    RunEvent::Denied(Denial { tool, why })
}

/// Denials that were remembered as pairs.
pub fn denials(pairs: &[(String, String)]) -> Vec<Denial> {
    pairs.iter().map(|(tool, why)| Denial { tool: tool.clone(), why: why.clone() }).collect()
}

/// The last line of standard error that says something, for a reason, without a terminal's colours.
pub fn last_words(stderr: &str) -> String {
    let last = stderr.lines().rev().find(|line| line.chars().any(char::is_alphabetic)).unwrap_or_default();
    let mut parts = last.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let after = |part: &str| {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic());
        end.map(|end| part[end + 1..].to_owned()).unwrap_or_default()
    };
    short(&parts.fold(first, |line, part| line + &after(part)))
}

/// What an HTTP status of the model's server means, with a sentence for the user. `message` is the server's own.
///
/// ```
/// use relay_mesh_sdk::optional::runner::{Ending, reading::refused};
///
/// let outcome = refused(Some(401), "invalid x-api-key", "Toad");
/// assert_eq!(outcome.ending, Ending::Login);
/// assert_eq!(outcome.why.as_deref(), Some("Toad's key or login was refused (HTTP 401): invalid x-api-key"));
/// ```
pub fn refused(status: Option<u16>, message: &str, title: &str) -> Outcome {
    let (ending, what) = match status {
        Some(401 | 403) => (Ending::Login, format!("{title}'s key or login was refused")),
        Some(402) => (Ending::Limited, format!("{title}'s account has nothing left to spend")),
        Some(429) => (Ending::Limited, format!("{title}'s model took too many requests")),
        Some(400..=499) => (Ending::Provider, format!("{title}'s model refused the request")),
        Some(_) | None => (Ending::Provider, format!("{title}'s model did not answer")),
    };
    let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    let message = short(message);
    let message = if message.is_empty() { message } else { format!(": {message}") };
    Outcome::of(ending).because(format!("{what}{status}{message}"))
}

/// How long a server asks to wait, in milliseconds, in texts such as `try again in 1h 30m` or `in 2.5 seconds`.
///
/// ```
/// use relay_mesh_sdk::optional::runner::reading::wait;
///
/// assert_eq!(wait("Please try again in 1h 30m."), Some(5_400_000));
/// assert_eq!(wait("retry in 250ms"), Some(250));
/// assert_eq!(wait("try again later"), None);
/// ```
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
pub fn wait(text: &str) -> Option<u64> {
    let after = ["again in ", "retry in ", "retry after "].iter().find_map(|words| Some(text.split_once(words)?.1))?;
    let mut rest = after;
    let mut total = None;
    loop {
        rest = rest.trim_start();
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { return total };
        rest = rest[digits..].trim_start();
        let letters = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" | "milliseconds" => 1.0,
            unit if unit.starts_with('s') => 1e3,
            unit if unit.starts_with('m') => 6e4,
            unit if unit.starts_with('h') => 3.6e6,
            unit if unit.starts_with('d') => 8.64e7,
            _ => return total,
        };
        rest = &rest[letters..];
        total = Some(total.unwrap_or_default() + (number * unit).clamp(0.0, 1e12) as u64);
    }
}

/// The first HTTP status in a message, such as 401 in `unexpected status 401 Unauthorized`.
///
/// ```
/// use relay_mesh_sdk::optional::runner::reading::status;
///
/// assert_eq!(status("exceeded retry limit, last status: 429 Too Many Requests"), Some(429));
/// assert_eq!(status("took 200 steps"), None);
/// ```
pub fn status(message: &str) -> Option<u16> {
    let words = message.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is_before = |word: &str| ["status", "http", "error", "code"].contains(&word.to_ascii_lowercase().as_str());
    let mut before = "";
    for word in words {
        if is_before(before)
            && word.len() == 3
            && let Ok(status @ 400..=599) = word.parse::<u16>()
        {
            return Some(status);
        }
        before = word;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optional::runner::ProcessExit;

    fn line(text: &str) -> OutputLine {
        OutputLine { text: text.to_owned(), cut: false }
    }

    #[test]
    fn only_whole_objects_are_lines_of_a_harness() {
        let given = ["", "{", "[]", "null", "{\"a\":1}", " {\"a\":2}\r", "(node:1) a warning", "{\"a\":3} x"];
        let given: Vec<OutputLine> = given.into_iter().map(line).collect();
        let cut = OutputLine { cut: true, ..line("{\"a\":4}") };
        let mut seen = Vec::new();
        let read = |given: &[OutputLine], memory: Option<&str>, seen: &mut Vec<u64>| {
            lines(memory, given, |count: &mut u32, object, _| {
                *count += 1;
                seen.extend(number(object, "/a"));
            })
            .expect("it is read")
        };
        let reading = read(&given, None, &mut seen);
        assert_eq!((seen.clone(), reading.memory.as_deref()), (vec![1, 2], Some("2")));
        let reading = read(&[cut], reading.memory.as_deref(), &mut seen);
        assert_eq!((seen.len(), reading.memory.as_deref(), reading.events.len()), (2, Some("2"), 1));
    }

    #[test]
    fn strange_memory_is_an_error_and_no_trap() {
        assert!(lines(Some("{"), &[], |_: &mut u32, _, _| {}).is_err());
        assert!(lines(Some("\"a\""), &[], |_: &mut u32, _, _| {}).is_err());
    }

    fn check_without_last_word(code: Option<i32>, signal: Option<i32>, asked: bool, stderr: &str, expected: &str) {
        let exit = ProcessExit { code, signal, asked_to_stop: asked, stderr_end: stderr.to_owned() };
        let outcome = Outcome::without_last_word(&exit, "Toad");
        let ending = if outcome.ending == Ending::Stopped { "stopped" } else { "broke off" };
        assert_eq!(format!("{ending}: {}", outcome.why.unwrap_or_default()), expected);
    }

    #[test]
    fn without_a_last_word_no_exit_code_is_an_answer() {
        check_without_last_word(
            Some(0),
            None,
            false,
            "",
            "broke off: Toad ended with exit code 0 and without a result",
        );
        check_without_last_word(None, Some(9), false, "", "broke off: signal 9 ended Toad in the middle of its work");
        let coloured = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mno such session\n";
        let expected = "broke off: Toad ended with exit code 1 and without a result: Error: no such session";
        check_without_last_word(Some(1), None, false, coloured, expected);
        check_without_last_word(Some(0), None, true, "", "stopped: Toad was told to stop");
        let expected = "broke off: Toad ended with exit code 1 and without a result: no such model";
        check_without_last_word(Some(1), None, false, "at x (y)\nno such model\n}\n", expected);
    }

    #[test]
    fn what_a_server_says_is_told_by_its_status() {
        let told = |status| format!("{:?}", refused(status, "m", "Toad").ending);
        assert!(told(Some(403)).contains("Login"));
        assert!(told(Some(402)).contains("Limited") && told(Some(429)).contains("Limited"));
        assert!(told(Some(500)).contains("Provider") && told(None).contains("Provider"));
        assert_eq!((millionths(0.001_69), millionths(-1.0)), (1690, 0));
    }

    #[test]
    fn what_was_said_last_is_told_once() {
        let (mut last, mut events) = (LastSaid::default(), Vec::new());
        for text in ["", "a", "b", "b"] {
            last.says(text, &mut events);
        }
        assert_eq!(events.len(), 2);
        assert!(last.kept().expect("kept").len() < 30);
    }

    #[test]
    fn denials_are_bounded() {
        let mut all = Vec::new();
        for _ in 0..1000 {
            deny(&mut all, "Bash", &"why ".repeat(1000));
        }
        assert_eq!(denials(&all).len(), MOST_DENIALS);
        assert!(all.kept().expect("kept").len() < 20_000);
    }
}
