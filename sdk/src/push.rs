//! Bringing a message to a session.

pub use crate::bindings::exports::relay::adapter::push::{Load, Receipt, Route, Rung};
use crate::{Activity, Error, Mail, Session};

/// The ways to a session. By default there are none: mail waits for a hook or a fetch.
pub trait Push {
    /// The ways, in the order to try.
    fn routes(to: &Session) -> Result<Vec<Route>, Error> {
        let _ = to;
        Ok(Vec::new())
    }

    /// Sends mail, or the news of it, by a route that [`Push::routes`] named.
    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        let _ = (to, mail);
        Err(Error::Unsupported(format!("there is no route named `{route}`")))
    }

    /// Looks again at a delivery. By default nothing more is ever learned than at once.
    fn confirm(to: &Session, route: &str, sent: Receipt) -> Result<Receipt, Error> {
        let _ = (to, route);
        Ok(sent)
    }
}

impl Receipt {
    /// A rung without evidence.
    pub fn at(rung: Rung) -> Receipt {
        Receipt { rung, evidence: None }
    }
}

impl Route {
    /// A bell that may be rung for a session that waits or works, and whose ringing is all it proves.
    pub fn bell(name: &str, patience_ms: u32) -> Route {
        Route {
            name: name.into(),
            load: Load::Bell,
            proves: Rung::Offered,
            when: vec![Activity::Idle, Activity::Busy],
            room: 0,
            patience_ms,
        }
    }
}
