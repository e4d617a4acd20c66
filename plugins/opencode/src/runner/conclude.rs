//! What came of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::reading::{Memory as _, denials, refused, wait};
use relay_mesh_sdk::optional::runner::{Ending, Outcome, ProcessExit};

use super::read::{Failed, RunMemory};

const TITLE: &str = "OpenCode";

pub(super) fn conclude(memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
    let seen = RunMemory::remembered(memory)?;
    let outcome = match (&seen.failed, seen.finished.as_deref()) {
        (Some(failed), _) => of_error(failed, exit),
        (None, Some("stop")) => Outcome::of(Ending::Answered),
        (None, Some("length")) => {
            Outcome::of(Ending::Provider).because("OpenCode's model was cut off at the length of one answer")
        }
        (None, Some("content-filter")) => {
            Outcome::of(Ending::Provider).because("OpenCode's model was stopped by its provider's filter")
        }
        // With exit code 0: nobody is there who could give the permission.
        (None, Some(_)) if seen.rejected => {
            let last = seen.denials.last().map(|(tool, _)| tool.as_str()).unwrap_or("a tool");
            Outcome::of(Ending::Denied).because(format!("OpenCode ended because `{last}` was not permitted"))
        }
        (None, Some(_) | None) => Outcome::without_last_word(exit, TITLE),
    };
    Ok(Outcome {
        usage: seen.used.map(super::read::Used::usage),
        turns: Some(seen.steps).filter(|steps| *steps > 0),
        denials: denials(&seen.denials),
        session: seen.session,
        ..outcome
    })
}

fn of_error(failed: &Failed, exit: &ProcessExit) -> Outcome {
    let message = failed.message.as_str();
    let outcome = match failed.name.as_str() {
        "MessageAbortedError" if exit.asked_to_stop => {
            Outcome::of(Ending::Stopped).because("OpenCode was told to stop")
        }
        "ProviderAuthError" => Outcome::of(Ending::Login).because(format!("OpenCode is not signed in: {message}")),
        _ => refused(failed.status, message, TITLE),
    };
    let retry_after_ms = match outcome.ending {
        Ending::Limited | Ending::Provider => wait(message),
        _ => None,
    };
    Outcome { retry_after_ms, ..outcome }
}
