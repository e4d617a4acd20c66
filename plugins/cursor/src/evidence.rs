//! What Cursor's hooks say of the mail that earlier ones carried. Cursor keeps no record that we could read; a turn
//! that was stopped ends with the same hook as one that ended by itself, and says so.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::evidence::{Evidence, HandedOver, Judgement, Occurrence, Verdict};

use crate::Cursor;
use crate::payload::{Ending, Event, Payload};

impl Evidence for Cursor {
    fn look(occurrence: &Occurrence, handed: &[HandedOver]) -> Result<Vec<Judgement>, Error> {
        let shown = |handed: &HandedOver| Judgement { id: handed.id.clone(), verdict: Verdict::Shown };
        Ok(match Payload::parse(&occurrence.call())?.event {
            Event::Stop { how: Ending::Completed, .. } => handed.iter().map(shown).collect(),
            _ => Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: &str) -> usize {
        let payload = format!(
            r#"{{"conversation_id":"c1","generation_id":"g1","hook_event_name":"stop","workspace_roots":["/w"],"status":"{status}","loop_count":0}}"#
        );
        let occurrence = Occurrence { name: "stop".to_owned(), payload, environment: Vec::new() };
        let handed = HandedOver { id: "01JD8Z3K5V0000000000000000".to_owned(), hook: "postToolUse".to_owned(), at: 1 };
        Cursor::look(&occurrence, &[handed]).expect("it is read").len()
    }

    #[test]
    fn only_a_turn_that_ended_by_itself_proves_anything() {
        assert_eq!(judged("completed"), 1);
        assert_eq!(judged("aborted"), 0);
        assert_eq!(judged("error"), 0);
    }
}
