//! Which groups of tools a server shows.

/// The tools that a client is shown. What is not shown cannot be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Finding one another and exchanging messages: what every agent needs, in under 1,000 tokens.
    #[default]
    Core,
}
