//! The clock of guests: a thread that advances the engine's epoch while calls run, and a meter that counts the
//! processor time which one call spends inside its guest.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use wasmtime::EngineWeak;

use crate::unix::thread_time;

/// The interval at which a running guest is interrupted and checked. Together with [`AT_ONCE`], which it may run before
/// the first check, nothing else on its thread waits longer than 5 ms for it.
const TICK: Duration = Duration::from_millis(4);
/// Nanoseconds. A guest that has run for less than this since it was last resumed continues: it is short, and the check
/// only came at an unlucky time.
const AT_ONCE: u64 = 1_000_000;
/// How long a longer-running guest pauses after each check while other calls run. They wait for host functions several
/// times, and would otherwise queue behind the guest each time.
const REST: Duration = Duration::from_millis(1);
/// How long the thread stays alive when no call runs, so that a busy process does not start one per call.
const LINGER: Duration = Duration::from_secs(2);

/// Advances an engine's epoch, in a thread that runs only while calls do.
pub(crate) struct Ticker {
    engine: EngineWeak,
    shared: Arc<Shared>,
}

struct Shared {
    // A std mutex: nothing is awaited while it is held, and each section is a few assignments.
    state: Mutex<TickerState>,
    changed: Condvar,
}

#[derive(Default)]
struct TickerState {
    /// Number of calls whose guest runs. Written by `start` and by the drop of its return value.
    calls: usize,
    /// Number of calls in progress, including those that wait for the host. Written by `begin` and by the drop of its
    /// return value.
    begun: usize,
    /// Whether the thread exists. Written by `start` and by the thread as it ends.
    thread: bool,
}

/// A call whose guest runs; ticking may stop once all of these are dropped.
pub(crate) struct Running(Arc<Shared>);

/// A call in progress, from its first guest code to its last, with all waits between.
pub(crate) struct Begun(Arc<Shared>);

/// What an interrupted guest does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It continues.
    On,
    /// It yields to other tasks on its thread.
    Others,
    /// It pauses, so that other calls get through.
    Rest(Duration),
}

/// Decides what an interrupted guest does next.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

impl Ticker {
    /// Starts no thread yet.
    pub(crate) fn new(engine: EngineWeak) -> Ticker {
        Ticker { engine, shared: Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }) }
    }

    /// Counts a call, which may wait before and between runs of its guest.
    pub(crate) fn begin(&self) -> Begun {
        self.shared.lock().begun += 1;
        Begun(Arc::clone(&self.shared))
    }

    /// Counts a running guest. An error if the system gives no thread: no guest may run unwatched.
    pub(crate) fn start(&self) -> std::io::Result<Running> {
        let mut state = self.shared.lock();
        if !state.thread {
            let (engine, shared) = (self.engine.clone(), Arc::clone(&self.shared));
            let name = "adapter-ticker".to_owned();
            std::thread::Builder::new().name(name).stack_size(64 * 1024).spawn(move || tick(&engine, &shared))?;
            state.thread = true;
        }
        state.calls += 1;
        self.shared.changed.notify_one();
        Ok(Running(Arc::clone(&self.shared)))
    }
}

impl Ticker {
    /// An owned handle for a guest's store, which outlives this borrow.
    pub(crate) fn turns(&self) -> Turns {
        Turns(Arc::clone(&self.shared))
    }
}

impl Turns {
    /// The turn of a guest that has run for this many nanoseconds since it was last resumed.
    pub(crate) fn after(&self, since: u64) -> Turn {
        match self.0.lock().begun {
            _ if since < AT_ONCE => Turn::On,
            0 | 1 => Turn::Others,
            _ => Turn::Rest(REST),
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.lock().begun -= 1;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().calls -= 1;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, TickerState> {
        // No code panics while it holds the lock, so a poisoned state is intact.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tick(engine: &EngineWeak, shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if state.calls == 0 {
            let (resumed, waited) = shared
                .changed
                .wait_timeout_while(state, LINGER, |state| state.calls == 0)
                .unwrap_or_else(PoisonError::into_inner);
            state = resumed;
            if waited.timed_out() {
                state.thread = false;
                return;
            }
        }
        let (resumed, _) = shared.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner);
        state = resumed;
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => {
                state.thread = false;
                return;
            }
        }
    }
}

/// Processor time that one call has spent in its guest. Waiting does not count, neither for a host function nor for a
/// processor, so a loaded machine does not time out an innocent guest.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Nanoseconds of the finished polls.
    spent: AtomicU64,
    /// This thread's processor time when the current poll began.
    since: AtomicU64,
}

impl Meter {
    /// Milliseconds spent so far. Must be called on the guest's own thread, within a poll.
    pub(crate) fn spent_ms(&self) -> u64 {
        (self.spent.load(Ordering::Relaxed) + self.since_resumed()) / 1_000_000
    }

    /// Nanoseconds spent in the current poll. Must be called like [`Meter::spent_ms`].
    pub(crate) fn since_resumed(&self) -> u64 {
        thread_time().saturating_sub(self.since.load(Ordering::Relaxed))
    }

    /// Microseconds spent in the finished polls. Meant for after a call.
    pub(crate) fn total_us(&self) -> u64 {
        self.spent.load(Ordering::Relaxed) / 1_000
    }

    /// Sets the count to zero.
    pub(crate) fn reset(&self) {
        self.spent.store(0, Ordering::Relaxed);
    }

    /// Counts the processor time of a future.
    pub(crate) async fn watch<F: Future>(&self, future: F) -> F::Output {
        Metered { meter: self, future: std::pin::pin!(future) }.await
    }
}

/// A future whose polls are measured. Between polls it may move to another thread.
struct Metered<'m, 'f, F> {
    meter: &'m Meter,
    future: Pin<&'f mut F>,
}

impl<F: Future> Future for Metered<'_, '_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let began = thread_time();
        self.meter.since.store(began, Ordering::Relaxed);
        let polled = self.future.as_mut().poll(context);
        self.meter.spent.fetch_add(thread_time().saturating_sub(began), Ordering::Relaxed);
        polled
    }
}
