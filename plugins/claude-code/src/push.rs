//! The ways to a session. The bell file is rung by the host when it stores a message, and Claude
//! Code's own watch of it runs our FileChanged hook; so the first route only gives that some time.

use relay_mesh_sdk::push::{Load, Receipt, Route, Rung};
use relay_mesh_sdk::{Activity, Error, Mail, Push, Session, notices};

use crate::ClaudeCode;

/// Claude Code waits half a second until a file has settled; a busy session takes the news between
/// two tools.
const BELL_PATIENCE_MS: u32 = 5_000;

impl Push for ClaudeCode {
    fn routes(_to: &Session) -> Result<Vec<Route>, Error> {
        let bell = |name: &str, patience_ms| Route {
            name: name.into(),
            load: Load::Bell,
            proves: Rung::Offered,
            when: vec![Activity::Idle, Activity::Busy],
            room: 0,
            patience_ms,
        };
        Ok(vec![bell("bell", BELL_PATIENCE_MS), bell("notification", 0)])
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        match route {
            "bell" => Ok(Receipt::at(Rung::Offered)),
            "notification" => {
                let folder = to.workdir.rsplit('/').find(|name| !name.is_empty()).unwrap_or("a session");
                let waiting = match mail.ids.len() {
                    0 | 1 => "A message waits".to_owned(),
                    several => format!("{several} messages wait"),
                };
                notices::show("Claude Code", &format!("{waiting} for the agent in {folder}"))?;
                Ok(Receipt::at(Rung::Offered))
            }
            other => Err(Error::NotFound(format!("Claude Code has no route named `{other}`"))),
        }
    }
}
