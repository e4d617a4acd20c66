//! Placeholder while the crate is being laid.
