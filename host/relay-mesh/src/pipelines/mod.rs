//! Pipelines: implement, review, correct, in one worktree. Each has a folder, `pipelines/ID` of the data folder, and its
//! record says after each step what is done, so that one whose process was killed can go on. What comes next is the
//! mesh's rule (`mesh::reviews::next_step`).

pub(crate) mod begin;
mod changes;
mod folder;
pub(crate) mod stop;
pub(crate) mod work;

pub(crate) use changes::{apply, until_now};
pub(crate) use folder::{PipelineFolder, Pipelines};
