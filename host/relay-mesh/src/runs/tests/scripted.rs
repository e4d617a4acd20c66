//! A harness whose program is a shell script, and which says what the script prints.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mesh::ports::candidate::Candidate;
use mesh::ports::harness::{
    About, Delivered, Finding, Harness, HarnessError, Harnesses, HookCall, HookHost, Mail, Occasion,
    OptionalInterfaces, Plan, Reply, Route, Setup,
};
use mesh::ports::runner::{
    Abilities, Ending, HarnessRunner, Launch, Login, OutputLine, OutputReading, ProcessExit, Readiness, RunEvent,
    RunOutcome, Start, StopSignal, StopStep, Task, Usage,
};
use mesh::sessions::{Activity, Caller, Detection, Session};
use serde_json::{Value, json};

/// The name of the harness.
pub(super) const NAME: &str = "scripted";

/// Its program is `/bin/sh -c SCRIPT`. A line `say TEXT` is a message, `session ID` names the session, `refused STATUS`
/// is a refusal of the model's server, `used N` is usage of the whole session, `spent N` is the cost so far, `answer TEXT`
/// is the last word. The script finds in `COST` what it may cost.
pub(super) struct Scripted {
    about: About,
    /// For a fresh session, and for a resumed one.
    scripts: [String; 2],
}

impl Scripted {
    pub(super) fn new(fresh: &str, resumed: &str) -> Scripted {
        let about = About {
            harness: NAME.to_owned(),
            title: "Scripted".to_owned(),
            version: "1".to_owned(),
            aliases: Vec::new(),
            connection_per_session: true,
        };
        Scripted { about, scripts: [fresh.to_owned(), resumed.to_owned()] }
    }
}

#[async_trait]
impl HarnessRunner for Scripted {
    async fn ready(&self) -> Result<Readiness, HarnessError> {
        Ok(Readiness {
            version: "1".to_owned(),
            login: Login::LoggedIn,
            why: None,
            able: Abilities { cost: true, ..Abilities::default() },
        })
    }

    async fn prepare(&self, task: &Task, _: &Path) -> Result<Launch, HarnessError> {
        let script = match &task.start {
            Start::Fresh(_) => &self.scripts[0],
            Start::Resume(_) => &self.scripts[1],
            Start::Fork(_) => return Err(HarnessError::Unsupported("it cannot copy a session".to_owned())),
        };
        Ok(Launch {
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            environment: vec![
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
                ("COST".to_owned(), task.cost.unwrap_or_default().to_string()),
            ],
            files: vec![("schema.json".to_owned(), json!(task.schema).to_string())],
            stop: vec![StopStep { signal: StopSignal::Terminate, grace: Duration::from_millis(300) }],
            without: Vec::new(),
        })
    }

    async fn read(
        &self,
        _: &Task,
        memory: Option<&Value>,
        lines: &[OutputLine],
    ) -> Result<OutputReading, HarnessError> {
        let mut memory = memory.cloned().unwrap_or_else(|| json!({}));
        let mut events = Vec::new();
        for line in lines {
            let (word, rest) = line.text.split_once(' ').unwrap_or((&line.text, ""));
            match word {
                "say" => events.push(RunEvent::Said { text: rest.to_owned() }),
                "session" => {
                    memory["session"] = rest.into();
                    events.push(RunEvent::Session { session: rest.to_owned() });
                }
                "refused" => {
                    events.push(RunEvent::Retries { attempt: 1, status: rest.parse().ok(), wait_ms: 1 });
                }
                "spent" => {
                    let usage = Usage { cost: rest.parse().ok(), ..Usage::default() };
                    memory["spent"] = usage.cost.into();
                    events.push(RunEvent::Used { usage });
                }
                "used" => memory["used"] = rest.parse::<u64>().unwrap_or(0).into(),
                "answer" => memory["answer"] = rest.into(),
                other => return Err(HarnessError::Failed(format!("`{other}` is no word of this harness"))),
            }
        }
        Ok(OutputReading { memory: Some(memory), events })
    }

    async fn conclude(&self, _: &Task, memory: Option<&Value>, _: &ProcessExit) -> Result<RunOutcome, HarnessError> {
        let word = |name: &str| memory.and_then(|memory| memory[name].as_str()).map(str::to_owned);
        let used = memory.and_then(|memory| memory["used"].as_u64());
        let ending = if word("answer").is_some() { Ending::Answered } else { Ending::BrokeOff };
        let usage = used.map(|input| Usage { input, whole_session: true, ..Usage::default() });
        Ok(RunOutcome { answer: word("answer"), session: word("session"), usage, ..RunOutcome::of(ending) })
    }
}

#[async_trait]
impl Harness for Scripted {
    fn about(&self) -> &About {
        &self.about
    }

    async fn detect(&self, _: &Caller) -> Result<Option<Detection>, HarnessError> {
        Ok(None)
    }

    async fn discover(&self) -> Result<Vec<Session>, HarnessError> {
        Ok(Vec::new())
    }

    async fn activity_of(&self, session: &str) -> Result<Activity, HarnessError> {
        Err(HarnessError::NotFound(session.to_owned()))
    }

    async fn protocol(&self, _: &str, _: Occasion, _: Option<&str>) -> Result<Option<String>, HarnessError> {
        Ok(None)
    }

    async fn routes(&self, _: &Session) -> Result<Vec<Route>, HarnessError> {
        Ok(Vec::new())
    }

    async fn deliver(&self, _: &Session, _: &str, _: &Mail) -> Result<Delivered, HarnessError> {
        Err(HarnessError::Unsupported("nothing is delivered".to_owned()))
    }

    async fn confirm(&self, _: &Session, _: &str, sent: &Delivered) -> Result<Delivered, HarnessError> {
        Ok(sent.clone())
    }

    async fn present(&self) -> Result<Option<String>, HarnessError> {
        Ok(Some("1".to_owned()))
    }

    async fn propose(&self, _: &Setup) -> Result<Plan, HarnessError> {
        Ok(Plan { edits: Vec::new(), next_steps: Vec::new() })
    }

    async fn check(&self, _: &Setup) -> Result<Vec<Finding>, HarnessError> {
        Ok(Vec::new())
    }

    fn optional(&self) -> OptionalInterfaces<'_> {
        OptionalInterfaces { runner: Some(self), ..OptionalInterfaces::default() }
    }

    async fn hook(&self, _: &HookCall, _: &mut dyn HookHost) -> Result<Reply, HarnessError> {
        Ok(Reply::default())
    }
}

/// The one harness of a test.
pub(super) struct Only(pub(super) Arc<Scripted>);

#[async_trait]
impl Harnesses for Only {
    fn names(&self) -> Vec<String> {
        vec![NAME.to_owned()]
    }

    async fn get(&self, name: &str) -> Result<Option<Arc<dyn Harness>>, HarnessError> {
        Ok((name == NAME).then(|| Arc::clone(&self.0) as Arc<dyn Harness>))
    }

    async fn candidates(&self, _: &Caller) -> Vec<Candidate> {
        Vec::new()
    }
}
