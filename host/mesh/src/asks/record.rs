//! The record of a question to the user.

use serde::{Deserialize, Serialize};

use crate::driven::WantedAgent;
use crate::names::{AgentName, MessageId};
use crate::ports::driver::{Operation, UserAnswer};
use crate::ports::machine::{Instant, Process};
use crate::ports::runner::Reach;
use crate::sessions::{Principal, SessionRef};

/// Longest question, reason and answer in the asker's or the user's own words, in bytes.
pub const LONGEST_QUESTION: usize = 8 * 1024;
/// Longest operation that a harness wants approved, in bytes. It is shown whole.
pub const LONGEST_OPERATION: usize = 256 * 1024;
/// Most choices of one question.
pub const MOST_CHOICES: usize = 20;
/// Longest id and longest label of a choice, in bytes.
pub const LONGEST_LABEL: usize = 200;
/// The shortest time that a question can wait, in milliseconds.
pub const SHORTEST_PATIENCE: u64 = 1_000;
/// The longest time that a question can wait, in milliseconds: a day.
pub const LONGEST_PATIENCE: u64 = 24 * 3_600_000;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedBy {
    /// The agent; none if the asker has not joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The harness, by its adapter's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
}

impl From<&Principal> for AskedBy {
    fn from(caller: &Principal) -> AskedBy {
        let session = caller.session().cloned();
        let harness = session.as_ref().map(|session| session.harness.clone());
        AskedBy { agent: caller.agent().cloned(), harness, session }
    }
}

/// What the user's consent is wanted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "for")]
pub enum ConsentFor {
    /// An agent that shall be started and driven.
    Spawn(Box<WantedAgent>),
    Run {
        /// The harness to run.
        harness: String,
        /// With this reach.
        reach: Reach,
        task: String,
    },
    /// A command in the session of another agent.
    Command {
        /// The command's id.
        id: MessageId,
        /// The agent in whose session it would run.
        to: AgentName,
        /// The whole command line.
        line: String,
    },
}

/// Messages that the loop guard holds back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLoop {
    /// The agent that they do not wake.
    pub to: AgentName,
    /// Who wrote the last one.
    pub from: AgentName,
    /// The first message of their chain.
    pub chain: MessageId,
    /// How many messages the chain has since the user's last prompt.
    pub messages: u32,
    /// Why the loop guard holds them.
    pub why: String,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "what")]
pub enum AskKind {
    /// Whether a harness may do something.
    Approval(Operation),
    /// A question in the asker's own words.
    Question(String),
    /// Whether an agent may do what the user has not allowed it.
    Consent(ConsentFor),
    /// Whether agents that keep waking each other may go on.
    HeldLoop(HeldLoop),
}

impl AskKind {
    /// What is asked, whole, in one text.
    pub fn text(&self) -> String {
        match self {
            AskKind::Approval(Operation::Command(line)) => format!("run: {line}"),
            AskKind::Approval(Operation::Files(paths)) => format!("change: {}", paths.join(", ")),
            AskKind::Approval(Operation::Tool(name, arguments)) => format!("use the tool {name}: {arguments}"),
            AskKind::Approval(Operation::Other(text)) | AskKind::Question(text) => text.clone(),
            AskKind::Consent(ConsentFor::Spawn(wanted)) => wanted.to_string(),
            AskKind::Consent(ConsentFor::Run { harness, reach, task }) => {
                format!("start a run of {harness} with the reach `{}`: {task}", reach.as_str())
            }
            AskKind::Consent(ConsentFor::Command { to, line, .. }) => format!("run in the session of {to}: {line}"),
            AskKind::HeldLoop(held) => {
                format!("let {} and {} go on: {}", held.from, held.to, held.why)
            }
        }
    }
}

/// A question that is to be put to the user.
#[derive(Clone, Debug)]
pub struct NewAsk {
    /// Who asks.
    pub by: AskedBy,
    pub what: AskKind,
    /// Why, in the asker's words.
    pub reason: Option<String>,
    /// What can be chosen: id and label.
    pub choices: Vec<(String, String)>,
    /// How long it waits, in milliseconds; by default as long as the user's settings say. Then it counts as refused.
    pub patience: Option<u64>,
    /// What makes it the same question if it is asked again, for example after a reconnect. Never shown.
    pub same_as: Option<String>,
    /// The process that waits for the answer. Once it has ended, no answer is needed any more.
    pub process: Option<Process>,
    /// Whether the asking agent gets the answer as a message, because nobody waits for it.
    pub by_mail: bool,
}

impl NewAsk {
    /// A question that waits as long as the settings say, with nothing to choose from.
    pub fn new(by: AskedBy, what: AskKind) -> NewAsk {
        NewAsk {
            by,
            what,
            reason: None,
            choices: Vec::new(),
            patience: None,
            same_as: None,
            process: None,
            by_mail: false,
        }
    }

    /// A question in the asker's own words. A choice is known by its text.
    pub fn question(by: AskedBy, text: String, choices: impl IntoIterator<Item = String>) -> NewAsk {
        let choices = choices.into_iter().map(|choice| (choice.trim().to_owned(), String::new())).collect();
        NewAsk { choices, ..NewAsk::new(by, AskKind::Question(text)) }
    }
}

/// How far a question is. It changes once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum AskStage {
    /// It waits.
    Open,
    /// The user has answered. Written by the first answer.
    Answered {
        at: Instant,
        answer: UserAnswer,
        /// Where it was given, as text for the user.
        via: String,
    },
    /// It was answered elsewhere, or no answer is needed any more.
    Settled { at: Instant, why: String },
}

/// A question to the user, stored under `asks/`, only in the local store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub id: MessageId,
    /// Who asks.
    pub by: AskedBy,
    pub what: AskKind,
    /// Why, in the asker's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can be chosen: id and label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<(String, String)>,
    /// When it was asked.
    pub at: Instant,
    /// Until when it can be answered. From then on it counts as refused.
    pub until: Instant,
    /// The process that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Whether the asking agent gets the answer as a message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_mail: bool,
    /// Whether what its end sets off in the mesh has been done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) done: bool,
    /// The last segment of its key.
    pub(crate) slot: String,
    /// How far it is.
    pub stage: AskStage,
}

/// A question's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskStatus {
    /// It waits for the user.
    Open,
    /// The user has answered.
    Answered,
    /// It was answered elsewhere, or nobody has to any more.
    Settled,
    /// No answer came in time, so it counts as refused.
    Expired,
}

impl AskStatus {
    /// The word in output and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            AskStatus::Open => "open",
            AskStatus::Answered => "answered",
            AskStatus::Settled => "settled",
            AskStatus::Expired => "expired",
        }
    }
}

/// What became of a question that somebody waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum AskOutcome {
    /// The user has answered.
    Answered(UserAnswer),
    /// It was answered elsewhere, or nobody has to any more.
    Settled,
    /// No answer came in time: it is refused, not cancelled.
    Expired,
}

impl Ask {
    /// Whether what follows from its answer has been done.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Its status at a time.
    pub fn status(&self, now: Instant) -> AskStatus {
        match &self.stage {
            AskStage::Open if now >= self.until => AskStatus::Expired,
            AskStage::Open => AskStatus::Open,
            AskStage::Answered { .. } => AskStatus::Answered,
            AskStage::Settled { .. } => AskStatus::Settled,
        }
    }

    /// The answer, if there is one.
    pub fn answer(&self) -> Option<&UserAnswer> {
        match &self.stage {
            AskStage::Answered { answer, .. } => Some(answer),
            AskStage::Open | AskStage::Settled { .. } => None,
        }
    }

    /// When nothing about it could change any more.
    pub(crate) fn over_since(&self) -> Instant {
        match &self.stage {
            AskStage::Open => self.until,
            AskStage::Answered { at, .. } | AskStage::Settled { at, .. } => *at,
        }
    }

    /// What the user can answer, in the words of the command line.
    pub fn offers(&self) -> Vec<String> {
        let plain: &[&str] = match &self.what {
            AskKind::Approval(_) => &["allow", "allow-session", "refuse", "stop"],
            AskKind::Consent(_) | AskKind::HeldLoop(_) => &["allow", "refuse"],
            AskKind::Question(_) if self.choices.is_empty() => &["TEXT", "refuse"],
            AskKind::Question(_) => &["refuse"],
        };
        let choices = self.choices.iter().map(|(id, _)| id.clone());
        choices.chain(plain.iter().map(|word| (*word).to_owned())).collect()
    }

    /// Whether it can be answered so.
    pub(crate) fn takes(&self, answer: &UserAnswer) -> bool {
        match (&self.what, answer) {
            (_, UserAnswer::Refuse(_))
            | (AskKind::Approval(_), UserAnswer::Allow | UserAnswer::AllowForSession | UserAnswer::Stop)
            | (AskKind::Consent(_) | AskKind::HeldLoop(_), UserAnswer::Allow) => true,
            // A form that a harness wants filled in.
            (AskKind::Approval(_), UserAnswer::Fill(value)) => value.is_object(),
            (_, UserAnswer::Choose(id)) => self.choices.iter().any(|(offered, _)| offered == id),
            (AskKind::Question(_), UserAnswer::Fill(value)) => self.choices.is_empty() && value.is_string(),
            (AskKind::Question(_), UserAnswer::Allow)
            | (
                AskKind::Question(_) | AskKind::Consent(_) | AskKind::HeldLoop(_),
                UserAnswer::AllowForSession | UserAnswer::Stop,
            )
            | (AskKind::Consent(_) | AskKind::HeldLoop(_), UserAnswer::Fill(_)) => false,
        }
    }
}

/// An answer as one types it.
pub fn answer_text(answer: &UserAnswer) -> String {
    match answer {
        UserAnswer::Allow => "allow".to_owned(),
        UserAnswer::AllowForSession => "allow-session".to_owned(),
        UserAnswer::Refuse(why) if why.is_empty() => "refuse".to_owned(),
        UserAnswer::Refuse(why) => format!("refuse {why}"),
        UserAnswer::Stop => "stop".to_owned(),
        UserAnswer::Choose(id) => id.clone(),
        UserAnswer::Fill(serde_json::Value::String(text)) => text.clone(),
        UserAnswer::Fill(value) => value.to_string(),
    }
}
