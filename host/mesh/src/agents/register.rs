//! Registration: stable names, given back to whom they belong.

use store::{Durability, StoreError, SwapError};

use crate::Mesh;
use crate::agents::adopt;
use crate::agents::presence;
use crate::agents::profile::{fill, made_up};
use crate::agents::remote_cache::RemoteCache;
use crate::agents::remote_presence;
use crate::agents::{Agent, Origin, Presence, Profile};
use crate::core::Core;
use crate::delivery::invitation;
use crate::messages::inboxes::Inboxes;
use crate::messages::{LONGEST_LABEL, MOST_TAGS};
use crate::names::{AgentName, InvalidName};
use crate::sessions::identify;
use crate::sessions::identify::{CONNECTION, bare, key_digest};
use crate::sessions::record;
use crate::sessions::{Principal, SessionRef, Transport, ticket};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How many numbered forms of a name are tried.
const MOST_NUMBERED: u32 = 99;
/// How often a name is tried for while others register it too.
const TRIES: usize = 20;
/// The longest path of a project, in bytes.
const LONGEST_PATH: usize = 4096;

/// What an agent asks for when it registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The name that it would like. Left out, one is made from the harness and the project.
    pub name: Option<AgentName>,
    /// The team that it joins. Where the name says one too, it has to be the same.
    pub team: Option<String>,
    /// What it says of itself.
    pub profile: Profile,
}

/// What a registration came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// A name that nobody had.
    New,
    /// The agent that this caller was already.
    Same,
    /// The name was taken, so that it got a number.
    Numbered {
        /// What it had asked for.
        wanted: AgentName,
    },
    /// The name of an agent that is gone.
    Reclaimed,
}

/// An agent that has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The agent.
    pub agent: Agent,
    /// How it came to its name.
    pub outcome: RegisterOutcome,
    /// The key by which it speaks, where it has nothing else to be known by.
    pub key: Option<String>,
    /// Messages that already wait for it.
    pub waiting: usize,
}

/// Why nobody was registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The team is not a name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The name says one team, and another one was asked for.
    #[error("`{name}` is in the team its name says, and not in `{team}`")]
    TwoTeams {
        /// The name.
        name: AgentName,
        /// The other team.
        team: String,
    },
    /// A field of the profile is too long.
    #[error("`{field}` has {bytes} bytes and may have {limit}")]
    TooLong {
        /// Which.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// Too many skills.
    #[error("an agent may name {MOST_TAGS} skills and this one names {0}")]
    TooManySkills(usize),
    /// Every number of that name is taken.
    #[error("every numbered form of `{0}` is taken")]
    Crowded(AgentName),
    /// Somebody else was faster, again and again.
    #[error("the name `{0}` is being registered by several at once")]
    Contended(AgentName),
    /// The store failed.
    #[error("the agent could not be stored")]
    Store(#[from] store::StoreError),
}

impl Mesh {
    /// Registers the caller. The same session gets the same agent back; a new name is given where
    /// the one asked for belongs to somebody else.
    pub async fn register(&self, caller: &Principal, wanted: Registration) -> Result<Registered, RegisterError> {
        check_profile(&wanted.profile)?;
        if let (Some(name), Some(team)) = (&wanted.name, &wanted.team)
            && name.team().is_some_and(|said| said != team)
        {
            return Err(RegisterError::TwoTeams { name: name.clone(), team: team.clone() });
        }
        let mut profile = wanted.profile;
        fill(&mut profile, &caller.profile);
        if let Some(name) = own_agent(&self.core, &self.remote, caller).await? {
            return self.register_again(caller, &name, profile).await;
        }
        let name = match &wanted.name {
            Some(name) => name.clone(),
            None => made_up(&profile),
        };
        let name = match (&wanted.team, name.team()) {
            (Some(team), None) => name.in_team(Some(team))?,
            (Some(_), Some(_)) | (None, _) => name,
        };
        for number in 1..=MOST_NUMBERED {
            let candidate = if number == 1 { name.clone() } else { name.numbered(number) };
            if let Some((agent, how, key)) = take_name(&self.core, &self.inboxes, caller, &candidate, &profile).await? {
                let outcome = match how {
                    Taken::New if number > 1 => RegisterOutcome::Numbered { wanted: name },
                    Taken::New => RegisterOutcome::New,
                    Taken::Reclaimed => RegisterOutcome::Reclaimed,
                };
                self.settle_in(caller, &agent).await?;
                let waiting = presence::waiting(&self.core, &self.inboxes, &agent.name).await?;
                self.core
                    .event_log
                    .note("registered", serde_json::json!({ "agent": agent.name, "harness": agent.profile.harness }))
                    .await;
                return Ok(Registered { agent, outcome, key, waiting });
            }
        }
        Err(RegisterError::Crowded(name))
    }

    /// The same agent registers again: its profile may have changed, its name has not.
    async fn register_again(
        &self,
        caller: &Principal,
        name: &AgentName,
        profile: Profile,
    ) -> Result<Registered, RegisterError> {
        let now = self.core.machine.now();
        let agent =
            records::update(self.core.shared.as_ref(), &keys::meta(name), Durability::Synced, |old: Option<Agent>| {
                match old {
                    None => (Next::Keep, None),
                    Some(mut agent) => {
                        let old = std::mem::take(&mut agent.profile);
                        agent.profile = profile.clone();
                        fill(&mut agent.profile, &old);
                        agent.bound = now;
                        (Next::Put(agent.clone()), Some(agent))
                    }
                }
            })
            .await?;
        match agent {
            Some(agent) => {
                self.settle_in(caller, &agent).await?;
                let waiting = presence::waiting(&self.core, &self.inboxes, name).await?;
                Ok(Registered { agent, outcome: RegisterOutcome::Same, key: None, waiting })
            }
            // Its record was removed while its session went on; that is a contention like any other.
            None => Err(RegisterError::Contended(name.clone())),
        }
    }

    /// Binds a fresh registration to the caller's session or connection.
    async fn settle_in(&self, caller: &Principal, agent: &Agent) -> Result<(), RegisterError> {
        if let Some(connection) = &caller.connection {
            self.connections.joined(connection, &agent.name, caller.owns_connection);
        }
        let (harness, session) = match (&caller.session, &caller.connection) {
            (Some((reference, session)), _) => (reference.harness.clone(), session.clone()),
            (None, Some(connection)) => {
                let reference = SessionRef { harness: CONNECTION.to_owned(), id: connection.0.clone() };
                let mut session = bare(&reference, caller.profile.project.as_deref());
                session.process = Some(self.core.machine.this_process().pid);
                (reference.harness, session)
            }
            (None, None) if agent.origin == Origin::CommandLine && self.core.topology.may_be_out_of_reach() => {
                return Ok(identify::note_speaker(&self.core, &agent.name).await?);
            }
            (None, None) => return Ok(()),
        };
        record::observe(&self.core, &harness, &session, None).await?;
        let reference = SessionRef { harness, id: session.id };
        if let (None, Some(connection)) = (&caller.session, &caller.connection) {
            let sign = self.connections.sign_of(connection, caller.transport);
            record::change_session(&self.core, &reference, |record| record.shown_by = sign).await?;
        }
        record::bind_agent(&self.core, &agent.name, &reference).await?;
        invitation::settle_invitation(&self.core, &reference, &agent.name).await?;
        remote_presence::tell_of_session(&self.core, &reference).await;
        self.delivery.joined.notify_waiters();
        Ok(())
    }
}

/// The agent that the caller already is by itself. A subagent's calls speak for its root
/// session's agent until it registers, and then it is one of its own.
async fn own_agent(core: &Core, remote: &RemoteCache, caller: &Principal) -> Result<Option<AgentName>, RegisterError> {
    match &caller.session {
        Some((reference, session)) if session.parent.is_some() => {
            let own = record::current_record(core, reference).await?.and_then(|record| record.agent);
            Ok(adopt::unless_adopted(core, remote, own).await)
        }
        Some(_) | None => Ok(caller.agent.clone()),
    }
}

/// Takes a name, if this caller may have it. None where it belongs to somebody else.
async fn take_name(
    core: &Core,
    inboxes: &Inboxes,
    caller: &Principal,
    name: &AgentName,
    profile: &Profile,
) -> Result<Option<(Agent, Taken, Option<String>)>, RegisterError> {
    for _ in 0..TRIES {
        let found = records::load::<Agent>(core.shared.as_ref(), &keys::meta(name)).await?;
        let (revision, how) = match &found {
            None => (None, Taken::New),
            Some((revision, holder)) if may_take(core, inboxes, caller, holder, profile).await? => {
                (Some(*revision), Taken::Reclaimed)
            }
            Some(_) => return Ok(None),
        };
        let now = core.machine.now();
        // Only a caller with no session and no connection has nothing else to be known by.
        let key =
            (caller.session.is_none() && caller.connection.is_none() && caller.transport != Transport::CommandLine)
                .then(|| format!("{name}.{}", ticket::hex(&core.machine.random())));
        let agent = Agent {
            name: name.clone(),
            profile: profile.clone(),
            origin: match (&caller.session, caller.transport) {
                (Some(_), _) => Origin::Session,
                (None, Transport::CommandLine) => Origin::CommandLine,
                (None, Transport::Stdio | Transport::Http) => Origin::Connection,
            },
            session: session_of(caller),
            machine: core.machine.name().to_owned(),
            registered: found.map_or(now, |(_, holder)| holder.registered),
            bound: now,
            moved_from: None,
            key_digest: key.as_deref().map(key_digest),
        };
        let value = records::json(&agent);
        match core.shared.swap(&keys::meta(name), revision, Some(&value), Durability::Synced).await {
            Ok(_) => return Ok(Some((agent, how, key))),
            Err(SwapError::Changed { .. }) => {}
            // It is gone, and its name stays with the machine that it lived on.
            Err(SwapError::Store(StoreError::Elsewhere { .. })) => return Ok(None),
            Err(SwapError::Store(error)) => return Err(error.into()),
        }
    }
    Err(RegisterError::Contended(name.clone()))
}

/// Whether a caller may have the name that somebody holds: its own, or one that nobody misses.
async fn may_take(
    core: &Core,
    inboxes: &Inboxes,
    caller: &Principal,
    holder: &Agent,
    profile: &Profile,
) -> Result<bool, RegisterError> {
    // What lives on another machine cannot be judged from here.
    if holder.machine != core.machine.name() {
        return Ok(false);
    }
    // It was brought here for whoever goes on as it.
    if holder.moved_from.is_some() {
        return Ok(true);
    }
    let typed = caller.session.is_none() && caller.transport == Transport::CommandLine;
    if typed && holder.origin == Origin::CommandLine {
        return Ok(true);
    }
    if let (Some((mine, _)), Some(theirs)) = (&caller.session, &holder.session)
        && (mine == theirs || record::current_record(core, theirs).await?.is_some_and(|record| record.session == *mine))
    {
        return Ok(true);
    }
    if presence::presence(core, holder).await? != Presence::Offline {
        return Ok(false);
    }
    // A client without sessions that comes back is the same program in the same project.
    let resumed = caller.session.is_none()
        && !typed
        && holder.origin == Origin::Connection
        && holder.profile.program == profile.program
        && holder.profile.project == profile.project;
    Ok(resumed || presence::waiting(core, inboxes, &holder.name).await? == 0)
}

/// How a name was come by.
enum Taken {
    New,
    Reclaimed,
}

fn session_of(caller: &Principal) -> Option<SessionRef> {
    match (&caller.session, &caller.connection) {
        (Some((reference, _)), _) => Some(reference.clone()),
        (None, Some(connection)) => Some(SessionRef { harness: CONNECTION.to_owned(), id: connection.0.clone() }),
        (None, None) => None,
    }
}

fn check_profile(profile: &Profile) -> Result<(), RegisterError> {
    let fields = [
        ("harness", &profile.harness),
        ("program", &profile.program),
        ("model", &profile.model),
        ("role", &profile.role),
        ("task", &profile.task),
        ("issue", &profile.issue),
    ];
    let fields = fields.into_iter().filter_map(|(field, text)| text.as_ref().map(|text| (field, text, LONGEST_LABEL)));
    let skills = profile.skills.iter().map(|skill| ("skills", skill, LONGEST_LABEL));
    let project = profile.project.iter().map(|project| ("project", project, LONGEST_PATH));
    for (field, text, limit) in fields.chain(skills).chain(project) {
        if text.len() > limit {
            return Err(RegisterError::TooLong { field, bytes: text.len(), limit });
        }
    }
    if profile.skills.len() > MOST_TAGS {
        return Err(RegisterError::TooManySkills(profile.skills.len()));
    }
    Ok(())
}
