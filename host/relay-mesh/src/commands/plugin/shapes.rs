//! The JSON that the plugin commands print. Names stay as they are once released.

use serde::Serialize;

use crate::render::Show;
use crate::setup::shapes::GrantLine;

/// What `install` and `update` print.
#[derive(Debug, Serialize)]
pub(super) struct Placed {
    /// The adapter.
    pub(super) adapter: String,
    /// `installed`, `updated`, `unchanged` or `declined`.
    pub(super) outcome: &'static str,
    /// Its version now.
    pub(super) version: String,
    /// The version before, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<String>,
    /// Digest of component and manifest.
    pub(super) digest: String,
    /// Everything that it asks for.
    pub(super) grants: Vec<GrantLine>,
}

/// What `grant` and `revoke` print.
#[derive(Debug, Serialize)]
pub(super) struct Granted {
    /// The adapter.
    pub(super) adapter: String,
    /// Digest of component and manifest, to which this belongs.
    pub(super) digest: String,
    /// Everything that it asks for.
    pub(super) grants: Vec<GrantLine>,
}

/// What `enable` and `disable` print.
#[derive(Debug, Serialize)]
pub(super) struct Stood {
    /// The adapter.
    pub(super) adapter: String,
    /// `enabled` or `disabled`.
    pub(super) state: &'static str,
    /// Whether that is news.
    pub(super) changed: bool,
}

/// What `remove` prints.
#[derive(Debug, Serialize)]
pub(super) struct Removed {
    /// The adapter.
    pub(super) adapter: String,
    /// Settings files of harnesses in which something of it may still be.
    pub(super) leftovers: Vec<String>,
}

/// The talk has been printed by then.
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
