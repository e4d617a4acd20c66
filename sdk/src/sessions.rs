//! Which session makes a call, and which sessions are alive.

pub use crate::bindings::exports::relay::adapter::sessions::{Caller, Certainty, Detection, Transport};
use crate::{Activity, Error, Session};

/// Identifies sessions. By default none, so the host knows the caller only by tickets and connections.
///
/// ```
/// use relay_mesh_sdk::sessions::{Detection, Caller};
/// use relay_mesh_sdk::{Error, Session, Sessions};
///
/// struct Toad;
///
/// impl Sessions for Toad {
///     /// Our process inherited the session id from the harness, which may have moved on since.
///     fn detect(seen: &Caller) -> Result<Option<Detection>, Error> {
///         let Some(id) = seen.variable("TOAD_SESSION") else { return Ok(None) };
///         Ok(Some(Detection::inherited(Session::new(id, seen.workdir.as_deref().unwrap_or_default()))))
///     }
/// }
/// ```
pub trait Sessions {
    /// The session that made a call. Answer [`Certainty::Certain`] only if this very call proves it; what our
    /// process's environment says is [`Certainty::Inherited`].
    fn detect(seen: &Caller) -> Result<Option<Detection>, Error> {
        let _ = seen;
        Ok(None)
    }

    /// The live sessions, if the harness keeps a list of them.
    fn discover() -> Result<Vec<Session>, Error> {
        Err(Error::Unsupported("this harness keeps no list of its sessions".into()))
    }

    /// What a session does now, if the harness can be asked.
    fn activity_of(id: &str) -> Result<Activity, Error> {
        let _ = id;
        Err(Error::Unsupported("this harness cannot be asked what a session does".into()))
    }
}

impl Detection {
    /// A session that this call proves.
    pub fn certain(session: Session) -> Detection {
        Detection { session, certainty: Certainty::Certain }
    }

    /// A session that the process that started us passed down.
    pub fn inherited(session: Session) -> Detection {
        Detection { session, certainty: Certainty::Inherited }
    }
}

impl Caller {
    /// A variable of the harness's process; none if it is empty or did not reach us.
    pub fn variable(&self, name: &str) -> Option<&str> {
        crate::variable(&self.environment, name)
    }
}
