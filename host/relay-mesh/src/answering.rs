//! Answering a question as the user, and beginning the agents that they have agreed to by that.

use std::io::{self, IsTerminal as _};

use mesh::asks::{Ask, AskKind};
use mesh::ports::driver::UserAnswer;

use crate::compose::Open;
use crate::context::{Context, Seat};
use crate::driven::begin::ensure_host;
use crate::driven::permission::{Agreed, begin_agreed};
use crate::errors::CommandError;
use crate::runs::permission;

/// What came of an answer.
pub(crate) struct Answered {
    /// The question, with its answer.
    pub(crate) ask: Ask,
    /// The agents that were begun because the user has agreed to them. The answer counts even if they could not be.
    pub(crate) agreed: Result<Vec<Agreed>, CommandError>,
}

/// Answers a question as the user, and begins the agents that they have agreed to by that. Refused to agents.
pub(crate) async fn give(id: &str, words: &str, context: &Context, open: &Open) -> Result<Answered, CommandError> {
    permission::only_the_user(context, open, "answer").await?;
    let ask = open.mesh.find_ask(id).await?;
    let ask = open.mesh.answer_ask(ask.id, meant(&ask, words), &via(context)).await?;
    Ok(Answered { ask, agreed: begin(context, open).await })
}

async fn begin(context: &Context, open: &Open) -> Result<Vec<Agreed>, CommandError> {
    let agreed = begin_agreed(context, open).await?;
    if agreed.iter().any(|agreed| agreed.outcome.is_ok()) {
        ensure_host(context, open).await?;
    }
    Ok(agreed)
}

/// What the user means by the words, given what the question offers.
fn meant(ask: &Ask, words: &str) -> UserAnswer {
    // By its id, or as it reads: Gemini CLI calls what reads `Allow` `proceed_once`.
    let is_meant = |(id, label): &&(String, String)| id == words || label.eq_ignore_ascii_case(words);
    if let Some((id, _)) = ask.choices.iter().find(is_meant) {
        return UserAnswer::Choose(id.clone());
    }
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let is_question = matches!(ask.what, AskKind::Question(_));
    match (first, rest.trim()) {
        ("refuse", why) => UserAnswer::Refuse(why.to_owned()),
        ("allow", "") if !is_question => UserAnswer::Allow,
        ("allow-session", "") if !is_question => UserAnswer::AllowForSession,
        ("stop", "") if !is_question => UserAnswer::Stop,
        _ => match serde_json::from_str::<serde_json::Value>(words) {
            // A form that a harness has filled in.
            Ok(form) if form.is_object() && !is_question => UserAnswer::Fill(form),
            Ok(_) | Err(_) => UserAnswer::Fill(words.into()),
        },
    }
}

/// Where this answer is given, for those who answer later.
fn via(context: &Context) -> String {
    if context.seat == Seat::Page {
        return "on the page of the server".to_owned();
    }
    let terminal = io::stdin().is_terminal().then(|| std::fs::read_link("/proc/self/fd/0").ok()).flatten();
    match terminal {
        Some(terminal) => format!("in the terminal {}", terminal.display()),
        None => format!("on a command line, by process {}", std::process::id()),
    }
}
