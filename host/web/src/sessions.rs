//! Who is signed in: one-time codes, and the browsers that showed one. They are files, so that a page stays signed in when
//! the server is started anew, and a code needs no server to be made.
//!
//! A browser has two secrets. Its cookie is out of reach of scripts, but a browser sends it to every port of this machine;
//! its key is stored for this origin alone, and scripts send it in a header. Both are needed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mesh::ports::machine::{Instant, Machine};
use serde::{Deserialize, Serialize};
use store::{create_private_file, make_private_folder};
use tokio::sync::watch;

use crate::key::{digest, secret};

/// How long a code can be shown, in milliseconds.
const CODE_LASTS: u64 = 2 * 60_000;
/// How long a browser stays signed in, in milliseconds.
pub(crate) const SESSION_LASTS: u64 = 30 * 86_400_000;
/// So many browsers are signed in at a time. One more signs out the oldest.
const BROWSERS: usize = 32;

/// The one-time codes of a data folder.
#[derive(Clone, Debug)]
pub struct Codes {
    folder: PathBuf,
}

/// Why no code could be made.
#[derive(Debug, thiserror::Error)]
#[error("no code for the page could be written to `{path}`")]
pub struct CodeError {
    /// The folder.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

#[derive(Debug, Serialize, Deserialize)]
struct CodeRecord {
    until: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    until: u64,
    /// The digest of the code that it came by.
    code: String,
    /// The digest of its key.
    key: String,
}

/// The secrets of a browser that has signed in.
#[derive(Debug)]
pub(crate) struct SignedIn {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

/// Why a code is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadCode {
    /// There is no such code, or it is too old.
    Unknown,
    /// It was shown before. The browser that did so is signed out.
    Used,
}

impl Codes {
    /// The codes of the pages whose files are in `folder`.
    pub fn of(folder: PathBuf) -> Codes {
        Codes { folder }
    }

    /// A new code, which signs in one browser within two minutes.
    ///
    /// # Errors
    ///
    /// If its file cannot be written.
    pub fn issue(&self, machine: &dyn Machine) -> Result<String, CodeError> {
        let code = secret(machine);
        let written = self.prepare(machine.now()).and_then(|()| {
            let record = CodeRecord { until: machine.now().0 + CODE_LASTS };
            create(&self.codes().join(digest(&code)), &record)
        });
        written.map_err(|source| CodeError { path: self.folder.clone(), source })?;
        Ok(code)
    }

    fn codes(&self) -> PathBuf {
        self.folder.join("codes")
    }

    fn sessions(&self) -> PathBuf {
        self.folder.join("sessions")
    }

    /// Makes the folders, and removes what is over: nothing stays for ever.
    fn prepare(&self, now: Instant) -> io::Result<()> {
        for folder in [self.codes(), self.sessions()] {
            make_private_folder(&folder)?;
        }
        for path in files(&self.codes()) {
            if read::<CodeRecord>(&path).is_none_or(|code| code.until < now.0) {
                remove(&path)?;
            }
        }
        let mut kept: Vec<(u64, PathBuf)> = Vec::new();
        for path in files(&self.sessions()) {
            match read::<SessionRecord>(&path).filter(|session| session.until >= now.0) {
                Some(session) => kept.push((session.until, path)),
                None => remove(&path)?,
            }
        }
        kept.sort();
        let too_many = (kept.len() + 1).saturating_sub(BROWSERS);
        kept.iter().take(too_many).try_for_each(|(_, path)| remove(path))
    }
}

/// The browsers that are signed in.
pub(crate) struct Sessions {
    codes: Codes,
    machine: Arc<dyn Machine>,
    /// One shows a code after the other, so that a second showing finds the browser of the first.
    turn: Mutex<()>,
    /// Raised when one is signed out.
    signed_out: watch::Sender<()>,
}

impl Sessions {
    pub(crate) fn new(folder: PathBuf, machine: Arc<dyn Machine>) -> Sessions {
        Sessions { codes: Codes::of(folder), machine, turn: Mutex::new(()), signed_out: watch::channel(()).0 }
    }

    /// Takes a code for the secrets of a browser. A code is taken once: the caller that removes its file has it.
    pub(crate) fn sign_in(&self, code: &str) -> io::Result<Result<SignedIn, BadCode>> {
        let _alone = self.turn.lock().expect("no holder of this lock panics");
        let now = self.machine.now();
        let code = digest(code);
        let path = self.codes.codes().join(&code);
        let record = read::<CodeRecord>(&path);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.shown_before(&code).map(Err),
            Err(error) => return Err(error),
        }
        if record.is_none_or(|record| record.until < now.0) {
            return Ok(Err(BadCode::Unknown));
        }
        self.codes.prepare(now)?;
        let signed_in = SignedIn { cookie: secret(self.machine.as_ref()), key: secret(self.machine.as_ref()) };
        let record = SessionRecord { until: now.0 + SESSION_LASTS, code, key: digest(&signed_in.key) };
        create(&self.codes.sessions().join(digest(&signed_in.cookie)), &record)?;
        Ok(Ok(signed_in))
    }

    /// A code that is shown twice was seen by another user, and which browser was first cannot be known.
    fn shown_before(&self, code: &str) -> io::Result<BadCode> {
        let is_of_it = |path: &PathBuf| read::<SessionRecord>(path).is_some_and(|session| session.code == code);
        match files(&self.codes.sessions()).into_iter().find(is_of_it) {
            Some(session) => {
                remove(&session)?;
                self.signed_out.send_replace(());
                Ok(BadCode::Used)
            }
            None => Ok(BadCode::Unknown),
        }
    }

    /// Whether these are the secrets of a browser that is signed in.
    pub(crate) fn knows(&self, cookie: &str, key: &str) -> bool {
        let record = read::<SessionRecord>(&self.codes.sessions().join(digest(cookie)));
        record.is_some_and(|session| session.until >= self.machine.now().0 && session.key == digest(key))
    }

    /// Signs a browser out.
    pub(crate) fn sign_out(&self, cookie: &str) -> io::Result<()> {
        remove(&self.codes.sessions().join(digest(cookie)))?;
        self.signed_out.send_replace(());
        Ok(())
    }

    /// Changes whenever a browser is signed out.
    pub(crate) fn signed_out(&self) -> watch::Receiver<()> {
        self.signed_out.subscribe()
    }
}

/// The files of a folder; none if it cannot be read.
fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// A record; none if there is none, or half of one.
fn read<Record: for<'a> Deserialize<'a>>(path: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn create(path: &Path, record: &impl Serialize) -> io::Result<()> {
    let mut file = create_private_file(path)?;
    let written = serde_json::to_vec(record).map_err(io::Error::from).and_then(|bytes| file.write_all(&bytes));
    if written.is_err() {
        // On a full disk a part of it may be there.
        let _kept = fs::remove_file(path);
    }
    written
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use mesh::testing::FakeMachine;

    use super::*;

    struct World {
        folder: tempfile::TempDir,
        machine: Arc<FakeMachine>,
        sessions: Sessions,
    }

    impl World {
        fn new() -> World {
            let folder = tempfile::tempdir().expect("a folder");
            let machine = Arc::new(FakeMachine::default());
            let sessions = Sessions::new(folder.path().join("page"), Arc::clone(&machine) as Arc<dyn Machine>);
            World { folder, machine, sessions }
        }

        fn code(&self) -> String {
            self.sessions.codes.issue(self.machine.as_ref()).expect("a code")
        }

        fn sign_in(&self, code: &str) -> Result<SignedIn, BadCode> {
            self.sessions.sign_in(code).expect("files that can be written")
        }

        fn files(&self) -> usize {
            files(&self.sessions.codes.codes()).len() + files(&self.sessions.codes.sessions()).len()
        }
    }

    #[test]
    fn a_code_signs_in_one_browser_and_both_of_its_secrets_are_needed() {
        let world = World::new();
        let one = world.sign_in(&world.code()).expect("a session");
        let other = world.sign_in(&world.code()).expect("a session");
        assert!(world.sessions.knows(&one.cookie, &one.key));
        for (cookie, key) in [(&one.cookie, &other.key), (&one.key, &one.cookie), (&one.cookie, &String::new())] {
            assert!(!world.sessions.knows(cookie, key));
        }
        assert_eq!(world.sign_in("0123").unwrap_err(), BadCode::Unknown);
        world.sessions.sign_out(&one.cookie).expect("a removal");
        assert!(!world.sessions.knows(&one.cookie, &one.key));
        assert!(world.sessions.knows(&other.cookie, &other.key), "the other one stays");
    }

    #[test]
    fn a_code_that_is_shown_twice_signs_out_the_first_browser() {
        let world = World::new();
        let code = world.code();
        let first = world.sign_in(&code).expect("a session");
        let bystander = world.sign_in(&world.code()).expect("a session");
        let told = world.sessions.signed_out();
        assert_eq!(world.sign_in(&code).unwrap_err(), BadCode::Used);
        assert!(told.has_changed().expect("a sender"), "its open stream hears of it");
        assert!(!world.sessions.knows(&first.cookie, &first.key));
        assert!(world.sessions.knows(&bystander.cookie, &bystander.key));
        assert_eq!(world.sign_in(&code).unwrap_err(), BadCode::Unknown, "and nothing more happens");
    }

    #[test]
    fn codes_and_sessions_end_and_leave_nothing_behind() {
        let world = World::new();
        let late = world.code();
        let session = world.sign_in(&world.code()).expect("a session");
        world.machine.pass(CODE_LASTS + 1);
        assert_eq!(world.sign_in(&late).unwrap_err(), BadCode::Unknown);
        world.machine.pass(SESSION_LASTS);
        assert!(!world.sessions.knows(&session.cookie, &session.key));
        let _code = world.code();
        assert_eq!(world.files(), 1, "the new code alone");
        for _ in 0..BROWSERS + 8 {
            world.machine.pass(1);
            world.sign_in(&world.code()).expect("a session");
        }
        assert_eq!(world.files(), BROWSERS + 1, "so many browsers, and the code that nobody took");
    }

    #[test]
    fn half_of_a_file_is_none_and_no_secret_is_in_any() {
        let world = World::new();
        let code = world.code();
        let torn = world.code();
        fs::write(world.sessions.codes.codes().join(digest(&torn)), "{\"unt").expect("a file");
        assert_eq!(world.sign_in(&torn).unwrap_err(), BadCode::Unknown);
        let session = world.sign_in(&code).expect("a session");
        let kept = files(&world.sessions.codes.sessions());
        let text = fs::read_to_string(&kept[0]).expect("a file") + &kept[0].display().to_string();
        for secret in [&code, &session.cookie, &session.key] {
            assert!(!text.contains(secret.as_str()), "{text}");
        }
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(&kept[0]), 0o600);
        assert_eq!(mode(&world.folder.path().join("page/sessions")), 0o700);
    }

    #[test]
    fn where_nothing_can_be_written_nobody_is_signed_in() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("page"), "no folder").expect("a file");
        let machine = Arc::new(FakeMachine::default());
        let codes = Codes::of(folder.path().join("page"));
        let error = codes.issue(machine.as_ref()).expect_err("a file is no folder");
        assert!(error.to_string().contains("no code for the page could be written"), "{error}");
    }
}
