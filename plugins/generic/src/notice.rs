//! The only route to such a client is its user: a desktop notification.

use relay_mesh_sdk::push::{Carries, DeliveryStatus, Receipt, Route};
use relay_mesh_sdk::{Activity, Error, Mail, Priority, Push, Session, notices};

use crate::Generic;

impl Push for Generic {
    fn routes(_to: &Session) -> Result<Vec<Route>, Error> {
        Ok(vec![Route {
            name: "notification".into(),
            carries: Carries::Notification,
            proves: DeliveryStatus::Notified,
            when: vec![Activity::Idle, Activity::Busy],
            least: Priority::Normal,
            max_bytes: 0,
            timeout_ms: 0,
        }])
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        if route != "notification" {
            return Err(Error::NotFound(format!("an MCP client has no route named `{route}`")));
        }
        let folder = to.workdir.rsplit('/').find(|name| !name.is_empty());
        let at = folder.map_or_else(String::new, |folder| format!(" in {folder}"));
        notices::show(
            "relay-mesh",
            &format!("{} for your agent{at}. Ask it to read its messages.", notices::waiting(mail)),
        )?;
        Ok(Receipt::at(DeliveryStatus::Notified))
    }
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::{Fakes, mail};

    use super::*;

    #[test]
    fn a_notice_says_where_mail_waits_and_never_what_it_says() {
        let host = Fakes::default().desktop().start();
        let receipt = Generic::deliver(&Session::new("c1", "/home/u/app"), "notification", &mail("the secret"));
        assert_eq!(receipt, Ok(Receipt::at(DeliveryStatus::Notified)));
        let [(title, body)] = host.notices().try_into().expect("one notice");
        assert_eq!(
            (title.as_str(), body.as_str()),
            ("relay-mesh", "A message waits for your agent in app. Ask it to read its messages.",)
        );
    }

    #[test]
    fn without_a_desktop_the_route_says_so() {
        let _host = Fakes::default().start();
        let receipt = Generic::deliver(&Session::new("c1", "/"), "notification", &mail("x"));
        assert_eq!(receipt, Err(Error::Unsupported("there is no desktop".into())));
    }

    #[test]
    fn another_route_is_not_found() {
        let receipt = Generic::deliver(&Session::new("c1", "/"), "wake-file", &mail("x"));
        assert!(matches!(receipt, Err(Error::NotFound(_))), "{receipt:?}");
    }
}
