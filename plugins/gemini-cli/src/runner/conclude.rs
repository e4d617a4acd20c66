//! What came of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::reading::{Memory as _, denials, refused, short, status, wait};
use relay_mesh_sdk::optional::runner::{Ending, Outcome, ProcessExit, Task};

use super::read::{LastWord, RunMemory};

const TITLE: &str = "Gemini CLI";

pub(super) fn conclude(_: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
    let seen = RunMemory::remembered(memory)?;
    let outcome = match &seen.last_word {
        Some(last) if last.succeeded => Outcome::of(Ending::Answered),
        Some(last) => failed(last, exit),
        None => without_result(exit),
    };
    Ok(Outcome {
        usage: seen.last_word.as_ref().map(|last| last.used.usage()),
        turns: Some(seen.turns).filter(|turns| *turns > 0),
        denials: denials(&seen.denials),
        session: seen.session,
        ..outcome
    })
}

fn failed(last: &LastWord, exit: &ProcessExit) -> Outcome {
    let message = last.message.as_str();
    let outcome = match (exit.code, last.kind.as_str()) {
        (Some(53), _) => Outcome::of(Ending::Turns).because("Gemini CLI reached the limit of turns of its settings"),
        (Some(41), _) | (_, "FatalAuthenticationError") => not_signed_in(message),
        (Some(55), _) => not_trusted(),
        (_, "FatalCancellationError") => Outcome::of(Ending::Stopped).because("Gemini CLI was told to stop"),
        _ => refused(last.status, message, TITLE),
    };
    let retry_after_ms = match outcome.ending {
        Ending::Limited | Ending::Provider => wait(message),
        _ => None,
    };
    Outcome { retry_after_ms, ..outcome }
}

/// What standard error says. Some exit codes have a meaning of their own; others are an HTTP status modulo 256.
fn without_result(exit: &ProcessExit) -> Outcome {
    let stderr = exit.stderr_end.as_str();
    let retried = stderr.rfind("failed with status ").and_then(|at| status(&stderr[at + "failed with ".len()..]));
    match (exit.code, retried) {
        (Some(41), _) if !exit.asked_to_stop => not_signed_in(&first_words(stderr)),
        (Some(55), _) if !exit.asked_to_stop => not_trusted(),
        // Also if it was told to stop: that is what it was waiting for.
        (_, Some(status)) => refused(Some(status), "", TITLE),
        (_, None) => Outcome::without_last_word(exit, TITLE),
    }
}

fn not_signed_in(message: &str) -> Outcome {
    Outcome::of(Ending::Login).because(format!("Gemini CLI is not signed in: {message}"))
}

fn not_trusted() -> Outcome {
    Outcome::of(Ending::Denied).because("Gemini CLI does not trust this folder")
}

/// The first line that says something: below it are the frames of a stack.
fn first_words(stderr: &str) -> String {
    short(stderr.lines().find(|line| line.chars().any(char::is_alphabetic)).unwrap_or_default())
}
