//! A further prompt for a thread: to its live agent, or by a new one that goes on with it.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use mcp::{ThreadCall, ThreadReply};
use mesh::Fetch;
use mesh::driven::{DrivenId, DrivenRecord, RequestKind};
use mesh::names::AgentName;
use mesh::ports::machine::Machine as _;
use mesh::sessions::Principal;
use mesh::tool_threads::{ThreadPlace, ThreadRow, thread_context};
use store::StoreError;

use super::{Shared, agent_of, place};
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::begin::full_name;

/// Of how many threads a server knows which agent they were. One that it does not know costs a look at all that are live.
const MOST_KNOWN: usize = 1024;
/// How often one thread may have taken the place of another.
const LONGEST_CHAIN: usize = 16;

impl Shared {
    pub(super) async fn reply(
        self: &Arc<Self>,
        caller: &Principal,
        reply: ThreadReply,
    ) -> Result<ThreadCall, CommandError> {
        let agent = agent_of(caller)?;
        if let Some(record) = self.live(&agent, &reply).await?
            && let Some(call) = self.reply_to_live(&agent, &record, &reply).await?
        {
            return Ok(call);
        }
        let row = self.row(&agent, &reply).await?;
        let reply = ThreadReply { thread: row.thread.clone(), ..reply };
        // The thread that took its place may be live.
        if let Some(record) = self.live(&agent, &reply).await?
            && let Some(call) = self.reply_to_live(&agent, &record, &reply).await?
        {
            return Ok(call);
        }
        if let Some(how) = &row.died {
            self.open.mesh.change_thread(&row.thread, |row| row.died = None).await?;
            return Err(Failure {
                what: format!("{}'s program is not there any more: {how}", row.agent),
                hint: Some("nothing was started anew; the same call once more goes on with the thread".to_owned()),
                exit: Exit::Failure,
                source: None,
            }
            .into());
        }
        if reply.prompt.trim().is_empty() {
            return Err(CommandError::usage("no turn of this thread runs", "give it a prompt"));
        }
        self.go_on(caller, row, (reply.tool, &reply.prompt)).await
    }

    /// The live agent that is this thread, if the caller has begun it. After its first reply it is found without a look at
    /// the others.
    async fn live(&self, agent: &AgentName, reply: &ThreadReply) -> Result<Option<DrivenRecord>, CommandError> {
        let is_it = |record: &DrivenRecord| {
            record.tool.is_some()
                && record.ended.is_none()
                && record.by.as_ref() == Some(agent)
                && reply.harness.is_none_or(|harness| record.harness == full_name(harness))
                && (record.session.as_deref() == Some(reply.thread.as_str()) || record.id.to_string() == reply.thread)
        };
        let known = self.known().get(&reply.thread).copied();
        if let Some(id) = known {
            match self.open.mesh.driven(id).await {
                Ok(Some(record)) if is_it(&record) => return Ok(Some(record)),
                // One that cannot be read is passed over here as among all others.
                Ok(_) | Err(StoreError::Damaged { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let found = self.open.mesh.driven_agents().await?.into_iter().find(is_it);
        if let Some(record) = &found {
            let mut known = self.known();
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            known.insert(reply.thread.clone(), record.id);
        }
        Ok(found)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, DrivenId>> {
        self.known.lock().expect("no holder of this lock panics")
    }

    /// None if it has ended meanwhile.
    async fn reply_to_live(
        self: &Arc<Self>,
        agent: &AgentName,
        record: &DrivenRecord,
        reply: &ThreadReply,
    ) -> Result<Option<ThreadCall>, CommandError> {
        let id = record.id.to_string();
        if reply.prompt.trim().is_empty() {
            let last = last_prompt(record);
            return Ok(last.map(|prompt| ThreadCall { agent: id, prompt: Some(prompt), question: None }));
        }
        let place = place::of(&record.agent.folder);
        let context = self.context_now(record, &place).await?;
        let (server, now) = (self.open.machine.this_process(), self.open.machine.now());
        // Its server is the one that was called last.
        let is_called = |record: &mut DrivenRecord| {
            if let Some(tool) = &mut record.tool {
                tool.place.clone_from(&place);
                (tool.server, tool.beat, tool.last_active) = (server, now, now);
            }
        };
        let asked = (RequestKind::Prompt { text: reply.prompt.clone() }, Some(context));
        let (record, request) = match self.open.mesh.ask_driven_with(&id, asked, Some(agent), is_called).await {
            Ok(asked) => asked,
            Err(mesh::driven::RequestError::Agent(mesh::driven::DrivenError::Ended { .. })) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.open.mesh.want_driving(true).await?;
        let call = ThreadCall { agent: id, prompt: Some(request.id), question: None };
        self.audit(reply.tool, agent, (Some(&record), &call), reply.prompt.clone()).await;
        self.watch_over(call.clone());
        Ok(Some(call))
    }

    /// How things stand now for a live thread.
    async fn context_now(&self, record: &DrivenRecord, place: &ThreadPlace) -> Result<String, CommandError> {
        let name: AgentName = record.agent.name.parse()?;
        let team = record.tool.as_ref().and_then(|tool| tool.team.as_deref());
        let mut context = thread_context(&name, team, place, &record.agent.folder);
        let waiting = self.waiting(&name).await?;
        if waiting > 0 {
            context.push_str(&format!("\nMail: {waiting} unread; fetch_messages takes it."));
        }
        Ok(context)
    }

    /// How many messages wait for an agent. Nothing is marked.
    pub(super) async fn waiting(&self, agent: &AgentName) -> Result<usize, CommandError> {
        let ask = Fetch { limit: 0, peek: true, ..Fetch::default() };
        Ok(self.open.mesh.fetch(agent, &ask).await?.waiting)
    }

    /// The caller's thread in the registry. Another's is as unknown as one that never was.
    async fn row(&self, agent: &AgentName, reply: &ThreadReply) -> Result<ThreadRow, CommandError> {
        let mut wanted = reply.thread.clone();
        for _ in 0..LONGEST_CHAIN {
            let found = self.open.mesh.thread(&wanted).await?.filter(|row| {
                row.by.as_ref() == Some(agent) && reply.harness.is_none_or(|harness| row.harness == full_name(harness))
            });
            match found {
                Some(ThreadRow { continued_by: Some(next), .. }) => wanted = next,
                Some(row) => return Ok(row),
                None => break,
            }
        }
        let shown: String = reply.thread.chars().filter(|letter| !letter.is_control()).take(80).collect();
        Err(Failure {
            what: format!("you have begun no thread `{shown}`"),
            hint: Some("codex_threads lists yours".to_owned()),
            exit: Exit::NotFound,
            source: None,
        }
        .into())
    }
}

/// The prompt whose turn runs or waits, else that of the last answer.
fn last_prompt(record: &DrivenRecord) -> Option<String> {
    let waits = record.requests.iter().rfind(|request| request.text().is_some()).map(|request| request.id.clone());
    let given = || record.given.last().map(|given| given.prompt.clone());
    let answered = || record.tool.as_ref()?.answers.last().map(|answer| answer.prompt.clone());
    waits.or_else(given).or_else(answered)
}
