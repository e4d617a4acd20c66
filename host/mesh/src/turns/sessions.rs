//! The turns of sessions that nobody drives, by what their harness's hooks tell: activity, and files about to be written.
//!
//! A hook announces an edit before it happens, and the user may yet refuse it. So the session's record keeps the announced
//! files with a mark of each, and the next hook tells those whose mark has changed.

use std::path::Path;

use serde::{Deserialize, Serialize};
use store::StoreError;

use super::{Actor, TurnEvent, note};
use crate::core::Core;
use crate::sessions::record;
use crate::sessions::{Activity, SessionRecord, SessionRef};

/// The most announced files of one session.
const MOST_ANNOUNCED: usize = 32;

/// A file that a session was about to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedEdit {
    /// Its absolute path.
    pub path: String,
    /// Its mark before that; none if it was not there.
    pub mark: Option<String>,
}

/// What a hook tells of a session's turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnNews {
    events: Vec<(SessionRef, TurnEvent)>,
}

impl TurnNews {
    pub(crate) fn tell(&mut self, session: SessionRef, event: TurnEvent) {
        self.events.push((session, event));
    }

    /// Notes everything. An answer that carries mail keeps the turn going, so that it has not ended.
    pub(crate) async fn note(self, core: &Core, goes_on: bool) {
        for (session, event) in self.events {
            if goes_on && matches!(event, TurnEvent::TurnCompleted { .. }) {
                continue;
            }
            match actor(core, &session, &event).await {
                Ok(Some(actor)) => note(core, &actor, &event).await,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "an event of a turn is missing from the event log"),
            }
        }
    }
}

/// Who acts in a session; none if its turns are told otherwise: by a driver, or by its root session.
async fn actor(core: &Core, session: &SessionRef, event: &TurnEvent) -> Result<Option<Actor>, StoreError> {
    let Some(record) = record::session_record(core, session).await? else { return Ok(None) };
    // One that is open in a second terminal goes on there.
    let has_gone_on = matches!(event, TurnEvent::Ended { .. }) && record.activity != Activity::Ended;
    if record.driven || record.parent.is_some() || has_gone_on {
        return Ok(None);
    }
    let agent = record::own_agent(core, &record).await?;
    Ok(Some(Actor { agent, session: record.session, folder: record.workdir }))
}

/// What a change of a session's activity is.
pub(crate) fn of_activity(before: Activity, now: Activity, ends_turn: bool) -> Option<TurnEvent> {
    match (before, now) {
        (Activity::Idle | Activity::Ended, Activity::Busy) => Some(TurnEvent::TurnStarted),
        (Activity::Idle | Activity::Busy | Activity::Ended, Activity::NeedsInput) => {
            Some(TurnEvent::NeedsInput { text: None })
        }
        (Activity::Busy | Activity::NeedsInput, Activity::Idle) if ends_turn => {
            Some(TurnEvent::TurnCompleted { text: None, left_out: 0 })
        }
        (Activity::Busy | Activity::NeedsInput | Activity::Idle | Activity::Ended, _) => None,
    }
}

/// Its user has stopped a session.
pub(crate) fn of_stop(before: Activity) -> Option<TurnEvent> {
    match before {
        Activity::Busy | Activity::NeedsInput => {
            Some(TurnEvent::TurnFailed { why: "its user stopped it".to_owned(), left_out: 0 })
        }
        Activity::Idle | Activity::Ended => None,
    }
}

/// The files of earlier hooks of a session that have changed since. Those that have not wait for the next hook, unless the
/// turn ends.
pub(crate) async fn changed_files(
    core: &Core,
    observed: &SessionRecord,
    ends_turn: bool,
) -> Result<Vec<TurnEvent>, StoreError> {
    if observed.announced.is_empty() {
        return Ok(Vec::new());
    }
    let has_changed = |edit: &AnnouncedEdit| core.machine.file_mark(Path::new(&edit.path)) != edit.mark;
    let (changed, same): (Vec<AnnouncedEdit>, Vec<AnnouncedEdit>) =
        observed.announced.iter().cloned().partition(has_changed);
    let left = if ends_turn { Vec::new() } else { same };
    if left != observed.announced {
        record::change_session(core, &observed.session, |record| record.announced.clone_from(&left)).await?;
    }
    Ok(changed.into_iter().map(|edit| TurnEvent::FileChanged { path: edit.path }).collect())
}

/// Keeps files that a session is about to write.
pub(crate) async fn announce(
    core: &Core,
    session: &SessionRef,
    edits: &[String],
    folder: &str,
) -> Result<(), StoreError> {
    let edit = |path: &String| {
        let path = Path::new(folder).join(path);
        AnnouncedEdit { mark: core.machine.file_mark(&path), path: path.display().to_string() }
    };
    let new: Vec<AnnouncedEdit> = edits.iter().take(MOST_ANNOUNCED).map(edit).collect();
    record::change_session(core, session, |record| {
        record.announced.retain(|old| !new.iter().any(|new| new.path == old.path));
        record.announced.extend(new.iter().cloned());
        let too_many = record.announced.len().saturating_sub(MOST_ANNOUNCED);
        record.announced.drain(..too_many);
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_begins_and_ends_once_however_often_a_hook_says_so() {
        use Activity::{Busy, Ended, Idle, NeedsInput};
        let check = |before, now, ends_turn, expected: &str| {
            let event = of_activity(before, now, ends_turn);
            assert_eq!(event.as_ref().map_or("", TurnEvent::kind), expected, "{before:?} to {now:?}");
        };
        check(Idle, Busy, false, "turn-started");
        check(Ended, Busy, false, "turn-started");
        check(Busy, Busy, false, "");
        check(Busy, NeedsInput, false, "needs-input");
        check(NeedsInput, NeedsInput, false, "");
        check(NeedsInput, Busy, false, "");
        check(Busy, Idle, true, "turn-completed");
        check(NeedsInput, Idle, true, "turn-completed");
        check(Idle, Idle, true, "");
        // A session that starts is idle, and no turn of it has ended.
        check(Busy, Idle, false, "");
        assert_eq!(of_stop(Busy).as_ref().map(TurnEvent::kind), Some("turn-failed"));
        assert_eq!(of_stop(Idle), None);
    }
}
