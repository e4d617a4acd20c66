//! Bringing a message to a session.

pub use crate::bindings::exports::relay::adapter::push::{Load, Receipt, Route, Rung};
use crate::{Activity, Error, Mail, Priority, Session, notices};

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
            least: Priority::Normal,
            room: 0,
            patience_ms,
        }
    }

    /// The last route for a session that nothing wakes: its person is told that mail waits. One that works
    /// takes its mail from a hook, so nobody has to be called.
    pub fn notice() -> Route {
        Route { when: vec![Activity::Idle], ..Route::bell(NOTICE, 0) }
    }
}

/// The name of the route that [`Route::notice`] makes.
const NOTICE: &str = "notification";

/// Delivers by that route: the person reads which session of `title` has mail, and never what it says.
///
/// ```
/// use relay_mesh_sdk::push::{self, Receipt, Rung};
/// use relay_mesh_sdk::{Session, testing::{Fakes, mail}};
///
/// let lent = Fakes::default().desktop().lend();
/// let to = Session::new("s1", "/home/u/app");
/// assert_eq!(push::deliver_notice("Toy", &to, "notification", &mail("the secret")), Ok(Receipt::at(Rung::Offered)));
/// assert_eq!(lent.notices(), [("Toy".to_owned(), "A message waits for the agent in app".to_owned())]);
/// assert!(push::deliver_notice("Toy", &to, "bell", &mail("x")).is_err());
/// ```
pub fn deliver_notice(title: &str, to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
    if route != NOTICE {
        return Err(Error::NotFound(format!("{title} has no route named `{route}`")));
    }
    notices::mail_waits(title, to, mail)?;
    Ok(Receipt::at(Rung::Offered))
}
