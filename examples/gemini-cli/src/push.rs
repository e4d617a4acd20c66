//! The ways to a session. Nothing wakes one that waits: Gemini CLI watches no file and listens to nobody. A
//! session that works takes its mail after a tool or at the end of its turn; for one that waits, the person
//! is told.

use relay_mesh_sdk::push::{self, Receipt, Route};
use relay_mesh_sdk::{Error, Mail, Push, Session};

use crate::GeminiCli;

impl Push for GeminiCli {
    fn routes(_to: &Session) -> Result<Vec<Route>, Error> {
        Ok(vec![Route::notice()])
    }

    fn deliver(to: &Session, route: &str, mail: &Mail) -> Result<Receipt, Error> {
        push::deliver_notice("Gemini CLI", to, route, mail)
    }
}
