//! One notifier per process, shared by all watches: the system allows each user only a few.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use notify::event::{CreateKind, EventKind, ModifyKind, RemoveKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::watch::Targets;

/// The process's notifier, from the first watch on. Never dropped: its thread sleeps.
static HUB: Mutex<Option<Arc<Hub>>> = Mutex::new(None);

/// Passes the system's notifications on to the watches.
pub(super) struct Hub {
    /// The folders that the system watches for us, with the number of watches for each. Locked while the notifier's
    /// thread works, so that thread must never take this lock.
    armed: Mutex<Armed>,
    /// What the notifier's thread needs.
    subscriptions: Arc<Subscriptions>,
}

struct Armed {
    watcher: RecommendedWatcher,
    folders: HashMap<PathBuf, usize>,
}

#[derive(Default)]
struct Subscriptions {
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
    /// Folders that were removed or recreated: the system still watches the old ones.
    stale: Mutex<HashSet<PathBuf>>,
}

/// One watch, as the hub knows it.
pub(super) struct Subscriber {
    targets: Targets,
    news: Notify,
    folders_changed: AtomicBool,
}

impl Hub {
    /// The notifier of this process, started if need be.
    pub(super) fn of_this_process() -> Result<Arc<Hub>, notify::Error> {
        let mut hub = unpoisoned(&HUB);
        if let Some(hub) = &*hub {
            return Ok(Arc::clone(hub));
        }
        let subscriptions = Arc::new(Subscriptions::default());
        let listener = Arc::clone(&subscriptions);
        let watcher = notify::recommended_watcher(move |event| listener.hear(event))?;
        let started = Arc::new(Hub { armed: Mutex::new(Armed { watcher, folders: HashMap::new() }), subscriptions });
        *hub = Some(Arc::clone(&started));
        Ok(started)
    }

    pub(super) fn subscribe(&self, targets: Targets) -> Arc<Subscriber> {
        let subscriber = Arc::new(Subscriber { targets, news: Notify::new(), folders_changed: AtomicBool::new(false) });
        let mut subscribers = unpoisoned(&self.subscriptions.subscribers);
        subscribers.retain(|subscriber| subscriber.strong_count() > 0);
        subscribers.push(Arc::downgrade(&subscriber));
        subscriber
    }

    /// Makes the system watch a folder; `more` counts one more watch for it. Returns whether anything was done: then
    /// the folder may have changed since it was read.
    pub(super) fn arm(&self, folder: &Path, more: bool) -> Result<bool, notify::Error> {
        let mut armed = unpoisoned(&self.armed);
        let stale = unpoisoned(&self.subscriptions.stale).remove(folder);
        let count = armed.folders.get(folder).copied().unwrap_or(0);
        if count == 0 || stale {
            match armed.watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // Removed since it was listed; the parent folder reports when it comes back.
                Err(error) if is_gone(&error) => {
                    unpoisoned(&self.subscriptions.stale).insert(folder.to_path_buf());
                }
                Err(error) => return Err(error),
            }
        }
        if more {
            armed.folders.insert(folder.to_path_buf(), count + 1);
        }
        Ok(more || stale)
    }

    /// Counts one watch less for a folder.
    pub(super) fn disarm(&self, folder: &Path) {
        let mut armed = unpoisoned(&self.armed);
        let left = armed.folders.get(folder).copied().unwrap_or(0).saturating_sub(1);
        if left > 0 {
            armed.folders.insert(folder.to_path_buf(), left);
            return;
        }
        armed.folders.remove(folder);
        unpoisoned(&self.subscriptions.stale).remove(folder);
        // The system drops a removed folder by itself.
        if let Err(error) = armed.watcher.unwatch(folder) {
            tracing::debug!(folder = %folder.display(), %error, "a folder was no longer watched");
        }
    }
}

impl Subscriber {
    pub(super) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Returns once there is news. News is kept until it is consumed here.
    pub(super) async fn notified(&self) {
        self.news.notified().await;
    }

    /// Whether folders were created or removed since the last call.
    pub(super) fn take_folders_changed(&self) -> bool {
        self.folders_changed.swap(false, Ordering::AcqRel)
    }

    fn tell(&self, folders: Folders) {
        match folders {
            Folders::Changed => self.folders_changed.store(true, Ordering::Release),
            Folders::Same => {}
        }
        self.news.notify_one();
    }
}

/// Whether an event also concerns folders.
#[derive(Clone, Copy)]
enum Folders {
    Changed,
    Same,
}

impl Subscriptions {
    /// Runs on the notifier's thread.
    fn hear(&self, event: Result<Event, notify::Error>) {
        match event {
            // Each of our own reads opens a file. notify 8 has the system tell of that, and cannot be asked not to.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) if !event.paths.is_empty() && !event.need_rescan() => {
                for path in &event.paths {
                    self.hear_of(event.kind, path);
                }
            }
            // Notifications were lost: every watch checks everything.
            Ok(_) | Err(_) => self.tell(|_| true, Folders::Changed),
        }
    }

    fn hear_of(&self, kind: EventKind, path: &Path) {
        let folders = match kind {
            EventKind::Create(CreateKind::File) | EventKind::Remove(RemoveKind::File) => Folders::Same,
            EventKind::Create(_) | EventKind::Remove(_) => Folders::Changed,
            EventKind::Modify(ModifyKind::Name(_)) if path.is_file() => Folders::Same,
            EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any | EventKind::Other => Folders::Changed,
            EventKind::Modify(_) | EventKind::Access(_) => Folders::Same,
        };
        if matches!(folders, Folders::Changed) {
            unpoisoned(&self.stale).insert(path.to_path_buf());
        }
        self.tell(|targets| targets.concern(path), folders);
    }

    fn tell(&self, concerned: impl Fn(&Targets) -> bool, folders: Folders) {
        for subscriber in unpoisoned(&self.subscribers).iter().filter_map(Weak::upgrade) {
            if concerned(&subscriber.targets) {
                subscriber.tell(folders);
            }
        }
    }
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        notify::ErrorKind::Generic(_)
        | notify::ErrorKind::WatchNotFound
        | notify::ErrorKind::InvalidConfig(_)
        | notify::ErrorKind::MaxFilesWatch => false,
    }
}

/// The data in these mutexes is consistent between any two statements, so a panic elsewhere while one was held harms
/// nothing.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use notify::event::{AccessKind, AccessMode, DataChange};

    use super::*;

    #[test]
    fn that_a_file_is_opened_or_closed_wakes_no_watch() {
        let subscriptions = Subscriptions::default();
        let targets = Targets::new(Path::new("/r"), &["bob/inbox".parse().expect("a key")]);
        let subscriber = Arc::new(Subscriber { targets, news: Notify::new(), folders_changed: AtomicBool::new(false) });
        unpoisoned(&subscriptions.subscribers).push(Arc::downgrade(&subscriber));
        for (kind, expected) in [
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), false),
            (EventKind::Access(AccessKind::Close(AccessMode::Read)), false),
            (EventKind::Access(AccessKind::Close(AccessMode::Write)), false),
            (EventKind::Modify(ModifyKind::Data(DataChange::Any)), true),
        ] {
            subscriptions.hear(Ok(Event::new(kind).add_path(PathBuf::from("/r/bob/inbox.jsonl"))));
            assert_eq!(subscriber.notified().now_or_never().is_some(), expected, "{kind:?}");
        }
    }
}
