//! Changes to settings files that leave everything else as it was: comments, order, indentation,
//! trailing commas, byte order mark, line ends, the final newline.
//!
//! [`jsonc`] is for JSON with or without comments, [`toml`] for TOML. What was added by one of them
//! and is taken out again by it leaves the very bytes that were there before, wherever nobody
//! touched the file in between; also where the object, or the whole file, did not exist.

pub mod jsonc;
