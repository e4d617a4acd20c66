//! A conversation as one file.

use std::path::Path;

use store::Durability;
use view::{ThreadView, export};

use crate::atomic_write;
use crate::errors::CommandError;
use crate::exit::Exit;

/// The longest file has so many messages.
pub(crate) const MOST: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// A page for a browser
    Html,
    /// Markdown
    Md,
    /// The JSON of `relay-mesh thread --json`
    Json,
}

/// The whole file.
pub(crate) fn text(thread: &ThreadView, form: Form) -> Result<String, CommandError> {
    Ok(match form {
        Form::Html => export::html(thread),
        Form::Md => export::markdown(thread),
        Form::Json => serde_json::to_string(thread).map_err(std::io::Error::from)?,
    })
}

/// Writes a conversation into a file, which is replaced whole or not at all.
pub(crate) fn write(thread: &ThreadView, form: Form, path: &Path) -> Result<(), CommandError> {
    let written = atomic_write::replace(path, text(thread, form)?.as_bytes(), 0o600, Durability::Synced);
    let failed = |error| {
        let what = format!("`{}` could not be written", path.display());
        CommandError::caused_by(&what, None, Exit::Failure, error)
    };
    written.map_err(failed)
}
