//! What the end of a run means. An exit code alone says nothing: what the harness said last, how its process ended, and
//! whether we ended it are judged together.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ports::runner::{Ending, RunEvent, RunOutcome, Usage};
use crate::runs::record::Scope;

/// Why the host ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halt {
    /// It did not: the run ended by itself.
    No,
    /// Somebody asked for it.
    Stopped,
    /// The limit of time.
    Time,
    /// The limit of silence, in milliseconds.
    Silence(u64),
    /// The limit of output, in bytes.
    Output(u64),
    /// The limit of events.
    Events(u64),
    /// The model's server refused the key again and again, with this status.
    Refused(u16),
    /// The limit of cost, where the harness keeps none itself.
    Cost,
    /// The limit of turns, where the harness keeps none itself.
    Turns(u32),
    /// The process that ran it was gone.
    Abandoned,
    /// The process that watched over it was gone.
    Unguarded,
}

/// Whether an answer has the shape that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaCheck {
    /// No shape was asked for.
    Free,
    /// It has the shape.
    Fits(Value),
    /// It has not, for these reasons.
    Misses(String),
}

/// What a run's end means.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Why it ended.
    pub ending: Ending,
    /// Whether it did what it was asked to.
    pub ok: bool,
    /// One sentence for the user.
    pub why: Option<String>,
    /// The answer by the schema.
    pub output: Option<Value>,
}

/// What the harness was waiting for when its last request was not answered: none if something came after it.
pub fn asked_again<'a>(events: impl DoubleEndedIterator<Item = &'a RunEvent>) -> Option<String> {
    let last = events.rev().find(|event| match event {
        RunEvent::Note { .. } | RunEvent::Session { .. } => false,
        RunEvent::Retries { .. }
        | RunEvent::Said { .. }
        | RunEvent::Tool { .. }
        | RunEvent::Wrote { .. }
        | RunEvent::Denied { .. }
        | RunEvent::Used { .. }
        | RunEvent::Turns { .. } => true,
    });
    match last {
        Some(RunEvent::Retries { attempt, status: Some(status), .. }) => {
            Some(format!("its model's server had answered HTTP {status} and was asked again (attempt {attempt})"))
        }
        Some(RunEvent::Retries { attempt, status: None, .. }) => {
            Some(format!("its model's server had not answered and was asked again (attempt {attempt})"))
        }
        Some(_) | None => None,
    }
}

/// Judges the end of a run. What the host did counts before what the harness says. `met` is what it was waiting for.
pub fn judge(outcome: &RunOutcome, halt: Halt, answer: &SchemaCheck, met: Option<&str>) -> Verdict {
    // A harness that tells of no retries may know at its end what it was waiting for.
    let waited = matches!(outcome.ending, Ending::Limited | Ending::Provider);
    let met = met.or(outcome.why.as_deref().filter(|_| waited));
    let while_met = |what: String| met.map_or_else(|| what.clone(), |met| format!("{what}: {met}"));
    let bad = |ending, why: String| Verdict { ending, ok: false, why: Some(why), output: None };
    match halt {
        Halt::Stopped => bad(Ending::Stopped, "it was told to stop".to_owned()),
        Halt::Abandoned => bad(Ending::Stopped, "the process that ran it was gone, so it was ended".to_owned()),
        Halt::Time => bad(Ending::Time, while_met("its time was up".to_owned())),
        Halt::Silence(limit) => bad(Ending::Time, while_met(format!("it printed nothing for {} s", limit / 1_000))),
        Halt::Cost => bad(Ending::Cost, "its budget was spent".to_owned()),
        Halt::Turns(most) => bad(Ending::Turns, format!("it wanted more than the {most} turns that it was allowed")),
        Halt::Output(limit) => bad(Ending::BrokeOff, format!("it printed more than {limit} bytes")),
        Halt::Events(limit) => bad(Ending::BrokeOff, format!("it reported more than {limit} events")),
        Halt::Refused(status) => {
            bad(Ending::Login, format!("the model's server refused the key again and again (HTTP {status})"))
        }
        Halt::Unguarded if outcome.ending != Ending::Answered => {
            let why = "the process that watched over it was killed, and everything was ended";
            bad(Ending::BrokeOff, why.to_owned())
        }
        Halt::No | Halt::Unguarded => of_itself(outcome, answer),
    }
}

fn of_itself(outcome: &RunOutcome, answer: &SchemaCheck) -> Verdict {
    let why = outcome.why.clone();
    match (outcome.ending, answer) {
        (Ending::Answered, SchemaCheck::Free) => {
            Verdict { ending: Ending::Answered, ok: true, why, output: outcome.output.clone() }
        }
        // A harness that gave up on the shape may have given an answer that has it.
        (Ending::Answered | Ending::Shape, SchemaCheck::Fits(value)) => {
            Verdict { ending: Ending::Answered, ok: true, why: None, output: Some(value.clone()) }
        }
        (Ending::Answered | Ending::Shape, SchemaCheck::Misses(reasons)) => Verdict {
            ending: Ending::Shape,
            ok: false,
            why: Some(format!("its answer does not fit the schema: {reasons}")),
            output: None,
        },
        (ending, SchemaCheck::Free | SchemaCheck::Fits(_) | SchemaCheck::Misses(_)) => {
            Verdict { ending, ok: false, why, output: None }
        }
    }
}

/// What the run itself used. Some harnesses count a whole session; then what it had used before is subtracted. If that
/// is not known, the figures stay those of the session.
pub fn usage_of_run(said: Option<Usage>, before: Option<Usage>, resumed: bool) -> (Option<Usage>, Scope) {
    let Some(said) = said else { return (None, Scope::Run) };
    if !said.whole_session || !resumed {
        return (Some(said), Scope::Run);
    }
    let Some(before) = before else { return (Some(said), Scope::Session) };
    let less = |now: Option<u64>, then: Option<u64>| now.map(|now| now.saturating_sub(then.unwrap_or(0)));
    let usage = Usage {
        input: said.input.saturating_sub(before.input),
        cached_input: said.cached_input.saturating_sub(before.cached_input),
        output: said.output.saturating_sub(before.output),
        reasoning: less(said.reasoning, before.reasoning),
        cost: less(said.cost, before.cost),
        whole_session: false,
    };
    (Some(usage), Scope::Run)
}

/// The JSON in an answer: all of it, or its one fenced block.
pub fn fenced_json(answer: &str) -> Option<Value> {
    let text = answer.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let mut blocks = text.split("```").skip(1).step_by(2);
    let block = blocks.next()?;
    if blocks.next().is_some() {
        return None;
    }
    let body = block.split_once('\n').map_or(block, |(_, body)| body);
    serde_json::from_str(body.trim()).ok()
}

/// The task of the one turn that may repair an answer.
pub fn repair_task(schema: &Value, reasons: &str) -> String {
    format!(
        "Your answer does not fit the JSON schema that was asked for: {reasons}\n\nAnswer again. Write nothing but one \
         JSON value that fits this schema:\n{schema}\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(ending: Ending) -> RunOutcome {
        RunOutcome { answer: Some("done".to_owned()), ..RunOutcome::of(ending) }
    }

    #[test]
    fn what_the_host_did_counts_before_what_the_harness_says() {
        let check = |ending, halt, answer: &SchemaCheck, expected: (Ending, bool)| {
            let verdict = judge(&outcome(ending), halt, answer, None);
            assert_eq!((verdict.ending, verdict.ok), expected, "{ending:?} {halt:?} {answer:?}");
        };
        let (free, fits, misses) =
            (SchemaCheck::Free, SchemaCheck::Fits(json!(1)), SchemaCheck::Misses("no".to_owned()));
        check(Ending::Answered, Halt::No, &free, (Ending::Answered, true));
        check(Ending::Answered, Halt::No, &fits, (Ending::Answered, true));
        check(Ending::Answered, Halt::No, &misses, (Ending::Shape, false));
        check(Ending::Shape, Halt::No, &fits, (Ending::Answered, true));
        check(Ending::Shape, Halt::No, &misses, (Ending::Shape, false));
        check(Ending::Login, Halt::No, &fits, (Ending::Login, false));
        check(Ending::BrokeOff, Halt::No, &free, (Ending::BrokeOff, false));
        check(Ending::Answered, Halt::Time, &free, (Ending::Time, false));
        check(Ending::Answered, Halt::Silence(1), &free, (Ending::Time, false));
        check(Ending::Answered, Halt::Stopped, &free, (Ending::Stopped, false));
        check(Ending::BrokeOff, Halt::Abandoned, &free, (Ending::Stopped, false));
        check(Ending::BrokeOff, Halt::Refused(401), &free, (Ending::Login, false));
        check(Ending::Answered, Halt::Cost, &free, (Ending::Cost, false));
        check(Ending::BrokeOff, Halt::Turns(2), &free, (Ending::Turns, false));
        check(Ending::BrokeOff, Halt::Output(1), &free, (Ending::BrokeOff, false));
        check(Ending::BrokeOff, Halt::Unguarded, &free, (Ending::BrokeOff, false));
        check(Ending::Answered, Halt::Unguarded, &free, (Ending::Answered, true));
    }

    #[test]
    fn a_time_out_says_what_the_run_was_waiting_for() {
        let retry = |status| RunEvent::Retries { attempt: 4, status, wait_ms: 1 };
        let said = RunEvent::Said { text: "hello".to_owned() };
        let note = RunEvent::Note { text: "a note".to_owned() };
        let check = |events: &[RunEvent], own: Option<&str>, halt, expected: &str| {
            let ended = if own.is_some() { Ending::Provider } else { Ending::BrokeOff };
            let outcome = RunOutcome { why: own.map(str::to_owned), ..RunOutcome::of(ended) };
            let verdict = judge(&outcome, halt, &SchemaCheck::Free, asked_again(events.iter()).as_deref());
            assert_eq!((verdict.ending, verdict.why.as_deref()), (Ending::Time, Some(expected)));
        };
        let limited = "its model's server had answered HTTP 429 and was asked again (attempt 4)";
        check(&[said.clone(), retry(Some(429)), note], None, Halt::Time, &format!("its time was up: {limited}"));
        check(&[retry(Some(429))], None, Halt::Silence(3_000), &format!("it printed nothing for 3 s: {limited}"));
        let cut = "its time was up: its model's server had not answered and was asked again (attempt 4)";
        check(&[retry(None)], None, Halt::Time, cut);
        check(&[retry(Some(500)), said], None, Halt::Time, "its time was up");
        check(&[], Some("it was told HTTP 500"), Halt::Time, "its time was up: it was told HTTP 500");
        check(&[], None, Halt::Time, "its time was up");
    }

    #[test]
    fn usage_of_a_session_is_given_as_that_of_the_run() {
        let used = |input, cost, whole_session| Usage { input, cost, whole_session, ..Usage::default() };
        let check = |said, before, resumed, expected| assert_eq!(usage_of_run(said, before, resumed), expected);
        check(None, None, true, (None, Scope::Run));
        check(Some(used(5, None, false)), None, true, (Some(used(5, None, false)), Scope::Run));
        check(Some(used(5, None, true)), None, false, (Some(used(5, None, true)), Scope::Run));
        check(Some(used(5, Some(9), true)), None, true, (Some(used(5, Some(9), true)), Scope::Session));
        let before = Some(used(3, Some(4), true));
        check(Some(used(5, Some(9), true)), before, true, (Some(used(2, Some(5), false)), Scope::Run));
        check(Some(used(1, None, true)), before, true, (Some(used(0, None, false)), Scope::Run));
    }

    #[test]
    fn json_is_found_in_an_answer_that_holds_one_value() {
        let check = |answer: &str, expected: Option<Value>| assert_eq!(fenced_json(answer), expected, "{answer}");
        check(" {\"a\": 1}\n", Some(json!({"a": 1})));
        check("Here it is:\n```json\n{\"a\": 1}\n```\nDone.", Some(json!({"a": 1})));
        check("```\n[1]\n```", Some(json!([1])));
        check("```\n[1]\n```\n```\n[2]\n```", None);
        check("no", None);
        check("", None);
    }
}
