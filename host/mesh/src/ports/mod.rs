//! What the mesh asks of the world: a machine, harnesses, and what the user allowed.

pub mod consent;
pub mod harness;
pub mod machine;
