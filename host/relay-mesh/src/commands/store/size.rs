//! `relay-mesh store size`: where the bytes of the data folder are, and of the servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mesh::ports::data_files::Amount;

use crate::compose;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::size::{SizeShape, SizesShape};

/// Show what takes up space
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh store size\n  \
    relay-mesh store size --json\n\n\
    Sizes are those of the files, or what the servers say of their streams. `relay-mesh gc --dry-run` shows what of it \
    could be deleted now.")]
pub(super) struct Args {}

pub(super) async fn run(_: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let dir = &context.settings.dir.value;
    let mut kinds: BTreeMap<FileKind, Amount> = BTreeMap::new();
    for entry in entries(dir) {
        of_file(dir, &entry.path(), &mut kinds);
    }
    let cache = compose::cache(context);
    if !cache.starts_with(dir) {
        all_in(&cache, FileKind::Compiled, &mut kinds);
    }
    let mut sizes: Vec<SizeShape> =
        kinds.into_iter().map(|(kind, amount)| SizeShape::of(kind.as_str(), amount)).collect();
    if let Some(servers) = &open.servers {
        for stream in servers.sizes().await? {
            let count = usize::try_from(stream.messages).unwrap_or(usize::MAX);
            let of = format!("stream {}", stream.name);
            sizes.push(SizeShape::of(&of, Amount { count, bytes: stream.bytes }));
        }
    }
    context.printer.show(&SizesShape::of(sizes))?;
    Ok(Exit::Success)
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FileKind {
    Messages,
    Receipts,
    Sent,
    Events,
    Sessions,
    WakeFiles,
    Indexes,
    Adapters,
    Compiled,
    Runs,
    Spawned,
    ServerLogs,
    Other,
}

impl FileKind {
    fn as_str(self) -> &'static str {
        match self {
            FileKind::Messages => "messages",
            FileKind::Receipts => "receipts",
            FileKind::Sent => "sent",
            FileKind::Events => "event log",
            FileKind::Sessions => "sessions",
            FileKind::WakeFiles => "wake files",
            FileKind::Indexes => "indexes",
            FileKind::Adapters => "adapters",
            FileKind::Compiled => "compiled adapters",
            FileKind::Runs => "runs and reviews",
            FileKind::Spawned => "spawned agents",
            FileKind::ServerLogs => "server logs",
            FileKind::Other => "other",
        }
    }

    /// The kind of a file, by its path in the data folder.
    fn of(path: &Path) -> FileKind {
        let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let name = parts.last().map(String::as_str).unwrap_or_default();
        if name.starts_with('.') && name.contains(".index.") {
            return FileKind::Indexes;
        }
        let is_log = |leaf: &str| name.strip_prefix(leaf).is_some_and(|rest| rest.starts_with(".jsonl"));
        match parts.first().map(String::as_str).unwrap_or_default() {
            "agents" if is_log("inbox") => FileKind::Messages,
            "agents" if is_log("receipts") => FileKind::Receipts,
            "agents" if is_log("sent") => FileKind::Sent,
            "sessions" | "ended" => FileKind::Sessions,
            "wakes" => FileKind::WakeFiles,
            "plugins" | "adapters" | "installs" | "rates" | "programs" | "recording" => FileKind::Adapters,
            "cache" => FileKind::Compiled,
            // Their worktrees and transcripts too.
            "runs" | "reviews" | "pipelines" | "worktrees" => FileKind::Runs,
            "spawned" | "driven" | "driven-ended" | "links" => FileKind::Spawned,
            _ if is_log("global") => FileKind::Events,
            _ if path.extension().is_some_and(|ending| ending == "log") => FileKind::ServerLogs,
            _ if name.starts_with("server.log.") || name.starts_with("drive.log.") => FileKind::ServerLogs,
            _ => FileKind::Other,
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn of_file(dir: &Path, path: &Path, kinds: &mut BTreeMap<FileKind, Amount>) {
    // What a link leads to is not in this folder.
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if found.is_dir() {
        for entry in entries(path) {
            of_file(dir, &entry.path(), kinds);
        }
    } else {
        let kind = FileKind::of(path.strip_prefix(dir).unwrap_or(path));
        kinds.entry(kind).or_default().add(found.len());
    }
}

fn all_in(folder: &Path, kind: FileKind, kinds: &mut BTreeMap<FileKind, Amount>) {
    for entry in entries(folder) {
        if let Ok(found) = entry.metadata().map(|found| (found.is_file(), found.len()))
            && found.0
        {
            kinds.entry(kind).or_default().add(found.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_data_folder_has_a_kind() {
        for (path, kind) in [
            ("agents/bob/inbox.jsonl", FileKind::Messages),
            ("agents/bob/inbox.jsonl.3", FileKind::Messages),
            ("agents/bob/.inbox.index.3", FileKind::Indexes),
            ("agents/bob/.inbox.lock", FileKind::Other),
            ("agents/bob/receipts.jsonl", FileKind::Receipts),
            ("agents/bob/sent.jsonl.0", FileKind::Sent),
            ("agents/bob/meta.json", FileKind::Other),
            ("global.jsonl.7", FileKind::Events),
            (".global.index.7", FileKind::Indexes),
            ("sessions/claude/1.json", FileKind::Sessions),
            ("wakes/claude/1.jsonl", FileKind::WakeFiles),
            ("plugins/it/it.wasm", FileKind::Adapters),
            ("cache/1.cwasm", FileKind::Compiled),
            ("runs/01K/events.jsonl", FileKind::Runs),
            ("reviews/01K/record.json", FileKind::Runs),
            ("spawned/01K/transcript.jsonl", FileKind::Spawned),
            ("driven/01K.json", FileKind::Spawned),
            ("server.log", FileKind::ServerLogs),
            ("machine", FileKind::Other),
        ] {
            assert_eq!(FileKind::of(Path::new(path)), kind, "{path}");
        }
    }
}
