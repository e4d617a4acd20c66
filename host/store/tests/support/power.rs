//! A disk that keeps synced data apart from data that was only written, by the strictest rules: syncing a file does not
//! sync its name, and a name is durable once its folder is synced.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::files::{Disk, RealDisk};

/// Works on the real disk, and tracks what would survive a power loss.
pub(crate) struct PowerDisk {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: Vec<Contents>,
    live: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    /// Everything that callers were told is on disk.
    acknowledged: Vec<String>,
    frozen: Vec<Frozen>,
}

#[derive(Clone, Copy)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Clone, Default)]
struct Contents {
    live: Vec<u8>,
    durable: Vec<u8>,
}

/// What a power loss leaves of unsynced bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unsynced {
    Lost,
    Torn,
    Kept,
}

/// What a power loss leaves of names that were created, changed or removed in unsynced folders.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names {
    AsSynced,
    AsSeen,
}

/// The disk at one point in time.
pub(crate) struct Frozen {
    files: Vec<Contents>,
    live: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    /// What must exist after a power loss at this point.
    pub(crate) acknowledged: Vec<String>,
}

impl PowerDisk {
    pub(crate) fn new(root: &Path) -> PowerDisk {
        let state = State::default();
        PowerDisk { root: root.to_path_buf(), state: Mutex::new(state) }
    }

    /// Records that a caller was told that something is on disk.
    pub(crate) fn acknowledge(&self, what: String) {
        self.state().acknowledged.push(what);
    }

    /// The disk just before each sync, and now.
    pub(crate) fn frozen(&self) -> Vec<Frozen> {
        let mut state = self.state();
        state.freeze();
        std::mem::take(&mut state.frozen)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).expect("a path below the root").to_path_buf()
    }

    fn change(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let id = state.id_of(&self.relative(path));
        change(&mut state.files[id].live);
    }
}

impl State {
    fn id_of(&self, path: &Path) -> usize {
        match self.live.get(path) {
            Some(Node::File(id)) => *id,
            Some(Node::Folder) | None => panic!("{} is no file that was made here", path.display()),
        }
    }

    fn freeze(&mut self) {
        self.frozen.push(Frozen {
            files: self.files.clone(),
            live: self.live.clone(),
            durable: self.durable.clone(),
            acknowledged: self.acknowledged.clone(),
        });
    }
}

impl Frozen {
    /// Writes the disk's state after a power loss into an empty folder.
    pub(crate) fn lay_out(&self, folder: &Path, unsynced: Unsynced, names: Names) {
        let found = match names {
            Names::AsSynced => &self.durable,
            Names::AsSeen => &self.live,
        };
        for (path, node) in found {
            // A name below a missing folder is missing too.
            let reachable =
                path.ancestors().skip(1).all(|above| above.as_os_str().is_empty() || found.contains_key(above));
            if !reachable {
                continue;
            }
            match node {
                Node::Folder => fs::create_dir_all(folder.join(path)).expect("a folder"),
                Node::File(id) => {
                    fs::create_dir_all(folder.join(path).parent().expect("a parent")).expect("a folder");
                    let mut bytes = self.files[*id].left(unsynced);
                    if path.extension().is_some_and(|extension| extension == "synced") {
                        // The machine has rebooted: the mark names an earlier boot.
                        bytes = String::from_utf8_lossy(&bytes).replace("boot ", "boot X").into_bytes();
                    }
                    fs::write(folder.join(path), bytes).expect("a file");
                }
            }
        }
    }
}

impl Contents {
    fn left(&self, unsynced: Unsynced) -> Vec<u8> {
        match unsynced {
            Unsynced::Lost => self.durable.clone(),
            Unsynced::Kept => self.live.clone(),
            Unsynced::Torn => {
                let common = self.live.iter().zip(&self.durable).take_while(|(live, durable)| live == durable).count();
                if common < self.durable.len() {
                    // Written in place or cut: one sector, so either the old or the new content.
                    return self.durable.clone();
                }
                let half = common + (self.live.len() - common).div_ceil(2);
                self.live[..half].to_vec()
            }
        }
    }
}

impl Disk for PowerDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        let file = RealDisk.create(path)?;
        let mut state = self.state();
        let id = state.files.len();
        state.files.push(Contents::default());
        state.live.insert(self.relative(path), Node::File(id));
        Ok(file)
    }

    fn append(&self, file: &File, path: &Path, bytes: &[u8]) -> io::Result<usize> {
        let taken = RealDisk.append(file, path, bytes)?;
        self.change(path, |live| live.extend_from_slice(&bytes[..taken]));
        Ok(taken)
    }

    fn overwrite(&self, file: &File, path: &Path, bytes: &[u8]) -> io::Result<()> {
        RealDisk.overwrite(file, path, bytes)?;
        self.change(path, |live| {
            live.resize(live.len().max(bytes.len()), 0);
            live[..bytes.len()].copy_from_slice(bytes);
        });
        Ok(())
    }

    fn truncate(&self, file: &File, path: &Path, length: u64) -> io::Result<()> {
        RealDisk.truncate(file, path, length)?;
        self.change(path, |live| live.truncate(usize::try_from(length).expect("a length")));
        Ok(())
    }

    fn sync(&self, file: &File, path: &Path) -> io::Result<()> {
        RealDisk.sync(file, path)?;
        let mut state = self.state();
        state.freeze();
        let id = state.id_of(&self.relative(path));
        state.files[id].durable = state.files[id].live.clone();
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(path)?;
        let mut state = self.state();
        state.freeze();
        // A path outside the root is the test's own folder.
        let Ok(folder) = path.strip_prefix(&self.root) else { return Ok(()) };
        let inside = |path: &PathBuf| path.parent() == Some(folder);
        state.durable.retain(|path, _| !inside(path));
        let names: Vec<_> =
            state.live.iter().filter(|(path, _)| inside(path)).map(|(path, node)| (path.clone(), *node)).collect();
        state.durable.extend(names);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        let mut state = self.state();
        let node = state.live.remove(&self.relative(from)).expect("a file that was made here");
        state.live.insert(self.relative(to), node);
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        RealDisk.unlink(path)?;
        self.state().live.remove(&self.relative(path));
        Ok(())
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_folder(path)?;
        self.state().live.insert(self.relative(path), Node::Folder);
        Ok(())
    }
}
