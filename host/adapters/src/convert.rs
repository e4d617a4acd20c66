//! Conversion between the types of the interfaces that every adapter exports and those of the mesh, by hand, in one
//! file per direction. An optional interface converts its own types in its own file.

pub(crate) mod from_guest;
pub(crate) mod to_guest;
