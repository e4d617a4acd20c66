//! Sessions of harnesses.

use mesh::sessions::SessionRef;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

// A session of a harness.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SessionRefView {
    pub harness: String,
    pub session_id: String,
}

impl From<SessionRef> for SessionRefView {
    fn from(session: SessionRef) -> SessionRefView {
        SessionRefView { harness: session.harness, session_id: session.id }
    }
}
