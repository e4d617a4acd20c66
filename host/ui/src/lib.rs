//! The terminal view: draws the view model of the crate `view` and makes presses of keys and mouse.
//!
//! It decides nothing: what is chosen, what can be done and what a press changes is the model's. It never sees the mesh
//! and never waits for it: news come over a channel from the reader of the mesh, and what has to be done outside goes back
//! over another. Two threads belong to it: one waits for the terminal, one for news and draws. While neither has anything,
//! nothing runs.

mod areas;
mod draw;
mod keys;
mod palette;
mod show;
mod terminal;
mod text;

pub use areas::{Areas, areas};
pub use draw::{Screen, draw};
pub use keys::presses;
pub use palette::Palette;
pub use show::{NewsSender, View};
pub use terminal::restore;
pub use text::{cut, wrapped};
