//! The state of one instance of a component: its grants, its usage, and its memory limit. It lives for one call.

use std::sync::Arc;

use mesh::ports::harness::ClientTraces;
use mesh::ports::machine::Machine;
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::engine::Machinery;
use crate::grants::Grants;
use crate::host_functions;
use crate::host_functions::log::LogBudget;
use crate::host_functions::rates::{Rates, Spent};
use crate::manifest::Limits;
use crate::template::Surroundings;
use crate::ticker::{Meter, Turn};

/// Elements of one table: the functions that a component may call through pointers.
const MOST_TABLE_ELEMENTS: usize = 100_000;
/// Core instances, tables and memories of one component. A typical one has five, three and one.
const MOST_PARTS: usize = 64;
/// Bytes that a guest may pass in one call in either direction of the interface. Without it, a list of a million
/// references to one long string would be copied a million times.
const MOST_HANDED_OVER: usize = 8 * 1024 * 1024;
/// Resources that one call may hold open.
const MOST_RESOURCES: usize = 64;

/// What all calls of one adapter share: its grants, limits and store.
pub(crate) struct HostSide {
    pub(crate) name: String,
    pub(crate) grants: Grants,
    /// What its client's processes show of its sessions.
    pub(crate) traces: ClientTraces,
    /// Limits of one call.
    pub(crate) limits: Limits,
    pub(crate) store: Arc<dyn store::Store>,
    pub(crate) machine: Arc<dyn Machine>,
    /// Fills the paths of the manifest.
    pub(crate) surroundings: Arc<Surroundings>,
    /// Limits of each host function.
    pub(crate) settings: host_functions::Settings,
    pub(crate) rates: Rates,
}

/// The data of one instance's store.
pub(crate) struct Guest {
    pub(crate) host_side: Arc<HostSide>,
    pub(crate) table: ResourceTable,
    pub(crate) log: LogBudget,
    pub(crate) spent: Spent,
    wasi: WasiCtx,
    cap: MemoryCap,
}

/// Why the host stopped a guest that did not trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stopped {
    #[error("it ran for more than {0} ms")]
    OutOfTime(u64),
    #[error("it needed more than {0} MB of memory")]
    OutOfMemory(u64),
    #[error("it asked for a table of {0} entries")]
    LargeTable(usize),
}

impl Guest {
    /// A wasmtime store for one call. Its guest may run until the meter reaches the adapter's limit.
    pub(crate) fn store(machinery: &Machinery, host_side: &Arc<HostSide>, meter: &Arc<Meter>) -> Store<Guest> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MOST_RESOURCES);
        let guest = Guest {
            host_side: Arc::clone(host_side),
            table,
            log: LogBudget::default(),
            spent: Spent::default(),
            wasi: host_functions::wasi::context(),
            cap: MemoryCap { used: 0, limit_mb: host_side.limits.memory_mb },
        };
        let mut store = Store::new(&machinery.engine, guest);
        store.limiter(|guest| &mut guest.cap);
        store.set_hostcall_fuel(MOST_HANDED_OVER);
        store.set_epoch_deadline(1);
        let (meter, turns, limit) = (Arc::clone(meter), machinery.ticker.turns(), host_side.limits.guest_ms);
        store.epoch_deadline_callback(move |_| {
            if meter.spent_ms() >= limit {
                return Err(Stopped::OutOfTime(limit).into());
            }
            // Yields, so that a long-running guest does not block other tasks on this thread.
            Ok(match turns.after(meter.since_resumed()) {
                Turn::On => UpdateDeadline::Continue(1),
                Turn::Others => UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())),
                Turn::Rest(time) => UpdateDeadline::YieldCustom(1, Box::pin(tokio::time::sleep(time))),
            })
        });
        store
    }
}

impl Guest {
    /// Memory that the instance uses, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.cap.used
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The shared limit of all memories of one instance.
struct MemoryCap {
    used: usize,
    limit_mb: u64,
}

impl ResourceLimiter for MemoryCap {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used as u64 > self.limit_mb.saturating_mul(1024 * 1024) {
            // An error, not a refusal: a guest's allocator would only trap without saying why.
            return Err(Stopped::OutOfMemory(self.limit_mb).into());
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > MOST_TABLE_ELEMENTS {
            return Err(Stopped::LargeTable(desired).into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        MOST_PARTS
    }

    fn tables(&self) -> usize {
        MOST_PARTS
    }

    fn memories(&self) -> usize {
        MOST_PARTS
    }
}
