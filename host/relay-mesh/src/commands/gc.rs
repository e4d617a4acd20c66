//! `relay-mesh gc`: delete old, finished records.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::time::Duration;

use mesh::{DryRun, Scope};
use store::StoreError;

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::context::Context;
use crate::duration::timeout;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::retention;
use crate::reviews::stop::settle_all;
use crate::runs::Runs;
use crate::runs::settle::{Settler, settle_runs};
use crate::shapes::cleanup::CleanupShape;
use crate::unix;

/// The lowest priority that a process can give itself.
const LOWEST: i32 = 19;

/// How long to wait for another cleanup of the same folder.
const PATIENCE: Duration = Duration::from_secs(5);

/// Delete what is finished and old
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh gc --dry-run\n  \
    relay-mesh gc --expired-only\n  \
    relay-mesh gc --stale 30d\n\n\
    It deletes reservations that have lapsed; commands an hour after they ended, and not before they would have expired; agents that were silent \
    for a week; sessions that ended a week ago, with their wake files; settled mail, its receipts and events that are a \
    week old; lists of what was sent that are a month old; runs, reviews and pipelines that ended a week ago, and driven \
    agents with their folders, unless a worktree of theirs holds work; \
    questions a day after their end; threads of tools that were not used for three months; and what is left of adapters \
    and processes that are gone. \
    `retention.keep` and `retention.expire-after` of `relay-mesh config` are these times.\n\n\
    It never deletes mail that is not settled, an agent that is alive, that mail or a command waits for, or that holds a \
    reservation, the current session of an agent, or anything that belongs to another machine.\n\n\
    It runs by itself once a day: in the server, or in a process of its own that a command leaves behind \
    (`retention.automatic`).")]
pub(crate) struct Args {
    /// Only show what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Only reservations, commands, invitations and listeners
    #[arg(long)]
    expired_only: bool,
    /// Delete agents that were silent for this long [default: a week]
    #[arg(long, value_name = "TIME", value_parser = timeout, conflicts_with = "expired_only")]
    stale: Option<Duration>,
    /// Leave the terminal and do not hurry: what a command leaves behind once a day
    #[arg(long, hide = true, conflicts_with_all = ["dry_run", "expired_only", "stale"])]
    background: bool,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if self.background {
            unix::process::begin_session();
            unix::process::lower_priority(LOWEST);
            let open = context.open()?;
            settle(context, &open).await;
            retention::daily::in_turn(&open, &context.settings).await.map_err(failed)?;
            return Ok(Exit::Success);
        }
        let open = context.open()?;
        let scope = if self.expired_only { Scope::Expired } else { Scope::Everything };
        let dry_run = if self.dry_run { DryRun::Yes } else { DryRun::No };
        let stale = self.stale.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        if (scope, dry_run) == (Scope::Everything, DryRun::No) {
            settle(context, &open).await;
        }
        let _turn = match dry_run {
            DryRun::Yes => None,
            DryRun::No => Some(retention::turn(&open, PATIENCE).await?.ok_or_else(another_runs)?),
        };
        let cleaned = retention::clean_up(&open, &context.settings, (scope, dry_run, stale)).await.map_err(failed)?;
        if (scope, dry_run) == (Scope::Everything, DryRun::No) {
            retention::daily::note(&context.settings);
        }
        context.printer.show(&CleanupShape::of(&cleaned, dry_run))?;
        Ok(Exit::Success)
    }
}

/// Tells what came of runs and reviews whose process was killed: one whose end is still to be told is not deleted.
async fn settle(context: &Context, open: &Open) {
    settle_runs(context, open, &Runs::of(&context.settings.dir.value), Settler::Cleanup).await;
    settle_all(context, open, &mut BTreeSet::new(), Settler::Cleanup).await;
}

fn another_runs() -> CommandError {
    CommandError::from(Failure {
        what: "another process is cleaning up this data folder".to_owned(),
        hint: Some("it deletes the same: run this again when it is done, if you want to see what is left".to_owned()),
        exit: Exit::Held,
        source: None,
    })
}

/// The error of a cleanup. A full disk gets its own text: it may be why the user runs this.
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
