//! `relay-mesh store`: move a mesh from one store to another, or to a file and back, and show its size.

mod copy;
mod export;
mod size;
mod trust;

use std::path::Path;
use std::sync::Arc;

use mesh::storage::migrate::{MigrationReport, Occupied};
use store::Store;

use crate::command::CommandSpec;
use crate::compose::{self, OpenError};
use crate::config::{Durable, StoreAt};
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::machine::ThisMachine;
use crate::shapes::migration::MigrationShape;

/// Move a mesh to another store or to a file, show its size, or trust a folder
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh store copy files:~/.relay-mesh nats://10.0.0.7:4222\n  \
    relay-mesh store export --out mesh.jsonl\n  \
    relay-mesh store import mesh.jsonl --store nats://10.0.0.7:4222\n  \
    relay-mesh store size\n  \
    relay-mesh store trust\n\n\
    `copy`, `export` and `import` copy what machines share: agents, their mail with its receipts, reservations, commands, the event log. \
    Sessions, wake files and keys belong to this machine and stay in its data folder. The source stays as it is. If a \
    copy was interrupted, run it again and it continues. Stop the server first (`relay-mesh down`).")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Copy everything from one store to another
    Copy(copy::Args),
    /// Write everything as JSON lines
    Export(export::ExportArgs),
    /// Read an export into the store
    Import(export::ImportArgs),
    /// Show what takes up space
    Size(size::Args),
    /// Take the data folder that the project's settings name as your own
    Trust(trust::Args),
}

impl CommandSpec for Args {
    fn uses_folder(&self) -> bool {
        !matches!(self.verb, Verb::Trust(_))
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            Verb::Copy(copy) => copy::run(copy, context).await,
            Verb::Export(export) => export::export(export, context).await,
            Verb::Import(import) => export::import(import, context).await,
            Verb::Size(size) => size::run(size, context).await,
            Verb::Trust(_) => trust::run(context).await,
        }
    }
}

/// What to do if the target is not empty.
#[derive(clap::Args, Debug)]
struct Target {
    /// Add to a target that holds another mesh; if both have the same name, the target's value stays
    #[arg(long)]
    add: bool,
}

impl Target {
    fn occupied(&self) -> Occupied {
        if self.add { Occupied::Add } else { Occupied::Refuse }
    }
}

/// The shared store of the settings.
fn shared(context: &Context) -> Result<Arc<dyn Store>, CommandError> {
    let open = context.open()?;
    Ok(match open.servers {
        Some(servers) => Arc::new(servers),
        None => open.store,
    })
}

/// Opens a store that the command line names. On servers it acts as the machine that the data folder `data` names.
fn opened(context: &Context, at: &StoreAt, data: &Path) -> Result<Arc<dyn Store>, CommandError> {
    let folder = |dir: &Path| compose::open_folder(dir, compose::options(Durable::Disk));
    match at {
        StoreAt::Files(dir) => Ok(Arc::new(folder(&context.workdir.join(dir))?)),
        StoreAt::Nats(servers) => {
            folder(data)?;
            let machine = ThisMachine::named_in(data).map_err(OpenError::from)?;
            // The token of this machine's own nats-server is in the data folder of the settings, whatever is copied.
            let own = &context.settings.dir.value;
            folder(own)?;
            let here = ThisMachine::named_in(own).map_err(OpenError::from)?;
            let values = compose::with_own_token(servers, &context.settings.nats, own, &here)?;
            Ok(Arc::new(compose::on_servers(servers, &values, &machine, compose::Client::ThisProcess)?))
        }
    }
}

/// Refuses a folder that does not exist: a mistyped name must not pass for an empty mesh.
fn is_there(dir: &Path) -> Result<(), CommandError> {
    if dir.is_dir() {
        return Ok(());
    }
    Err(Failure {
        what: format!("there is no data folder `{}` to read from", dir.display()),
        hint: Some("`relay-mesh config` shows yours as `dir`".to_owned()),
        exit: Exit::NotFound,
        source: None,
    }
    .into())
}

fn told(context: &Context, carried: &MigrationReport) -> Result<Exit, CommandError> {
    context.printer.show(&MigrationShape::of(carried))?;
    Ok(Exit::Success)
}
