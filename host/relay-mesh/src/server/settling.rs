//! What the server does about runs and reviews whose process was killed: it tells what came of them, so that an agent which
//! waits for a report need not wait until a user types a command.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mesh::runs::RunId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::compose::Open;
use crate::context::Context;
use crate::reviews::stop::settle_all;
use crate::runs::Runs;
use crate::runs::settle::{Settler, abandoned, settle_one};

/// How often to look. A look reads the records of those alone that had not ended.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(15);
/// How long a run rests at most that cannot be concluded here, before it is tried once more.
const LONGEST_REST: Duration = Duration::from_secs(900);

/// Looks for them for as long as the server runs. When it is stopped, what is half done is left as by a process that is
/// killed.
pub(crate) async fn keep_settling(context: &Context, open: &Open, stop: CancellationToken) {
    let (mut ended, mut tries) = (BTreeSet::new(), Tries::default());
    let rounds = async {
        loop {
            settle_runs(context, open, &mut tries).await;
            settle_all(context, open, &mut ended, Settler::Server).await;
            tokio::time::sleep(BETWEEN_ROUNDS).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = rounds => {}
    }
}

async fn settle_runs(context: &Context, open: &Open, tries: &mut Tries) {
    let all = abandoned(open, &Runs::of(&context.settings.dir.value), Settler::Server);
    tries.0.retain(|id, _| all.iter().any(|folder| folder.id == *id));
    for folder in all {
        if !tries.are_due(folder.id) {
            continue;
        }
        match settle_one(context, open, &folder, Settler::Server).await {
            Ok(()) => {}
            // Once: it is tried for as long as it is there.
            Err(error) if tries.failed(folder.id) => {
                tracing::warn!(error = %store::reasons(&error), run = %folder.id, "what came of a run cannot be told yet");
            }
            Err(error) => {
                tracing::debug!(error = %store::reasons(&error), run = %folder.id, "what came of a run cannot be told yet");
            }
        }
    }
}

/// The runs that could not be concluded: when each is tried again, and after which rest.
#[derive(Default)]
struct Tries(BTreeMap<RunId, (Instant, Duration)>);

impl Tries {
    fn are_due(&self, id: RunId) -> bool {
        self.0.get(&id).is_none_or(|(at, _)| *at <= Instant::now())
    }

    /// Takes note of one that failed, and rests for twice as long as before. Returns whether it is the first.
    fn failed(&mut self, id: RunId) -> bool {
        let earlier = self.0.get(&id).map(|(_, rest)| *rest);
        let rest = earlier.map_or(BETWEEN_ROUNDS, |rest| (rest * 2).min(LONGEST_REST));
        self.0.insert(id, (Instant::now() + rest, rest));
        earlier.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_concluded_is_tried_less_and_less_often() {
        let (id, mut tries) = ("01JD8Z3K5V0000000000000000".parse().expect("an id"), Tries::default());
        assert!(tries.are_due(id));
        assert!(tries.failed(id) && !tries.are_due(id), "the first time is told");
        for _ in 0..20 {
            tokio::time::advance(LONGEST_REST).await;
            assert!(tries.are_due(id));
            assert!(!tries.failed(id) && !tries.are_due(id));
        }
    }
}
