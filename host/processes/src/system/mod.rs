//! What the system tells of processes: one file for each system, all with the same functions. What a system does not
//! tell is empty or none there.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod silent;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "macos")]
pub(crate) use macos::*;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) use silent::*;

/// What the system lists of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The program's name.
    pub(crate) name: String,
    pub(crate) parent: u32,
    /// When it started, so that it differs from a later process with the same number: in ticks since boot on Linux, in
    /// seconds since 1970 on macOS.
    pub(crate) start: u64,
    /// It has ended and only waits for its parent to notice.
    pub(crate) is_zombie: bool,
    /// It began a session of the system's, as the shell of a terminal does.
    pub(crate) leads_session: bool,
}
