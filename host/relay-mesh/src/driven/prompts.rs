//! Giving an agent its prompts, and what became of each. An entry in the ledger comes before the frames.

use std::time::Duration;

use mesh::driven::{GivenPrompt, PromptContent, Request, RequestKind, Settled, Turn, settle};
use mesh::messages::receipt::DeliveryStatus;
use mesh::names::{AgentName, MessageId};
use mesh::ports::driver::{Action, Failure, Prompt, PromptStatus, TurnEnd};
use mesh::ports::harness::HarnessError;
use mesh::ports::machine::Machine as _;
use mesh::sessions::Activity;
use mesh::tool_threads::ThreadStatus;
use tokio::time::Instant;

use super::agent::{Driving, RunningTurn};
use super::transcript::Happening;
use crate::errors::CommandError;

/// Milliseconds before what was lost or refused is given again for the first time.
const AGAIN: u64 = 250;
/// How many prompts in a row a harness may lose that goes on all the while.
const MOST_LOST: u32 = 3;
/// How often in a row a program may end that was given prompts and has shown none.
const MOST_BREAKS: u32 = 5;
/// How long a turn may take to stop.
pub(super) const STOPS: Duration = Duration::from_secs(15);

/// Whether a prompt begins a turn or joins one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Begins,
    Joins,
}

impl Driving {
    /// Begins a turn with what waits, if anything does: requests first, then mail.
    pub(super) async fn prompt(&mut self) -> Result<(), CommandError> {
        let waits = self.record.requests.iter().find(|request| request.text().is_some()).cloned();
        if let Some(request) = waits {
            return self.give_request(&request, How::Begins).await;
        }
        self.give_mail(Activity::Idle, How::Begins).await
    }

    /// Gives the running turn what may join it.
    pub(super) async fn steer(&mut self) -> Result<(), CommandError> {
        let takes = self.linked.as_ref().is_some_and(|linked| linked.handle.able.steer);
        if !takes || !self.turn.as_ref().is_some_and(|turn| turn.started) || !self.questions.is_empty() {
            return Ok(());
        }
        let is_given = |request: &Request| self.record.given.iter().any(|given| given.prompt == request.id);
        let steers = |request: &&Request| matches!(request.kind, RequestKind::Steer { .. }) && !is_given(request);
        if let Some(request) = self.record.requests.iter().find(steers).cloned() {
            return self.give_request(&request, How::Joins).await;
        }
        self.give_mail(Activity::Busy, How::Joins).await
    }

    async fn give_request(&mut self, request: &Request, how: How) -> Result<(), CommandError> {
        let Some(text) = request.text() else { return Ok(()) };
        let by_user = request.by.is_none();
        if by_user {
            self.host.open.mesh.user_spoke(&self.name).await?;
        }
        self.note(Happening::Told { from: request.by.as_ref().map(ToString::to_string), text: text.clone() });
        let context = request.context.clone();
        let prompt = self.with_context(Prompt { id: request.id.clone(), text, by_user, context });
        self.give(prompt, PromptContent::Request, how, Vec::new()).await?;
        // After the frames, as the receipts of mail.
        self.note_thread(ThreadStatus::Active).await
    }

    async fn give_mail(&mut self, activity: Activity, how: How) -> Result<(), CommandError> {
        if self.record.tool.is_some() {
            return Ok(());
        }
        let Some(route) = self.linked.as_ref().map(super::agent::Linked::route) else { return Ok(()) };
        let Some(mail) = self.host.open.mesh.take_turn_mail((&self.name, self.record.id), activity).await? else {
            return Ok(());
        };
        let ids = mail.lease.messages.clone();
        let content = PromptContent::Mail { messages: ids.clone(), lease: mail.lease.id().to_owned() };
        let prompt = Prompt { id: self.host.open.mesh.new_uuid(), text: mail.text, by_user: false, context: None };
        self.note(Happening::Told { from: Some(mail.from.to_string()), text: prompt.text.clone() });
        let begun_by = ids.iter().map(|id| (*id, mail.from.clone())).collect();
        let id = prompt.id.clone();
        let outcome = self.give(prompt, content, how, begun_by).await;
        if outcome.is_err() && !self.record.given.iter().any(|given| given.prompt == id) {
            // Without an entry in the ledger nothing was sent, and nothing else would ever give it back.
            let (reason, lease) = ("it could not be noted that its agent gets it", mail.lease.id());
            self.host.open.mesh.turn_mail_back(&self.name, (&ids, lease), false, reason).await?;
            return outcome;
        }
        self.leases.insert(id, mail.lease.clone());
        self.renew = self.renew.max(Instant::now() + Duration::from_millis(self.host.open.mesh.lease_time() / 2));
        outcome?;
        // After the frames: the turn begins that much sooner, and a process that is killed in between has the ledger.
        Ok(self.host.open.mesh.confirm(&mail.lease, DeliveryStatus::Notified, &route, None).await?)
    }

    /// Gives a text of the host's own.
    pub(super) async fn give_own(&mut self, text: &str) -> Result<(), CommandError> {
        let prompt = Prompt { id: self.host.open.mesh.new_uuid(), text: text.to_owned(), by_user: true, context: None };
        self.give(prompt, PromptContent::Own, How::Begins, Vec::new()).await
    }

    async fn give(
        &mut self,
        prompt: Prompt,
        content: PromptContent,
        how: How,
        begun_by: Vec<(MessageId, AgentName)>,
    ) -> Result<(), CommandError> {
        let now = self.host.open.machine.now();
        let given = GivenPrompt { prompt: prompt.id.clone(), content, at: now, status: None };
        self.change(|record| {
            record.given.push(given.clone());
            if let Some(tool) = &mut record.tool {
                tool.last_active = now;
            }
        })
        .await?;
        let Some(session) = self.linked.as_ref().and_then(|linked| linked.session.clone()) else { return Ok(()) };
        match how {
            How::Begins => {
                let mut turn = RunningTurn::of(Turn::of(prompt.id.clone(), begun_by));
                if let Some((to, _)) = turn.turn.reply_to() {
                    let to = to.clone();
                    // Without it the reply is sent, even if it has written itself: that is better than none.
                    match self.host.open.mesh.inbox_end(&to).await {
                        Ok(end) => turn.inboxes.push((to, end)),
                        Err(error) => tracing::debug!(%to, %error, "where an inbox ends is not known"),
                    }
                }
                self.turn = Some(turn);
                self.act(Action::Prompt(session, prompt));
                self.does(Activity::Busy).await
            }
            How::Joins => {
                if let Some(running) = &mut self.turn {
                    running.turn.prompts.push(prompt.id.clone());
                }
                self.act(Action::Steer(session, prompt));
                Ok(())
            }
        }
    }

    fn act(&self, action: Action) {
        if let Some(linked) = &self.linked {
            linked.handle.act(action);
        }
    }

    /// Notes how far a prompt is, and what follows from it. `broke` if the harness was asked after a break.
    pub(super) async fn settle(&mut self, id: &str, status: PromptStatus, broke: bool) -> Result<(), CommandError> {
        let Some(given) = self.record.given.iter().find(|given| given.prompt == id).cloned() else { return Ok(()) };
        let (route, once) = match &self.linked {
            Some(linked) => (linked.route(), linked.handle.able.once),
            None => return Ok(()),
        };
        let settled = settle(status, broke, once);
        // Such as a prompt at which the program ends each time.
        if matches!(settled, Settled::Lost | Settled::Unknown) && broke && self.breaks_each_time() {
            return self.gives_up_breaking().await;
        }
        match settled {
            Settled::Open => self.taken(&given, &route).await?,
            Settled::Shown => self.shown(&given, status, broke, &route).await?,
            // What is lost by a break is nothing that the harness does each time.
            Settled::Lost if !broke && self.keeps_losing().await? => return Ok(()),
            Settled::Lost => self.back(&given, false).await?,
            Settled::Unknown => self.back(&given, true).await?,
        }
        let is_over = matches!(status, PromptStatus::Answered | PromptStatus::Lost | PromptStatus::Unknown);
        // A prompt that gets no turn ends the wait for one.
        if is_over && self.turn.as_ref().is_some_and(|turn| !turn.started && turn.turn.prompts == [id]) {
            self.turn = None;
            self.does(Activity::Idle).await?;
        }
        Ok(())
    }

    /// Counts a prompt of which its harness has not told that it was shown although nothing broke, and ends the agent if it
    /// does so each time. Each may have had a turn, and cost one: giving them again would never end.
    pub(super) async fn keeps_losing(&mut self) -> Result<bool, CommandError> {
        self.rest.lost += 1;
        if self.rest.lost < MOST_LOST {
            return Ok(false);
        }
        let why = format!("its harness has taken {MOST_LOST} prompts in a row and told of none that it was shown");
        self.gives_up(&why).await?;
        Ok(true)
    }

    /// Whether its program ends at each prompt before it tells that it was shown.
    pub(super) fn breaks_each_time(&self) -> bool {
        self.rest.breaks >= MOST_BREAKS
    }

    pub(super) async fn gives_up_breaking(&mut self) -> Result<(), CommandError> {
        self.gives_up(&format!("its program has ended {MOST_BREAKS} times in a row before a prompt was shown")).await
    }

    /// Ends the agent, whose prompts would be given again for ever.
    async fn gives_up(&mut self, why: &str) -> Result<(), CommandError> {
        for given in self.record.given.clone() {
            self.back(&given, true).await?;
            self.change(|record| record.done(&given.prompt, Some(why.to_owned()), None)).await?;
        }
        self.end(why, false, None).await.map(drop)
    }

    async fn taken(&mut self, given: &GivenPrompt, route: &str) -> Result<(), CommandError> {
        if given.status.is_some() {
            return Ok(());
        }
        if let Some(lease) = self.leases.remove(&given.prompt) {
            self.host.open.mesh.turn_mail_taken(&lease, &self.session, route).await?;
        }
        let id = given.prompt.clone();
        self.change(|record| set_status(&mut record.given, &id, PromptStatus::Accepted)).await
    }

    pub(super) async fn shown(
        &mut self,
        given: &GivenPrompt,
        status: PromptStatus,
        broke: bool,
        route: &str,
    ) -> Result<(), CommandError> {
        let id = given.prompt.clone();
        (self.rest.lost, self.rest.breaks) = (0, 0);
        if given.status != Some(PromptStatus::Shown) {
            if let Some(lease) = self.leases.remove(&id) {
                // The chain of messages that it works on now.
                self.host.open.mesh.turn_mail_taken(&lease, &self.session, route).await?;
            }
            if let PromptContent::Mail { messages, .. } = &given.content {
                self.host.open.mesh.turn_mail_shown(&self.name, messages, route, &id).await?;
            }
        }
        let content = given.content.clone();
        // Without a turn of ours that ends, this is all that comes.
        let is_over = broke || (status == PromptStatus::Answered && self.turn.is_none());
        let cut = TurnEnd::Failed {
            failure: Failure::Other,
            why: "its turn was cut off by the end of its program".to_owned(),
        };
        let now = self.host.open.machine.now();
        if broke {
            // Before the ledger forgets it. The reply has a key, so that it comes once.
            self.tell_of_cut(given, "its turn was cut off").await;
        }
        self.change(|record| {
            if broke {
                record.answered(std::slice::from_ref(&id), &cut, None, now);
            }
            if content == PromptContent::Request {
                record.done(&id, None, None);
            }
            match is_over {
                true => record.given.retain(|given| given.prompt != id),
                false => set_status(&mut record.given, &id, PromptStatus::Shown),
            }
        })
        .await
    }

    /// Puts back what the harness did not show. `passed_on` if that is not known: its text may have been read.
    pub(super) async fn back(&mut self, given: &GivenPrompt, passed_on: bool) -> Result<(), CommandError> {
        let id = given.prompt.clone();
        self.leases.remove(&id);
        if let PromptContent::Mail { messages, lease } = &given.content {
            let reason = match passed_on {
                true => "it is not known whether its harness has shown it",
                false => "its harness did not show it",
            };
            self.host.open.mesh.turn_mail_back(&self.name, (messages, lease), passed_on, reason).await?;
        }
        self.change(|record| {
            record.given.retain(|given| given.prompt != id);
            for request in record.requests.iter_mut().filter(|request| request.id == id) {
                request.may_repeat |= passed_on;
            }
        })
        .await?;
        self.rest.failures += 1;
        self.rest_for(AGAIN);
        Ok(())
    }

    /// The last action about this did nothing.
    pub(super) async fn refused(&mut self, what: &str, error: HarnessError) -> Result<(), CommandError> {
        if self.answer_refused(what, &error) {
            return Ok(());
        }
        let given = self.record.given.iter().find(|given| given.prompt == what).cloned();
        let Some(given) = given else {
            if self.is_open() {
                self.note(Happening::Note { text: format!("it refused something: {error}") });
                return Ok(());
            }
            // The session could not be begun, or continued.
            if self.record.tool.is_some() && !matches!(error, HarnessError::NotFound(_)) {
                return self.not_to_be_had(&error.to_string()).await.map(|_| ());
            }
            let why = error.to_string();
            return self.gone_at_opening(&why).await;
        };
        let joined = self.turn.as_mut().is_some_and(|running| {
            let before = running.turn.prompts.len();
            running.turn.prompts.retain(|prompt| prompt != what);
            running.turn.prompts.len() != before && !running.turn.prompts.is_empty()
        });
        if !joined {
            self.turn = None;
            self.does(Activity::Idle).await?;
        }
        match error {
            // It begins a turn of its own once this one has ended.
            HarnessError::Busy(_) | HarnessError::Unsupported(_) if joined => {
                self.back(&given, false).await?;
                self.change(|record| as_prompt(&mut record.requests, what)).await
            }
            HarnessError::Busy(rest) => {
                self.back(&given, false).await?;
                self.rest_for(u64::from(rest).max(AGAIN));
                Ok(())
            }
            error => {
                self.note(Happening::Note { text: format!("it did not take a prompt: {error}") });
                self.back(&given, false).await?;
                let why = error.to_string();
                self.change(|record| record.done(what, Some(why.clone()), None)).await
            }
        }
    }

    async fn gone_at_opening(&mut self, why: &str) -> Result<(), CommandError> {
        if let Some(linked) = self.linked.take() {
            let (gone, _) = tokio::sync::oneshot::channel();
            linked.handle.leave(None, gone);
        }
        self.failed(why).await.map(|_| ())
    }

    /// Stops the running turn for these requests.
    pub(super) fn interrupt(&mut self, requests: Vec<String>) {
        if let Some(linked) = &self.linked
            && let Some(session) = &linked.session
        {
            linked.handle.act(Action::Interrupt(session.clone()));
        }
        self.interrupting = Some((requests, Instant::now() + STOPS));
    }

    /// Takes what is to stop the running turn.
    pub(super) async fn take_interrupts(&mut self) -> Result<(), CommandError> {
        let is_one = |request: &&Request| request.kind == RequestKind::Interrupt;
        let wanted: Vec<String> =
            self.record.requests.iter().filter(is_one).map(|request| request.id.clone()).collect();
        if wanted.is_empty() || self.interrupting.as_ref().is_some_and(|(known, _)| *known == wanted) {
            return Ok(());
        }
        let able = self.linked.as_ref().is_some_and(|linked| linked.handle.able.interrupt);
        let failed = match (&self.turn, able) {
            (Some(_), true) => {
                self.interrupt(wanted);
                return Ok(());
            }
            (Some(_), false) => "its harness cannot stop a turn",
            (None, _) => "no turn runs",
        };
        self.change(|record| wanted.iter().for_each(|id| record.done(id, Some(failed.to_owned()), None))).await
    }
}

fn set_status(given: &mut [GivenPrompt], id: &str, status: PromptStatus) {
    for given in given.iter_mut().filter(|given| given.prompt == id) {
        given.status = Some(status);
    }
}

/// What could not join a turn begins one.
fn as_prompt(requests: &mut [Request], id: &str) {
    for request in requests.iter_mut().filter(|request| request.id == id) {
        if let RequestKind::Steer { text } = &mut request.kind {
            request.kind = RequestKind::Prompt { text: std::mem::take(text) };
        }
    }
}
