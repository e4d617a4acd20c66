//! What came of a run.

use relay_mesh_sdk::optional::runner::reading::{Memory as _, last_words, refused, wait};
use relay_mesh_sdk::optional::runner::{Ending, Outcome, ProcessExit, Start, Task};
use relay_mesh_sdk::{Error, clock};

use super::read::{LastWord, RunMemory, denials};

const TITLE: &str = "Claude Code";

pub(super) fn conclude(task: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
    let seen = RunMemory::remembered(memory)?;
    let outcome = match &seen.last_word {
        Some(last) => ended(last, task),
        None => without_result(&seen, exit),
    };
    let whole_session = match task.start {
        Start::Fresh(_) => false,
        Start::Resume(_) | Start::Fork(_) => true,
    };
    let retry_after_ms = match outcome.ending {
        Ending::Limited => {
            let ends = seen.limit_ends.map(|ends| ends.saturating_mul(1000).saturating_sub(clock::now()));
            // With a key of its own there is no event for it, and the server's words are all.
            ends.or_else(|| seen.last_word.as_ref().and_then(|last| wait(&last.message)))
        }
        _ => None,
    };
    Ok(Outcome {
        usage: seen.last_word.as_ref().and_then(|last| last.used).map(|used| used.usage(whole_session)),
        denials: denials(&seen),
        session: seen.session,
        retry_after_ms,
        ..outcome
    })
}

fn ended(last: &LastWord, task: &Task) -> Outcome {
    let limit = |ending: Ending, why: String| Outcome::of(ending).because(why);
    // Claude Code counts the turn that it did not begin.
    let mut turns = last.turns;
    let outcome = match (last.subtype.as_str(), last.reason.as_str()) {
        ("error_max_turns", _) => {
            turns = last.turns.map(|turns| turns.saturating_sub(1));
            let most = task.turns.or(turns).unwrap_or_default();
            limit(Ending::Turns, format!("Claude Code reached its limit of {most} turns"))
        }
        ("error_max_budget_usd", _) => limit(Ending::Cost, "Claude Code reached its limit of cost".to_owned()),
        ("error_max_structured_output_retries", _) => {
            limit(Ending::Shape, "Claude Code gave no answer that fits the schema".to_owned())
        }
        (_, reason) if reason.starts_with("aborted") => {
            limit(Ending::Stopped, "Claude Code was interrupted".to_owned())
        }
        ("success", _) if !last.is_error => Outcome::of(Ending::Answered),
        _ => failed(last),
    };
    Outcome { turns, output: last.output.clone().map(|output| output.to_string()), ..outcome }
}

/// An error of the model's server, which Claude Code has only in words if no server was asked.
fn failed(last: &LastWord) -> Outcome {
    let message = last.message.as_str();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    match last.status {
        None | Some(400) if says(&["/login", "Invalid API key", "authentication"]) => {
            Outcome::of(Ending::Login).because(format!("Claude Code is not signed in: {message}"))
        }
        None | Some(400) if says(&["limit reached", "credit balance", "hit your"]) => {
            Outcome::of(Ending::Limited).because(format!("Claude Code's account is at its limit: {message}"))
        }
        None if last.reason == "hook_stopped" => {
            Outcome::of(Ending::Denied).because(format!("a hook stopped Claude Code: {message}"))
        }
        // No server was asked: a session that does not exist, a folder that cannot be used.
        None if last.subtype == "error_during_execution" => {
            Outcome::of(Ending::BrokeOff).because(format!("Claude Code could not go on: {message}"))
        }
        status => refused(status, message, TITLE),
    }
}

fn without_result(seen: &RunMemory, exit: &ProcessExit) -> Outcome {
    match seen.failing {
        // A key that is refused stays refused, also if somebody lost patience over it.
        Some(status @ (401 | 403)) => refused(Some(status), "", TITLE),
        Some(status) if !exit.asked_to_stop => refused(Some(status), "", TITLE),
        Some(_) | None => {
            let told = last_words(&exit.stderr_end);
            let is_login = ["/login", "Invalid API key"].iter().any(|words| told.contains(words));
            if is_login && !exit.asked_to_stop {
                Outcome::of(Ending::Login).because(format!("Claude Code is not signed in: {told}"))
            } else if told.contains("cannot be used with root") {
                Outcome::of(Ending::Denied).because("Claude Code does not run unguarded as root")
            } else {
                Outcome::without_last_word(exit, TITLE)
            }
        }
    }
}
