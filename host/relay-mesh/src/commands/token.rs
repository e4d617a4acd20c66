//! `relay-mesh token`: print the token for clients over HTTP, once the server has proved whose it is.

use std::net::SocketAddr;

use serde::Serialize;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::render::Show;
use crate::server::{ServerRecord, token};
use crate::setup::doctor::server::{Heard, ask_for_proof};

/// Print the token for clients over HTTP, once the server has proved that it is yours
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  export RELAY_MESH_TOKEN=\"$(relay-mesh token)\"\n\n\
    Another user of this machine may listen at the port that your clients call. The server has to prove that it is the \
    one of your data folder first, without being shown the token (docs/adr/0025).")]
pub(crate) struct Args {
    /// The address that the clients call [that of the running server, else `http.listen` of the settings]
    #[arg(long, value_name = "ADDRESS:PORT")]
    at: Option<SocketAddr>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let dir = &context.settings.dir.value;
        let running = ServerRecord::find(dir, open.machine.as_ref())?.map(|record| record.listen);
        let set = || context.settings.listen.value.to_string();
        let address = self.at.map(|at| at.to_string()).or(running).unwrap_or_else(set);
        let heard = ask_for_proof(&address, dir, open.machine.as_ref()).await?;
        match (token::existing(dir)?, heard) {
            (Some(token), Heard::Ours(_)) => {
                context.printer.show(&TokenShape { address, token })?;
                Ok(Exit::Success)
            }
            // As for `ui --web`: nothing was refused.
            (_, Heard::Silence) => Err(failure(
                Exit::Failure,
                format!("no server runs at {address}"),
                "start it by `relay-mesh up`: only a server that runs can prove that it is yours",
            )),
            (_, Heard::Ours(_) | Heard::NotOurs | Heard::NoWay(_) | Heard::Strange(_)) => Err(failure(
                Exit::Refused,
                format!("what listens at {address} does not prove that it is the server of this data folder"),
                "`relay-mesh doctor` says what is there; start yours by `relay-mesh up --http 127.0.0.1:PORT`",
            )),
        }
    }
}

fn failure(exit: Exit, what: String, hint: &str) -> CommandError {
    Failure { what, hint: Some(hint.to_owned()), exit, source: None }.into()
}

#[derive(Debug, Serialize)]
struct TokenShape {
    address: String,
    token: String,
}

impl Show for TokenShape {
    fn text(&self) -> String {
        self.token.clone()
    }
}
