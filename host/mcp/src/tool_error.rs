//! Tool errors: one sentence, and what to do next. A model reads them.

use std::error::Error;

use mesh::messages::InvalidDraft;
use mesh::messages::channel::{ChannelError, InvalidChannel};
use mesh::names::AgentName;
use mesh::reasons;
use mesh::reservations::repository::PlaceError;
use mesh::{
    AckError, AddressError, AskError, BindError, FetchError, FindError, FinishError, IdError, IdentifyError,
    OrderError, RegisterError, ReleaseError, ReserveError, SendError, StatusError, TakeError,
};
use rmcp::model::{CallToolResult, ContentBlock};

/// A tool's error, as the client is told it.
#[derive(Debug)]
pub(crate) struct ToolError {
    /// What is wrong, without a final full stop.
    what: String,
    /// What to do next, as a sentence.
    next: Option<String>,
}

impl ToolError {
    pub(crate) fn new(what: impl Into<String>, next: impl Into<String>) -> ToolError {
        ToolError { what: what.into(), next: Some(next.into()) }
    }

    /// The caller is not registered.
    pub(crate) fn not_registered() -> ToolError {
        ToolError::new("you have not registered", "Call register_agent first.")
    }

    /// The text for the client.
    pub(crate) fn text(&self) -> String {
        match &self.next {
            Some(next) => format!("{}. {next}", self.what),
            None => format!("{}.", self.what),
        }
    }

    /// The error as a tool's result.
    pub(crate) fn into_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.text())])
    }

    fn of(error: &dyn Error, next: impl Into<String>) -> ToolError {
        ToolError::new(reasons(error), next)
    }
}

const AGAIN: &str = "Try again; if it fails again, your user can run `relay-mesh doctor`.";

impl From<AddressError> for ToolError {
    fn from(error: AddressError) -> ToolError {
        let next = match &error {
            AddressError::Invalid(mesh::names::InvalidName::Reserved(_)) => {
                "shell has no inbox: a message from it was sent on a command line that speaks for no agent.".to_owned()
            }
            AddressError::Invalid(_) => "list_agents shows the names.".to_owned(),
            AddressError::Unknown { near, .. } if near.is_empty() => "list_agents shows who is here.".to_owned(),
            AddressError::Unknown { near, .. } => format!("Did you mean {}?", one_of(near)),
            AddressError::Ambiguous { candidates, .. } => format!("Write {}.", one_of(candidates)),
            AddressError::Store(_) => AGAIN.to_owned(),
        };
        ToolError::of(&error, next)
    }
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> ToolError {
        let next = match &error {
            AskError::Empty => "Put it into question.",
            AskError::TooLong { .. } => "Ask in fewer words; name a file for the rest.",
            AskError::Control { .. } => "Write plain text.",
            AskError::Choices(_) => "Give fewer choices, or none.",
            AskError::Choice(_) => "Give each choice a text of its own.",
            AskError::TooMany(_) => "Wait for the answers.",
            AskError::Patience | AskError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<InvalidDraft> for ToolError {
    fn from(error: InvalidDraft) -> ToolError {
        let next = match &error {
            InvalidDraft::Empty => "Put the text into body.",
            InvalidDraft::EmptyKey => "Leave idempotency_key out, or give each message a key of its own.",
            InvalidDraft::BodyTooLong { .. } => "Write it to a file and send the path, or send it in parts.",
            InvalidDraft::LabelTooLong { .. } => "Make it shorter; the body has room.",
            InvalidDraft::TooManyTags(_) => "Leave some out.",
        };
        ToolError::of(&error, next)
    }
}

impl From<SendError> for ToolError {
    fn from(error: SendError) -> ToolError {
        match error {
            SendError::Draft(draft) => draft.into(),
            SendError::Address(address) => address.into(),
            SendError::NotRegistered => ToolError::not_registered(),
            SendError::Nobody | SendError::NobodyElse => ToolError::of(&error, "list_agents shows who is here."),
            SendError::Channel(channel) => channel.into(),
            SendError::EmptyChannel(_) => ToolError::of(&error, "Nothing was sent. Send to agents by name."),
            SendError::UnknownReply(_) => {
                ToolError::of(&error, "Take reply_to from a message that you got, or leave it out.")
            }
            SendError::OtherUnderKey { ref stored, .. } => {
                let for_some = match stored.as_slice() {
                    [] => "Nothing was stored.".to_owned(),
                    some => format!("It was stored for {} alone.", all_of(some)),
                };
                ToolError::of(&error, format!("{for_some} Give the new message a key of its own."))
            }
            SendError::Store { ref stored, .. } if !stored.is_empty() => {
                let next = format!("It was stored for {}; send it to the others again.", all_of(stored));
                ToolError::of(&error, next)
            }
            SendError::ChannelOutOfReach { .. } => {
                ToolError::of(&error, "Send to agents by name: that waits here until the servers can be reached.")
            }
            SendError::Store { .. } | SendError::Unreadable(_) | SendError::NotQueued(_) => {
                ToolError::of(&error, AGAIN)
            }
        }
    }
}

impl From<InvalidChannel> for ToolError {
    fn from(error: InvalidChannel) -> ToolError {
        ToolError::of(&error, "Write it as #name.")
    }
}

impl From<ChannelError> for ToolError {
    fn from(error: ChannelError) -> ToolError {
        let next = match &error {
            ChannelError::TooMany(_) => "Leave one first.",
            ChannelError::Unknown(_) => "Call register_agent first.",
            ChannelError::Elsewhere { .. } => "Only its own machine can change that.",
            ChannelError::Store(_) => "Try again.",
        };
        ToolError::of(&error, next)
    }
}

impl From<RegisterError> for ToolError {
    fn from(error: RegisterError) -> ToolError {
        let next = match &error {
            RegisterError::Name(_) => "Choose another one.",
            RegisterError::TwoTeams { .. } => "Leave team out, or give a name without @.",
            RegisterError::TooLong { .. } | RegisterError::TooManySkills(_) => "Make it shorter.",
            RegisterError::Crowded(_) => "Choose another name.",
            RegisterError::Contended(_) => "Try again, or choose another name.",
            RegisterError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<BindError> for ToolError {
    fn from(error: BindError) -> ToolError {
        let next = match &error {
            BindError::Nothing => {
                "Your harness names no session, which is fine: fetch_messages with wait_seconds waits for mail."
            }
            BindError::Unproven(_) => {
                "Leave session_id and harness out, so that your session is detected; a hook of your harness can prove \
                 another one."
            }
            BindError::Taken { .. } => "Call register_agent to join under a name of your own.",
            BindError::UnknownHarness(_) => "Leave harness out.",
            BindError::Ticket(_) => "Leave the argument `_relay` to the hooks of your harness.",
            BindError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<IdentifyError> for ToolError {
    fn from(error: IdentifyError) -> ToolError {
        let next = match &error {
            IdentifyError::Ticket(_) => {
                "Leave the argument `_relay` to the hooks of your harness; if it comes from one, install it anew."
            }
            IdentifyError::Key => "Pass the agent_key that register_agent gave you, or register again without one.",
            IdentifyError::NotYours(_) | IdentifyError::Elsewhere { .. } | IdentifyError::Unknown(_) => {
                "Call register_agent first."
            }
            IdentifyError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<IdError> for ToolError {
    fn from(error: IdError) -> ToolError {
        let next = match &error {
            IdError::Invalid(_) | IdError::Unknown(_) => "Copy it from a message.",
            IdError::Ambiguous { .. } => "Write more of it.",
            IdError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<AckError> for ToolError {
    fn from(error: AckError) -> ToolError {
        let next = match &error {
            AckError::Unknown { .. } => "Nothing was acknowledged; take the ids from messages that you got.",
            AckError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<StatusError> for ToolError {
    fn from(error: StatusError) -> ToolError {
        let next = match &error {
            StatusError::Unknown(_) | StatusError::Nowhere(_) => "Use the id that send_message gave you.",
            StatusError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<PlaceError> for ToolError {
    fn from(error: PlaceError) -> ToolError {
        let next = match &error {
            PlaceError::Glob(_) => "Write it as `src/parser/**` or `*.{rs,toml}`.",
            PlaceError::Outside { .. } => "Pass the folder of another repository in repo.",
            PlaceError::OfItsOwn { .. } => "Pass that folder in repo; patterns then start there.",
            PlaceError::Unseen { .. } => "Check that the folder exists and can be read.",
        };
        ToolError::of(&error, next)
    }
}

impl From<ReserveError> for ToolError {
    fn from(error: ReserveError) -> ToolError {
        let next = match &error {
            ReserveError::NotRegistered => return ToolError::not_registered(),
            ReserveError::Nothing => "Name at least one pattern.",
            ReserveError::ReasonTooLong(_) => "Make it shorter.",
            ReserveError::Full => "Reserve by patterns, and release what you do not need.",
            ReserveError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<ReleaseError> for ToolError {
    fn from(error: ReleaseError) -> ToolError {
        let next = match &error {
            ReleaseError::NotRegistered => return ToolError::not_registered(),
            ReleaseError::NotYours { .. } => "Ask its holder by send_message.",
            ReleaseError::NotReserved(_) => "list_reservations shows what is reserved.",
            ReleaseError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<OrderError> for ToolError {
    fn from(error: OrderError) -> ToolError {
        let next = match error {
            OrderError::NotRegistered => return ToolError::not_registered(),
            OrderError::Address(error) => return error.into(),
            OrderError::TooLong(_) => "Put what is longer into a file, and name its path.",
            OrderError::Ttl => "Pass minutes between 1 and 10080.",
            OrderError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<TakeError> for ToolError {
    fn from(error: TakeError) -> ToolError {
        match &error {
            TakeError::NotRegistered => ToolError::not_registered(),
            TakeError::Store(_) => ToolError::of(&error, AGAIN),
        }
    }
}

impl From<FinishError> for ToolError {
    fn from(error: FinishError) -> ToolError {
        let next = match &error {
            FinishError::NotRegistered => return ToolError::not_registered(),
            FinishError::Unknown(_) => "Use the id that take_command gave you.",
            FinishError::Runs { .. } => "Leave it: command_status shows what becomes of it.",
            FinishError::NotTaken(_) => "Call take_command first.",
            FinishError::Ended(_) => "Its result stays; send a message if there is more to say.",
            FinishError::TooLong(_) => "Put it into a file, and give its path.",
            FinishError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<FetchError> for ToolError {
    fn from(error: FetchError) -> ToolError {
        let next = match error {
            FetchError::Unknown { .. } => "Take the id from a message that you got.",
            FetchError::Store(_) => AGAIN,
        };
        ToolError::of(&error, next)
    }
}

impl From<FindError> for ToolError {
    fn from(error: FindError) -> ToolError {
        match error {
            FindError::Store(_) => ToolError::of(&error, AGAIN),
        }
    }
}

fn one_of(names: &[AgentName]) -> String {
    listed(names, "or")
}

fn all_of(names: &[AgentName]) -> String {
    listed(names, "and")
}

fn listed(names: &[AgentName], last: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "no agent".to_owned(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
