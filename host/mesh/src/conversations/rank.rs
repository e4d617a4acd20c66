//! Which messages have the words of a search, and in which order they are shown: a pure function over texts.

/// So many occurrences in a body count; more say nothing about it.
const MOST_COUNTED: u32 = 8;
/// What an occurrence in the subject weighs beside one in the body.
const IN_SUBJECT: u32 = 8;
/// What a message gains for each word that it has as a whole word somewhere.
const WHOLE_WORD: u32 = 4;

/// The words of a search as they are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    words: Vec<String>,
    /// What the bytes of a message must contain in lower case to have the words: of each word its longest part of ASCII.
    needles: Vec<Vec<u8>>,
}

/// Memory that is used again for each message.
#[derive(Default)]
pub(crate) struct Scratch {
    line: Vec<u8>,
    subject: String,
    body: String,
}

impl Query {
    /// Each word or phrase has to be somewhere in the subject or the body, whatever its case.
    pub(crate) fn new(words: &[String]) -> Query {
        let words: Vec<String> = words.iter().map(|word| folded(word.trim())).filter(|word| !word.is_empty()).collect();
        let needles = words.iter().filter_map(|word| longest_of_ascii(word)).map(escaped).collect();
        Query { words, needles }
    }

    /// Whether there is nothing to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a message's line can have the words.
    pub(crate) fn may_match(&self, line: &[u8], scratch: &mut Scratch) -> bool {
        if self.needles.is_empty() {
            return true;
        }
        let lower = &mut scratch.line;
        lower.clear();
        lower.extend_from_slice(line);
        lower.make_ascii_lowercase();
        self.needles.iter().all(|needle| memchr::memmem::find(lower, needle).is_some())
    }

    /// How well a message fits; none if it lacks a word.
    pub(crate) fn score(&self, subject: &str, body: &str, scratch: &mut Scratch) -> Option<u32> {
        let Scratch { subject: folded_subject, body: folded_body, .. } = scratch;
        fold_into(subject, folded_subject);
        fold_into(body, folded_body);
        let mut score = 0;
        for word in &self.words {
            let (in_subject, whole_in_subject) = occurrences(folded_subject, word);
            let (in_body, whole_in_body) = occurrences(folded_body, word);
            if in_subject + in_body == 0 {
                return None;
            }
            score += in_subject * IN_SUBJECT + in_body;
            score += if whole_in_subject || whole_in_body { WHOLE_WORD } else { 0 };
        }
        Some(score)
    }
}

/// A text in lower case, by which texts are compared. A character outside ASCII never becomes one of ASCII, so that a
/// search of bytes finds whatever a search of text does.
pub fn folded(text: &str) -> String {
    let mut folded = String::new();
    fold_into(text, &mut folded);
    folded
}

fn fold_into(text: &str, folded: &mut String) {
    folded.clear();
    if text.is_ascii() {
        folded.push_str(text);
        folded.make_ascii_lowercase();
        return;
    }
    for character in text.chars() {
        if character.is_ascii() || character.to_lowercase().any(|one| one.is_ascii()) {
            folded.push(character.to_ascii_lowercase());
        } else {
            folded.extend(character.to_lowercase());
        }
    }
}

/// How often a word is in a text, up to [`MOST_COUNTED`], and whether it is once a whole word.
fn occurrences(text: &str, word: &str) -> (u32, bool) {
    let (mut count, mut whole) = (0, false);
    for (at, _) in text.match_indices(word).take(MOST_COUNTED as usize) {
        count += 1;
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        whole |= ![before, after].into_iter().flatten().any(char::is_alphanumeric);
    }
    (count, whole)
}

/// The longest part of a word that is ASCII; none if there is none.
fn longest_of_ascii(word: &str) -> Option<&str> {
    word.split(|one: char| !one.is_ascii()).max_by_key(|part| part.len()).filter(|part| !part.is_empty())
}

/// A word as it stands in a line of JSON.
fn escaped(word: &str) -> Vec<u8> {
    let quoted = serde_json::Value::from(word).to_string();
    // What is escaped by a number has letters in either case.
    quoted[1..quoted.len() - 1].to_ascii_lowercase().into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(words: &[&str]) -> Query {
        Query::new(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_word_has_to_be_there_whatever_its_case() {
        for (words, subject, body, is_found) in [
            (&["PORT"][..], "the port", "", true),
            (&["port", "8080"], "the port", "is 8080", true),
            (&["port", "9090"], "the port", "is 8080", false),
            (&["rate limit"], "", "the Rate limit is hit", true),
            (&["rate limit"], "", "limit the rate", false),
            (&["größe"], "", "DIE GRÖSSE? nein, die GRÖßE", true),
            (&["say \"hi\""], "", "they say \"hi\" often", true),
            (&["字"], "漢字", "", true),
            (&[" "], "x", "y", true),
        ] {
            assert_eq!(
                query(words).score(subject, body, &mut Scratch::default()).is_some(),
                is_found,
                "{words:?} in {subject}, {body}"
            );
        }
        assert!(query(&[" ", ""]).is_empty() && !query(&["x"]).is_empty());
    }

    #[test]
    fn a_subject_counts_for_more_than_a_body_and_a_whole_word_for_more_than_a_part() {
        let score = |subject: &str, body: &str| {
            query(&["port"]).score(subject, body, &mut Scratch::default()).unwrap_or_default()
        };
        assert!(score("the port", "") > score("", "the port"));
        assert!(score("", "a port") > score("", "an important report"));
        assert!(score("", "port port") > score("", "port"));
        assert_eq!(
            score("", &"port ".repeat(8)),
            score("", &"port ".repeat(800)),
            "no message wins by repeating itself"
        );
    }

    proptest! {
        /// What the check of bytes leaves out has none of the words.
        #[test]
        fn the_check_of_bytes_loses_nothing(word in "\\PC{1,4}|[kK\u{212a}iI\u{130}\"\\\\\n]{1,3}", before in "\\PC{0,6}", after in ".{0,6}") {
            let body = format!("{before}{word}{after}");
            let query = query(&[&word]);
            let line = serde_json::json!({ "subject": "", "body": body }).to_string();
            if query.score("", &body, &mut Scratch::default()).is_some() {
                prop_assert!(query.may_match(line.as_bytes(), &mut Scratch::default()));
            }
        }
    }
}
