//! What the server does about runs and reviews whose process was killed: it tells what came of them, so that an agent which
//! waits for a report need not wait until a user types a command.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::compose::Open;
use crate::context::Context;
use crate::reviews::stop::settle_all;
use crate::runs::Runs;
use crate::runs::settle::settle_runs;

/// How often to look. A look reads the records of those alone that had not ended.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(15);

/// Looks for them for as long as the server runs.
pub(crate) async fn keep_settling(context: &Context, open: &Open, stop: CancellationToken) {
    let (runs, mut ended) = (Runs::of(&context.settings.dir.value), BTreeSet::new());
    while !stop.is_cancelled() {
        settle_runs(context, open, &runs).await;
        settle_all(context, open, &mut ended).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(BETWEEN_ROUNDS) => {}
        }
    }
}
