//! What the model is to do: cues, and what it does when it hears one.

use serde_json::Value;

use super::dialect::Dialect;

/// What the model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Words, which end its turn.
    Say(String),
    /// Words that have no end: it goes on until nobody listens any more.
    Talk(String),
    /// A call of a tool.
    Call {
        /// The tool, as the harness names it to the model.
        tool: String,
        /// Its input.
        input: Value,
    },
}

/// A script: lines that wait for their cue. Each is spoken once; the first one whose cue stands in
/// what is new to the model is taken.
#[derive(Default)]
pub struct Script {
    lines: Vec<Line>,
}

struct Line {
    cue: String,
    answer: Box<dyn Fn(&str) -> Answer + Send>,
    spoken: bool,
}

impl Script {
    /// An empty script.
    pub fn new() -> Script {
        Script::default()
    }

    /// When told something with this text in it, says these words.
    #[must_use]
    pub fn say(self, cue: &str, words: &str) -> Script {
        let words = words.to_owned();
        self.answer_with(cue, move |_| Answer::Say(words.clone()))
    }

    /// When told something with this text in it, says these words and does not come to an end.
    #[must_use]
    pub fn talk(self, cue: &str, words: &str) -> Script {
        let words = words.to_owned();
        self.answer_with(cue, move |_| Answer::Talk(words.clone()))
    }

    /// When told something with this text in it, calls a tool.
    #[must_use]
    pub fn call(self, cue: &str, tool: &str, input: Value) -> Script {
        self.call_with(cue, tool, move |_| input.clone())
    }

    /// The same, where the input depends on what the model was told.
    #[must_use]
    pub fn call_with(self, cue: &str, tool: &str, input: impl Fn(&str) -> Value + Send + 'static) -> Script {
        let tool = tool.to_owned();
        self.answer_with(cue, move |news| Answer::Call { tool: tool.clone(), input: input(news) })
    }

    /// When told something with this text in it, does what `answer` says. The client waits for it:
    /// what `answer` does before it returns happens while the model thinks.
    #[must_use]
    pub fn answer_with(mut self, cue: &str, answer: impl Fn(&str) -> Answer + Send + 'static) -> Script {
        self.lines.push(Line { cue: cue.to_owned(), answer: Box::new(answer), spoken: false });
        self
    }

    /// The cues that never came.
    pub fn unspoken(&self) -> Vec<String> {
        self.lines.iter().filter(|line| !line.spoken).map(|line| line.cue.clone()).collect()
    }

    /// The answer to a request, and whether a line asked for it.
    pub(super) fn answer(&mut self, dialect: Dialect, body: &Value) -> (Answer, bool) {
        if !dialect.is_main(body) {
            return (Answer::Say("<summary>They talked about the mesh.</summary>".to_owned()), false);
        }
        let news = dialect.news(body);
        match self.lines.iter_mut().find(|line| !line.spoken && news.contains(&line.cue)) {
            Some(line) => {
                line.spoken = true;
                ((line.answer)(&news), true)
            }
            None => (Answer::Say("I have nothing to do.".to_owned()), false),
        }
    }
}
