//! Who an adapter is for.

pub use crate::bindings::exports::relay::adapter::identity::About;

/// Names the harness that this adapter is for. The only trait without defaults.
pub trait Identity {
    /// Returns the harness's name, its title, and whether one MCP connection carries one session.
    fn describe() -> About;
}
