//! The faults that tests can inject, and what a power loss leaves.

/// A fault of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails and writes nothing.
    Fail,
    /// It is written, but the sync fails: the call fails, although readers see the data. A power loss removes it.
    FailToSync,
    /// It returns as synced, but a power loss removes it: a disk that lies.
    Forget,
    /// The process dies half-way: an append leaves all but its last entry and a torn line, which readers report as
    /// damage; a swap does not happen. It fails.
    Tear,
}

/// What a power loss leaves of unsynced bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Lost,
    /// Everything.
    Kept,
    /// A log's unsynced entries, the last one torn.
    Torn,
}
