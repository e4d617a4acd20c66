//! Compiles components in a process of its own, with limits on processor time and memory: a component can be built so
//! that compiling a hundred kilobytes takes a minute and a gigabyte, and a user may not even have agreed to it yet.
//!
//! The process is this binary again, by a hidden command. For a component that is in use it goes on when the process
//! that started it has no more time, as hooks do, and holds the cache's lock until it is done: so a component is
//! compiled once, however many processes wait for it. One that is only tried ends with the command that tries it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use processes::confined::{self, Bond, Bounds, Output, Work, WorkEnd};
use serde::{Deserialize, Serialize};

use crate::cache::{CompiledFiles, LoadError};
use crate::digest::Digest;
use crate::engine::{compile, fingerprint};
use crate::package::LARGEST;

/// The hidden command of the binary that compiles one component.
pub const COMMAND: &str = "compile-component";
/// The most machine code of one component, in bytes.
const MOST_CODE: u64 = 1 << 30;
/// The exit code that says that the machine code could not be written.
const NOT_KEPT: u8 = 3;
/// How often a component that is in use is begun to be compiled before it counts as one that cannot be.
const TRIES: u32 = 3;

/// Who compiles components.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// A process of its own, which is this binary. It calls [`if_asked`] before anything else.
    Apart {
        binary: PathBuf,
        limits: Limits,
        /// Why components are compiled that are loaded for calls.
        usually: Attempt,
    },
    /// This process, without limits: for tests and measurements whose components are their own.
    InThisProcess,
}

/// What compiling a component may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Processor time in seconds: so much, and so much more for each megabyte of the component.
    pub processor: (u64, u64),
    /// Memory in megabytes: so much, and so much more for each megabyte of the component.
    pub memory: (u64, u64),
}

impl Default for Limits {
    /// Some twenty times what an adapter of 700 KB takes on an unoptimised build, and five times what one with an
    /// interpreter does (18 MB: 20 s).
    fn default() -> Limits {
        Limits { processor: (20, 5), memory: (768, 64) }
    }
}

impl Limits {
    /// For a component of so many bytes.
    fn of(self, bytes: usize) -> Bounds {
        let megabytes = (bytes as u64).div_ceil(1 << 20);
        let ((seconds, more_seconds), (memory, more_memory)) = (self.processor, self.memory);
        Bounds { processor: seconds + more_seconds * megabytes, memory: (memory + more_memory * megabytes) << 20 }
    }
}

/// Why a component is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A user wants to know whether it can be: nothing is left of it, and it ends with us.
    Trial,
    /// It is in use.
    InUse,
}

/// What the process is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    bounds: Bounds,
    bond: Bond,
    /// The engine that will run it: another build of this program may lie in the place of this one by now.
    engine: u64,
    /// The folder of the cache and the component's digest; none if the machine code goes to standard output.
    into: Option<(PathBuf, Digest)>,
}

/// The compilations that this process waits for.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Whether this process waits for a component to be compiled, by itself or by another process.
pub fn is_waited_for() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// Counts as waiting until it is dropped.
pub(crate) struct Waiting;

impl Waiting {
    pub(crate) fn begin() -> Waiting {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Compiles one component if the command line asks for it. The binary calls this before anything else.
pub fn if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    let mut words = arguments.iter().skip(1);
    if words.next()? != COMMAND {
        return None;
    }
    let order = words.next().and_then(|order| serde_json::from_str(order.to_str()?).ok());
    Some(match order.ok_or_else(|| refused("it was told nothing")).and_then(|order| obey(&order)) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            let _unheard = writeln!(io::stderr(), "{why}");
            code
        }
    })
}

fn refused(why: impl ToString) -> (ExitCode, String) {
    (ExitCode::FAILURE, why.to_string())
}

/// In the process of its own.
fn obey(order: &Order) -> Result<(), (ExitCode, String)> {
    let not_kept = |error: &dyn std::error::Error| (ExitCode::from(NOT_KEPT), store::reasons(error));
    confined::confine(order.bounds, order.bond).map_err(refused)?;
    let mut component = Vec::new();
    io::stdin().take(LARGEST + 1).read_to_end(&mut component).map_err(refused)?;
    if fingerprint().map_err(refused)? != order.engine {
        return Err(refused("relay-mesh was replaced since this process of it was started; start it again"));
    }
    let Some((cache, digest)) = &order.into else {
        let code = machine_code(&component).map_err(refused)?;
        return io::stdout().write_all(&code).map_err(refused);
    };
    let entry = CompiledFiles::open(cache, digest, order.engine).map_err(|error| not_kept(&error))?;
    if Digest::of(&component) != *digest {
        // The process that wrote it has ended meanwhile.
        return Err(refused("it did not come whole"));
    }
    let notes = (order.bond == Bond::GoesOn).then_some(&entry);
    if let Some(entry) = notes {
        entry.note_attempt();
    }
    let code = machine_code(&component).map_err(|why| {
        if let Some(entry) = notes {
            entry.note_failure(TRIES, &why);
        }
        refused(why)
    })?;
    entry.write(&code).map_err(|error| not_kept(&error))
}

fn machine_code(component: &[u8]) -> Result<Vec<u8>, String> {
    let code = compile(component).map_err(|error| format!("{error:#}"))?;
    match code.len() as u64 {
        0..=MOST_CODE => Ok(code),
        more => Err(format!("its machine code has {more} bytes, and at most {MOST_CODE} are kept")),
    }
}

impl Compiler {
    /// Why components are compiled that are loaded for calls.
    pub(crate) fn usually(&self) -> Attempt {
        match self {
            Compiler::Apart { usually, .. } => *usually,
            Compiler::InThisProcess => Attempt::Trial,
        }
    }

    /// Compiles a component into its place in the cache, whose lock this process holds.
    pub(crate) fn fill_cache(
        &self,
        (cache, digest, engine): (&std::path::Path, &Digest, u64),
        entry: &CompiledFiles,
        lock: Option<File>,
        component: &[u8],
        attempt: Attempt,
    ) -> Result<(), LoadError> {
        let Compiler::Apart { binary, limits, .. } = self else {
            return entry
                .write(&in_this_process(component)?)
                .map_err(|error| LoadError::NotKept(store::reasons(&error)));
        };
        if let (Attempt::InUse, Some((tries, why))) = (attempt, entry.failure())
            && tries >= TRIES
        {
            return Err(LoadError::GivenUp { why, note: entry.failure.clone() });
        }
        let bond = match attempt {
            Attempt::Trial => Bond::EndsWith(std::process::id()),
            Attempt::InUse => Bond::GoesOn,
        };
        let order = Order { bounds: limits.of(component.len()), bond, engine, into: Some((cache.to_owned(), *digest)) };
        let output = lock.map_or(Output::Bytes(0), Output::Holds);
        let outcome = ordered(binary, &order, component, output).map(drop);
        match (&outcome, attempt) {
            (Err(LoadError::OverLimit(why)), Attempt::InUse) => entry.note_reason(why),
            (Err(_), Attempt::Trial) => entry.remove_lock(),
            (Ok(()) | Err(_), Attempt::InUse | Attempt::Trial) => {}
        }
        outcome
    }

    /// Compiles a component without a place in the cache.
    pub(crate) fn to_memory(&self, engine: u64, component: &[u8]) -> Result<Vec<u8>, LoadError> {
        let Compiler::Apart { binary, limits, .. } = self else { return in_this_process(component) };
        let bond = Bond::EndsWith(std::process::id());
        let order = Order { bounds: limits.of(component.len()), bond, engine, into: None };
        ordered(binary, &order, component, Output::Bytes(MOST_CODE))
    }
}

fn in_this_process(component: &[u8]) -> Result<Vec<u8>, LoadError> {
    compile(component).map_err(|error| LoadError::Invalid(format!("{error:#}")))
}

fn ordered(binary: &std::path::Path, order: &Order, component: &[u8], output: Output) -> Result<Vec<u8>, LoadError> {
    let told = serde_json::to_string(order).map_err(|error| LoadError::Unstarted(error.into()))?;
    let words = [COMMAND.into(), told.into()];
    let ended = confined::perform(Work { binary, words: &words, input: component, output });
    match ended.map_err(LoadError::Unstarted)? {
        WorkEnd::Done(bytes) => Ok(bytes),
        WorkEnd::Refused(code, why) if code == i32::from(NOT_KEPT) => Err(LoadError::NotKept(why)),
        WorkEnd::Refused(_, why) => Err(LoadError::Invalid(why)),
        WorkEnd::OutOfTime => Err(LoadError::OverLimit(format!(
            "compiling it takes more than {} s of processor time, which no component of its size needs",
            order.bounds.processor
        ))),
        WorkEnd::OutOfMemory => Err(LoadError::OverLimit(format!(
            "compiling it takes more than {} MB of memory, which no component of its size needs",
            order.bounds.memory >> 20
        ))),
        WorkEnd::BrokenOff(why) => Err(LoadError::BrokenOff(why)),
    }
}
