//! Conversion by hand between the interface types that every adapter exports and those of the mesh, in one file per
//! direction. An optional interface converts its own types in its own file.

pub(crate) mod from_guest;
pub(crate) mod to_guest;
