//! Answering a harness's hook: the adapter parses the payload, the mesh looks up mail and context, the adapter formats
//! the reply.

use std::time::Duration;

use async_trait::async_trait;
use store::StoreError;

use crate::Mesh;
use crate::agents::{pause, remote_presence};
use crate::core::Core;
use crate::delivery::chain;
use crate::delivery::evidence::{OpenHandOvers, ROUTE_OF_HOOKS};
use crate::delivery::invitation;
use crate::delivery::notice;
use crate::delivery::wake_file;
use crate::messages::Priority;
use crate::messages::fetch;
use crate::messages::fetch::{EnvelopedLease, Lease};
use crate::messages::hand_over;
use crate::messages::inbox::{Inbox, Slot};
use crate::messages::protocol::protocol_for;
use crate::messages::receipt::DeliveryStatus;
use crate::names::{AgentName, MessageId};
use crate::ports::harness::{
    Findings, Harness, HarnessError, HarnessEvidence, HookCall, HookEvent, HookHost, Mail, Occasion, Reading, Reply,
    Verdict,
};
use crate::ports::machine::Instant;
use crate::reservations::edits;
use crate::reservations::edits::EditAdvice;
use crate::sessions::identify::bare;
use crate::sessions::record;
use crate::sessions::screens::{self, ShownBy};
use crate::sessions::ticket;
use crate::sessions::{Activity, SessionRecord, SessionRef};
use crate::turns::sessions::TurnNews;
use crate::turns::{self, TurnEvent};

/// The answer to a hook.
#[derive(Clone, Debug)]
pub struct HookOutcome {
    /// What to print, and the exit code.
    pub reply: Reply,
    /// The session that the hook belongs to.
    pub speaker: Option<SessionRef>,
    /// The lease of the mail in the reply. Confirm it with [`Mesh::confirm_hook`] once the reply is flushed.
    pub lease: Option<Lease>,
    /// The invitation in the reply, with its session.
    pub invitation: Option<(SessionRef, MessageId)>,
}

/// Why a hook has no answer. The harness must keep working nevertheless.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// No adapter has that name.
    #[error("no adapter is named `{0}`")]
    UnknownHarness(String),
    /// The adapter failed.
    #[error("the adapter did not answer")]
    Harness(#[from] HarnessError),
}

impl Mesh {
    /// Answers a hook of a harness.
    pub async fn hook(&self, harness: &str, call: &HookCall) -> Result<HookOutcome, HookError> {
        let Some(adapter) = self.core.harnesses.get(harness).await? else {
            return Err(HookError::UnknownHarness(harness.to_owned()));
        };
        let mut hook_host = MeshHookHost {
            mesh: self,
            adapter: adapter.as_ref(),
            call: call.clone(),
            harness: adapter.about().harness.clone(),
            speaker: None,
            lease: None,
            notice: None,
            untold: None,
            invitation: None,
            advice: None,
            paused: None,
            ends_turn: false,
            folder: String::new(),
            turn: TurnNews::default(),
        };
        let mut answer = adapter.hook(call, &mut hook_host).await;
        let MeshHookHost { speaker, lease, notice, untold, invitation, advice, ends_turn, turn, .. } = hook_host;
        if let Some(session) = &speaker {
            notice::tell(&self.core, adapter.as_ref(), session, &call.name, answer.as_mut().ok(), untold, notice).await;
        }
        let shows = answer.as_ref().is_ok_and(|reply| reply.shows_mail);
        if let (Some((session, advice)), false) = (&advice, shows)
            && let Err(error) = edits::advise(&self.core, session, advice).await
        {
            tracing::warn!(%error, "the advice about an edit is not shown");
        }
        let lease = match lease {
            Some(lease) if !shows => {
                // The adapter had no room for it, or failed: another process may present it at once.
                if let Err(error) = fetch::release(&self.core, lease).await {
                    tracing::warn!(%error, "a lease was not released; it expires by itself");
                }
                None
            }
            other => other,
        };
        if let Some(lease) = &lease
            && let Err(error) = fetch::note_chain(&self.core, lease).await
        {
            tracing::warn!(%error, "what the agent answers may count as a new chain of messages");
        }
        let invitation = match invitation {
            Some((session, id)) if !shows => {
                if let Err(error) = invitation::give_back_invitation(&self.core, &session, id).await {
                    tracing::warn!(%error, "an invitation was not given back; its lease expires by itself");
                }
                None
            }
            other => other,
        };
        turn.note(&self.core, lease.is_some() || invitation.is_some()).await;
        if let (true, Some(session)) = (lease.is_some() || invitation.is_some(), &speaker) {
            // Mail in the reply keeps the session working, whatever activity the payload reported.
            record::change_session(&self.core, session, |record| record.activity = Activity::Busy)
                .await
                .unwrap_or_else(|error| {
                    tracing::warn!(%error, "the session is not marked busy");
                });
        }
        if let (true, None, None, Some(session)) = (ends_turn, &lease, &invitation, &speaker)
            && let Err(error) = wake_file::ring_for_the_rest(&self.core, &self.inboxes, session).await
        {
            tracing::warn!(%error, "mail waits for the next prompt or message");
        }
        Ok(HookOutcome { reply: answer?, speaker, lease, invitation })
    }
}

pub(crate) async fn confirm_hook(core: &Core, outcome: HookOutcome, event: &str) -> Result<(), crate::FetchError> {
    if let Some((session, id)) = outcome.invitation {
        invitation::advance_invitation(core, &session, id, DeliveryStatus::Shown).await?;
    }
    if let Some(session) = &outcome.speaker {
        remote_presence::tell_of_session(core, session).await;
    }
    if let (Some(lease), Some(session)) = (&outcome.lease, &outcome.speaker) {
        hand_over::hand_over(core, lease, session, &format!("{ROUTE_OF_HOOKS}{event}")).await?;
    }
    Ok(())
}

/// What a tool is refused with while its agent is paused.
fn paused_text(agent: &AgentName) -> String {
    format!(
        "your user has paused you, `{agent}`: use no tool, say where you are and end your turn. They let you go on by \
         `relay-mesh resume {agent}`."
    )
}

/// Looks things up for one hook. An error here costs the hook its mail, but never breaks the harness.
struct MeshHookHost<'a> {
    mesh: &'a Mesh,
    adapter: &'a dyn Harness,
    call: HookCall,
    harness: String,
    /// The session that the hook belongs to. Written by `look_up`.
    speaker: Option<SessionRef>,
    /// The lease of the mail given to the adapter. Written by `look_up`.
    lease: Option<Lease>,
    /// What the user is told about that mail. Written by `look_up`.
    notice: Option<String>,
    /// What the user is still to be told of mail that has woken the session. Written by `look_up`.
    untold: Option<String>,
    /// The invitation given to the adapter instead of mail. Written by `look_up`.
    invitation: Option<(SessionRef, MessageId)>,
    /// The advice given to the adapter before the mail, with its session. Written by `look_up`.
    advice: Option<(SessionRef, String)>,
    /// The paused agent of the session. Written by `look_up`.
    paused: Option<AgentName>,
    /// Whether the turn ends with this hook, unless its answer carries mail. Written by `look_up`.
    ends_turn: bool,
    /// The folder of the session. Written by `look_up`.
    folder: String,
    /// What the hook tells of the turn. Written by `look_up`.
    turn: TurnNews,
}

#[async_trait]
impl HookHost for MeshHookHost<'_> {
    async fn look_up(&mut self, reading: Reading) -> Findings {
        self.ends_turn = reading.ends_turn();
        if let Err(error) = self.look_for_evidence(&reading).await {
            tracing::warn!(%error, "it stays open whether earlier mail was shown");
        }
        // An edit must be refused even if the mail cannot be read.
        let found = self.find(&reading).await;
        let refusal = match &self.paused {
            Some(agent) => Some(paused_text(agent)),
            None => self.look_at_edits(&reading).await,
        };
        if let (None, Some(session), false) = (&refusal, &self.speaker, reading.edits.is_empty())
            && let Err(error) = turns::sessions::announce(&self.mesh.core, session, &reading.edits, &self.folder).await
        {
            tracing::warn!(%error, "a change of a file will not be told");
        }
        match found {
            Ok(findings) => Findings { refusal, ..findings },
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, harness = self.harness, "a hook goes without mail");
                Findings {
                    agent: None,
                    mail: None,
                    protocol: None,
                    refusal,
                    wake_file: String::new(),
                    ticket: String::new(),
                }
            }
        }
    }
}

impl MeshHookHost<'_> {
    /// Finds out what became of mail that earlier answers carried.
    async fn look_for_evidence(&self, reading: &Reading) -> Result<(), StoreError> {
        let Some(mut open) = OpenHandOvers::of(self.mesh, &self.harness, reading).await? else { return Ok(()) };
        if open.was_busy && reading.ends_turn() {
            let fetched = open.fetched_in_a_turn_that_ended();
            open.prove(self.mesh, &fetched).await?;
        }
        let verdicts = match self.adapter.optional().evidence {
            Some(evidence) => self.ask_for_evidence(evidence, reading, &open).await,
            None if open.was_busy && reading.ends_turn() => open.all(Verdict::Shown),
            None => Vec::new(),
        };
        let begins_anew = matches!(reading.occasion, Some(Occasion::Start | Occasion::Resume));
        open.settle(self.mesh, verdicts, begins_anew).await
    }

    /// At the end of a turn the harness may not have written everything down yet, and maybe no further hook comes.
    async fn ask_for_evidence(
        &self,
        evidence: &dyn HarnessEvidence,
        reading: &Reading,
        open: &OpenHandOvers,
    ) -> Vec<(MessageId, Verdict)> {
        let handed = open.list();
        let looks = if reading.ends_turn() { LOOKS_AT_END } else { 1 };
        let mut verdicts = Vec::new();
        for look in 0..looks {
            if look > 0 {
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
            match evidence.look(&self.call, &handed).await {
                Ok(found) => verdicts = found,
                Err(error) => {
                    tracing::warn!(%error, harness = self.harness, "it stays open whether earlier mail was shown");
                    break;
                }
            }
            if verdicts.len() == handed.len() {
                break;
            }
        }
        verdicts
    }

    async fn find(&mut self, reading: &Reading) -> Result<Findings, crate::FetchError> {
        let mesh = self.mesh;
        let mut driven = false;
        if let Some(session) = &reading.speaker {
            self.speaker = Some(self.reference(&session.id));
            let observed = record::observe(&mesh.core, &self.harness, session, None).await?;
            driven = observed.driven;
            let changed = turns::sessions::changed_files(&mesh.core, &observed, reading.ends_turn()).await?;
            changed.into_iter().for_each(|event| self.turn.tell(observed.session.clone(), event));
            self.folder = observed.workdir;
        }
        for event in &reading.events {
            self.apply(event, reading).await?;
        }
        let shown_by = match reading.occasion {
            _ if reading.attended => Some(ShownBy::Prompt),
            Some(Occasion::Start | Occasion::Resume) => Some(ShownBy::Opened),
            Some(Occasion::Registration | Occasion::Compaction) | None => None,
        };
        if let (Some(shown_by), Some(session)) = (shown_by, &self.speaker) {
            screens::note(&mesh.core, &self.adapter.traces(), session, shown_by).await?;
        }
        if let (true, Some(session)) = (reading.ends_turn(), &self.speaker) {
            // A turn that ended by itself began after the stop, or the stop was none.
            record::change_session(&mesh.core, session, |record| record.stopped = None).await?;
        }
        if let (Some(session), Some(Occasion::Start | Occasion::Resume)) = (&self.speaker, reading.occasion) {
            record::change_session(&mesh.core, session, |record| {
                record.stands_alone = true;
                // Its user has opened it again.
                record.stopped = None;
            })
            .await?;
        }
        let Some(session) = self.speaker.clone() else {
            return Ok(Findings {
                agent: None,
                mail: None,
                protocol: reading.occasion.map(|_| protocol_for(None)),
                refusal: None,
                wake_file: String::new(),
                ticket: String::new(),
            });
        };
        let agent = record::agent_of(&mesh.core, &session).await?;
        if let Some(agent) = &agent {
            let is_paused = pause::is_paused(&mesh.core, agent).await?;
            pause::note_on(&mesh.core, &session, is_paused).await?;
            self.paused = is_paused.then(|| agent.clone());
        }
        // Only the adapter knows whether and when its harness can be told to watch a file.
        let wake_file = match reading.watches_wake_file && !driven {
            true => wake_file::wake_file_of(&mesh.core, &session).await?,
            false => wake_file::wake_file_path(&mesh.core, &session),
        };
        let has_room = reading.max_bytes > 0;
        // What names the wake file is followed by a hook with room, when mail wakes the session.
        let carries = has_room || reading.watches_wake_file;
        let record = if carries { record::current_record(&mesh.core, &session).await? } else { None };
        if record.as_ref().is_some_and(|record| !record.hooks_carry_mail && !record.driven) {
            record::change_session(&mesh.core, &session, |record| record.hooks_carry_mail = true).await?;
        }
        let mail = match &record {
            Some(record) if has_room && self.may_show(record, reading) => {
                let advice = self.take_advice(record, reading.max_bytes as usize).await?;
                let max_bytes =
                    (reading.max_bytes as usize).saturating_sub(advice.as_ref().map_or(0, |text| text.len() + 1));
                let mail = match &agent {
                    // An unregistered subagent acts as its root session's agent, but must not take that agent's mail.
                    Some(agent) if record.agent.is_some() && !driven => {
                        self.take_mail(agent, reading, max_bytes).await?
                    }
                    None => self.take_invitation(&session, max_bytes).await?,
                    Some(_) => None,
                };
                beside(advice, mail)
            }
            Some(_) | None => None,
        };
        let ticket = match ticket::ticket(&mesh.core, &session).await {
            Ok(ticket) => serde_json::to_string(&ticket).unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "a hook goes without a ticket");
                String::new()
            }
        };
        Ok(Findings {
            protocol: reading.occasion.map(|_| protocol_for(agent.as_ref())),
            agent: agent.map(String::from),
            mail,
            refusal: None,
            wake_file,
            ticket,
        })
    }

    /// No mail while its agent is paused, and none while the session waits for its user: for an answer, for a prompt after
    /// they have stopped it, or for them to open it again.
    fn may_show(&self, record: &SessionRecord, reading: &Reading) -> bool {
        let core = &self.mesh.core;
        let stopped = record.stopped_until(core.machine.now(), core.limits.after_stop).is_some();
        let may_come = record.paused.is_none() && (reading.attended || !stopped);
        record.activity != Activity::NeedsInput && may_come && !record::is_left(core, record)
    }

    /// Why the edits of this hook must be refused. Stores mere advice for the next reply that can show it.
    async fn look_at_edits(&mut self, reading: &Reading) -> Option<String> {
        let EditAdvice { refusal, advice } = edits::judge_edits(&self.mesh.core, reading, self.speaker.as_ref()).await;
        if let (Some(session), Some(advice)) = (&self.speaker, advice)
            && let Err(error) = edits::advise(&self.mesh.core, session, &advice).await
        {
            tracing::warn!(%error, "the advice about an edit is not shown");
        }
        refusal
    }

    fn reference(&self, id: &str) -> SessionRef {
        SessionRef { harness: self.harness.clone(), id: id.to_owned() }
    }

    async fn apply(&mut self, event: &HookEvent, reading: &Reading) -> Result<(), StoreError> {
        let mesh = self.mesh;
        match event {
            HookEvent::Alive(session) => record::observe(&mesh.core, &self.harness, session, None).await.map(|_| ()),
            HookEvent::Activity { session, activity } => {
                let now = mesh.core.machine.now();
                let longest = mesh.core.limits.after_stop;
                let in_a_turn = *activity == Activity::Busy || reading.ends_turn();
                let (mut untold, mut before) = (None, None);
                let session = self.reference(session);
                record::change_session(&mesh.core, &session, |record| {
                    before = Some(record.activity);
                    record.activity = *activity;
                    untold = if in_a_turn { record.notice.take() } else { None };
                    // A turn that began after the wait is one that its user may stop again.
                    if *activity == Activity::Busy && record.stopped_until(now, longest).is_none() {
                        record.stopped = None;
                    }
                })
                .await?;
                self.untold = self.untold.take().or(untold);
                let of_activity = |before| turns::sessions::of_activity(before, *activity, reading.ends_turn());
                if let Some(event) = before.and_then(of_activity) {
                    self.turn.tell(session, event);
                }
                Ok(())
            }
            HookEvent::Rebound { from, to } => {
                let details = reading.speaker.clone().filter(|speaker| speaker.id == *to);
                let to = details.unwrap_or_else(|| bare(&self.reference(to), None));
                record::rebind(&mesh.core, &self.harness, from, &to).await
            }
            HookEvent::UserSpoke(session) => {
                let session = self.reference(session);
                record::change_session(&mesh.core, &session, |record| record.stopped = None).await?;
                match record::agent_of(&mesh.core, &session).await? {
                    Some(agent) => chain::person_spoke(&mesh.core, &mesh.inboxes, &agent).await,
                    None => Ok(()),
                }
            }
            HookEvent::Stopped(session) => {
                let (now, mut before) = (mesh.core.machine.now(), None);
                let session = self.reference(session);
                record::change_session(&mesh.core, &session, |record| {
                    before = Some(record.activity);
                    record.activity = Activity::Idle;
                    record.stopped.get_or_insert(now);
                })
                .await?;
                if let Some(event) = before.and_then(turns::sessions::of_stop) {
                    self.turn.tell(session, event);
                }
                Ok(())
            }
            HookEvent::Ended(session) => {
                let process = self.call.process.as_deref().and_then(|process| process.split('.').next()?.parse().ok());
                let session = self.reference(session);
                record::end(&mesh.core, &session, process).await?;
                self.turn.tell(session, TurnEvent::Ended { why: "its session ended".to_owned() });
                Ok(())
            }
        }
    }

    /// Takes the stored advice of a session.
    async fn take_advice(&mut self, record: &SessionRecord, max_bytes: usize) -> Result<Option<String>, StoreError> {
        if record.advice.is_none() {
            return Ok(None);
        }
        let advice = edits::take_advice(&self.mesh.core, &record.session, max_bytes).await?;
        self.advice = advice.clone().map(|advice| (record.session.clone(), advice));
        Ok(advice)
    }

    /// Takes the invitation of a session that has no agent.
    async fn take_invitation(
        &mut self,
        session: &SessionRef,
        max_bytes: usize,
    ) -> Result<Option<Mail>, crate::FetchError> {
        let mail = invitation::take_invitation(&self.mesh.core, session, max_bytes).await?;
        self.invitation = mail.as_ref().and_then(|mail| Some((session.clone(), *mail.ids.first()?)));
        Ok(mail)
    }

    /// Leases as much mail as fits. Leaves out held mail unless the user caused this hook: showing it at the end of a
    /// turn would continue the very loop that it was held for.
    async fn take_mail(
        &mut self,
        agent: &AgentName,
        reading: &Reading,
        max_bytes: usize,
    ) -> Result<Option<Mail>, crate::FetchError> {
        let mesh = self.mesh;
        if record::lives_elsewhere(&mesh.core, agent).await? {
            return Ok(None);
        }
        let pick = |inbox: &Inbox, now: Instant| -> Vec<Slot> {
            let slots = inbox.open.presentable(now);
            slots
                .filter(|slot| reading.attended || slot.history.held(now).is_none())
                .take(MOST_AT_ONCE)
                .cloned()
                .collect()
        };
        let of_hook = (fetch::UNNAMED, max_bytes);
        let leased = fetch::lease_enveloped(&mesh.core, &mesh.inboxes, agent, of_hook, pick).await?;
        let Some(EnvelopedLease { messages, text, mut lease }) = leased.filter(|leased| !leased.messages.is_empty())
        else {
            return Ok(None);
        };
        if reading.attended {
            // The user has just spoken, and what the agent does now it does for them: its chain begins anew.
            lease.trace = None;
        }
        let priority = messages.iter().map(|fetched| fetched.message.priority).max().unwrap_or_default();
        let mail = Mail { ids: lease.messages.clone(), text, priority };
        self.notice = notice::of(messages.iter().map(|fetched| &fetched.message));
        self.lease = Some(lease);
        Ok(Some(mail))
    }
}

/// Puts advice before the mail, or in its place if there is no mail.
fn beside(advice: Option<String>, mail: Option<Mail>) -> Option<Mail> {
    match (advice, mail) {
        (Some(advice), Some(mail)) => Some(Mail { text: format!("{advice}\n{}", mail.text), ..mail }),
        (Some(text), None) => Some(Mail { ids: Vec::new(), text, priority: Priority::Normal }),
        (None, mail) => mail,
    }
}

/// How many messages a hook leases before checking how many fit.
const MOST_AT_ONCE: usize = 20;

/// How often a hook at the end of a turn looks for evidence, and how long it waits in between.
const LOOKS_AT_END: u32 = 6;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
