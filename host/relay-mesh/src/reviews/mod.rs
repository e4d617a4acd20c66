//! Reviews: the difference is worked out, each reviewer is a run that may only look, and what they found is held against
//! the difference by the mesh's rules (`mesh::reviews`). Each review has a folder, `reviews/ID` of the data folder.

pub(crate) mod apply;
pub(crate) mod begin;
mod folder;
pub(crate) mod stop;
mod subject;
pub(crate) mod work;

pub(crate) use begin::ReviewRequest;
pub(crate) use folder::{ReviewFolder, Reviews};
