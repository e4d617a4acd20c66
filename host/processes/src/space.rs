//! Where a process's number counts: in one PID namespace of one boot of one system. The same number elsewhere is
//! another process.

use serde::{Deserialize, Serialize};

use crate::system;

/// The processes among which a number names one. Numbers only, which tell nothing of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Space {
    /// The installed system, which outlives a boot; zero if it has no id, as in most containers.
    pub system: u64,
    pub boot: u64,
    /// The PID namespace. A later one may get the same number, but not while a process of this one lives.
    pub namespace: u64,
}

/// Where this process is; none if the system does not tell.
pub fn own_space() -> Option<Space> {
    system::own_space()
}

/// Whether the system lists processes, by the numbers of this process's own namespace.
pub fn lists_own_processes() -> bool {
    system::lists_own_processes()
}
