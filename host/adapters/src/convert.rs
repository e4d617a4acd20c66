//! Between the interface's types and the mesh's words, by hand and in one place per direction, so
//! that a change of either shows here and nowhere else.

pub(crate) mod from_guest;
pub(crate) mod to_guest;
