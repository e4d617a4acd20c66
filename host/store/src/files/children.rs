//! Many keys of one kind at a glance: names relative to one open folder, nothing opened but the values
//! themselves, and two threads where they are many.

use std::fs::{self, File};
use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, openat};
use rustix::io::{Errno, read, retry_on_intr};

use super::shared::Shared;
use super::value;
use crate::{Beside, Child, Key, Leaf, StoreError, Versioned};

/// From how many on they are shared by two threads. The second one halves the wait; a third would gain less than
/// it costs to start, on most machines.
const CROWD: usize = 128;

/// Looks at every child of a prefix that has a value `leaf`.
pub(super) fn look(shared: &Shared, prefix: &Key, leaf: &str, beside: &[Leaf<'_>]) -> Result<Vec<Child>, StoreError> {
    let path = shared.root.join(prefix.as_str());
    let failed = || StoreError::io("could not list", &path);
    let names = match fs::read_dir(&path) {
        Ok(names) => names,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed()(error)),
    };
    let folder = File::open(&path).map_err(failed())?;
    let mut keys = Vec::new();
    for name in names {
        let name = name.map_err(failed())?;
        if name.file_type().map_err(failed())?.is_dir()
            && let Some(name) = name.file_name().to_str()
            // What is not named like a key is not ours, whatever it is.
            && let Ok(key) = format!("{prefix}/{name}").parse::<Key>()
        {
            keys.push(key);
        }
    }
    keys.sort();
    let glance = Glance { path, folder, leaf, beside };
    let (ours, theirs) = keys.split_at(if keys.len() < CROWD { keys.len() } else { keys.len() / 2 });
    thread::scope(|scope| {
        let helper = (!theirs.is_empty()).then(|| thread::Builder::new().spawn_scoped(scope, || glance.at(theirs)));
        let mut children = glance.at(ours)?;
        match helper {
            None => {}
            Some(Ok(helper)) => children.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic))?),
            // A system without room for another thread.
            Some(Err(_)) => children.extend(glance.at(theirs)?),
        }
        Ok(children)
    })
}

/// What is looked at, and from where.
struct Glance<'a> {
    path: PathBuf,
    folder: File,
    leaf: &'a str,
    beside: &'a [Leaf<'a>],
}

/// What one look after the other is made in.
struct Room {
    bytes: Vec<u8>,
    /// The name of the file that is looked at.
    file: String,
}

fn spell(file: &mut String, parts: &[&str]) {
    file.clear();
    file.extend(parts.iter().copied());
}

impl Glance<'_> {
    fn at(&self, keys: &[Key]) -> Result<Vec<Child>, StoreError> {
        let mut children = Vec::with_capacity(keys.len());
        let mut room = Room { bytes: Vec::with_capacity(4 << 10), file: String::with_capacity(64) };
        for key in keys {
            let name = key.segments().next_back().unwrap_or_default();
            let Some(value) = self.value(name, self.leaf, &mut room)? else { continue };
            let beside = self.beside.iter().map(|leaf| match leaf {
                Leaf::Value(leaf) => Ok(match self.value(name, leaf, &mut room)? {
                    Some(value) => Beside::Value(value),
                    None => Beside::Nothing,
                }),
                Leaf::Log(leaf) => Ok(self.log(name, leaf, &mut room)),
            });
            let beside = beside.collect::<Result<_, StoreError>>()?;
            children.push(Child { key: key.clone(), value, beside });
        }
        Ok(children)
    }

    /// A value, which may be damaged; none where there is none.
    fn value(
        &self,
        name: &str,
        leaf: &str,
        room: &mut Room,
    ) -> Result<Option<Result<Versioned, StoreError>>, StoreError> {
        let Room { bytes, file } = room;
        spell(file, &[name, "/", leaf, ".json"]);
        match self.read(file, bytes) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(StoreError::io("could not read", &self.path.join(file))(error.into())),
        }
        match value::understood(bytes) {
            Ok(None) => Ok(None),
            Ok(Some(value)) => Ok(Some(Ok(value))),
            Err(why) => Ok(Some(Err(value::damaged(&self.path.join(file), why)))),
        }
    }

    fn read(&self, file: &str, bytes: &mut Vec<u8>) -> Result<(), Errno> {
        let opened = retry_on_intr(|| openat(&self.folder, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))?;
        bytes.clear();
        loop {
            bytes.reserve(4 << 10);
            let room = bytes.capacity() - bytes.len();
            // A value's file is written before it has its name, so that less than there is room for is all of it.
            if retry_on_intr(|| read(&opened, spare_capacity(bytes)))? < room {
                return Ok(());
            }
        }
    }

    /// A log without its file and its lock file reads as empty.
    fn log(&self, name: &str, leaf: &str, room: &mut Room) -> Beside {
        let mut is_missing = |parts: &[&str]| {
            spell(&mut room.file, parts);
            accessat(&self.folder, room.file.as_str(), Access::EXISTS, AtFlags::empty()) == Err(Errno::NOENT)
        };
        if is_missing(&[name, "/.", leaf, ".lock"]) && is_missing(&[name, "/", leaf, ".jsonl"]) {
            Beside::Nothing
        } else {
            Beside::Unknown
        }
    }
}
