//! Who listens for a session: a connector inside its harness, by `relay-mesh listen`. A listener that was killed
//! leaves its record behind, and that says so.

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::Mesh;
use crate::ports::machine::Process;
use crate::sessions::{Activity, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Who listens for a session, as it is kept under `listeners/HARNESS/ID` in the local store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Listener {
    session: SessionRef,
    process: Process,
}

impl Mesh {
    /// Notes that this process listens for a session, where no living one does already.
    pub async fn listens_for(&self, session: &SessionRef) -> Result<(), StoreError> {
        let own = self.as_listener(session);
        let key = keys::listener(session);
        records::update(self.local.as_ref(), &key, Durability::Process, |old: Option<Listener>| match old {
            Some(old) if self.machine.lives(old.process) => (Next::Keep, ()),
            Some(_) | None => (Next::Put(own.clone()), ()),
        })
        .await
    }

    /// Notes that this process no longer does.
    pub async fn listens_no_more(&self, session: &SessionRef) -> Result<(), StoreError> {
        let own = self.as_listener(session);
        let key = keys::listener(session);
        records::update(self.local.as_ref(), &key, Durability::Process, |old: Option<Listener>| match old {
            Some(old) if old == own => (Next::Remove, ()),
            Some(_) | None => (Next::Keep, ()),
        })
        .await
    }

    /// The live sessions of a harness whose listener has died without a word, and that nobody listens for since.
    pub async fn deserted(&self, harness: &str) -> Result<Vec<SessionRef>, StoreError> {
        let mut deserted = Vec::new();
        for view in self.sessions().await?.into_iter().filter(|view| view.record.session.harness == harness) {
            let session = view.record.session;
            if self.listener(&session).await?.is_some_and(|listener| !self.machine.lives(listener.process)) {
                deserted.push(session);
            }
        }
        Ok(deserted)
    }

    /// Whether a living process listens for a session.
    pub(crate) async fn is_listened_to(&self, session: &SessionRef) -> Result<bool, StoreError> {
        Ok(self.listener(session).await?.is_some_and(|listener| self.machine.lives(listener.process)))
    }

    /// Removes what listeners that died have left behind for sessions that are over.
    pub(crate) async fn sweep_listeners(&self) -> Result<(), StoreError> {
        for key in self.local.list(&keys::listeners()).await? {
            let Some((_, listener)) = records::load::<Listener>(self.local.as_ref(), &key).await? else { continue };
            let lives = self.session(&listener.session).await?.is_some_and(|view| view.activity != Activity::Gone);
            if lives || self.machine.lives(listener.process) {
                continue;
            }
            records::update(self.local.as_ref(), &key, Durability::Process, |found: Option<Listener>| match found {
                Some(found) if found == listener => (Next::Remove, ()),
                Some(_) | None => (Next::Keep, ()),
            })
            .await?;
        }
        Ok(())
    }

    fn as_listener(&self, session: &SessionRef) -> Listener {
        Listener { session: session.clone(), process: self.machine.this_process() }
    }

    async fn listener(&self, session: &SessionRef) -> Result<Option<Listener>, StoreError> {
        let found = records::load::<Listener>(self.local.as_ref(), &keys::listener(session)).await?;
        Ok(found.map(|(_, listener)| listener))
    }
}
