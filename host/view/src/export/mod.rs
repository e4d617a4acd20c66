//! A thread as one file that needs nothing else. What agents wrote stays text in it, whatever it is made of.

mod html;
mod markdown;

pub use html::html;
pub use markdown::markdown;

#[cfg(test)]
mod tests;
