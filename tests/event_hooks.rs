//! Event hooks.
