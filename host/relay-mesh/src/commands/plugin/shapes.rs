//! The JSON that the plugin commands print. Field names are frozen once released.

use adapters::PublisherKey;
use serde::Serialize;

use crate::render::Show;
use crate::setup::shapes::GrantLine;

/// What `install` and `update` print.
#[derive(Debug, Serialize)]
pub(super) struct Placed {
    pub(super) adapter: String,
    /// `installed`, `updated`, `unchanged` or `declined`.
    pub(super) outcome: &'static str,
    pub(super) version: String,
    /// The version that was installed before, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<String>,
    /// Digest of component and manifest.
    pub(super) digest: String,
    /// The keys that signed it; none if it is not signed.
    pub(super) publishers: Vec<PublisherKey>,
    /// Its requests, and whether each is granted.
    pub(super) grants: Vec<GrantLine>,
}

/// What `grant` and `revoke` print.
#[derive(Debug, Serialize)]
pub(super) struct Granted {
    pub(super) adapter: String,
    /// Digest of component and manifest, to which the grants belong.
    pub(super) digest: String,
    /// Its requests, and whether each is granted.
    pub(super) grants: Vec<GrantLine>,
}

/// What `enable` and `disable` print.
#[derive(Debug, Serialize)]
pub(super) struct Stood {
    pub(super) adapter: String,
    /// `enabled` or `disabled`.
    pub(super) state: &'static str,
    /// Whether the state was different before.
    pub(super) changed: bool,
}

/// What `remove` prints.
#[derive(Debug, Serialize)]
pub(super) struct Removed {
    pub(super) adapter: String,
    /// Settings files of harnesses that may still hold something of it.
    pub(super) leftovers: Vec<String>,
    /// Number of its sessions that ended with it.
    pub(super) sessions: usize,
}

/// As text these print nothing: the command has said everything by then.
macro_rules! says_nothing_more {
    ($($shape:ty),+) => {
        $(impl Show for $shape {
            fn text(&self) -> String {
                String::new()
            }
        })+
    };
}

says_nothing_more!(Placed, Granted, Stood, Removed);
