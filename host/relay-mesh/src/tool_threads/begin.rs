//! Beginning a thread, and going on with one that is not live.

use std::path::PathBuf;
use std::sync::Arc;

use mcp::{NewThread, ThreadCall};
use mesh::allowances::Starts;
use mesh::audit::Audited;
use mesh::driven::{DrivenRecord, RequestKind, WantedAgent, is_allowed};
use mesh::names::AgentName;
use mesh::ports::driver::{Approvals, Tailoring};
use mesh::ports::machine::Machine as _;
use mesh::ports::runner::Reach;
use mesh::sessions::Principal;
use mesh::tool_threads::{ThreadRow, WantedThread};

use super::{Resume, Shared, agent_of, limits, place};
use crate::config::{Allowed, Origin};
use crate::driven::asking;
use crate::driven::permission::{self, PermissionOutcome};
use crate::errors::CommandError;
use crate::runs::begin::full_name;
use crate::runs::for_clients::folder_of;

/// The harness whose program the settings may name, and of which a server tells how it stands.
pub(super) const CODEX: &str = "codex";
/// How long an idle thread may take to make room for another.
const MAKES_ROOM: std::time::Duration = std::time::Duration::from_secs(20);

impl Shared {
    pub(super) async fn begin(
        self: &Arc<Self>,
        caller: &Principal,
        new: NewThread,
    ) -> Result<ThreadCall, CommandError> {
        let agent = agent_of(caller)?;
        let settings = &self.context.settings.threads;
        limits::check(&new, settings)?;
        let role = new.role.clone().or_else(|| settings.role());
        let defaults = settings.defaults(role.as_deref())?;
        let harness =
            if new.harness.is_empty() { defaults.harness.clone().unwrap_or_default() } else { new.harness.clone() };
        let harness = full_name(&harness).to_owned();
        if let Some(resume) = self.take_resume(&harness)
            && let Some(row) = self.to_resume(&agent, &harness, resume).await?
        {
            return self.go_on(caller, row, (new.tool, &new.prompt)).await;
        }
        let of_file = |path: &Option<PathBuf>| path.as_deref().map(limits::prompt_file).transpose();
        let folder = folder_of(&self.context, caller, new.folder.as_deref())?;
        let base = match new.base {
            Some(base) => Some(base),
            None => of_file(&defaults.base)?,
        };
        let instructions = match new.instructions {
            Some(instructions) => Some(instructions),
            None => of_file(&defaults.instructions)?,
        };
        let thread = WantedThread {
            identity: self.identity(&harness),
            team: self.context.settings.team.value.clone(),
            place: place::of(&folder),
            tag: new.tag,
            role,
            instructions,
            tailoring: Tailoring {
                effort: new.effort.or(defaults.effort),
                base,
                compaction: new.compaction,
                settings: new.settings.into_iter().collect(),
            },
            continues: None,
            program: self.program(&harness),
            server: self.open.machine.this_process(),
        };
        let wanted = WantedAgent {
            harness,
            text: new.prompt,
            folder,
            reach: new.reach.unwrap_or(defaults.reach),
            never_ask: new.approvals.unwrap_or(defaults.approvals) == Approvals::Refuse,
            model: new.model.or(defaults.model),
            thread: Some(Box::new(thread)),
            ..WantedAgent::default()
        };
        self.want(caller, wanted, new.tool).await
    }

    /// Goes on with a thread that is not live, by a new agent.
    pub(super) async fn go_on(
        self: &Arc<Self>,
        caller: &Principal,
        row: ThreadRow,
        (tool, prompt): (&'static str, &str),
    ) -> Result<ThreadCall, CommandError> {
        limits::check_again(&row, &self.context.settings.threads)?;
        let folder = crate::runs::begin::existing(&row.cwd)?;
        let summary = self.open.mesh.thread_summary(&row.thread).await?;
        let thread = WantedThread {
            identity: row.identity,
            team: row.team,
            place: place::of(&folder),
            tag: row.tag,
            role: row.role,
            instructions: row.instructions,
            tailoring: row.tailoring,
            continues: Some((row.thread, row.started, summary)),
            program: self.program(&row.harness),
            server: self.open.machine.this_process(),
        };
        let wanted = WantedAgent {
            harness: row.harness,
            text: prompt.to_owned(),
            folder,
            reach: row.reach,
            never_ask: row.approvals == Approvals::Refuse,
            model: row.model,
            thread: Some(Box::new(thread)),
            ..WantedAgent::default()
        };
        self.want(caller, wanted, tool).await
    }

    async fn want(
        self: &Arc<Self>,
        caller: &Principal,
        wanted: WantedAgent,
        tool: &'static str,
    ) -> Result<ThreadCall, CommandError> {
        let agent = agent_of(caller)?;
        let asker = permission::of_client(&self.context, &self.open, caller).await?;
        let allowed = Allowed::to_start(Starts::Agents, &self.context.settings, &self.context.environment)?;
        if wanted.reach == Reach::Unguarded
            && is_allowed(&asker, (&wanted.harness, wanted.reach), &allowed.listed()?, &[], self.open.machine.now())
                .is_err()
        {
            return Err(limits::unguarded(&agent, &wanted.harness));
        }
        self.make_room(&agent, allowed.bounds()?.each).await?;
        let text = wanted.text.clone();
        let call = match permission::ask_for(&self.context, &self.open, &asker, wanted).await? {
            PermissionOutcome::Begun(begun) => {
                self.open.mesh.want_driving(true).await?;
                let prompt = begun.record.requests.first().map(|request| request.id.clone());
                ThreadCall { agent: begun.record.id.to_string(), prompt, question: None }
            }
            PermissionOutcome::Waits(ask) => {
                ThreadCall { agent: ask.id.to_string(), prompt: None, question: Some(ask.id.to_string()) }
            }
        };
        let begun = self.record(&call).await?;
        self.audit(tool, &agent, (begun.as_ref(), &call), text).await;
        self.watch_over(call.clone());
        Ok(call)
    }

    pub(super) async fn audit(
        &self,
        tool: &str,
        by: &AgentName,
        (record, call): (Option<&DrivenRecord>, &ThreadCall),
        text: String,
    ) {
        let thread = record.and_then(|record| {
            record.session.clone().or_else(|| record.tool.as_ref().and_then(|tool| tool.continues.clone()))
        });
        let audited = Audited {
            tool: tool.to_owned(),
            by: Some(by.clone()),
            agent: record.and_then(|record| record.agent.name.parse().ok()),
            thread,
            correlation: call.prompt.clone().or_else(|| call.question.clone()).unwrap_or_default(),
            to: Vec::new(),
            text,
        };
        self.open.mesh.audit(&audited).await;
    }

    /// Lets the thread rest that was used least lately, if the caller has as many agents as it may and that one is idle. It
    /// is gone on with at its next prompt.
    async fn make_room(&self, agent: &AgentName, each: usize) -> Result<(), CommandError> {
        let live = self.open.mesh.driven_agents().await?;
        let own: Vec<&DrivenRecord> = live.iter().filter(|record| record.by.as_ref() == Some(agent)).collect();
        if own.len() < each {
            return Ok(());
        }
        let is_idle = |record: &&&DrivenRecord| record.requests.is_empty() && record.given.is_empty();
        let used = |record: &&&DrivenRecord| record.tool.as_ref().map(|tool| tool.last_active);
        let oldest = own.iter().filter(|record| record.tool.is_some()).filter(is_idle).min_by_key(used);
        if let Some(oldest) = oldest {
            let rest = (oldest.id.to_string(), RequestKind::Dismiss { summary: false });
            asking::done(&self.context, &self.open, (&rest.0, rest.1), None, MAKES_ROOM).await?;
        }
        Ok(())
    }

    /// The name of new threads of a harness: the identity of the settings, which is Codex's unless they say otherwise.
    pub(super) fn identity(&self, harness: &str) -> String {
        let identity = self.context.settings.threads.identity();
        if identity.origin == Origin::Default { mesh::runs::agent_label(harness).to_owned() } else { identity.value }
    }

    fn program(&self, harness: &str) -> Option<String> {
        let program = self.context.settings.threads.program().filter(|_| harness == CODEX);
        program.map(|program| program.display().to_string())
    }

    fn take_resume(&self, harness: &str) -> Option<Resume> {
        let mut resume = self.resume.lock().expect("no holder of this lock panics");
        if harness == CODEX { resume.take() } else { None }
    }

    /// The thread that the user wants gone on with; none, with a warning, if there is none of it.
    async fn to_resume(
        &self,
        agent: &AgentName,
        harness: &str,
        resume: Resume,
    ) -> Result<Option<ThreadRow>, CommandError> {
        let (mesh, identity) = (&self.open.mesh, self.identity(harness));
        let is_own = |row: &ThreadRow| row.by.as_ref() == Some(agent) && row.harness == harness;
        let is_next = |row: &ThreadRow| is_own(row) && row.identity == identity && row.continued_by.is_none();
        let found = match &resume {
            // One that began long ago may be the last that was active.
            Resume::Latest => mesh.threads().await?.into_iter().find(is_next),
            Resume::Thread(id) => mesh.thread(id).await?.filter(is_own),
        };
        match &found {
            None => tracing::warn!(%identity, "there is no thread to resume, so a new one begins"),
            Some(row) if !row.summed_up => {
                tracing::warn!(thread = %row.thread, "no summary is kept of the thread that is resumed");
            }
            Some(_) => {}
        }
        Ok(found)
    }
}
