//! `relay-mesh store copy`: copy everything from one store to another.

use mesh::storage::migrate;

use super::{Target, is_there, opened, told};
use crate::config::{self, StoreAt};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// Copy everything from one store to another
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh store copy files:/srv/mesh nats://10.0.0.7:4222\n  \
    relay-mesh store copy nats://10.0.0.7:4222 files:/srv/mesh")]
pub(super) struct Args {
    /// The store to read: `files:DIR` or `nats://HOST`
    from: StoreAt,
    /// The store to write
    to: StoreAt,
    #[command(flatten)]
    target: Target,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let [from, to] = [args.from, args.to].map(|at| placed(at, context));
    // Opening a folder creates it, and a new one has nothing to copy.
    if let StoreAt::Files(dir) = &from {
        is_there(dir)?;
    }
    // The agents of a folder belong to the machine that the folder names, so servers are opened as that machine.
    let data = [&from, &to].into_iter().find_map(|at| match at {
        StoreAt::Files(dir) => Some(dir.clone()),
        StoreAt::Nats(_) => None,
    });
    let data = data.unwrap_or_else(|| context.settings.dir.value.clone());
    let from = opened(context, &from, &data)?;
    let to = opened(context, &to, &data)?;
    let carried = migrate::carry(from.as_ref(), to.as_ref(), args.target.occupied()).await?;
    told(context, &carried)
}

/// The same store, with its folder as an absolute path.
fn placed(at: StoreAt, context: &Context) -> StoreAt {
    match at {
        StoreAt::Files(dir) => {
            StoreAt::Files(context.workdir.join(config::at_home(dir, context.environment.home().as_deref())))
        }
        StoreAt::Nats(servers) => StoreAt::Nats(servers),
    }
}
