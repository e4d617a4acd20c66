//! The routes to a conversation. Nothing wakes an idle one, because Cursor watches no file and listens on no
//! socket. So mail waits for the next tool, the end of a turn or until the agent reads it, and a desktop
//! notification tells the user.

use relay_mesh_sdk::push::{self, Receipt, Route};
use relay_mesh_sdk::{Error, Mail, Push, Session};

use crate::Cursor;

impl Push for Cursor {
    fn routes(_to: &Session) -> Result<Vec<Route>, Error> {
        Ok(vec![Route::notice()])
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        push::deliver_notice("Cursor", to, route, mail)
    }
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::push::DeliveryStatus;
    use relay_mesh_sdk::testing::{Fakes, mail};

    use super::*;

    #[test]
    fn the_person_is_told_where_mail_waits_and_never_what_it_says() {
        let host = Fakes::default().desktop().start();
        let receipt = Cursor::deliver(&Session::new("c1", "/home/u/app"), "notification", &mail("the secret"));
        assert_eq!(receipt, Ok(Receipt::at(DeliveryStatus::Notified)));
        assert_eq!(host.notices(), [("Cursor".to_owned(), "A message waits for the agent in app".to_owned())]);
        assert!(matches!(Cursor::deliver(&Session::new("c1", "/"), "wake-file", &mail("x")), Err(Error::NotFound(_))));
    }
}
