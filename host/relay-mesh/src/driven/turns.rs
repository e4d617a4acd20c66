//! The end of a turn: its final words go to the agents that wait for them.

use mesh::driven::{GivenPrompt, OwedReply, OwedWords, PromptContent, Turn};
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
        // Before the ledger forgets the turn, so that its end is in the event log whatever becomes of this process.
        self.tell_events().await;
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
        let owed = self.owed(&running, &end);
        self.change(|record| {
            record.owed.extend(owed.clone());
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
        // What others wait for does not depend on whether this can be noted.
        if let Err(error) = self.tell_root().await {
            let error = store::reasons(&error);
            tracing::warn!(agent = %self.name, %error, "the first agent of its tree hears later what it has spent");
        }
        if unshown && self.keeps_losing().await? {
            return Ok(());
        }
        if let Err(error) = self.does(Activity::Idle).await {
            tracing::warn!(agent = %self.name, error = %store::reasons(&error), "an agent that is idle seems busy");
        }
        if let Some(Dismissal { summary: summary @ Summary::Asked, .. }) = &mut self.dismissing {
            *summary = Summary::Done(last);
            return Ok(());
        }
        if self.record.tool.is_some() {
            // What it said is its caller's.
            return self.note_thread(ThreadStatus::Idle).await;
        }
        self.does_what_is_owed().await
    }

    /// What the end of a turn leaves to be done. What a thread of a tool said is its caller's, and a summary has a place
    /// of its own.
    fn owed(&self, running: &RunningTurn, end: &TurnEnd) -> Option<OwedWords> {
        if self.record.tool.is_some() || self.is_summing_up() {
            return None;
        }
        let words = match end {
            TurnEnd::Completed => running.turn.last_words()?.to_owned(),
            TurnEnd::Failed { why, .. } => format!("(relay-mesh: the turn failed: {why})"),
            TurnEnd::Interrupted => return None,
        };
        // What it was told itself needs no answer.
        let reply = running.turn.reply_to().filter(|(to, _)| **to != self.name).map(|(to, message)| OwedReply {
            to: to.clone(),
            message,
            inbox_end: running.inboxes.iter().find(|(of, _)| of == to).map(|(_, end)| *end),
        });
        Some(OwedWords {
            turn: running.turn.prompts.first().cloned().unwrap_or_else(|| self.host.open.mesh.new_uuid()),
            words,
            may_direct: *end == TurnEnd::Completed,
            reply,
            carried_out: 0,
            not_done: Vec::new(),
            begins: None,
        })
    }

    /// Whether the turn that runs is the one that sums up.
    fn is_summing_up(&self) -> bool {
        self.dismissing.as_ref().is_some_and(|dismissal| dismissal.summary == Summary::Asked)
    }

    /// Does what the ends of turns have left to be done, in this process or in one that was killed meanwhile. Each
    /// message has a key, so that none comes twice.
    pub(super) async fn does_what_is_owed(&mut self) -> Result<(), CommandError> {
        for mut owed in self.record.owed.clone() {
            if owed.may_direct {
                self.carry_out(&mut owed).await?;
            }
            if let Some(OwedReply { to, message, inbox_end }) = &owed.reply
                && !self.has_written(to, *inbox_end).await
            {
                self.reply(to, *message, &owed.words).await;
            }
            self.report(&owed).await?;
        }
        Ok(())
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
    async fn has_written(&self, to: &AgentName, inbox_end: Option<Position>) -> bool {
        let Some(mut at) = inbox_end else { return false };
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

    /// Tells the spawner what the first turn came to, and notes that nothing is left to be done.
    async fn report(&mut self, owed: &OwedWords) -> Result<(), CommandError> {
        let by = self.record.by.clone().filter(|_| !self.record.reported);
        let told = owed.reply.as_ref().map(|reply| &reply.to);
        if let Some(by) = by.as_ref().filter(|by| told != Some(*by)) {
            let draft = Draft {
                body: shortened(owed.words.clone(), CUT),
                subject: Some(format!("{}: what its first turn came to", self.name)),
                idempotency_key: Some(format!("first-words-{}", self.record.id)),
                ..Draft::default()
            };
            self.send(by, draft).await;
        }
        self.change(|record| {
            record.reported |= by.is_some();
            record.owed.retain(|other| other.turn != owed.turn);
        })
        .await
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
