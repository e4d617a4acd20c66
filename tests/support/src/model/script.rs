//! The model's script: cues and the answers to them.

use serde_json::{Value, json};

use super::dialect::Dialect;

/// What the model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelAnswer {
    /// Text, which ends its turn.
    Say(String),
    /// Text without an end: it streams until the client disconnects.
    Talk(String),
    /// A call of a tool.
    Call {
        /// The tool's name, as the harness shows it to the model.
        tool: String,
        /// Its input.
        input: Value,
    },
}

/// Lines that wait for their cue. Each is used once; the first unused line whose cue is in the new text answers.
#[derive(Default)]
pub struct Script {
    lines: Vec<Line>,
    otherwise: Option<Reaction>,
}

/// An answer to the new text of a request.
type Reaction = Box<dyn Fn(&str) -> ModelAnswer + Send>;

struct Line {
    cue: String,
    answer: Reaction,
    spoken: bool,
}

impl Script {
    /// An empty script.
    pub fn new() -> Script {
        Script::default()
    }

    /// A script that joins as `name` when asked to, by the tool with this name.
    #[must_use]
    pub fn joining(register: &str, name: &str) -> Script {
        Script::new().call("Join the mesh", register, json!({"name": name})).say(name, &format!("I am {name}."))
    }

    /// If the new text contains `cue`, answers with these words.
    #[must_use]
    pub fn say(self, cue: &str, words: &str) -> Script {
        let words = words.to_owned();
        self.answer_with(cue, move |_| ModelAnswer::Say(words.clone()))
    }

    /// If the new text contains `cue`, answers with these words and does not end.
    #[must_use]
    pub fn talk(self, cue: &str, words: &str) -> Script {
        let words = words.to_owned();
        self.answer_with(cue, move |_| ModelAnswer::Talk(words.clone()))
    }

    /// If the new text contains `cue`, calls a tool.
    #[must_use]
    pub fn call(self, cue: &str, tool: &str, input: Value) -> Script {
        self.call_with(cue, tool, move |_| input.clone())
    }

    /// As `call`, with an input computed from the new text.
    #[must_use]
    pub fn call_with(self, cue: &str, tool: &str, input: impl Fn(&str) -> Value + Send + 'static) -> Script {
        let tool = tool.to_owned();
        self.answer_with(cue, move |news| ModelAnswer::Call { tool: tool.clone(), input: input(news) })
    }

    /// If the new text contains `cue`, answers with the result of `answer`. The client waits for it: its side effects
    /// happen while the model thinks.
    #[must_use]
    pub fn answer_with(mut self, cue: &str, answer: impl Fn(&str) -> ModelAnswer + Send + 'static) -> Script {
        self.lines.push(Line { cue: cue.to_owned(), answer: Box::new(answer), spoken: false });
        self
    }

    /// Answers what no line answers, as often as it is asked.
    #[must_use]
    pub fn otherwise(mut self, answer: impl Fn(&str) -> ModelAnswer + Send + 'static) -> Script {
        self.otherwise = Some(Box::new(answer));
        self
    }

    /// The cues of unused lines.
    pub fn unspoken(&self) -> Vec<String> {
        self.lines.iter().filter(|line| !line.spoken).map(|line| line.cue.clone()).collect()
    }

    /// The answer to a request, and whether a line gave it.
    pub(super) fn answer(&mut self, dialect: Dialect, body: &Value) -> (ModelAnswer, bool) {
        if !dialect.is_main(body) {
            return (ModelAnswer::Say("<summary>They talked about the mesh.</summary>".to_owned()), false);
        }
        let news = dialect.news(body);
        match self.lines.iter_mut().find(|line| !line.spoken && news.contains(&line.cue)) {
            Some(line) => {
                line.spoken = true;
                ((line.answer)(&news), true)
            }
            None => match &self.otherwise {
                Some(answer) => (answer(&news), true),
                None => (ModelAnswer::Say("I have nothing to do.".to_owned()), false),
            },
        }
    }
}
