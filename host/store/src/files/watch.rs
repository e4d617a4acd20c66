//! Watching folders: by the system's notifications, or by polling once those have run out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::hub::{Hub, Subscriber};
use super::polling::Polling;
use crate::{Key, StoreError, Watch};

/// How changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// By the system's notifications, and by polling if the system has no more of them.
    Notified,
    /// By polling at this interval.
    Polled(Duration),
}

/// The poll interval if the system cannot notify.
const FALLBACK: Duration = Duration::from_millis(100);

/// Watches the files at or under some keys.
pub(super) fn watch(root: &Path, under: &[Key], watching: Watching) -> Box<dyn Watch> {
    let targets = Targets::new(root, under);
    match watching {
        Watching::Polled(every) => Box::new(FolderWatch::Polled(Polling::new(targets, every))),
        Watching::Notified => Box::new(notified(targets)),
    }
}

/// The watched keys, as paths without their endings.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    stems: Vec<PathBuf>,
}

impl Targets {
    pub(super) fn new(root: &Path, under: &[Key]) -> Targets {
        Targets { stems: under.iter().map(|key| root.join(key.as_str())).collect() }
    }

    /// Whether a change of this path may change a watched file, or a folder on the way to one.
    pub(super) fn concern(&self, path: &Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return true };
        if name.starts_with('.') {
            return self.stems.iter().any(|stem| stem.starts_with(path));
        }
        self.stems.iter().any(|stem| {
            path.starts_with(stem)
                || stem.starts_with(path)
                || (path.parent() == stem.parent() && is_file_of(stem, name))
        })
    }

    /// The folders to watch: those of the files themselves or, if they do not exist yet, the nearest existing parent.
    pub(super) fn folders(&self) -> BTreeSet<PathBuf> {
        let mut folders = BTreeSet::new();
        for stem in &self.stems {
            folders.extend(stem.ancestors().skip(1).find(|above| above.is_dir()).map(Path::to_path_buf));
            collect_folders(stem, &mut folders);
        }
        folders
    }

    /// The watched files that exist.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in self.folders() {
            let Ok(names) = fs::read_dir(&folder) else { continue };
            files.extend(names.flatten().map(|name| name.path()).filter(|path| self.concern(path)));
        }
        files
    }
}

/// Whether a file name is that of a log, of a sealed segment or of a value with this stem.
fn is_file_of(stem: &Path, name: &str) -> bool {
    let leaf = stem.file_name().and_then(|leaf| leaf.to_str()).unwrap_or_default();
    name.strip_prefix(leaf).is_some_and(|ending| ending.starts_with(".json"))
}

fn collect_folders(folder: &Path, folders: &mut BTreeSet<PathBuf>) {
    // A path that is no readable folder has nothing to watch; when it appears, the parent folder reports it.
    let Ok(names) = fs::read_dir(folder) else { return };
    folders.insert(folder.to_path_buf());
    for name in names.flatten() {
        if name.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_folders(&name.path(), folders);
        }
    }
}

/// A watch over folders that may be created and removed.
enum FolderWatch {
    Notified(Notified),
    Polled(Polling),
}

struct Notified {
    hub: Arc<Hub>,
    subscriber: Arc<Subscriber>,
    armed: BTreeSet<PathBuf>,
}

fn notified(targets: Targets) -> FolderWatch {
    let armed = Hub::of_this_process().and_then(|hub| {
        let subscriber = hub.subscribe(targets.clone());
        let mut watch = Notified { hub, subscriber, armed: BTreeSet::new() };
        watch.arm().map(|()| watch)
    });
    match armed {
        Ok(watch) => FolderWatch::Notified(watch),
        Err(error) => FolderWatch::Polled(poll_instead(targets, &error)),
    }
}

fn poll_instead(targets: Targets, error: &notify::Error) -> Polling {
    tracing::warn!(%error, "the system has no more notifications to give; looking at intervals instead");
    Polling::new(targets, FALLBACK)
}

impl Notified {
    /// Watches every folder that must be watched now. Folders are listed again after they were armed, so that one
    /// created in between is not missed.
    fn arm(&mut self) -> Result<(), notify::Error> {
        loop {
            let wanted = self.subscriber.targets().folders();
            let mut news = false;
            for folder in &wanted {
                news |= self.hub.arm(folder, !self.armed.contains(folder))?;
                self.armed.insert(folder.clone());
            }
            for folder in self.armed.iter().filter(|folder| !wanted.contains(*folder)) {
                self.hub.disarm(folder);
            }
            self.armed = wanted;
            if !news {
                return Ok(());
            }
        }
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        for folder in &self.armed {
            self.hub.disarm(folder);
        }
    }
}

#[async_trait]
impl Watch for FolderWatch {
    async fn changed(&mut self) -> Result<(), StoreError> {
        let failed = match self {
            FolderWatch::Polled(polling) => {
                polling.changed().await;
                return Ok(());
            }
            FolderWatch::Notified(watch) => {
                watch.subscriber.notified().await;
                // Armed before the caller reads: earlier changes are visible to it, and later ones are reported.
                if watch.subscriber.take_folders_changed() { watch.arm().err() } else { None }
            }
        };
        if let (Some(error), FolderWatch::Notified(watch)) = (failed, &*self) {
            let polling = poll_instead(watch.subscriber.targets().clone(), &error);
            *self = FolderWatch::Polled(polling);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_concerns_what_lies_at_or_under_its_key_and_the_folders_on_the_way() {
        let targets = Targets::new(Path::new("/r"), &["agents/bob/inbox".parse().expect("a key")]);
        for (path, expected) in [
            ("/r/agents/bob/inbox.jsonl", true),
            ("/r/agents/bob/inbox.jsonl.3", true),
            ("/r/agents/bob/inbox.json", true),
            ("/r/agents/bob/inbox/deeper.json", true),
            ("/r/agents/bob", true),
            ("/r/agents", true),
            ("/r/agents/bob/.inbox.synced", false),
            ("/r/agents/bob/.draft", false),
            ("/r/agents/bob/inbox2.jsonl", false),
            ("/r/agents/bob/receipts.jsonl", false),
            ("/r/agents/alice", false),
        ] {
            assert_eq!(targets.concern(Path::new(path)), expected, "{path}");
        }
    }
}
