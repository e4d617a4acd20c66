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

/// Tells the user that mail waits for a session's agent: the folder and the number of messages, no text.
pub fn mail_waits(title: &str, to: &Session, mail: &Mail) -> Result<(), Error> {
    let folder = to.workdir.rsplit('/').find(|name| !name.is_empty()).unwrap_or("a session");
    let waiting = match mail.ids.len() {
        0 | 1 => "A message waits".to_owned(),
        several => format!("{several} messages wait"),
    };
    show(title, &format!("{waiting} for the agent in {folder}"))
}
