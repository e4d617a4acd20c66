//! Questions to the user: what an agent, a driven harness or the mesh itself wants to know of the person at this machine.
//!
//! An ask never leaves the local store of its machine. The first answer wins, by a swap of its record, and what nobody
//! answers in time is refused.

mod about_agent;
pub(crate) mod about_command;
pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod held_loop;
pub(crate) mod list;
mod record;
pub(crate) mod retention;
pub(crate) mod wait;

pub use record::{
    Ask, AskKind, AskOutcome, AskStage, AskStatus, AskedBy, ConsentFor, HeldLoop, LONGEST_LABEL, LONGEST_OPERATION,
    LONGEST_PATIENCE, LONGEST_QUESTION, MOST_CHOICES, NewAsk, SHORTEST_PATIENCE, answer_text,
};
