//! The host functions, faked: a builder for tests, and the native side of [`crate::host_functions`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::FakeHost;
use crate::files::Entry;
use crate::http::{Request, Response};
use crate::log::Level;
use crate::programs::ProgramOutput;
use crate::{Error, state};

type Origin = Rc<dyn Fn(&Request) -> Response>;
type Endpoint = Rc<dyn Fn(&str) -> Vec<String>>;
type Program = Rc<dyn Fn(&[String], &[u8]) -> ProgramOutput>;

/// Builds a fake host. It denies every resource that the test does not add, as the real host does.
#[derive(Default)]
pub struct Fakes {
    /// Milliseconds since the Unix epoch. Written by [`Fakes::at`] and [`FakeHost::advance`].
    pub(crate) now: u64,
    /// Written by the adapter's log calls.
    pub(crate) log: Vec<(Level, String)>,
    /// Root name to path to content. A root without files stands for a folder that does not exist yet.
    pub(crate) roots: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The adapter's state, by key.
    pub(crate) state: BTreeMap<String, Vec<u8>>,
    /// Whether [`crate::notices::show`] succeeds.
    pub(crate) desktop: bool,
    /// Written by [`crate::notices::show`].
    pub(crate) notices: Vec<(String, String)>,
    origins: BTreeMap<String, Origin>,
    /// None if no server listens there.
    endpoints: BTreeMap<String, Option<Endpoint>>,
    programs: BTreeMap<String, Program>,
}

impl Fakes {
    /// Sets the clock, in milliseconds since the Unix epoch.
    pub fn at(mut self, now: u64) -> Fakes {
        self.now = now;
        self
    }

    /// Adds an empty root.
    pub fn root(mut self, name: &str) -> Fakes {
        self.roots.entry(name.to_owned()).or_default();
        self
    }

    /// Adds a file, and its root.
    pub fn file(mut self, root: &str, path: &str, content: impl Into<Vec<u8>>) -> Fakes {
        self.roots.entry(root.to_owned()).or_default().insert(path.to_owned(), content.into());
        self
    }

    /// Adds a desktop for notices.
    pub fn desktop(mut self) -> Fakes {
        self.desktop = true;
        self
    }

    /// Adds an HTTP origin; `answer` makes each response.
    pub fn origin(mut self, name: &str, answer: impl Fn(&Request) -> Response + 'static) -> Fakes {
        self.origins.insert(name.to_owned(), Rc::new(answer));
        self
    }

    /// Adds an endpoint; `answer` makes the frames that come back for each frame sent.
    pub fn endpoint(mut self, name: &str, answer: impl Fn(&str) -> Vec<String> + 'static) -> Fakes {
        self.endpoints.insert(name.to_owned(), Some(Rc::new(answer)));
        self
    }

    /// Adds an endpoint at which no server listens.
    pub fn deserted(mut self, name: &str) -> Fakes {
        self.endpoints.insert(name.to_owned(), None);
        self
    }

    /// Adds an installed program; `answer` makes its output from the values and the input.
    pub fn program(mut self, name: &str, answer: impl Fn(&[String], &[u8]) -> ProgramOutput + 'static) -> Fakes {
        self.programs.insert(name.to_owned(), Rc::new(answer));
        self
    }

    /// Adds a value to the adapter's state.
    pub fn state<T: serde::Serialize>(mut self, key: &str, value: &T) -> Fakes {
        self.state.insert(
            key.to_owned(),
            state::to_bytes(value).unwrap_or_else(|error| {
                panic!("the value for the state key `{key}` must be serialisable as JSON: {error:?}")
            }),
        );
        self
    }

    /// Makes this the host of the current thread, in place of an earlier one.
    pub fn start(self) -> FakeHost {
        HOST.with(|host| *host.borrow_mut() = self);
        FakeHost::of_this_thread()
    }

    pub(crate) fn open_root(&self, name: &str) -> Result<(), Error> {
        match self.roots.contains_key(name) {
            true => Ok(()),
            false => Err(denied("roots", name)),
        }
    }

    pub(crate) fn read_file(&self, root: &str, path: &str) -> Result<Vec<u8>, Error> {
        stay_inside(path)?;
        let files = self.roots.get(root).ok_or_else(|| denied("roots", root))?;
        files.get(path).cloned().ok_or_else(|| Error::NotFound(path.to_owned()))
    }

    /// A folder exists if there is a file below it.
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

    /// Compare and set: see [`state::swap`].
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
    static HOST: RefCell<Fakes> = RefCell::default();
}

/// Gives access to this thread's fakes. Never call the adapter's code from `look`: the fakes are borrowed.
pub(crate) fn with<T>(look: impl FnOnce(&mut Fakes) -> T) -> T {
    HOST.with(|host| look(&mut host.borrow_mut()))
}

/// [`crate::http::send`], natively.
pub(crate) fn answer_request(request: &Request) -> Result<Response, Error> {
    let answer =
        with(|fakes| fakes.origins.get(&request.origin).cloned()).ok_or_else(|| denied("origins", &request.origin))?;
    Ok(answer(request))
}

/// [`crate::programs::run`], natively.
pub(crate) fn run_program(name: &str, values: &[String], input: &[u8]) -> Result<ProgramOutput, Error> {
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
        let answer = answer.ok_or_else(|| Error::NotFound(format!("no server listens at `{endpoint}`")))?;
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
    let method = kind.trim_end_matches('s');
    Error::Denied(format!("the test fakes no `{kind}.{name}`; add it with `Fakes::{method}`"))
}

fn stay_inside(path: &str) -> Result<(), Error> {
    match path.starts_with('/') || path.split('/').any(|step| step == "..") {
        true => Err(Error::Denied(format!("{path} leaves its root; use a path relative to the root, without `..`"))),
        false => Ok(()),
    }
}
