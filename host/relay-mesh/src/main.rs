//! Placeholder while the crate is being laid.
fn main() {}
