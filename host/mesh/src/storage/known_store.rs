//! The servers' stores that this machine has used. If one comes back under the same name and is another one, empty or
//! restored, the user is told, and this machine's live sessions register again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError, StoreIdentity};

use crate::Mesh;
use crate::agents::remote_cache::Met;
use crate::agents::restore;
use crate::core::Core;
use crate::ports::machine::Instant;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How many stores a machine remembers.
const MOST: usize = 32;

/// A store that this machine uses, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownStore {
    /// When it was made, in milliseconds since 1970.
    pub made: u64,
    /// When this machine first used it.
    pub since: Instant,
    /// When it took the place of another one that this machine had used, until the user has seen that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Instant>,
    /// Whether this machine's live sessions have still to register again, since it took the place of another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_restore: bool,
}

/// By the places of the stores.
type KnownStores = BTreeMap<String, KnownStore>;

impl Mesh {
    /// Compares the stores that were opened with those that this machine knows. Returns whether one was replaced. Only
    /// logs an error.
    pub async fn notice_stores(&self) -> bool {
        let mut is_another = false;
        for identity in self.core.shared.identities() {
            let met = self.remote.met(&identity);
            if met == Met::Before && !self.has_to_restore(&identity).await {
                continue;
            }
            // Another process may have told the user already. What this one has read is void all the same.
            if met == Met::AnotherOne {
                is_another = true;
                self.inboxes.forget_all();
            }
            match remembered(&self.core, &identity).await {
                Ok(Remembered::Known) => {}
                Ok(Remembered::Replaced) => {
                    is_another = true;
                    tracing::warn!(
                        "`{}` is another store than the one that was there before: it was made anew, and what the \
                         former one held is not in it; the live sessions of this machine register again \
                         (`relay-mesh doctor --store` says more)",
                        identity.place
                    );
                    self.restore_into(&identity).await;
                }
                Ok(Remembered::ToRestore) => is_another |= self.restore_into(&identity).await,
                Err(error) => tracing::debug!(%error, "the store's identity is not remembered"),
            }
        }
        is_another
    }

    /// Whether the last try to register this machine's sessions again in this store failed.
    async fn has_to_restore(&self, identity: &StoreIdentity) -> bool {
        let waits = |one: &KnownStore| one.made == identity.made && one.to_restore;
        self.known_stores().await.is_ok_and(|known| known.get(&identity.place).is_some_and(waits))
    }

    /// Registers this machine's live sessions again in a store that took the place of another one. Returns whether that
    /// is done; if not, the next look tries again.
    async fn restore_into(&self, identity: &StoreIdentity) -> bool {
        let restored = match restore::restore_live(&self.core).await {
            Ok(agents) => note_restored(&self.core, identity).await.map(|is_first| is_first.then_some(agents)),
            Err(error) => Err(error),
        };
        match restored {
            Ok(Some(agents)) => {
                let details = serde_json::json!({ "store": identity.place, "agents": agents });
                self.core.event_log.note("store-replaced", details).await;
                true
            }
            // Another process has done so meanwhile, and noted it.
            Ok(None) => true,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "this machine's sessions could not be registered again yet");
                false
            }
        }
    }

    /// The servers' stores that this machine knows, by their places.
    pub async fn known_stores(&self) -> Result<BTreeMap<String, KnownStore>, StoreError> {
        let found = records::load::<KnownStores>(self.core.local.as_ref(), &keys::known_stores()).await?;
        Ok(found.map(|(_, known)| known).unwrap_or_default())
    }

    /// Notes that the user has seen which stores are other ones than before.
    pub async fn accept_stores(&self) -> Result<(), StoreError> {
        let seen = |old: Option<KnownStores>| match old {
            Some(mut known) => {
                known.values_mut().for_each(|one| one.replaced = None);
                (Next::Put(known), ())
            }
            None => (Next::Keep, ()),
        };
        records::update(self.core.local.as_ref(), &keys::known_stores(), Durability::Process, seen).await
    }
}

enum Remembered {
    /// It is the one that this machine used before, or the first at this place.
    Known,
    /// This machine used another one at this place.
    Replaced,
    /// It is the one that this machine used before, and its sessions have still to register again in it.
    ToRestore,
}

/// Remembers a store.
async fn remembered(core: &Core, identity: &StoreIdentity) -> Result<Remembered, StoreError> {
    let now = core.machine.now();
    let note = |old: Option<KnownStores>| {
        let mut known = old.unwrap_or_default();
        let before = known.get(&identity.place).cloned();
        if let Some(before) = before.as_ref().filter(|before| before.made == identity.made) {
            return (Next::Keep, if before.to_restore { Remembered::ToRestore } else { Remembered::Known });
        }
        if known.len() >= MOST
            && let Some(oldest) = known.iter().min_by_key(|(_, one)| one.since).map(|(place, _)| place.clone())
        {
            known.remove(&oldest);
        }
        let replaced = before.is_some().then_some(now);
        let to_restore = replaced.is_some();
        known.insert(identity.place.clone(), KnownStore { made: identity.made, since: now, replaced, to_restore });
        (Next::Put(known), if replaced.is_some() { Remembered::Replaced } else { Remembered::Known })
    };
    // Synced: a machine that loses power must not take the next store for its first.
    records::update(core.local.as_ref(), &keys::known_stores(), Durability::Synced, note).await
}

/// Notes that this machine's sessions have registered again in a store. Returns false if that was noted before.
async fn note_restored(core: &Core, identity: &StoreIdentity) -> Result<bool, StoreError> {
    let note = |old: Option<KnownStores>| {
        let mut known = old.unwrap_or_default();
        let waits = |one: &&mut KnownStore| one.made == identity.made && one.to_restore;
        let Some(one) = known.get_mut(&identity.place).filter(waits) else { return (Next::Keep, false) };
        one.to_restore = false;
        (Next::Put(known), true)
    };
    records::update(core.local.as_ref(), &keys::known_stores(), Durability::Synced, note).await
}
