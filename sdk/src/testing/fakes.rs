//! What is lent in a test, and where the lent functions go natively.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::Lent;
use crate::files::Entry;
use crate::http::{Request, Response};
use crate::log::Level;
use crate::programs::Outcome;
use crate::{Error, state};

type Origin = Rc<dyn Fn(&Request) -> Response>;
type Endpoint = Rc<dyn Fn(&str) -> Vec<String>>;
type Program = Rc<dyn Fn(&[String], &[u8]) -> Outcome>;

/// Everything that the host lends, faked. What a test does not lend is denied, as by the host.
#[derive(Default)]
pub struct Fakes {
    /// Milliseconds since the epoch. Written by [`Fakes::at`] and [`Lent::advance`].
    pub(crate) now: u64,
    /// Every line that the adapter logged.
    pub(crate) log: Vec<(Level, String)>,
    /// Root name to path to content. A root without files is a folder that is not there yet.
    pub(crate) roots: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The adapter's own values.
    pub(crate) state: BTreeMap<String, Vec<u8>>,
    /// Whether there is a desktop to show notices on.
    pub(crate) desktop: bool,
    /// Every notice that was shown.
    pub(crate) notices: Vec<(String, String)>,
    origins: BTreeMap<String, Origin>,
    /// None where nobody listens.
    endpoints: BTreeMap<String, Option<Endpoint>>,
    programs: BTreeMap<String, Program>,
}

impl Fakes {
    /// Sets the clock, in milliseconds since the epoch.
    pub fn at(mut self, now: u64) -> Fakes {
        self.now = now;
        self
    }

    /// Lends a root that holds nothing.
    pub fn root(mut self, name: &str) -> Fakes {
        self.roots.entry(name.to_owned()).or_default();
        self
    }

    /// Lends a root that holds this file.
    pub fn file(mut self, root: &str, path: &str, content: impl Into<Vec<u8>>) -> Fakes {
        self.roots.entry(root.to_owned()).or_default().insert(path.to_owned(), content.into());
        self
    }

    /// Lends a desktop.
    pub fn desktop(mut self) -> Fakes {
        self.desktop = true;
        self
    }

    /// Lends an origin that answers by script.
    pub fn origin(mut self, name: &str, answer: impl Fn(&Request) -> Response + 'static) -> Fakes {
        self.origins.insert(name.to_owned(), Rc::new(answer));
        self
    }

    /// Lends an endpoint: for each frame sent, the frames that come back.
    pub fn endpoint(mut self, name: &str, answer: impl Fn(&str) -> Vec<String> + 'static) -> Fakes {
        self.endpoints.insert(name.to_owned(), Some(Rc::new(answer)));
        self
    }

    /// Lends an endpoint at which nobody listens.
    pub fn deserted(mut self, name: &str) -> Fakes {
        self.endpoints.insert(name.to_owned(), None);
        self
    }

    /// Lends a program that answers by script, from the values and the input it is given.
    pub fn program(mut self, name: &str, answer: impl Fn(&[String], &[u8]) -> Outcome + 'static) -> Fakes {
        self.programs.insert(name.to_owned(), Rc::new(answer));
        self
    }

    /// Lends a value in the adapter's state.
    pub fn state<T: serde::Serialize>(mut self, key: &str, value: &T) -> Fakes {
        self.state.insert(key.to_owned(), state::to_bytes(value).expect("a test's value is JSON"));
        self
    }

    /// Hands all this to the current thread, in the place of what was lent before.
    pub fn lend(self) -> Lent {
        LENT.with(|lent| *lent.borrow_mut() = self);
        Lent::of_this_thread()
    }

    /// Whether the root was lent.
    pub(crate) fn open_root(&self, name: &str) -> Result<(), Error> {
        match self.roots.contains_key(name) {
            true => Ok(()),
            false => Err(denied("roots", name)),
        }
    }

    /// A file's bytes, with the host's refusals.
    pub(crate) fn read_file(&self, root: &str, path: &str) -> Result<Vec<u8>, Error> {
        stay_inside(path)?;
        let files = self.roots.get(root).ok_or_else(|| denied("roots", root))?;
        files.get(path).cloned().ok_or_else(|| Error::NotFound(path.to_owned()))
    }

    /// A folder's entries. Folders are where files lie below them.
    pub(crate) fn list_files(&self, root: &str, path: &str) -> Result<Vec<Entry>, Error> {
        stay_inside(path)?;
        let files = self.roots.get(root).ok_or_else(|| denied("roots", root))?;
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries = BTreeMap::new();
        for below in files.keys().filter_map(|file| file.strip_prefix(&prefix)) {
            let (name, directory) = match below.split_once('/') {
                Some((name, _)) => (name, true),
                None => (below, false),
            };
            entries.insert(name.to_owned(), Entry { name: name.to_owned(), directory, modified: self.now });
        }
        match entries.is_empty() && !path.is_empty() {
            true => Err(Error::NotFound(path.to_owned())),
            false => Ok(entries.into_values().collect()),
        }
    }

    /// Compare and set, as [`state::swap`] says.
    pub(crate) fn swap_state(&mut self, key: &str, expected: Option<&[u8]>, next: Option<&[u8]>) -> bool {
        if self.state.get(key).map(Vec::as_slice) != expected {
            return false;
        }
        match next {
            Some(bytes) => self.state.insert(key.to_owned(), bytes.to_owned()),
            None => self.state.remove(key),
        };
        true
    }
}

thread_local! {
    static LENT: RefCell<Fakes> = RefCell::default();
}

/// Looks at what is lent to this thread. Nothing that the adapter wrote runs inside.
pub(crate) fn with<T>(look: impl FnOnce(&mut Fakes) -> T) -> T {
    LENT.with(|lent| look(&mut lent.borrow_mut()))
}

/// [`crate::http::send`], natively.
pub(crate) fn answer_request(request: &Request) -> Result<Response, Error> {
    let answer =
        with(|fakes| fakes.origins.get(&request.origin).cloned()).ok_or_else(|| denied("origins", &request.origin))?;
    Ok(answer(request))
}

/// [`crate::programs::run`], natively.
pub(crate) fn run_program(name: &str, values: &[String], input: &[u8]) -> Result<Outcome, Error> {
    let answer = with(|fakes| fakes.programs.get(name).cloned())
        .ok_or_else(|| Error::NotFound(format!("the program `{name}` is not installed")))?;
    Ok(answer(values, input))
}

/// [`crate::programs::find`], natively.
pub(crate) fn find_program(name: &str) -> Result<Option<String>, Error> {
    Ok(with(|fakes| fakes.programs.contains_key(name)).then(|| format!("/usr/bin/{name}")))
}

/// [`crate::channels::Channel`], natively.
pub(crate) struct FakeChannel {
    answer: Endpoint,
    coming: RefCell<VecDeque<String>>,
}

impl std::fmt::Debug for FakeChannel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("FakeChannel").field("coming", &self.coming).finish_non_exhaustive()
    }
}

impl FakeChannel {
    pub(crate) fn open(endpoint: &str, _values: &[String]) -> Result<FakeChannel, Error> {
        let answer =
            with(|fakes| fakes.endpoints.get(endpoint).cloned()).ok_or_else(|| denied("endpoints", endpoint))?;
        let answer = answer.ok_or_else(|| Error::NotFound(format!("nobody listens at `{endpoint}`")))?;
        Ok(FakeChannel { answer, coming: RefCell::default() })
    }

    pub(crate) fn send(&self, frame: &str) -> Result<(), Error> {
        self.coming.borrow_mut().extend((self.answer)(frame));
        Ok(())
    }

    pub(crate) fn receive(&self, _timeout_ms: u32) -> Result<Option<String>, Error> {
        Ok(self.coming.borrow_mut().pop_front())
    }
}

fn denied(kind: &str, name: &str) -> Error {
    Error::Denied(format!("the test lends no `{kind}.{name}`"))
}

fn stay_inside(path: &str) -> Result<(), Error> {
    match path.starts_with('/') || path.split('/').any(|step| step == "..") {
        true => Err(Error::Denied(format!("{path} leaves its root"))),
        false => Ok(()),
    }
}
