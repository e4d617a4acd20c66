//! The clock of guests: a thread that advances the engine's epoch while calls run, and a meter
//! that counts the processor time which one call spends inside its guest.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::EngineWeak;

/// How often a running guest is looked at. With what it may have run for before the first look
/// ([`AT_ONCE`]), nothing else on its thread waits for it longer than 5 ms.
const TICK: Duration = Duration::from_millis(4);
/// A guest that has run for less than this since it was last resumed goes on: it is short, and
/// was only looked at in an unlucky moment.
const AT_ONCE: u64 = 1_000_000;
/// How long a guest that runs for longer rests after each look while other calls run. They wait
/// for lent functions several times, and would otherwise stand behind the guest each time.
const REST: Duration = Duration::from_millis(1);
/// How long the thread stays once nothing runs, so that a busy host does not start one per call.
const LINGER: Duration = Duration::from_secs(2);

/// Advances an engine's epoch, by a thread that runs only while calls do.
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
    /// How many calls run their guest. Written by `start` and by the drop of what it returns.
    calls: usize,
    /// How many calls are under way, those included that wait for their host. Written by `begin`
    /// and by the drop of what it returns.
    begun: usize,
    /// Whether the thread is there. Written by `start` and by the thread as it ends.
    thread: bool,
}

/// A call that runs its guest; ticking may stop once every one of these is dropped.
pub(crate) struct Running(Arc<Shared>);

/// A call that is under way, from its first guest code to its last and all between.
pub(crate) struct Begun(Arc<Shared>);

/// What a guest that was looked at does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It goes on.
    On,
    /// Whatever else is ready on its thread goes first.
    Others,
    /// It rests, so that other calls get through.
    Rest(Duration),
}

/// Decides it.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

impl Ticker {
    /// For an engine; no thread is started yet.
    pub(crate) fn new(engine: EngineWeak) -> Ticker {
        Ticker { engine, shared: Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }) }
    }

    /// A call begins, and may wait before its guest runs, and between.
    pub(crate) fn begin(&self) -> Begun {
        self.shared.lock().begun += 1;
        Begun(Arc::clone(&self.shared))
    }

    /// A guest begins to run. An error where the system gives no thread: no guest may run unwatched.
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
    /// For a guest's store, which outlives this borrow.
    pub(crate) fn turns(&self) -> Turns {
        Turns(Arc::clone(&self.shared))
    }
}

impl Turns {
    /// For a guest that has run for some nanoseconds since it was last resumed.
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
        // Nothing panics while it is held, so a poisoned state is a whole one.
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

/// Processor time that one call has spent in its guest. Waiting costs nothing, whether for a lent
/// function or for a processor: a loaded machine makes no innocent guest late.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Nanoseconds of the polls that are over.
    spent: AtomicU64,
    /// This thread's processor time when the present poll began.
    since: AtomicU64,
}

impl Meter {
    /// Milliseconds spent so far. Called by the guest's own thread, within a poll.
    pub(crate) fn spent_ms(&self) -> u64 {
        (self.spent.load(Ordering::Relaxed) + self.since_resumed()) / 1_000_000
    }

    /// Nanoseconds spent in the present poll. Called as [`Meter::spent_ms`] is.
    pub(crate) fn since_resumed(&self) -> u64 {
        thread_time().saturating_sub(self.since.load(Ordering::Relaxed))
    }

    /// Microseconds spent in the polls that are over. For after a call.
    pub(crate) fn total_us(&self) -> u64 {
        self.spent.load(Ordering::Relaxed) / 1_000
    }

    /// Begins a new account.
    pub(crate) fn reset(&self) {
        self.spent.store(0, Ordering::Relaxed);
    }

    /// Runs a future on this account.
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

fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
