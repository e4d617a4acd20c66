//! The ways to a conversation. Nothing wakes an idle one: Cursor watches no file and listens to nobody,
//! so mail waits for the next tool, the end of a turn or a fetch, and the person is told that it does.

use relay_mesh_sdk::push::{Receipt, Route, Rung};
use relay_mesh_sdk::{Activity, Error, Mail, Push, Session, notices};

use crate::Cursor;

impl Push for Cursor {
    fn routes(_to: &Session) -> Result<Vec<Route>, Error> {
        // A conversation that works takes its mail after the next tool; nobody has to be called.
        Ok(vec![Route { when: vec![Activity::Idle], ..Route::bell("notification", 0) }])
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        match route {
            "notification" => {
                notices::mail_waits("Cursor", to, mail)?;
                Ok(Receipt::at(Rung::Offered))
            }
            other => Err(Error::NotFound(format!("Cursor has no route named `{other}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::{Fakes, mail};

    use super::*;

    #[test]
    fn the_person_is_told_where_mail_waits_and_never_what_it_says() {
        let lent = Fakes::default().desktop().lend();
        let receipt = Cursor::deliver(&Session::new("c1", "/home/u/app"), "notification", &mail("the secret"));
        assert_eq!(receipt, Ok(Receipt::at(Rung::Offered)));
        assert_eq!(lent.notices(), [("Cursor".to_owned(), "A message waits for the agent in app".to_owned())]);
        assert!(matches!(Cursor::deliver(&Session::new("c1", "/"), "bell", &mail("x")), Err(Error::NotFound(_))));
    }
}
