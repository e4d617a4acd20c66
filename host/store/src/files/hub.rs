//! One notifier per process, shared by all watches: the system gives each user few of them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use notify::event::{CreateKind, EventKind, ModifyKind, RemoveKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::watch::Targets;

/// The process's notifier, once something was watched. Kept for good: its thread sleeps.
static HUB: Mutex<Option<Arc<Hub>>> = Mutex::new(None);

/// Passes the system's notifications on to the watches.
pub(super) struct Hub {
    /// Which folders the system watches for us, and for how many watches each. Locked while the notifier's thread
    /// works, so that thread must never take this lock.
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
    /// Folders that were removed or recreated: what the system watches under their name is the old one.
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

    /// Has the system watch a folder, for one watch more if that watch did not have it before.
    /// Whether anything had to be done: then the folder may have changed since it was looked at.
    pub(super) fn arm(&self, folder: &Path, more: bool) -> Result<bool, notify::Error> {
        let mut armed = unpoisoned(&self.armed);
        let stale = unpoisoned(&self.subscriptions.stale).remove(folder);
        let count = armed.folders.get(folder).copied().unwrap_or(0);
        if count == 0 || stale {
            match armed.watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // Gone again since it was listed; the folder above tells when it comes back.
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

    /// Has the system watch a folder for one watch less.
    pub(super) fn disarm(&self, folder: &Path) {
        let mut armed = unpoisoned(&self.armed);
        let left = armed.folders.get(folder).copied().unwrap_or(0).saturating_sub(1);
        if left > 0 {
            armed.folders.insert(folder.to_path_buf(), left);
            return;
        }
        armed.folders.remove(folder);
        unpoisoned(&self.subscriptions.stale).remove(folder);
        // The system forgets a folder that is gone by itself.
        if let Err(error) = armed.watcher.unwatch(folder) {
            tracing::debug!(folder = %folder.display(), %error, "a folder was no longer watched");
        }
    }
}

impl Subscriber {
    pub(super) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Returns once there is news, which is kept until somebody asks for it.
    pub(super) async fn notified(&self) {
        self.news.notified().await;
    }

    /// Whether folders came or went since this was last asked.
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

/// Whether an event is about folders too.
#[derive(Clone, Copy)]
enum Folders {
    Changed,
    Same,
}

impl Subscriptions {
    /// Runs on the notifier's thread.
    fn hear(&self, event: Result<Event, notify::Error>) {
        match event {
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) if !event.paths.is_empty() && !event.need_rescan() => {
                for path in &event.paths {
                    self.hear_of(event.kind, path);
                }
            }
            // Notifications were lost: every watch looks at everything.
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

/// What these mutexes guard is whole between any two statements, so a panic elsewhere while one
/// was held harms nothing.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
