//! Which session is speaking, and which are alive.

pub use crate::bindings::exports::relay::adapter::sessions::{Certainty, Detection, Sighting, Transport};
use crate::{Activity, Error, Session};

/// Tells sessions apart. By default nothing is recognised, so that only tickets and connections say
/// who speaks.
///
/// ```
/// use relay_mesh_sdk::sessions::{Detection, Sighting};
/// use relay_mesh_sdk::{Error, Session, Sessions};
///
/// struct Toad;
///
/// impl Sessions for Toad {
///     /// The process that the harness started inherited its session's id, which may be stale by now.
///     fn detect(seen: &Sighting) -> Result<Option<Detection>, Error> {
///         let Some(id) = seen.variable("TOAD_SESSION") else { return Ok(None) };
///         Ok(Some(Detection::inherited(Session::new(id, seen.workdir.as_deref().unwrap_or_default()))))
///     }
/// }
/// ```
pub trait Sessions {
    /// The session that a sighting shows. Answer [`Certainty::Certain`] only for what this very call
    /// proves; what the environment of our process says is [`Certainty::Inherited`].
    fn detect(seen: &Sighting) -> Result<Option<Detection>, Error> {
        let _ = seen;
        Ok(None)
    }

    /// The sessions that live now, where the harness keeps a list of them.
    fn discover() -> Result<Vec<Session>, Error> {
        Err(Error::Unsupported("this harness keeps no list of its sessions".into()))
    }

    /// What a session does now, where the harness can be asked.
    fn activity_of(id: &str) -> Result<Activity, Error> {
        let _ = id;
        Err(Error::Unsupported("this harness cannot be asked what a session does".into()))
    }
}

impl Detection {
    /// A session that this very call proves.
    pub fn certain(session: Session) -> Detection {
        Detection { session, certainty: Certainty::Certain }
    }

    /// A session that the process which spawned us handed down.
    pub fn inherited(session: Session) -> Detection {
        Detection { session, certainty: Certainty::Inherited }
    }
}

impl Sighting {
    /// A variable of the harness's process, where it reached us and is not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        crate::variable(&self.environment, name)
    }
}
