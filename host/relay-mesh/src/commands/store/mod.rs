//! `relay-mesh store`: moving a mesh from one store to another, and to a file and back.

mod copy;
mod export;

use std::path::Path;
use std::sync::Arc;

use mesh::carrying::{MigrationReport, Occupied};
use store::Store;
use store::files::FilesOptions;

use crate::command::CommandSpec;
use crate::compose::{self, OpenError};
use crate::config::StoreAt;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::machine::ThisMachine;
use crate::shapes::carried::CarriedShape;

/// Move a mesh to another store, or write it to a file
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh store copy files:~/.relay-mesh nats://10.0.0.7:4222\n  \
    relay-mesh store export --out mesh.jsonl\n  \
    relay-mesh store import mesh.jsonl --store nats://10.0.0.7:4222\n\n\
    What machines share is moved: agents, their mail with its receipts, reservations, commands, the log. Sessions, \
    wake_files and keys belong to this machine and stay in its data folder. Nothing goes from where it is read. A move \
    that broke off goes on when it is run again. End what serves the mesh first (`relay-mesh down`).")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What is done.
#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Copy everything from one store to another
    Copy(copy::Args),
    /// Write everything as JSON lines
    Export(export::ExportArgs),
    /// Take in what was exported
    Import(export::ImportArgs),
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            Verb::Copy(copy) => copy::run(copy, context).await,
            Verb::Export(export) => export::export(export, context).await,
            Verb::Import(import) => export::import(import, context).await,
        }
    }
}

/// What happens to a target that holds something else.
#[derive(clap::Args, Debug)]
struct Target {
    /// Add to a target that holds another mesh; what both have under one name stays as it is there
    #[arg(long)]
    add: bool,
}

impl Target {
    fn occupied(&self) -> Occupied {
        if self.add { Occupied::Add } else { Occupied::Refuse }
    }
}

/// The store that machines share, as the settings name it.
fn shared(context: &Context) -> Result<Arc<dyn Store>, CommandError> {
    let open = context.open()?;
    Ok(match open.servers {
        Some(servers) => Arc::new(servers),
        None => open.store,
    })
}

/// Opens a store that the command line names. On servers this speaks as the machine of a data folder.
fn opened(context: &Context, at: &StoreAt, data: &Path) -> Result<Arc<dyn Store>, CommandError> {
    let folder = |dir: &Path| compose::open_folder(dir, FilesOptions::default());
    match at {
        StoreAt::Files(dir) => Ok(Arc::new(folder(&context.workdir.join(dir))?)),
        StoreAt::Nats(servers) => {
            folder(data)?;
            let machine = ThisMachine::named_in(data).map_err(OpenError::from)?;
            // The server of one's own belongs to the folder of the settings, whatever is copied.
            let own = &context.settings.dir.value;
            folder(own)?;
            let here = ThisMachine::named_in(own).map_err(OpenError::from)?;
            let values = compose::with_own_token(servers, &context.settings.nats, own, &here)?;
            Ok(Arc::new(compose::on_servers(servers, &values, &machine, compose::Client::ThisProcess)?))
        }
    }
}

/// Refuses to read from a folder that is not there: a name that is mistyped is no empty mesh.
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

/// Says what was moved.
fn told(context: &Context, carried: &MigrationReport) -> Result<Exit, CommandError> {
    context.printer.show(&CarriedShape::of(carried))?;
    Ok(Exit::Success)
}
