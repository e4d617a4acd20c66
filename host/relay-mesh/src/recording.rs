//! Recordings of hooks: while one goes on, a file in the data folder tells the hooks of its adapter where to write what
//! they were called with. It names the process that records; if that was killed, the next hook removes the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use adapters::manifest::Manifest;
use mesh::ports::harness::HookCall;
use processes::ProcessId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::unix;

/// The most calls of one event that are kept.
const MOST_OF_ONE: usize = 50;
/// What stands for the user's home.
const HOME: &str = "/home/u";

/// The files of a recording, in order.
pub(crate) type Recorded = Vec<String>;

/// A recording that goes on until it is ended.
pub(crate) struct Recording {
    mark: PathBuf,
    hooks: PathBuf,
    before: BTreeSet<String>,
}

/// What the file in the data folder says.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    process: ProcessId,
    hooks: PathBuf,
    version: String,
}

/// A call, as docs/fixtures.md has it.
#[derive(Serialize)]
struct Call<'c> {
    event: &'c str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<&'c str, String>,
    payload: Value,
}

impl Recording {
    pub(crate) fn begin(data: &Path, harness: &str, into: &Path, version: &str) -> io::Result<Recording> {
        let hooks = into.join("hooks");
        fs::create_dir_all(&hooks)?;
        let hooks = hooks.canonicalize()?;
        let mark = mark_of(data, harness);
        if let Some(folder) = mark.parent() {
            unix::make_private_folder(folder)?;
        }
        let before = files(&hooks);
        let process = processes::this_process();
        let said = Mark { process, hooks: hooks.clone(), version: plain(version) };
        let draft = mark.with_extension("new");
        fs::write(&draft, serde_json::to_vec(&said)?)?;
        fs::rename(draft, &mark)?;
        Ok(Recording { mark, hooks, before })
    }

    /// Ends it, and returns the new files.
    pub(crate) fn end(self) -> Recorded {
        // A later recording of the same adapter may have taken its place.
        if read(&self.mark).is_some_and(|mark| mark.process == processes::this_process()) {
            let _absent = fs::remove_file(&self.mark);
        }
        files(&self.hooks).difference(&self.before).map(|file| format!("hooks/{file}")).collect()
    }
}

/// Writes a hook's call down, if it is recorded. Costs a look for one file if it is not; a failure is no failure of the
/// hook.
pub(crate) fn note(
    data: &Path,
    harness: &str,
    call: &HookCall,
    home: Option<&Path>,
    manifest: impl FnOnce() -> Option<Manifest>,
) {
    let path = mark_of(data, harness);
    let Some(mark) = read(&path) else { return };
    if !processes::is_alive(mark.process) {
        let _absent = fs::remove_file(path);
        return;
    }
    let Some(manifest) = manifest() else { return };
    if let Err(error) = write(&mark, call, home, &manifest) {
        tracing::warn!(%error, "the call of a hook was not recorded");
    }
}

fn write(mark: &Mark, call: &HookCall, home: Option<&Path>, manifest: &Manifest) -> io::Result<()> {
    let home = home.map(|home| home.display().to_string()).filter(|home| home.len() > 1);
    let anonymous = |text: &str| home.as_ref().map_or_else(|| text.to_owned(), |home| text.replace(home, HOME));
    let names: BTreeSet<&String> = manifest.requests.environment.iter().chain(&manifest.matches.environment).collect();
    let seen = call.environment.iter().filter(|(name, _)| names.contains(name));
    let payload = anonymous(&call.payload);
    let recorded = Call {
        event: &call.name,
        environment: seen.map(|(name, value)| (name.as_str(), anonymous(value))).collect(),
        payload: serde_json::from_str(&payload).unwrap_or(Value::String(payload)),
    };
    let text = serde_json::to_string_pretty(&recorded)? + "\n";
    for number in 1..=MOST_OF_ONE {
        let further = if number == 1 { String::new() } else { format!("-{number}") };
        let file = mark.hooks.join(format!("{}-{}{further}.json", mark.version, plain(&call.name)));
        match unix::create_private_file(&file) {
            Ok(mut file) => return file.write_all(text.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn mark_of(data: &Path, harness: &str) -> PathBuf {
    data.join("recording").join(format!("{}.json", plain(harness)))
}

fn read(mark: &Path) -> Option<Mark> {
    serde_json::from_slice(&fs::read(mark).ok()?).ok()
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A word that can be a part of a file's name.
fn plain(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let word: String =
        word.chars().map(|character| if is_plain(character) { character } else { '-' }).take(60).collect();
    word.trim_start_matches('.').to_owned()
}
