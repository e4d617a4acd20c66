//! `fetch_messages`: reads the caller's mail, and may wait for it.

use std::time::Duration;

use mesh::messages::LONGEST_BODY;
use mesh::names::{AgentName, MessageId};
use mesh::{Fetch, Fetched, envelope};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use view::MessageView;

use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::lease_tracker::{Leased, OnArrival, PendingLease};
use crate::tool_error::ToolError;

/// The longest that a call may wait, in seconds.
const LONGEST_WAIT: u64 = 300;
/// The most messages that one call returns.
const MOST: usize = 100;
/// How much of one message a call returns that names it and no length, in bytes: some clients cut longer results.
const MUCH: usize = 32_000;
/// Interval of progress notifications to a waiting client, which keep it from timing out.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// wait for mail, up to 300
    wait_seconds: Option<u64>,
    /// default 10
    limit: Option<usize>,
    /// bytes of a body, default 4096
    max_length: Option<usize>,
    /// this one, even if read
    message_id: Option<String>,
    /// skip its first bytes
    offset: Option<usize>,
    /// leave it unread
    peek: Option<bool>,
    /// what this gives
    acknowledge: Option<bool>,
    // Its name says it all, as `from` does.
    acknowledge_ids: Option<List>,
    /// also what you got
    include_read: Option<bool>,
    from: Option<String>,
    thread: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Whose mail.
    agent: String,
    /// Urgent first, then by time.
    messages: Vec<MessageView>,
    /// How many more wait.
    waiting: usize,
    /// What acknowledge_ids acknowledged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acknowledged: Vec<String>,
}

pub(super) struct FetchMessages;

impl Tool for FetchMessages {
    const NAME: &'static str = "fetch_messages";
    const TITLE: &'static str = "Fetch messages";
    const DESCRIPTION: &'static str = "Take your unread messages.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let agent = call.agent()?;
        let one = match &input.message_id {
            Some(id) => Some(call.id(id).await?),
            None => None,
        };
        let (ask, wait) = ask(&input, one)?;
        let mut acknowledged = Vec::new();
        if let Some(ids) = &input.acknowledge_ids {
            let ids: Vec<MessageId> = futures::future::try_join_all(ids.0.iter().map(|id| call.id(id))).await?;
            let outcomes = call.mesh.acknowledge(&agent, &ids).await?;
            acknowledged = outcomes.into_iter().map(|outcome| outcome.id.to_string()).collect();
        }
        call.has_read().await;
        let fetched = fetch(&call, &agent, &ask, wait).await?;
        let text = text(&fetched, &ask, &acknowledged);
        let on_arrival =
            if input.acknowledge == Some(true) { OnArrival::MarkAcknowledged } else { OnArrival::MarkRead };
        let Fetched { messages, waiting, lease, unnoted: _ } = fetched;
        let output = Output {
            agent: agent.to_string(),
            messages: messages.iter().map(MessageView::from).collect(),
            waiting,
            acknowledged,
        };
        let lease = lease.map(|lease| {
            PendingLease::from(Leased::Mail {
                lease: Box::new(lease),
                by: call.caller.session().cloned(),
                on_arrival,
                on_its_way: call.mail.begin(&agent),
            })
        });
        Ok(ToolOutput { output, text, lease })
    }
}

/// The fetch that the caller asks for, and how long it waits.
fn ask(input: &Input, one: Option<MessageId>) -> Result<(Fetch, Duration), ToolError> {
    let usual = Fetch::default();
    let most = |name: &str, value: u64, most: u64| {
        if value > most {
            return Err(ToolError::new(
                format!("`{name}` is {value} and may be at most {most}"),
                "Ask again with less.",
            ));
        }
        Ok(())
    };
    let limit = input.limit.unwrap_or(usual.limit);
    let usual_length = if one.is_some() { MUCH } else { usual.max_length };
    let max_length = input.max_length.unwrap_or(usual_length);
    if one.is_none() && input.offset.is_some() {
        return Err(ToolError::new("`offset` is for one message", "Name it by message_id."));
    }
    let wait = input.wait_seconds.unwrap_or(0);
    most("wait_seconds", wait, LONGEST_WAIT)?;
    most("limit", limit as u64, MOST as u64)?;
    most("max_length", max_length as u64, LONGEST_BODY as u64)?;
    if input.peek == Some(true) && input.acknowledge == Some(true) {
        return Err(ToolError::new("a peek leaves mail unread, and cannot acknowledge it", "Leave one of them out."));
    }
    let from = match &input.from {
        Some(from) if from == AgentName::shell().as_str() => Some(AgentName::shell()),
        Some(from) => Some(from.parse().map_err(|error: mesh::names::InvalidName| {
            ToolError::new(error.to_string(), "Write it as it stands in a message.")
        })?),
        None => None,
    };
    let ask = Fetch {
        limit,
        max_length,
        peek: input.peek == Some(true),
        include_settled: input.include_read == Some(true),
        from,
        thread: input.thread.clone(),
        one,
        offset: input.offset.unwrap_or(0),
        ..usual
    };
    Ok((ask, Duration::from_secs(wait)))
}

/// When to stop waiting on behalf of a client, and which client to send progress to.
pub(crate) struct WaitControl {
    /// Cancelled when the client cancelled this call.
    pub(crate) cancelled: CancellationToken,
    /// Cancelled when the client is leaving.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the HTTP client that waits for this call is gone.
    pub(crate) reader_gone: CancellationToken,
    /// The client and its token, if it asked for progress notifications.
    pub(crate) progress: Option<(Peer<RoleServer>, ProgressToken)>,
}

/// Fetches waiting mail; if there is none, waits for it.
async fn fetch(call: &ToolCall, agent: &AgentName, ask: &Fetch, wait: Duration) -> Result<Fetched, ToolError> {
    let began = Instant::now();
    let mut signs = tokio::time::interval_at(began + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    // Watching begins before looking, so that no message is missed in between.
    let mut mail = if wait.is_zero() { None } else { Some(call.mesh.watch_mail(agent).await?) };
    loop {
        let fetched = call.mesh.fetch(agent, ask).await?;
        if !fetched.messages.is_empty() || ask.limit == 0 || began.elapsed() >= wait {
            return Ok(fetched);
        }
        let came = async {
            match &mut mail {
                Some(mail) => mail.may_have_come(ask).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(came);
        loop {
            tokio::select! {
                came = &mut came => {
                    came?;
                    break;
                }
                () = tokio::time::sleep_until(began + wait) => break,
                () = call.wait.cancelled.cancelled() => return Ok(fetched),
                () = call.wait.closing.cancelled() => return Ok(fetched),
                () = call.wait.reader_gone.cancelled() => return Ok(fetched),
                _ = signs.tick() => call.wait.report_progress(began.elapsed(), Some(wait), "waiting for mail").await,
            }
        }
    }
}

impl WaitControl {
    /// Tells a client that asked for it how far a call is.
    pub(crate) async fn report_progress(&self, waited: Duration, total: Option<Duration>, message: &str) {
        let Some((peer, token)) = &self.progress else { return };
        let mut progress = ProgressNotificationParam::new(token.clone(), waited.as_secs_f64());
        progress.total = total.map(|total| total.as_secs_f64());
        progress.message = Some(message.to_owned());
        if let Err(error) = peer.notify_progress(progress).await {
            tracing::debug!(%error, "a client that waits could not be told so");
        }
    }
}

/// The mail in envelopes, and notes about it.
fn text(fetched: &Fetched, ask: &Fetch, acknowledged: &[String]) -> String {
    let mut parts = Vec::new();
    let is_for_all = ask.from.is_none() && ask.thread.is_none();
    if !acknowledged.is_empty() {
        parts.push(format!("acknowledged {}", acknowledged.join(", ")));
    }
    if !fetched.messages.is_empty() {
        parts.push(envelope(&fetched.messages, usize::MAX).text);
    } else if ask.limit > 0 && is_for_all && fetched.waiting > 0 {
        parts.push("nothing for you at this moment: another reader is being given your mail".to_owned());
    } else if ask.limit > 0 {
        parts.push("no unread messages".to_owned());
    }
    if fetched.unnoted {
        parts.push("the store is full: these stay unread and come again; tell your user to make room".to_owned());
    }
    match fetched.waiting {
        0 => {}
        1 => parts.push("1 more waits: fetch again".to_owned()),
        more => parts.push(format!("{more} more wait: fetch again")),
    }
    parts.join("\n")
}
