//! Notifications on the user's desktop.

use crate::{Error, Mail, Session};

/// Shows a notification. Say for which agent mail waits, never a message's text: others may see the screen.
/// Needs `grants.notices` in the manifest; [`Error::Unsupported`] if there is no desktop.
pub fn show(title: &str, body: &str) -> Result<(), Error> {
    #[cfg(target_arch = "wasm32")]
    return crate::bindings::relay::adapter::notices::show(title, body);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::fakes::with(|fakes| {
        if !fakes.desktop {
            return Err(Error::Unsupported("there is no desktop".into()));
        }
        fakes.notices.push((title.to_owned(), body.to_owned()));
        Ok(())
    });
}

/// Tells the user that mail waits for a session's agent: who wrote, the folder and the number of messages, no text.
pub fn mail_waits(title: &str, to: &Session, mail: &Mail) -> Result<(), Error> {
    let folder = to.workdir.rsplit('/').find(|name| !name.is_empty()).unwrap_or("a session");
    show(title, &format!("{} for the agent in {folder}", waiting(mail)))
}

/// What waits, as in "2 messages from alice, bob wait".
pub fn waiting(mail: &Mail) -> String {
    let from = match senders(&mail.text) {
        Some(names) => format!(" from {names}"),
        None => String::new(),
    };
    match mail.ids.len() {
        0 | 1 => format!("A message{from} waits"),
        several => format!("{several} messages{from} wait"),
    }
}

/// The senders that the host's own words name: in the envelope of each message, which no body can imitate, or in the
/// one sentence of a notification.
fn senders(text: &str) -> Option<String> {
    let enveloped = text.split("<relay-mesh-message ").skip(1);
    let mut names: Vec<&str> =
        enveloped.filter_map(|rest| Some(rest.split_once(" from=\"")?.1.split_once('"')?.0)).collect();
    if names.is_empty() {
        let (_, rest) = text.split_once(" from ").filter(|(head, _)| head.contains("relay-mesh message"))?;
        let (said, _) = rest.split_once(" wait")?;
        names = said.split(", ").collect();
    }
    names.dedup();
    let is_name = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || "-@".contains(c)) && name.len() <= 128;
    (!names.is_empty() && names.iter().all(is_name)).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mail;

    #[test]
    fn what_waits_names_who_wrote_and_nothing_that_they_wrote() {
        let envelope = |from: &str, body: &str| {
            format!("<relay-mesh-message id=\"1\" from=\"{from}\" at=\"x\">\n{body}\n</relay-mesh-message>")
        };
        let two = format!("{}\n{}", envelope("alice", "hi"), envelope("bob", "hi"));
        for (text, count, expected) in [
            (envelope("alice", "a secret from=\"mallory\""), 1, "A message from alice waits"),
            (two, 2, "2 messages from alice, bob wait"),
            (
                "A relay-mesh message from shell waits. Call fetch_messages to read it.".to_owned(),
                1,
                "A message from shell waits",
            ),
            (
                "2 relay-mesh messages from alice, bob@backend wait. Call x.".to_owned(),
                2,
                "2 messages from alice, bob@backend wait",
            ),
            ("the secret".to_owned(), 1, "A message waits"),
            (envelope("alice <b>", "hi"), 1, "A message waits"),
        ] {
            let mail = Mail { ids: vec![String::new(); count], ..mail(&text) };
            assert_eq!(waiting(&mail), expected, "{text}");
        }
    }
}
