//! `relay-mesh asks answer`.

use std::io::{self, IsTerminal as _};

use mesh::asks::{Ask, AskKind};
use mesh::ports::driver::Answer;
use mesh::ports::machine::Machine as _;

use crate::context::Context;
use crate::driven::begin::ensure_host;
use crate::driven::permission::begin_agreed;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::asks::AskShape;
use crate::shapes::driven::AgreedShape;

pub(in crate::commands) async fn answer(id: &str, words: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    permission::only_the_user(context, &open, "answer").await?;
    let ask = open.mesh.find_ask(id).await?;
    let answered = open.mesh.answer_ask(ask.id, meant(&ask, words), &via()).await?;
    context.printer.show(&AskShape::of(&answered, open.machine.now()))?;
    let mut exit = Exit::Success;
    for agreed in begin_agreed(context, &open).await? {
        if agreed.outcome.is_err() {
            exit = Exit::Failure;
        } else {
            open.mesh.want_driving(true).await?;
            ensure_host(context, &open).await?;
        }
        context.printer.show(&AgreedShape::of(&agreed))?;
    }
    Ok(exit)
}

/// What the user means by the words, given what the question offers.
fn meant(ask: &Ask, words: &str) -> Answer {
    // By its id, or as it reads: Gemini CLI calls what reads `Allow` `proceed_once`.
    let is_meant = |(id, label): &&(String, String)| id == words || label.eq_ignore_ascii_case(words);
    if let Some((id, _)) = ask.choices.iter().find(is_meant) {
        return Answer::Choose(id.clone());
    }
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let is_question = matches!(ask.what, AskKind::Question(_));
    match (first, rest.trim()) {
        ("refuse", why) => Answer::Refuse(why.to_owned()),
        ("allow", "") if !is_question => Answer::Allow,
        ("allow-session", "") if !is_question => Answer::AllowForSession,
        ("stop", "") if !is_question => Answer::Stop,
        _ => match serde_json::from_str::<serde_json::Value>(words) {
            // A form that a harness has filled in.
            Ok(form) if form.is_object() && !is_question => Answer::Fill(form),
            Ok(_) | Err(_) => Answer::Fill(words.into()),
        },
    }
}

/// Where this answer is given, for those who answer later.
fn via() -> String {
    let terminal = io::stdin().is_terminal().then(|| std::fs::read_link("/proc/self/fd/0").ok()).flatten();
    match terminal {
        Some(terminal) => format!("in the terminal {}", terminal.display()),
        None => format!("on a command line, by process {}", std::process::id()),
    }
}
