//! What a person watches and works in, without a terminal and without the mesh: what was last read, what is chosen of it,
//! what can be done with that, and what a key press changes.
//!
//! [`Live`] is the state. [`News`] comes in from the reader of the mesh, a [`Press`] from the terminal or the page, and what
//! has to be done outside comes back as an [`Effect`]. Nothing here does I/O or reads a clock, so that a terminal and a page
//! decide alike and each decision is a table in a test.

mod actions;
mod agents;
mod control;
mod delivery;
mod detail;
mod input_line;
mod news;
mod page;
mod press;
mod rows;
mod selection;
mod state;
mod typing;

pub use actions::{Action, Ready};
pub use agents::{AgentLine, AgentRow, Group};
pub use delivery::{Dot, TimeLine, TimeStep, time_line};
pub use detail::{Detail, DetailLine, SHOWN, Tone};
pub use input_line::InputLine;
pub use news::{LogRow, News, Overview, RunRow, StuckRow};
pub use page::{PageAgents, PageDetail, PageHit, PageList, PageLog, PageMessage, PageThread};
pub use press::{Edit, Effect, Press};
pub use rows::{Cell, Column, Row, Tab};
pub use selection::Selection;
pub use state::{Live, Middle, Note, OpenThread, Pane, SearchResult};
pub use typing::{Compose, Prompt, Typing};

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
