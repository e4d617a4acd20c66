//! `relay-mesh store export` and `import`: a mesh as JSON lines, one for each value and each entry.

use std::io::Write as _;
use std::path::PathBuf;

use mesh::carrying;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::memory::MemoryStore;
use store::{Durability, Expect, Key, Store};

use super::{Target, is_there, shared, told};
use crate::config::Shared;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

/// Write everything as JSON lines
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh store export --out mesh.jsonl\n  \
    relay-mesh store export | jq -r 'select(.log == \"agents/bob/inbox\") | .entry.subject'")]
pub(super) struct ExportArgs {
    /// Into this file, which must not be there yet, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Take in what was exported
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh store import mesh.jsonl --store nats://10.0.0.7:4222")]
pub(super) struct ImportArgs {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    target: Target,
}

/// One line.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Line {
    /// A value and what it is.
    Value { value: String, is: Value },
    /// An entry of a log, in order.
    Entry { log: String, entry: Value },
}

/// Does it.
pub(super) async fn export(args: ExportArgs, context: &Context) -> Result<Exit, CommandError> {
    if matches!(context.settings.shared.value, Shared::InTheFolder) {
        is_there(&context.settings.dir.value)?;
    }
    let store = shared(context)?;
    let lines = lines(store.as_ref()).await?;
    let Some(out) = args.out else {
        for line in &lines {
            context.printer.bytes(line)?;
        }
        return Ok(Exit::Success);
    };
    let out = context.workdir.join(out);
    let write = || {
        let folder = out.parent().unwrap_or(&out);
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        for line in &lines {
            file.write_all(line)?;
        }
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
    context.printer.say(&format!("{} lines are in {}", lines.len(), out.display()));
    Ok(Exit::Success)
}

async fn lines(store: &dyn Store) -> Result<Vec<Vec<u8>>, CommandError> {
    let contents = carrying::contents(store).await?;
    let mut lines = Vec::new();
    for key in contents.values {
        if let Some(found) = store.get(&key).await? {
            lines.push(line(&key, &found.bytes, |value, is| Line::Value { value, is })?);
        }
    }
    for log in contents.logs {
        for entry in carrying::entries(store, &log).await?.0 {
            lines.push(line(&log, &entry, |log, entry| Line::Entry { log, entry })?);
        }
    }
    Ok(lines)
}

fn line(key: &Key, bytes: &[u8], make: impl Fn(String, Value) -> Line) -> Result<Vec<u8>, CommandError> {
    let damaged = |why: String| store::StoreError::Damaged { what: key.to_string(), why };
    let parsed = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    let mut line = serde_json::to_vec(&make(key.to_string(), parsed)).map_err(|error| damaged(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Does it.
pub(super) async fn import(args: ImportArgs, context: &Context) -> Result<Exit, CommandError> {
    let file = context.workdir.join(&args.file);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let hint = Some("name a file that `relay-mesh store export` wrote".to_owned());
        CommandError::caused_by(&format!("could not read `{}`", file.display()), hint, Exit::NotFound, error)
    })?;
    let exported = MemoryStore::new();
    for (number, line) in text.lines().enumerate() {
        take_in(&exported, line).await.map_err(|why| Failure {
            what: format!("`{}`, line {}: {why}", file.display(), number + 1),
            hint: Some("nothing was taken in; name a file that `relay-mesh store export` wrote".to_owned()),
            exit: Exit::Usage,
            source: None,
        })?;
    }
    let to = shared(context)?;
    let carried = carrying::carry(&exported, to.as_ref(), args.target.occupied()).await?;
    told(context, &carried)
}

async fn take_in(exported: &MemoryStore, line: &str) -> Result<(), String> {
    let line: Line =
        serde_json::from_str(line).map_err(|_| "it is neither a value nor an entry of a log".to_owned())?;
    let key = |text: &str| text.parse::<Key>().map_err(|error| error.to_string());
    match line {
        Line::Value { value, is } => {
            let bytes = is.to_string().into_bytes();
            let outcome = exported.swap(&key(&value)?, None, Some(&bytes), Durability::Process).await;
            outcome.map(drop).map_err(|_| format!("the value `{value}` is there twice"))
        }
        Line::Entry { log, entry } => {
            let bytes = entry.to_string().into_bytes();
            let outcome = exported.append(&key(&log)?, &[bytes], Expect::Any, Durability::Process).await;
            outcome.map(drop).map_err(|error| error.to_string())
        }
    }
}
