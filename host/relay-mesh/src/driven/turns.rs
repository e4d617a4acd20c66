//! The end of a turn: its final words go to the agents that wait for them.

use mesh::driven::{GivenPrompt, PromptContent, Turn};
use mesh::messages::{Draft, shortened};
use mesh::names::{AgentName, MessageId};
use mesh::ports::driver::{PromptStatus, Tokens, TurnEnd};
use mesh::ports::machine::Machine as _;
use mesh::sessions::Activity;
use mesh::tool_threads::ThreadStatus;
use store::Position;

use super::agent::{Driving, RunningTurn};
use super::ending::{Dismissal, Summary};
use super::transcript::Happening;
use crate::errors::CommandError;

/// The end of words that were too long for a message.
const CUT: &str = "\n[cut: the transcript has all of it]";
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

    /// A turn has ended: the agents that wait for its final words get them.
    pub(super) async fn turn_ended(&mut self, end: TurnEnd) -> Result<(), CommandError> {
        if let Some(diff) = self.turn.as_mut().and_then(|running| running.diff.take()) {
            self.note(Happening::Diff { diff });
        }
        self.note(Happening::TurnEnded { end: end.clone() });
        let running = self.turn.take().unwrap_or_else(|| RunningTurn::of(Turn::default()));
        self.answers.turn_ended();
        let last = running.turn.last_words().map(str::to_owned);
        let stopped = self.interrupting.take().map(|(requests, _)| requests).unwrap_or_default();
        let prompts = running.turn.prompts.clone();
        let now = self.host.open.machine.now();
        // One that joined the turn may have come too late for it.
        let is_unshown =
            |given: &GivenPrompt| prompts.first() == Some(&given.prompt) && given.status != Some(PromptStatus::Shown);
        let unshown = end == TurnEnd::Completed && self.record.given.iter().any(is_unshown);
        self.change(|record| {
            record.answered(&prompts, &end, last.as_deref(), now);
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
        self.tell_root().await?;
        if unshown && self.keeps_losing().await? {
            return Ok(());
        }
        self.does(Activity::Idle).await?;
        if let Some(Dismissal { summary: summary @ Summary::Asked, .. }) = &mut self.dismissing {
            *summary = Summary::Done(last);
            return Ok(());
        }
        if self.record.tool.is_some() {
            // What it said is its caller's.
            return self.note_thread(ThreadStatus::Idle).await;
        }
        let words = match &end {
            TurnEnd::Completed => last,
            TurnEnd::Failed { why, .. } => Some(format!("(relay-mesh: the turn failed: {why})")),
            TurnEnd::Interrupted => None,
        };
        let Some(words) = words else { return Ok(()) };
        if end == TurnEnd::Completed {
            self.carry_out(running.turn.prompts.first().map_or("", String::as_str), &words).await;
        }
        // What it was told itself needs no answer.
        let to = running.turn.reply_to().filter(|(to, _)| **to != self.name).map(|(to, id)| (to.clone(), id));
        if let Some((to, id)) = &to
            && !self.has_written(to, &running.inboxes).await
        {
            self.reply(to, *id, &words).await;
        }
        self.report(&words, to.map(|(to, _)| to)).await
    }

    /// Tells the first agent of its tree what it has spent: they share a budget. Telling it twice changes nothing.
    async fn tell_root(&self) -> Result<(), CommandError> {
        let (id, root, spent) = (self.record.id, self.record.root, self.record.spent);
        if root != id {
            self.host.open.mesh.change_driven(root, |root| _ = root.below.insert(id, spent)).await?;
        }
        Ok(())
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
            body: shortened(words.to_owned(), CUT),
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
                body: shortened(words.to_owned(), CUT),
                subject: Some(format!("{}: what its first turn came to", self.name)),
                idempotency_key: Some(format!("first-words-{}", self.record.id)),
                ..Draft::default()
            };
            self.send(&by, draft).await;
        }
        self.change(|record| record.reported = true).await
    }

    /// Tells of a turn that was cut off by the end of its program.
    pub(super) async fn tell_of_cut(&self, given: &GivenPrompt, why: &str) {
        let words =
            format!("(relay-mesh: {why} by the end of its program. Its session goes on with the next message.)");
        if let PromptContent::Mail { messages, .. } = &given.content
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

    pub(super) async fn send(&self, to: &AgentName, draft: Draft) {
        if let Err(error) = self.host.open.mesh.send(&self.principal, &[to.to_string()], draft).await {
            tracing::warn!(%to, error = %store::reasons(&error), "final words could not be sent");
        }
    }
}
