//! What an agent is told about the mesh, and when.

use crate::{Error, Moment};

/// Fits the host's protocol text to a harness. By default it is said as it is, whenever asked.
pub trait Context {
    /// Makes the text for a moment from the host's own. `agent` is the name that the session is
    /// registered under, which the host's text already says.
    fn protocol(base: String, moment: Moment, agent: Option<&str>) -> Result<Option<String>, Error> {
        let _ = (moment, agent);
        Ok(Some(base))
    }
}
