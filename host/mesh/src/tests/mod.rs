//! The mesh over the memory store.
