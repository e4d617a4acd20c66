//! The ledger of a driven agent: each prompt that was given and whose turn has not ended. An entry is written before the
//! frames, so that after a break the harness can be asked what became of it.

use serde::{Deserialize, Serialize};

use crate::names::MessageId;
use crate::ports::driver::PromptStatus;
use crate::ports::machine::Instant;

/// A prompt that was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenPrompt {
    /// The prompt's id, the same whenever it is given again.
    pub prompt: String,
    /// What it holds.
    pub content: PromptContent,
    /// When it was given.
    pub at: Instant,
    /// The last that the harness said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PromptStatus>,
}

/// What a prompt holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptContent {
    /// These messages, under this lease.
    Mail {
        messages: Vec<MessageId>,
        /// The id of the lease in the receipts.
        lease: String,
    },
    /// The request with the prompt's id.
    Request,
    /// A text of the host's own, which is not given again.
    Own,
}

/// What follows from what a harness says of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing yet.
    Open,
    /// It was shown: it is in the ledger no more.
    Shown,
    /// It never arrived: it is given again as if for the first time.
    Lost,
    /// Nobody knows. It is given again, marked as perhaps repeated, or under the same id if the harness takes that once.
    Unknown,
}

/// What follows from a status. `broke` is true after a break, when nothing more will be heard of a prompt that is only
/// known to have been taken; `once` if the harness takes a prompt of the same id once.
pub fn settle(status: PromptStatus, broke: bool, once: bool) -> Settled {
    match status {
        PromptStatus::Shown | PromptStatus::Answered => Settled::Shown,
        PromptStatus::Lost => Settled::Lost,
        PromptStatus::Unknown if once => Settled::Lost,
        PromptStatus::Unknown => Settled::Unknown,
        PromptStatus::Accepted if broke && once => Settled::Lost,
        PromptStatus::Accepted if broke => Settled::Unknown,
        PromptStatus::Accepted => Settled::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_shown_is_never_given_again_unmarked() {
        use PromptStatus::{Accepted, Answered, Lost, Shown, Unknown};
        let check = |status, broke, once, expected| assert_eq!(settle(status, broke, once), expected, "{status:?}");
        for (broke, once) in [(false, false), (true, false), (false, true), (true, true)] {
            check(Shown, broke, once, Settled::Shown);
            check(Answered, broke, once, Settled::Shown);
            check(Lost, broke, once, Settled::Lost);
        }
        check(Accepted, false, false, Settled::Open);
        check(Accepted, true, false, Settled::Unknown);
        check(Accepted, true, true, Settled::Lost);
        check(Unknown, true, false, Settled::Unknown);
        check(Unknown, true, true, Settled::Lost);
    }
}
