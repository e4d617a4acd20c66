//! What an agent is told about the mesh, and when.

use crate::{Error, Occasion};

/// Fits the host's protocol text to a harness. By default the agent gets it unchanged, on every occasion.
pub trait Context {
    /// Returns the text for an occasion, made from the host's text; none says nothing. `agent` is the name
    /// that the session is registered under, which the host's text already contains.
    fn protocol(base: String, occasion: Occasion, agent: Option<&str>) -> Result<Option<String>, Error> {
        let _ = (occasion, agent);
        Ok(Some(base))
    }
}
