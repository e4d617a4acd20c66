//! What the mesh needs of the outside: a machine, harnesses, and the user's consents.

pub mod candidate;
pub mod consent;
pub mod data_files;
pub mod desktop;
pub mod driver;
pub mod harness;
pub mod machine;
pub mod runner;
