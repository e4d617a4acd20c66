//! The public shapes of what a mesh knows: agents, messages, delivery, reservations, commands and sessions.
//!
//! `--json` of the command line and the structured output of the MCP tools are promises to other
//! people's programs, so the mesh's own types are never serialised: each shape is defined here once,
//! and converted by hand. Nothing here does I/O or prints; the binary writes text for users, the MCP
//! server writes text for models. `live` is what a person watches and works in, without the terminal.
//!
//! A `…View` holds what an agent needs. A `…Detail` adds what only scripts ask for, so that the
//! tools stay small in a model's context.
//!
//! With the feature `schema` the views describe themselves to MCP clients: a `///` on a view or a field
//! is then in the tool list and costs context in every session. Notes for us are `//`.

mod agents;
mod asks;
mod commands;
mod conversations;
mod delivery;
pub mod export;
pub mod live;
mod messages;
mod reservations;
mod reviews;
mod runs;
mod sessions;
mod timestamp;
mod visible;
mod words;

pub use agents::{AgentDetail, AgentView, PresenceView, RegisteredView, RegistrationView};
pub use asks::{AskAnswerView, AskChoiceView, AskDetail, AskedByView};
pub use commands::{CommandDetail, CommandView};
pub use conversations::{PairView, SearchHitView, ThreadMessageView, ThreadSummaryView, ThreadView};
pub use delivery::{RecipientView, RefusedRouteView, SentToView, SentView, StatusView, StepView};
pub use messages::{MessageView, PriorityView};
pub use reservations::{ConflictView, ReservationDetail, ReservationView, ReserveOutcomeView, ReservedView};
pub use reviews::{FindingView, ReviewView, ReviewedFileView, ReviewerView};
pub use runs::{ArtifactsView, DenialView, RunView, StructuredView, UsageView, dollars};
pub use sessions::SessionRefView;
pub use timestamp::{Timestamp, rfc3339};
pub use visible::{visible, visible_line};
pub use words::{ago, counted, natural_order, span};

#[cfg(test)]
mod tests;
