//! What Gemini CLI's record of a session says of the mail that hooks carried. A hook after the user's stop comes like one
//! after the natural end of a turn, and Gemini CLI forgets all that came since the prompt of a turn that they stop.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::evidence::{Evidence, HandedOver, Judgement, Occurrence, Verdict};
use relay_mesh_sdk::payload::carries_mail;

use crate::GeminiCli;
use crate::payload::{Event, Payload};
use crate::transcript::{End, ShownProgress};

/// How much is read while a turn goes on: tools wait for the hook.
const END: u32 = 64 * 1024;
/// How much is read where a turn or a session begins or ends, after which nothing more may come.
const LONG_END: u32 = 512 * 1024;

impl Evidence for GeminiCli {
    fn look(occurrence: &Occurrence, handed: &[HandedOver]) -> Result<Vec<Judgement>, Error> {
        let payload = Payload::parse(&occurrence.call())?;
        let most = if matches!(payload.event, Event::AfterTool(_)) { END } else { LONG_END };
        let end = End::read(payload.transcript.as_deref(), most)?;
        let judge = |handed: &HandedOver| {
            let verdict = match &end {
                Some(end) => of_record(end, &handed.id, &payload.event)?,
                // It keeps no record when its disk is full.
                None => matches!(payload.event, Event::AfterAgent { answered: true, .. }).then_some(Verdict::Shown)?,
            };
            Some(Judgement { id: handed.id.clone(), verdict })
        };
        Ok(handed.iter().filter_map(judge).collect())
    }
}

/// Between two turns everything that will be said to the model is in the record, but for mail that has just been made the
/// next prompt.
fn of_record(end: &End, id: &str, event: &Event) -> Option<Verdict> {
    let is_gone = match event {
        Event::BeforeAgent { prompt } => end.is_whole && !carries_mail(prompt),
        Event::AfterAgent { answered, .. } => end.is_whole || !answered,
        _ => false,
    };
    match end.place_of(id) {
        ShownProgress::Answered => Some(Verdict::Shown),
        ShownProgress::Nowhere if is_gone => Some(Verdict::Lost),
        ShownProgress::Nowhere | ShownProgress::Waiting => None,
    }
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::Fakes;

    use super::*;

    const ID: &str = "01JD8Z3K5V0000000000000000";
    const RECORD: &str = "/home/u/.gemini/tmp/app/chats/session-2026-11-21T17-19-5d20e1e5.jsonl";

    fn told(hook: &str, more: &str, record: Option<&str>) -> Option<Verdict> {
        let fakes = Fakes::default().root("config");
        let fakes = match record {
            Some(record) => fakes.file("config", &RECORD["/home/u/.gemini/".len()..], record),
            None => fakes,
        };
        let _host = fakes.start();
        let payload = format!(r#"{{"session_id":"s1","transcript_path":"{RECORD}","cwd":"/w"{more}}}"#);
        let occurrence = Occurrence { name: hook.to_owned(), payload, environment: Vec::new() };
        let handed = HandedOver { id: ID.to_owned(), hook: "BeforeAgent".to_owned(), at: 1 };
        let judged = GeminiCli::look(&occurrence, &[handed]).expect("it is read");
        judged.first().map(|judgement| judgement.verdict)
    }

    const ENDED: &str = r#","prompt_response":"I see.","stop_hook_active":false"#;
    const STOPPED: &str = r#","prompt_response":"[no response text]","stop_hook_active":false"#;

    #[test]
    fn a_stopped_turn_shows_what_the_model_has_answered_and_nothing_else() {
        let prompt = format!("{{\"id\":\"u1\",\"type\":\"user\",\"content\":\"{ID}\"}}\n");
        let answered = format!("{prompt}{{\"id\":\"g1\",\"type\":\"gemini\",\"content\":\"I see.\"}}\n");
        for more in [ENDED, STOPPED] {
            assert_eq!(told("AfterAgent", more, Some(&answered)), Some(Verdict::Shown));
            assert_eq!(told("AfterAgent", more, Some(&prompt)), None, "the next request holds it");
            assert_eq!(told("AfterAgent", more, Some("{}\n")), Some(Verdict::Lost));
            let forgotten = format!("{prompt}{{\"$set\":{{\"messages\":[]}}}}\n");
            assert_eq!(told("AfterAgent", more, Some(&forgotten)), Some(Verdict::Lost));
        }
        assert_eq!(told("BeforeAgent", r#","prompt":"go on""#, Some("{}\n")), Some(Verdict::Lost));
        let mail = format!(r#","prompt":"<relay-mesh-message id=\"{ID}\">""#);
        assert_eq!(told("BeforeAgent", &mail, Some("{}\n")), None, "it is about to be recorded");
    }

    #[test]
    fn without_a_record_only_an_answer_at_the_end_of_a_turn_shows_anything() {
        assert_eq!(told("AfterAgent", ENDED, None), Some(Verdict::Shown));
        assert_eq!(told("AfterAgent", STOPPED, None), None);
        assert_eq!(told("BeforeAgent", r#","prompt":"go on""#, None), None);
    }
}
