//! `ask_user`: put a question to the user of this machine, and wait for the answer.

use std::sync::Arc;
use std::time::Duration;

use mesh::asks::{AskOutcome, NewAsk, answer_text};
use mesh::names::MessageId;
use mesh::ports::driver::UserAnswer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::run_host::longest_hold;
use crate::tool_error::ToolError;

/// Interval of progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    question: String,
    /// up to 20; without, the answer is text
    choices: Option<List>,
    /// why you ask
    reason: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// the question's id
    question: String,
    /// answered, refused, expired (refused too), withdrawn (not answered) or open
    state: &'static str,
    /// the answer, or why it was refused
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

pub(super) struct AskUser;

impl Tool for AskUser {
    const NAME: &'static str = "ask_user";
    const TITLE: &'static str = "Ask the user";
    const DESCRIPTION: &'static str = "Ask your user something and wait. If they answer later, it comes by mail.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        call.agent()?;
        let choices = input.choices.map(|choices| choices.0).unwrap_or_default();
        let new = NewAsk {
            reason: input.reason,
            process: Some(call.mesh.machine().this_process()),
            ..NewAsk::question((&call.caller).into(), input.question, choices)
        };
        let ask = call.mesh.ask(new).await?;
        let outcome = wait(&call, ask.id).await?;
        Ok(told(ask.id, outcome))
    }
}

/// Waits for the answer as long as the client does. None if it comes by mail.
async fn wait(call: &ToolCall, id: MessageId) -> Result<Option<AskOutcome>, ToolError> {
    let began = Instant::now();
    let most = longest_hold(call.wait.progress.is_some());
    let mut signs = tokio::time::interval_at(began + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    let answered = call.mesh.wait_for_answer(id);
    tokio::pin!(answered);
    let why = loop {
        tokio::select! {
            outcome = &mut answered => return Ok(Some(outcome.map_err(mesh::AskError::Store)?)),
            () = call.wait.cancelled.cancelled() => break "its agent has cancelled the question",
            () = call.wait.closing.cancelled() => break "its agent has left",
            // The client may be back at once, to read what it missed: its user is still asked, and the answer is mailed.
            () = call.wait.reader_gone.cancelled() => return by_mail(call, id).await,
            () = tokio::time::sleep_until(began + most) => return by_mail(call, id).await,
            _ = signs.tick() => call.wait.report_progress(began.elapsed(), Some(most), "waiting for the user").await,
        }
    };
    call.mesh.settle_ask(id, why).await.map_err(mesh::AskError::Store)?;
    // The user may have answered in between, and that counts.
    Ok(Some(call.mesh.wait_for_answer(id).await.map_err(mesh::AskError::Store)?))
}

async fn by_mail(call: &ToolCall, id: MessageId) -> Result<Option<AskOutcome>, ToolError> {
    call.mesh.leave_ask_to_mail(id).await.map_err(mesh::AskError::Store)?;
    mail_if_nobody_answers(call, id);
    Ok(None)
}

/// The process that takes an answer mails it; that nobody answers is mailed by this one, as long as its client is here.
fn mail_if_nobody_answers(call: &ToolCall, id: MessageId) {
    let (mesh, closing) = (Arc::clone(&call.mesh), call.wait.closing.clone());
    tokio::spawn(closing.run_until_cancelled_owned(async move {
        let looked = match mesh.wait_for_answer(id).await {
            Ok(_) => mesh.all_asks().await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = looked {
            tracing::warn!(%id, %error, "an agent is not told that nobody answered");
        }
    }));
}

fn told(id: MessageId, outcome: Option<AskOutcome>) -> ToolOutput<Output> {
    let (state, answer) = match outcome {
        Some(AskOutcome::Answered(UserAnswer::Refuse(why))) => ("refused", Some(why).filter(|why| !why.is_empty())),
        Some(AskOutcome::Answered(answer)) => ("answered", Some(answer_text(&answer))),
        Some(AskOutcome::Expired) => ("expired", None),
        Some(AskOutcome::Settled) => ("withdrawn", None),
        None => ("open", None),
    };
    let text = match (state, &answer) {
        ("answered", Some(answer)) => format!("your user answered: {answer}"),
        ("refused", Some(why)) => format!("your user refused: {why}"),
        ("refused", _) => "your user refused".to_owned(),
        ("withdrawn", _) => "the question was withdrawn before your user had answered".to_owned(),
        ("expired", _) => "no answer came in time, so it counts as refused".to_owned(),
        (_, _) => "no answer yet; it comes by mail".to_owned(),
    };
    ToolOutput::new(Output { question: id.to_string(), state, answer }, text)
}
