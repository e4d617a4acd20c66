//! The routes to a session. The host writes to the wake file when it stores a message, and Claude Code, which
//! watches that file, runs our FileChanged hook. So the first route only gives this some time.

use relay_mesh_sdk::push::{DeliveryStatus, Receipt, Route};
use relay_mesh_sdk::{Error, Mail, Push, Session, notices};

use crate::ClaudeCode;

/// Claude Code waits half a second until a file has settled. A busy session gets the notification between two
/// tools.
const WAKE_FILE_TIMEOUT_MS: u32 = 5_000;

impl Push for ClaudeCode {
    fn routes(_to: &Session) -> Result<Vec<Route>, Error> {
        Ok(vec![Route::notification("wake-file", WAKE_FILE_TIMEOUT_MS), Route::notification("notification", 0)])
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        match route {
            "wake-file" => Ok(Receipt::at(DeliveryStatus::Notified)),
            "notification" => {
                notices::mail_waits("Claude Code", to, mail)?;
                Ok(Receipt::at(DeliveryStatus::Notified))
            }
            other => Err(Error::NotFound(format!("Claude Code has no route named `{other}`"))),
        }
    }
}
