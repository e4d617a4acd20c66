//! What can be made to go wrong, and what a loss of power leaves.

/// What happens to one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing of it is there.
    Fail,
    /// It is written and then fails to be synced: it fails, although readers see it. A loss of
    /// power takes it away.
    FailToSync,
    /// It is answered as synced, and a loss of power takes it away all the same: a disk that lies.
    Forget,
    /// The process ends half-way: an append leaves all but its last entry and a torn line, which
    /// readers report as damage; a swap does not happen. It fails.
    Tear,
}

/// What a loss of power leaves of bytes that were written and not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Lost,
    /// Everything, by luck.
    Kept,
    /// A log's unsynced entries up to the last, and that one torn.
    Torn,
}
