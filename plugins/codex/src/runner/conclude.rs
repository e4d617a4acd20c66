//! What came of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::reading::{Memory as _, denials, last_words, refused, status, wait};
use relay_mesh_sdk::optional::runner::{Ending, Outcome, ProcessExit, Start, Task};

use super::read::{LastWord, RunMemory};

const TITLE: &str = "Codex";

pub(super) fn conclude(task: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
    let seen = RunMemory::remembered(memory)?;
    let outcome = match &seen.last_word {
        Some(LastWord::Completed) => Outcome::of(Ending::Answered),
        Some(LastWord::Failed(message)) => failed(message),
        None => without_last_word(&seen, exit),
    };
    // Every figure counts the thread from its beginning.
    let whole_session = match task.start {
        Start::Fresh(_) => false,
        Start::Resume(_) | Start::Fork(_) => true,
    };
    Ok(Outcome {
        usage: seen.used.map(|used| used.usage(whole_session)),
        denials: denials(&seen.denials),
        session: seen.session,
        ..outcome
    })
}

/// Codex has its errors only in words.
fn failed(message: &str) -> Outcome {
    let says = |words: &[&str]| words.iter().any(|word| message.to_lowercase().contains(word));
    let outcome = if says(&["usage limit", "rate limit", "quota", "out of credits"]) {
        Outcome::of(Ending::Limited).because(format!("Codex's account is at its limit: {message}"))
    } else if status(message).is_none()
        && says(&["not logged in", "log in again", "missing environment variable", "api key"])
    {
        Outcome::of(Ending::Login).because(format!("Codex is not signed in: {message}"))
    } else {
        refused(status(message), message, TITLE)
    };
    let retry_after_ms = match outcome.ending {
        Ending::Limited | Ending::Provider => wait(message),
        _ => None,
    };
    Outcome { retry_after_ms, ..outcome }
}

fn without_last_word(seen: &RunMemory, exit: &ProcessExit) -> Outcome {
    let told = last_words(&exit.stderr_end);
    match seen.failing {
        // A key that is refused stays refused, also if somebody lost patience over it.
        Some(Some(status @ (401 | 403))) => refused(Some(status), "", TITLE),
        Some(status) if !exit.asked_to_stop => refused(status, "", TITLE),
        Some(_) | None if !exit.asked_to_stop && told.to_lowercase().contains("not logged in") => {
            Outcome::of(Ending::Login).because(format!("Codex is not signed in: {told}"))
        }
        Some(_) | None => Outcome::without_last_word(exit, TITLE),
    }
}
