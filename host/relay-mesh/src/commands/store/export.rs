//! `relay-mesh store export` and `import`: a mesh as JSON lines, one for each value and each log entry.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;

use mesh::storage::migrate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, Key, Position, Store};

use super::{Target, is_there, shared, told};
use crate::config::Shared;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::unix::PermissionsExt as _;

/// Write everything as JSON lines
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh store export --out mesh.jsonl\n  \
    relay-mesh store export | jq -r 'select(.log == \"agents/bob/inbox\") | .entry.subject'")]
pub(super) struct ExportArgs {
    /// Write to this new file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Read an export into the store
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh store import mesh.jsonl --store nats://10.0.0.7:4222")]
pub(super) struct ImportArgs {
    /// The exported file
    file: PathBuf,
    #[command(flatten)]
    target: Target,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum ExportLine {
    /// A key and its value.
    Value { value: String, is: Value },
    /// A log and its next entry.
    Entry { log: String, entry: Value },
}

pub(super) async fn export(args: ExportArgs, context: &Context) -> Result<Exit, CommandError> {
    if matches!(context.settings.shared.value, Shared::InTheFolder) {
        is_there(&context.settings.dir.value)?;
    }
    let store = shared(context)?;
    let Some(out) = args.out else {
        each_line(store.as_ref(), |line| context.printer.bytes(line)).await?;
        return Ok(Exit::Success);
    };
    let out = context.workdir.join(out);
    let folder = out.parent().unwrap_or(&out);
    let mut count = 0;
    let mut written = tempfile::NamedTempFile::new_in(folder);
    each_line(store.as_ref(), |line| {
        count += 1;
        if let Ok(file) = &mut written
            && let Err(error) = file.write_all(line)
        {
            written = Err(error);
        }
        Ok(())
    })
    .await?;
    let write = || {
        let file = written?;
        file.as_file().sync_all()?;
        file.persist_noclobber(&out).map_err(|error| error.error).map(drop)
    };
    write().map_err(|error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "name a file that is not there yet",
            _ => "name a file in a folder that you may write to",
        };
        CommandError::caused_by(
            &format!("could not write `{}`", out.display()),
            Some(hint.to_owned()),
            Exit::Failure,
            error,
        )
    })?;
    context.printer.say(&format!("{count} lines are in {}", out.display()));
    Ok(Exit::Success)
}

/// Passes on every line, one after the other: a year of mail does not fit into memory.
async fn each_line(
    store: &dyn Store,
    mut take: impl FnMut(&[u8]) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let contents = migrate::contents(store).await?;
    for key in contents.values {
        if let Some(found) = store.get(&key).await? {
            take(&line(&key, &found.bytes, |value, is| ExportLine::Value { value, is })?)?;
        }
    }
    for log in contents.logs {
        let mut from = Position::START;
        while let Some((entries, next)) = migrate::some_entries(store, &log, from).await? {
            for entry in entries {
                take(&line(&log, &entry.bytes, |log, entry| ExportLine::Entry { log, entry })?)?;
            }
            from = next;
        }
    }
    Ok(())
}

fn line(key: &Key, bytes: &[u8], make: impl Fn(String, Value) -> ExportLine) -> Result<Vec<u8>, CommandError> {
    let damaged = |why: String| store::StoreError::Damaged { what: key.to_string(), why };
    let parsed = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    let mut line = serde_json::to_vec(&make(key.to_string(), parsed)).map_err(|error| damaged(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

pub(super) async fn import(args: ImportArgs, context: &Context) -> Result<Exit, CommandError> {
    let file = context.workdir.join(&args.file);
    let unreadable = |error: std::io::Error| {
        let hint = Some("name a file that `relay-mesh store export` wrote".to_owned());
        CommandError::caused_by(&format!("could not read `{}`", file.display()), hint, Exit::NotFound, error)
    };
    let lines = BufReader::new(std::fs::File::open(&file).map_err(unreadable)?).lines();
    // A store on disk, of which nothing is left afterwards: an export may be larger than the memory.
    let scratch = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().map_err(unreadable)?;
    let options = FilesOptions { durability: Durability::Process, ..FilesOptions::default() };
    let exported = FilesStore::open(scratch.path(), options)?;
    for (number, line) in lines.enumerate() {
        let line = line.map_err(unreadable)?;
        take_in(&exported, &line).await.map_err(|why| Failure {
            what: format!("`{}`, line {}: {why}", file.display(), number + 1),
            hint: Some("nothing was taken in; name a file that `relay-mesh store export` wrote".to_owned()),
            exit: Exit::Usage,
            source: None,
        })?;
    }
    let to = shared(context)?;
    let carried = migrate::carry(&exported, to.as_ref(), args.target.occupied()).await?;
    told(context, &carried)
}

async fn take_in(exported: &FilesStore, line: &str) -> Result<(), String> {
    let line: ExportLine =
        serde_json::from_str(line).map_err(|_| "it is neither a value nor an entry of a log".to_owned())?;
    let key = |text: &str| text.parse::<Key>().map_err(|error| error.to_string());
    match line {
        ExportLine::Value { value, is } => {
            let bytes = is.to_string().into_bytes();
            let outcome = exported.swap(&key(&value)?, None, Some(&bytes), Durability::Process).await;
            outcome.map(drop).map_err(|_| format!("the value `{value}` is there twice"))
        }
        ExportLine::Entry { log, entry } => {
            let bytes = entry.to_string().into_bytes();
            let outcome = exported.append(&key(&log)?, &[bytes], Expect::Any, Durability::Process).await;
            outcome.map(drop).map_err(|error| error.to_string())
        }
    }
}
