//! What a person types into the view, and what becomes of it.

use super::input_line::InputLine;
use super::press::{Edit, Effect};

/// The longest that can be typed or pasted, in bytes: as much as a message may hold.
const LONGEST: usize = 256 * 1024;

/// What is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Words to look for; lists show only what has them while they are typed.
    Search,
    /// A message.
    Compose(Compose),
    /// An answer to a question.
    Answer {
        /// The question.
        ask: String,
        /// What can be answered.
        offers: String,
    },
    /// The file for a conversation.
    Export {
        /// The conversation.
        thread: String,
    },
}

/// Where a message goes that is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    /// To these agents.
    pub to: Vec<String>,
    /// In this conversation.
    pub thread: Option<String>,
    /// In reply to this message.
    pub reply_to: Option<String>,
}

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typing {
    /// For what.
    pub prompt: Prompt,
    /// The line.
    pub line: InputLine,
}

impl Typing {
    pub(crate) fn of(prompt: Prompt, text: &str) -> Typing {
        Typing { prompt, line: InputLine::of(text) }
    }

    /// What stands before the line.
    pub fn label(&self) -> String {
        match &self.prompt {
            Prompt::Search => "Search".to_owned(),
            Prompt::Compose(Compose { to, reply_to: Some(_), .. }) => format!("Reply to {}", to.join(", ")),
            Prompt::Compose(Compose { to, .. }) => format!("To {}", to.join(", ")),
            Prompt::Answer { offers, .. } => format!("Answer ({offers})"),
            Prompt::Export { .. } => "Write to (.html, .md, .json)".to_owned(),
        }
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.line.insert(text, LONGEST);
    }

    pub(crate) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Left => self.line.left(),
            Edit::Right => self.line.right(),
            Edit::First => self.line.first(),
            Edit::Last => self.line.last(),
            Edit::Erase => self.line.erase(),
            Edit::EraseWord => self.line.erase_word(),
            Edit::EraseAll => self.line.erase_all(),
        }
    }

    /// What is to be done once it is entered; why nothing is, if it says too little.
    pub(crate) fn effect(&self) -> Result<Effect, &'static str> {
        let text = self.line.text();
        let is_empty = text.trim().is_empty();
        match &self.prompt {
            Prompt::Search if is_empty => Err("there is no word to look for"),
            Prompt::Search => Ok(Effect::Search(text.trim().to_owned())),
            Prompt::Compose(_) if is_empty => Err("the message has no text"),
            Prompt::Compose(compose) => Ok(Effect::Send { compose: compose.clone(), body: text.to_owned() }),
            Prompt::Answer { .. } if is_empty => Err("the answer has no words"),
            Prompt::Answer { ask, .. } => Ok(Effect::Answer { ask: ask.clone(), words: text.trim().to_owned() }),
            Prompt::Export { .. } if is_empty => Err("the file has no name"),
            Prompt::Export { thread } => Ok(Effect::Export { thread: thread.clone(), file: text.trim().to_owned() }),
        }
    }
}

/// A name for the file of a conversation: what is no letter or digit could be a folder or an option.
pub(crate) fn file_name(thread: &str) -> String {
    let letters =
        thread.chars().map(|one| if one.is_ascii_alphanumeric() || one == '-' || one == '_' { one } else { '-' });
    let name: String = letters.take(60).collect();
    let name = name.trim_matches('-');
    format!("{}.html", if name.is_empty() { "thread" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_its_conversation_and_is_in_this_folder() {
        for (thread, expected) in [
            ("build", "build.html"),
            ("01JD8Z3K5V0000000000000000", "01JD8Z3K5V0000000000000000.html"),
            ("../../etc/passwd", "etc-passwd.html"),
            ("--out", "out.html"),
            ("日本", "thread.html"),
            ("a b/c", "a-b-c.html"),
        ] {
            assert_eq!(file_name(thread), expected);
        }
    }

    #[test]
    fn what_says_too_little_is_not_done() {
        for (prompt, why) in [
            (Prompt::Search, "there is no word to look for"),
            (Prompt::Compose(Compose { to: vec!["bob".to_owned()], ..Compose::default() }), "the message has no text"),
            (Prompt::Answer { ask: "1".to_owned(), offers: String::new() }, "the answer has no words"),
            (Prompt::Export { thread: "build".to_owned() }, "the file has no name"),
        ] {
            assert_eq!(Typing::of(prompt.clone(), " \n").effect(), Err(why));
            assert!(Typing::of(prompt, "words").effect().is_ok());
        }
    }
}
