//! What a driven agent's transcript tells, as events of the mesh.

use std::path::Path;

use mesh::ports::driver::TurnEnd;
use mesh::turns::{TurnEvent, TurnWatch};

use super::transcript::Happening;

/// The events of one line of a transcript. `last` are the agent's last words in the turn that runs.
pub(super) fn of(what: &Happening, watch: &mut TurnWatch, last: Option<&str>, folder: &Path) -> Vec<TurnEvent> {
    match what {
        Happening::Opened { resumed: false, .. } => vec![TurnEvent::Spawned],
        Happening::TurnStarted => vec![watch.starts()],
        Happening::Item { id, operation, succeeded, .. } => watch.item(id, operation.as_ref(), *succeeded, folder),
        Happening::TurnEnded { end } => {
            let left_out = watch.ends();
            vec![match end {
                TurnEnd::Completed => TurnEvent::TurnCompleted { text: last.map(str::to_owned), left_out },
                TurnEnd::Interrupted => TurnEvent::TurnFailed { why: "it was stopped".to_owned(), left_out },
                TurnEnd::Failed { why, .. } => TurnEvent::TurnFailed { why: why.clone(), left_out },
            }]
        }
        Happening::Ended { why } => vec![TurnEvent::Ended { why: why.clone() }],
        // The turn was cut off.
        Happening::Gone { why } if watch.is_running() => {
            vec![TurnEvent::TurnFailed { why: why.clone(), left_out: watch.ends() }]
        }
        Happening::Opened { resumed: true, .. }
        | Happening::Told { .. }
        | Happening::Said { .. }
        | Happening::Diff { .. }
        // That the user is asked is told where all questions are.
        | Happening::Asks { .. }
        | Happening::Settled { .. }
        | Happening::Note { .. }
        | Happening::Gone { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use mesh::ports::driver::Operation;

    use super::*;

    #[test]
    fn a_transcript_is_told_in_words_that_hooks_are_for() {
        let mut watch = TurnWatch::default();
        let mut kinds = |what: Happening| {
            let events = of(&what, &mut watch, Some("Done."), Path::new("/work"));
            events.iter().map(|event| event.kind().to_owned()).collect::<Vec<_>>().join(" ")
        };
        let item = |succeeded| Happening::Item {
            id: "1".to_owned(),
            operation: Some(Operation::Files(vec!["a".to_owned()])),
            succeeded,
            detail: None,
        };
        let opened = |resumed| Happening::Opened { session: "s".to_owned(), resumed };
        assert_eq!(kinds(opened(false)), "spawned");
        assert_eq!(kinds(opened(true)), "", "it goes on");
        assert_eq!(kinds(Happening::TurnStarted), "turn-started");
        assert_eq!(kinds(item(None)), "item-started");
        assert_eq!(kinds(item(Some(true))), "file-changed");
        assert_eq!(kinds(Happening::TurnEnded { end: TurnEnd::Completed }), "turn-completed");
        assert_eq!(kinds(Happening::TurnEnded { end: TurnEnd::Interrupted }), "turn-failed");
        let gone = || Happening::Gone { why: "its program has ended".to_owned() };
        assert_eq!(kinds(gone()), "");
        assert_eq!(kinds(Happening::TurnStarted), "turn-started");
        assert_eq!(kinds(gone()), "turn-failed", "it was cut off");
        assert_eq!(kinds(Happening::Ended { why: "it was dismissed".to_owned() }), "ended");
    }
}
