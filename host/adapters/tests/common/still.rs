//! The machine of tests and benchmarks of adapters.

use mesh::ports::machine::{Instant, Machine, Process};

/// A clock that stands still: these tests wait only for real events.
pub(crate) struct Still;

impl Machine for Still {
    fn now(&self) -> Instant {
        Instant(1_700_000_000_000)
    }

    fn process(&self, _pid: u32) -> Option<Process> {
        None
    }

    fn this_process(&self) -> Process {
        Process { pid: 1, start: 1, space: None }
    }

    fn name(&self) -> &str {
        "here"
    }

    fn random(&self) -> [u8; 16] {
        [7; 16]
    }
}
