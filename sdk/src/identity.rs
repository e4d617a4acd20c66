//! Who an adapter is for.

pub use crate::bindings::exports::relay::adapter::identity::About;

/// Who this adapter is for. The only trait without a default: everything else can be left out.
pub trait Identity {
    /// Says the harness's name, its title, and whether one MCP connection carries one session.
    fn describe() -> About;
}
