//! Brings messages to a session.

pub use crate::bindings::exports::relay::adapter::push::{Carries, DeliveryStatus, Receipt, Route};
use crate::{Activity, Error, Mail, Priority, Session, notices};

/// The routes to a session. By default there are none, and mail waits for a hook or for the agent to read it.
pub trait Push {
    /// The routes, in the order to try.
    fn routes(to: &Session) -> Result<Vec<Route>, Error> {
        let _ = to;
        Ok(Vec::new())
    }

    /// Sends a message, or the notification that one waits, by a route from [`Push::routes`].
    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        let _ = (to, mail);
        Err(Error::Unsupported(format!("there is no route named `{route}`")))
    }

    /// Checks how far a delivery has come. By default no further than `deliver` said.
    fn confirm(to: &Session, route: &str, sent: Receipt) -> Result<Receipt, Error> {
        let _ = (to, route);
        Ok(sent)
    }
}

impl Receipt {
    /// A receipt with this status and no evidence.
    pub fn at(status: DeliveryStatus) -> Receipt {
        Receipt { status, evidence: None }
    }
}

impl Route {
    /// A notification for an idle or busy session. It proves no more than that it was sent.
    pub fn notification(name: &str, timeout_ms: u32) -> Route {
        Route {
            name: name.into(),
            carries: Carries::Notification,
            proves: DeliveryStatus::Notified,
            when: vec![Activity::Idle, Activity::Busy],
            least: Priority::Normal,
            max_bytes: 0,
            timeout_ms,
        }
    }

    /// The last route for an idle session: a desktop notification tells the user that mail waits. A busy
    /// session gets its mail from a hook.
    pub fn notice() -> Route {
        Route { when: vec![Activity::Idle], ..Route::notification(NOTICE, 0) }
    }
}

/// The name of [`Route::notice`].
const NOTICE: &str = "notification";

/// Delivers by [`Route::notice`]: it shows the user which session of `title` has mail, and no text of it.
///
/// ```
/// use relay_mesh_sdk::push::{self, Receipt, DeliveryStatus};
/// use relay_mesh_sdk::{Session, testing::{Fakes, mail}};
///
/// let host = Fakes::default().desktop().start();
/// let to = Session::new("s1", "/home/u/app");
/// assert_eq!(push::deliver_notice("Toy", &to, "notification", &mail("the secret")), Ok(Receipt::at(DeliveryStatus::Notified)));
/// assert_eq!(host.notices(), [("Toy".to_owned(), "A message waits for the agent in app".to_owned())]);
/// assert!(push::deliver_notice("Toy", &to, "wake-file", &mail("x")).is_err());
/// ```
pub fn deliver_notice(title: &str, to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
    if route != NOTICE {
        return Err(Error::NotFound(format!("{title} has no route named `{route}`")));
    }
    notices::mail_waits(title, to, mail)?;
    Ok(Receipt::at(DeliveryStatus::Notified))
}
