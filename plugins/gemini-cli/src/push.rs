//! The routes to a session. Nothing wakes an idle one: Gemini CLI watches no file and listens on no socket. A busy
//! session gets its mail after a tool or at the end of its turn; for an idle one, a desktop notification tells the
//! user.

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
