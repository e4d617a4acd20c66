//! Who looks at mail, and which messages that reader may see.

use std::collections::{BTreeSet, HashSet};

use store::StoreError;

use crate::agents;
use crate::core::Core;
use crate::messages::send::SentLine;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::{event_log, index_rule, keys, records};

/// Who looks at mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailReader {
    /// The user of this machine, who may see all mail of the mesh.
    User,
    /// An agent, which sees what it was sent and what it sent.
    Agent(AgentName),
}

/// What a reader may see: which inboxes, and which messages of them.
pub(crate) struct Sight {
    /// The owners of the inboxes that hold something that the reader may see.
    pub(crate) owners: Vec<AgentName>,
    /// None for the user.
    own: Option<OwnMail>,
}

/// The mail of one agent.
struct OwnMail {
    agent: AgentName,
    /// What it sent, by its own list: a name in a message may have belonged to another agent before.
    sent: HashSet<MessageId>,
    /// How a message in another's inbox names its sender, as bytes.
    as_sender: Vec<u8>,
}

impl MailReader {
    /// Whether an event is about something that the reader may see.
    pub(crate) fn knows(&self, event: &event_log::Event) -> bool {
        match self {
            MailReader::User => true,
            MailReader::Agent(agent) => event.concerns(agent),
        }
    }
}

impl Sight {
    /// What `reader` may see of the mail since then.
    pub(crate) async fn of(core: &Core, reader: &MailReader, since: Option<Instant>) -> Result<Sight, StoreError> {
        let MailReader::Agent(agent) = reader else {
            return Ok(Sight { owners: agents::list::names(core).await?, own: None });
        };
        let mut sent = HashSet::new();
        let mut owners = BTreeSet::from([agent.clone()]);
        let mut take = |bytes: &[u8]| {
            if let Ok(line) = serde_json::from_slice::<SentLine>(bytes) {
                sent.insert(line.id);
                owners.extend(line.to);
            }
        };
        let log = keys::sent(agent);
        // Unwritten lines are looked at first, because they may be written meanwhile.
        core.event_log.write_behind.unwritten(&log).iter().for_each(|line| take(line));
        let from = index_rule::first_since(core.shared.as_ref(), &log, since).await?;
        records::scan(core.shared.as_ref(), &log, from, |entry| take(&entry.bytes)).await?;
        let as_sender = format!("\"from\":{}", serde_json::Value::from(agent.as_str())).into_bytes();
        Ok(Sight { owners: owners.into_iter().collect(), own: Some(OwnMail { agent: agent.clone(), sent, as_sender }) })
    }

    /// Whether an entry of that inbox can be visible. A cheap check before it is parsed.
    pub(crate) fn may_show(&self, owner: &AgentName, entry: &[u8]) -> bool {
        match &self.own {
            None => true,
            Some(own) => own.agent == *owner || memchr::memmem::find(entry, &own.as_sender).is_some(),
        }
    }

    /// Whether a message of that inbox is visible.
    pub(crate) fn shows(&self, owner: &AgentName, id: MessageId) -> bool {
        match &self.own {
            None => true,
            Some(own) => own.agent == *owner || own.sent.contains(&id),
        }
    }
}
