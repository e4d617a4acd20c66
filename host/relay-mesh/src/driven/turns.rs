//! The end of a turn, and of an agent: its final words go where they are waited for.

use std::time::Duration;

use mesh::driven::{Given, GivenContent, RequestKind, Turn};
use mesh::messages::{Draft, LONGEST_BODY};
use mesh::names::{AgentName, MessageId};
use mesh::ports::driver::{Tokens, TurnEnd};
use mesh::sessions::Activity;
use store::Position;
use tokio::time::Instant;

use super::agent::{Dismissal, Driving, RunningTurn, Step, Summary};
use super::transcript::Happening;
use crate::errors::CommandError;

/// How long a running turn may take to stop before its agent is ended all the same.
const STOPS: Duration = Duration::from_secs(15);
/// How long a summary may take.
const SUMS_UP: Duration = Duration::from_secs(120);
/// What an agent is asked that is dismissed with a summary.
const SUMMARY: &str = "relay-mesh: you are being dismissed. Sum up in a few sentences what you have done, what is left, \
    and what whoever goes on has to know. Use no tools.";
/// Bytes of a recipient's inbox that are looked through for mail of the agent itself.
const LOOKS: usize = 1 << 20;

impl Driving {
    pub(super) async fn used(&mut self, tokens: Tokens) -> Result<(), CommandError> {
        self.change(|record| {
            let spent = &mut record.spent.tokens;
            spent.input = spent.input.saturating_add(tokens.input);
            spent.cached_input = spent.cached_input.saturating_add(tokens.cached_input);
            spent.output = spent.output.saturating_add(tokens.output);
        })
        .await
    }

    /// A turn has ended: whoever waits for its final words gets them.
    pub(super) async fn turn_ended(&mut self, end: TurnEnd) -> Result<(), CommandError> {
        let running = self.turn.take().unwrap_or_else(|| RunningTurn::of(Turn::default()));
        self.answers.turn_ended();
        if let Some(diff) = running.diff {
            self.note(Happening::Diff { diff });
        }
        self.note(Happening::TurnEnded { end: end.clone() });
        let last = running.turn.last_words().map(str::to_owned);
        let stopped = self.interrupting.take().map(|(requests, _)| requests).unwrap_or_default();
        let prompts = running.turn.prompts.clone();
        self.change(|record| {
            record.spent.turns += 1;
            record.given.retain(|given| !(prompts.contains(&given.prompt) && given.status.is_some()));
            if last.is_some() {
                record.last_words.clone_from(&last);
            }
            for request in &stopped {
                record.done(request, None, None);
            }
        })
        .await?;
        self.does(Activity::Idle).await?;
        if let Some(Dismissal { summary: summary @ Summary::Asked, .. }) = &mut self.dismissing {
            *summary = Summary::Done(last);
            return Ok(());
        }
        let words = match &end {
            TurnEnd::Completed => last,
            TurnEnd::Failed { why, .. } => Some(format!("(relay-mesh: the turn failed: {why})")),
            TurnEnd::Interrupted => None,
        };
        let Some(words) = words else { return Ok(()) };
        let to = running.turn.reply_to().map(|(to, id)| (to.clone(), id));
        if let Some((to, id)) = &to
            && !self.has_written(to, &running.inboxes).await
        {
            self.reply(to, *id, &words).await;
        }
        self.report(&words, to.map(|(to, _)| to)).await
    }

    /// Whether the agent has written to somebody itself since the turn began.
    async fn has_written(&self, to: &AgentName, inboxes: &[(AgentName, Position)]) -> bool {
        let Some((_, end)) = inboxes.iter().find(|(of, _)| of == to) else { return false };
        let mut at = *end;
        loop {
            match self.host.open.mesh.mailed(to, at, LOOKS).await {
                Ok(mailed) if mailed.messages.iter().any(|(message, _)| message.from == self.name) => return true,
                Ok(mailed) if mailed.at_end || mailed.next == at => return false,
                Ok(mailed) => at = mailed.next,
                Err(error) => {
                    tracing::warn!(%error, "whether a driven agent has replied itself is not known");
                    return false;
                }
            }
        }
    }

    /// Sends final words to whom the turn's mail came from.
    async fn reply(&self, to: &AgentName, id: MessageId, words: &str) {
        let draft = Draft {
            body: shortened(words),
            reply_to: Some(id),
            // Two processes that each see the end of a turn reply once.
            idempotency_key: Some(format!("final-words-{id}")),
            ..Draft::default()
        };
        self.send(to, draft).await;
    }

    /// Tells the spawner what the first turn came to.
    async fn report(&mut self, words: &str, replied_to: Option<AgentName>) -> Result<(), CommandError> {
        let Some(by) = self.record.by.clone().filter(|_| !self.record.reported) else { return Ok(()) };
        if replied_to.as_ref() != Some(&by) {
            let draft = Draft {
                body: shortened(words),
                subject: Some(format!("{}: what its first turn came to", self.name)),
                idempotency_key: Some(format!("first-words-{}", self.record.id)),
                ..Draft::default()
            };
            self.send(&by, draft).await;
        }
        self.change(|record| record.reported = true).await
    }

    /// Tells of a turn that was cut off by the end of its program.
    pub(super) async fn tell_of_cut(&self, given: &Given, why: &str) {
        let words =
            format!("(relay-mesh: {why} by the end of its program. Its session goes on with the next message.)");
        if let GivenContent::Mail { messages, .. } = &given.content
            && let Some(id) = messages.last()
            && let Some(from) = self.sender_of(*id).await
        {
            self.reply(&from, *id, &words).await;
        }
    }

    async fn sender_of(&self, id: MessageId) -> Option<AgentName> {
        let ask = mesh::Fetch { one: Some(id), peek: true, ..mesh::Fetch::default() };
        let found = self.host.open.mesh.fetch(&self.name, &ask).await.ok()?;
        found.messages.into_iter().next().map(|fetched| fetched.message.from)
    }

    /// Tells the spawner of an end that nobody meant.
    pub(super) async fn tell_of_end(&self, why: &str, meant: bool) {
        let Some(by) = self.record.by.clone().filter(|_| !meant) else { return };
        let draft = Draft {
            body: format!("The agent {} of {} has ended: {why}.", self.name, self.record.harness),
            subject: Some(format!("{} has ended", self.name)),
            idempotency_key: Some(format!("ended-{}", self.record.id)),
            ..Draft::default()
        };
        self.send(&by, draft).await;
    }

    async fn send(&self, to: &AgentName, draft: Draft) {
        if to.is_shell() {
            // A shell reads what it wants to by `relay-mesh read`; its inbox takes mail like any other.
            tracing::debug!("final words go to a shell");
        }
        match self.host.open.mesh.send(&self.principal, &[to.to_string()], draft).await {
            Ok(_) => {}
            Err(error) => tracing::warn!(%to, error = %store::reasons(&error), "final words could not be sent"),
        }
    }

    pub(super) async fn begin_dismissal(&mut self) -> Result<(), CommandError> {
        if self.dismissing.is_some() {
            return Ok(());
        }
        let wanted = self.record.requests.iter().find_map(|request| match request.kind {
            RequestKind::Dismiss { summary } => Some((request.id.clone(), summary)),
            RequestKind::Prompt { .. } | RequestKind::Steer { .. } | RequestKind::Interrupt => None,
        });
        let Some((request, summary)) = wanted else { return Ok(()) };
        let has_something_to_say =
            self.record.session.is_some() && (self.record.spent.turns > 0 || self.turn.is_some());
        let summary = if summary && has_something_to_say { Summary::Wanted } else { Summary::None };
        self.dismissing = Some(Dismissal { request, summary, until: Instant::now() + STOPS });
        if self.turn.is_some() {
            self.interrupt(Vec::new());
        }
        Ok(())
    }

    /// The turn has stopped, or time is up.
    pub(super) async fn go_on_dismissing(&mut self, is_late: bool) -> Result<Step, CommandError> {
        let Some(dismissal) = &mut self.dismissing else { return Ok(Step::On) };
        match dismissal.summary.clone() {
            Summary::Wanted if !is_late => {
                if self.linked.is_none() {
                    dismissal.until = Instant::now() + SUMS_UP;
                    return self.connect().await;
                }
                if !self.is_open() || !self.is_idle() {
                    return Ok(Step::On);
                }
                if let Some(dismissal) = &mut self.dismissing {
                    dismissal.summary = Summary::Asked;
                    dismissal.until = Instant::now() + SUMS_UP;
                }
                self.give_own(SUMMARY).await?;
                Ok(Step::On)
            }
            Summary::Asked if !is_late => Ok(Step::On),
            Summary::Done(words) => self.end("it was dismissed", true, words).await,
            Summary::Wanted | Summary::Asked => {
                self.end("it was dismissed", true, Some("(no summary came in time)".to_owned())).await
            }
            Summary::None => self.end("it was dismissed", true, None).await,
        }
    }
}

/// Words that fit into a message.
fn shortened(words: &str) -> String {
    if words.len() <= LONGEST_BODY {
        return words.to_owned();
    }
    let end = (0..=LONGEST_BODY - 100).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n[cut: the transcript has all of it]", &words[..end])
}
