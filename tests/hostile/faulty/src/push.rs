//! A route over HTTP that carries messages, and one for notifications that needs nothing.

use crate::exports::relay::adapter::push::{Guest, Carries, Receipt, Route, DeliveryStatus};
use crate::relay::adapter::http;
use crate::relay::adapter::types::{Activity, Error, Mail, Priority, Session};
use crate::{Faulty, is_wrong};

impl Guest for Faulty {
    fn routes(to: Session) -> Result<Vec<Route>, Error> {
        let route = |name: &str, carries, proves, max_bytes| Route {
            name: name.to_owned(),
            carries,
            proves,
            when: vec![Activity::Idle],
            least: Priority::Normal,
            max_bytes,
            timeout_ms: 100,
        };
        let wake_file = route("wake-file", Carries::Notification, DeliveryStatus::Notified, 0);
        if is_wrong("breaks-on-strange-hints") && to.route_hint.as_deref() == Some("not JSON") {
            panic!("a hint of another version");
        }
        let max_bytes = if is_wrong("offers-a-message-without-max-bytes") { 0 } else { 10_000 };
        Ok(match port(&to) {
            Some(_) if !is_wrong("forgets-its-route") => {
                vec![route("post", Carries::Message, DeliveryStatus::Accepted, max_bytes), wake_file]
            }
            Some(_) | None => vec![wake_file],
        })
    }

    fn deliver(to: Session, route: String, mail: Mail) -> Result<Receipt, Error> {
        let at = |status| Receipt { status, evidence: None };
        match route.as_str() {
            "wake-file" => Ok(at(DeliveryStatus::Notified)),
            "post" => {
                let mut body = mail.text.into_bytes();
                if is_wrong("cuts-messages") {
                    body.truncate(20);
                }
                let port = port(&to).ok_or_else(|| Error::NotFound("no port".to_owned()))?;
                let request = http::Request {
                    origin: "api".to_owned(),
                    values: vec![port.to_string()],
                    method: "POST".to_owned(),
                    path: "/take".to_owned(),
                    headers: Vec::new(),
                    body,
                };
                let response = match http::send(&request) {
                    Ok(response) => response,
                    Err(_) if is_wrong("claims-what-nobody-answered") => return Ok(at(DeliveryStatus::Accepted)),
                    Err(Error::Denied(_)) if is_wrong("keeps-quiet-about-grants") => {
                        return Err(Error::Failed("it did not work".to_owned()));
                    }
                    Err(Error::Denied(what)) if is_wrong("breaks-when-denied") => panic!("{what}"),
                    Err(error) => return Err(error),
                };
                match response.status {
                    200 if is_wrong("claims-more-than-its-route") => Ok(at(DeliveryStatus::Shown)),
                    200 => Ok(at(DeliveryStatus::Accepted)),
                    503 => Err(Error::Busy(100)),
                    _ if is_wrong("claims-what-was-refused") => Ok(at(DeliveryStatus::Accepted)),
                    status => Err(Error::Failed(format!("it answered {status}"))),
                }
            }
            _ if is_wrong("takes-every-route") => Ok(at(DeliveryStatus::Notified)),
            other => Err(Error::NotFound(format!("there is no route `{other}`"))),
        }
    }

    fn confirm(_to: Session, _route: String, sent: Receipt) -> Result<Receipt, Error> {
        Ok(sent)
    }
}

fn port(to: &Session) -> Option<u16> {
    to.route_hint.as_deref()?.parse().ok()
}
