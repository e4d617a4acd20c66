//! Systems that we ask nothing about processes: a signal tells whether one lives.

use std::path::PathBuf;

use super::Listed;
use crate::space::Space;

pub(crate) fn own_space() -> Option<Space> {
    None
}

pub(crate) fn lists_own_processes() -> bool {
    false
}

pub(crate) fn this_process() -> Option<Listed> {
    None
}

pub(crate) fn pids() -> impl Iterator<Item = u32> {
    std::iter::empty()
}

pub(crate) fn listed(_pid: u32) -> Option<Listed> {
    None
}

pub(crate) fn environment(_pid: u32) -> Vec<u8> {
    Vec::new()
}

pub(crate) fn command_line(_pid: u32) -> Vec<u8> {
    Vec::new()
}

pub(crate) fn program(_pid: u32) -> Option<PathBuf> {
    None
}

pub(crate) fn folder(_pid: u32) -> Option<PathBuf> {
    None
}

pub(crate) fn is_at_a_terminal(_pid: u32) -> bool {
    false
}

pub(crate) fn open_files(_pid: u32) -> impl Iterator<Item = PathBuf> {
    std::iter::empty()
}

pub(crate) fn is_ours(_pid: u32) -> bool {
    false
}
