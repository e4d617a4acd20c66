//! `relay-mesh gc`: delete what is finished and old.

use std::io::{self, ErrorKind};
use std::time::Duration;

use mesh::{DryRun, Scope};
use store::StoreError;

use crate::command::CommandSpec;
use crate::commands::waiting::timeout;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::shapes::cleanup::CleanupShape;

/// Delete what is finished and old
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh gc --dry-run\n  \
    relay-mesh gc --expired-only\n  \
    relay-mesh gc --stale 30d\n\n\
    Reservations go that have lapsed, commands that ended or expired an hour ago, agents of which nothing was \
    heard for a week, and logs in which everything is old. An agent that lives, for whom something waits or that \
    holds a reservation never goes. `relay-mesh serve` does this by itself every hour.")]
pub(crate) struct Args {
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
    /// Only reservations and commands
    #[arg(long)]
    expired_only: bool,
    /// After how long a silence an agent goes [default: a week]
    #[arg(long, value_name = "TIME", value_parser = timeout, conflicts_with = "expired_only")]
    stale: Option<Duration>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let scope = if self.expired_only { Scope::Expired } else { Scope::Everything };
        let dry_run = if self.dry_run { DryRun::Yes } else { DryRun::No };
        let stale = self.stale.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        let cleanup = open.mesh.clean_up(scope, dry_run, stale).await.map_err(failed)?;
        context.printer.show(&CleanupShape::of(&cleanup, dry_run))?;
        Ok(Exit::Success)
    }
}

/// Why nothing more could be deleted. A user may run this because the disk is full.
fn failed(error: StoreError) -> CommandError {
    let is_full = |source: &io::Error| matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    if !matches!(&error, StoreError::Io { source, .. } if is_full(source)) {
        return error.into();
    }
    CommandError::from(Failure {
        what: "there is no space left even to note what is deleted".to_owned(),
        hint: Some(
            "free a few hundred kilobytes on that disk, of something else, and run it again; delete nothing in the \
             data folder by hand"
                .to_owned(),
        ),
        exit: Exit::Store,
        source: Some(Box::new(error)),
    })
}
