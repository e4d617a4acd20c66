//! Registration: an agent gets a stable name, and gets the same one when it returns.

use store::{Durability, StoreError, SwapError};

use crate::Mesh;
use crate::agents;
use crate::agents::adopt;
use crate::agents::presence;
use crate::agents::profile::{fill, made_up};
use crate::agents::remote_cache::RemoteCache;
use crate::agents::remote_presence;
use crate::agents::restore;
use crate::agents::{Agent, Origin, Presence, Profile};
use crate::core::Core;
use crate::delivery::invitation;
use crate::messages::inboxes::Inboxes;
use crate::messages::{LONGEST_LABEL, MOST_TAGS};
use crate::names::{AgentName, InvalidName};
use crate::sessions::identify;
use crate::sessions::identify::{CONNECTION, bare, key_digest};
use crate::sessions::record;
use crate::sessions::{Principal, SessionRecord, SessionRef, Transport};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// The highest suffix to try for a taken name.
const MOST_NUMBERED: u32 = 99;
/// How often to retry while other callers register the same name.
const TRIES: usize = 20;
/// The longest path of a project, in bytes.
const LONGEST_PATH: usize = 4096;

/// The arguments of a registration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The wanted name. By default one is made from the harness and the project.
    pub name: Option<AgentName>,
    /// The team to join. If the name has a team too, it must be the same.
    pub team: Option<String>,
    /// The agent's description of itself.
    pub profile: Profile,
}

/// How a registration got its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// The name was free.
    New,
    /// The caller already was this agent.
    Same,
    /// The name was taken, so it got a numeric suffix.
    Numbered {
        /// The name it asked for.
        wanted: AgentName,
    },
    /// The name belonged to an agent that is gone.
    Reclaimed,
}

/// The result of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    pub agent: Agent,
    /// How it got its name.
    pub outcome: RegisterOutcome,
    /// The key that it must pass with each call, if nothing else identifies it.
    pub key: Option<String>,
    /// How many messages already wait for it.
    pub waiting: usize,
    /// The agent of the wanted name, if `adopt` can free it.
    pub adoptable: Option<Adoptable>,
}

/// An agent whose name was wanted, and which nothing shows to be alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoptable {
    pub agent: AgentName,
    /// Its machine, if it is another one.
    pub elsewhere: Option<String>,
    pub presence: Presence,
    /// How many messages wait for it.
    pub waiting: usize,
}

/// Why a registration failed.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The name or the team is invalid.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The name has one team, and the caller asked for another.
    #[error("the name `{name}` already has a team, which is not `{team}`")]
    TwoTeams {
        name: AgentName,
        /// The team that the caller asked for.
        team: String,
    },
    /// A field of the profile is too long.
    #[error("`{field}` has {bytes} bytes and may have {limit}")]
    TooLong {
        field: &'static str,
        /// Its length, in bytes.
        bytes: usize,
        /// Its longest length, in bytes.
        limit: usize,
    },
    #[error("an agent may name {MOST_TAGS} skills and this one names {0}")]
    TooManySkills(usize),
    /// Every suffix of that name is taken.
    #[error("every numbered form of `{0}` is taken")]
    Crowded(AgentName),
    /// Other callers were faster on every try.
    #[error("several callers are registering the name `{0}` at once")]
    Contended(AgentName),
    /// The store failed.
    #[error("the agent could not be stored")]
    Store(#[from] store::StoreError),
}

impl Mesh {
    /// Registers the caller. The same session gets the same agent again. If the wanted name belongs to another agent,
    /// the caller gets a numbered one.
    pub async fn register(&self, caller: &Principal, wanted: Registration) -> Result<Registered, RegisterError> {
        self.register_kept(caller, wanted, Durability::Synced).await
    }

    /// The same, with its record kept as durably as the caller needs it.
    pub(crate) async fn register_kept(
        &self,
        caller: &Principal,
        wanted: Registration,
        durability: Durability,
    ) -> Result<Registered, RegisterError> {
        check_profile(&wanted.profile)?;
        if let (Some(name), Some(team)) = (&wanted.name, &wanted.team)
            && name.team().is_some_and(|said| said != team)
        {
            return Err(RegisterError::TwoTeams { name: name.clone(), team: team.clone() });
        }
        let mut profile = wanted.profile;
        fill(&mut profile, &caller.profile);
        let asked = match (&wanted.name, &wanted.team) {
            (Some(name), Some(team)) if name.team().is_none() => Some(name.in_team(Some(team))?),
            (name, _) => name.clone(),
        };
        let own = own_agent(&self.core, &self.remote, caller).await?;
        let name = match (own, asked) {
            (Some(own), Some(asked)) if own != asked && is_let_go(&self.core, &asked).await? => {
                // The user freed this name for it. Its mail under the former one is the next caller's of that name.
                adopt::let_go(&self.core, &own, session_of(caller).as_ref()).await?;
                asked
            }
            (Some(own), _) => match self.register_again(caller, &own, profile.clone(), durability).await? {
                Some(registered) => return Ok(registered),
                // Its record is gone, though its session goes on: the store came back empty.
                None => own,
            },
            (None, Some(asked)) => asked,
            (None, None) => match &wanted.team {
                Some(team) => made_up(&profile).in_team(Some(team))?,
                None => made_up(&profile),
            },
        };
        for number in 1..=MOST_NUMBERED {
            let candidate = if number == 1 { name.clone() } else { name.numbered(number) };
            let taken = take_name(&self.core, &self.inboxes, caller, (&candidate, &profile), durability).await?;
            if let Some((agent, how, key)) = taken {
                let adoptable = if number > 1 { self.adoptable(&name).await? } else { None };
                let outcome = match how {
                    NameOrigin::New if number > 1 => RegisterOutcome::Numbered { wanted: name },
                    NameOrigin::New => RegisterOutcome::New,
                    NameOrigin::Reclaimed => RegisterOutcome::Reclaimed,
                };
                self.settle_in(caller, &agent).await?;
                let waiting = presence::waiting(&self.core, &self.inboxes, &agent.name).await?;
                self.core
                    .event_log
                    .note("registered", serde_json::json!({ "agent": agent.name, "harness": agent.profile.harness }))
                    .await;
                return Ok(Registered { agent, outcome, key, waiting, adoptable });
            }
        }
        Err(RegisterError::Crowded(name))
    }

    /// What `adopt` could free: the agent of a wanted name, if nothing shows that it is alive.
    async fn adoptable(&self, wanted: &AgentName) -> Result<Option<Adoptable>, RegisterError> {
        let Some(agent) = agents::list::load_agent(&self.core, wanted).await? else { return Ok(None) };
        let elsewhere = (agent.machine != self.core.machine.name()).then(|| agent.machine.clone());
        let presence = presence::presence(&self.core, &agent).await?;
        Ok(match presence {
            Presence::Away | Presence::Offline => {
                let waiting = presence::waiting(&self.core, &self.inboxes, wanted).await?;
                Some(Adoptable { agent: wanted.clone(), elsewhere, presence, waiting })
            }
            Presence::Busy | Presence::NeedsInput | Presence::Idle => None,
        })
    }

    /// The caller is registered already: updates its profile and keeps its name. `None` if its record is gone.
    async fn register_again(
        &self,
        caller: &Principal,
        name: &AgentName,
        profile: Profile,
        durability: Durability,
    ) -> Result<Option<Registered>, RegisterError> {
        let now = self.core.machine.now();
        let agent =
            records::update(self.core.shared.as_ref(), &keys::meta(name), durability, |old: Option<Agent>| match old {
                None => (Next::Keep, None),
                Some(mut agent) => {
                    let old = std::mem::take(&mut agent.profile);
                    agent.profile = profile.clone();
                    fill(&mut agent.profile, &old);
                    agent.bound = now;
                    (Next::Put(agent.clone()), Some(agent))
                }
            })
            .await?;
        let Some(agent) = agent else { return Ok(None) };
        self.settle_in(caller, &agent).await?;
        let waiting = presence::waiting(&self.core, &self.inboxes, name).await?;
        Ok(Some(Registered { agent, outcome: RegisterOutcome::Same, key: None, waiting, adoptable: None }))
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
        if let Some(connection) = &caller.connection {
            let sign = caller.session.is_none().then(|| self.connections.sign_of(connection, caller.transport));
            let client = self.connections.client(Some(connection)).and_then(|pid| self.core.machine.process(pid));
            if sign.is_some() || client.is_some() {
                let note = |record: &mut SessionRecord| {
                    record.shown_by = sign.unwrap_or(record.shown_by);
                    record.client = client.or(record.client);
                };
                record::change_session(&self.core, &reference, note).await?;
            }
        }
        record::bind_agent(&self.core, &agent.name, &reference).await?;
        invitation::settle_invitation(&self.core, &reference, &agent.name).await?;
        remote_presence::tell_of_session(&self.core, &reference).await;
        self.delivery.joined.notify_waiters();
        Ok(())
    }
}

/// The agent that the caller itself registered. A subagent acts as its root session's agent until it registers, and
/// then is an agent of its own.
async fn own_agent(core: &Core, remote: &RemoteCache, caller: &Principal) -> Result<Option<AgentName>, RegisterError> {
    match &caller.session {
        Some((reference, session)) if session.parent.is_some() => {
            let own = match record::current_record(core, reference).await? {
                Some(record) => record::own_agent(core, &record).await?,
                None => None,
            };
            Ok(adopt::unless_adopted(core, remote, own).await)
        }
        Some(_) | None => Ok(caller.agent.clone()),
    }
}

/// Takes a name, if this caller may have it; `None` if it belongs to another agent.
async fn take_name(
    core: &Core,
    inboxes: &Inboxes,
    caller: &Principal,
    (name, profile): (&AgentName, &Profile),
    durability: Durability,
) -> Result<Option<(Agent, NameOrigin, Option<String>)>, RegisterError> {
    for _ in 0..TRIES {
        let found = records::load::<Agent>(core.shared.as_ref(), &keys::meta(name)).await?;
        let (revision, how) = match &found {
            None if restore::settle_claims(core, name, session_of(caller).as_ref()).await? => return Ok(None),
            None => (None, NameOrigin::New),
            Some((revision, holder)) if may_take(core, inboxes, caller, holder, profile).await? => {
                (Some(*revision), NameOrigin::Reclaimed)
            }
            Some(_) => return Ok(None),
        };
        let found_session = found.as_ref().and_then(|(_, holder)| holder.session.clone());
        let now = core.machine.now();
        // Only a caller without a session and without a connection needs a key.
        let key =
            (caller.session.is_none() && caller.connection.is_none() && caller.transport != Transport::CommandLine)
                .then(|| format!("{name}.{}", hex::encode(core.machine.random())));
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
            registered: found.as_ref().map_or(now, |(_, holder)| holder.registered),
            bound: now,
            moved_from: None,
            key_digest: key.as_deref().map(key_digest),
        };
        if let Some(theirs) = found_session.filter(|theirs| agent.session.as_ref() != Some(theirs)) {
            // First: the session that had the name may be opened again at any time.
            record::release_agent(core, name, &theirs).await?;
        }
        let value = records::json(&agent);
        match core.shared.swap(&keys::meta(name), revision, Some(&value), durability).await {
            Ok(_) => return Ok(Some((agent, how, key))),
            Err(SwapError::Changed { .. }) => {}
            // Its record is deleted, but its name still belongs to its former machine.
            Err(SwapError::Store(StoreError::Elsewhere { .. })) => return Ok(None),
            Err(SwapError::Store(error)) => return Err(error.into()),
        }
    }
    Err(RegisterError::Contended(name.clone()))
}

/// Whether a caller may take a name that an agent already has: it is the same agent, or that agent is gone.
async fn may_take(
    core: &Core,
    inboxes: &Inboxes,
    caller: &Principal,
    holder: &Agent,
    profile: &Profile,
) -> Result<bool, RegisterError> {
    // The presence of another machine's agent cannot be judged from here.
    if holder.machine != core.machine.name() {
        return Ok(false);
    }
    // It was adopted so that a caller can continue as it.
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
    let (traces, presence, _) = presence::judged(core, holder).await?;
    // A client without sessions that returns is recognised by its program and project.
    let resumed = caller.session.is_none()
        && !typed
        && holder.origin == Origin::Connection
        && holder.profile.program == profile.program
        && holder.profile.project == profile.project;
    match presence {
        Presence::Offline => {}
        // In a container that is gone, only silence shows its end. Our server of such a client is never silent.
        Presence::Away => return Ok(resumed && traces.is_elsewhere),
        Presence::Busy | Presence::NeedsInput | Presence::Idle => return Ok(false),
    }
    Ok(resumed || presence::waiting(core, inboxes, &holder.name).await? == 0)
}

/// Whether `adopt` freed a name for the next caller that registers it.
async fn is_let_go(core: &Core, name: &AgentName) -> Result<bool, RegisterError> {
    let agent = agents::list::load_agent(core, name).await?;
    Ok(agent.is_some_and(|agent| agent.moved_from.is_some() && agent.machine == core.machine.name()))
}

enum NameOrigin {
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
