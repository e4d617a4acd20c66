//! What Claude Code's record of a session (its transcript) says of the mail that hooks carried.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::clock;
use relay_mesh_sdk::optional::evidence::{Evidence, HandedOver, Judgement, Occurrence, Verdict};

use crate::ClaudeCode;
use crate::payload::{Event, Payload};
use crate::transcript::{END, End, ShownProgress};

/// How much is read where a turn or a session begins or ends, after which nothing more may come.
const LONG_END: u32 = 512 * 1024;
/// A text that has no place in the transcript at the end of a turn this long after it was given is lost.
const LOST_AFTER_MS: u64 = 30_000;

impl Evidence for ClaudeCode {
    fn look(occurrence: &Occurrence, handed: &[HandedOver]) -> Result<Vec<Judgement>, Error> {
        let Some(payload) = Payload::parse(&occurrence.call())? else { return Ok(Vec::new()) };
        let most = match payload.event {
            Event::Stop { .. } | Event::SessionStart(_) | Event::SessionEnd { .. } | Event::SubagentStop { .. } => {
                LONG_END
            }
            _ => END,
        };
        let Some(end) = End::read(&payload, most)? else { return Ok(Vec::new()) };
        let at_end_of_turn = matches!(payload.event, Event::Stop { .. });
        let now = clock::now();
        let judge = |handed: &HandedOver| {
            let verdict = match end.place_of(&handed.id) {
                ShownProgress::Requested => Verdict::Shown,
                ShownProgress::Nowhere
                    if at_end_of_turn && end.is_whole && now.saturating_sub(handed.at) > LOST_AFTER_MS =>
                {
                    Verdict::Lost
                }
                ShownProgress::Nowhere | ShownProgress::Waiting => return None,
            };
            Some(Judgement { id: handed.id.clone(), verdict })
        };
        Ok(handed.iter().filter_map(judge).collect())
    }
}
