//! Fixtures: a folder of recordings of a harness, in the format of docs/fixtures.md.

mod callers;
mod deliveries;
mod driver;
mod hooks;
mod runs;
mod settings;

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use callers::{Detects, RecordedCaller};
pub(crate) use deliveries::{DeliveryOutcome, FrameAnswer, HttpAnswer, PeerScript, ProgramAnswer, RecordedDelivery};
pub(crate) use driver::Conversation;
pub(crate) use hooks::{ExpectedReading, Reads, RecordedHook};
pub(crate) use runs::{LONGEST_STOP, RecordedRun, ended, lines, plain_task};
pub(crate) use settings::SettingsCase;

#[derive(Debug, Default)]
pub(crate) struct Fixtures {
    pub(crate) hooks: Vec<Named<RecordedHook>>,
    pub(crate) callers: Vec<Named<RecordedCaller>>,
    pub(crate) settings: Vec<SettingsCase>,
    pub(crate) deliveries: Vec<Named<RecordedDelivery>>,
    pub(crate) runs: Vec<Named<RecordedRun>>,
    pub(crate) conversations: Vec<Named<Conversation>>,
}

/// A fixture, by the name of its file without the extension.
#[derive(Debug)]
pub(crate) struct Named<T> {
    pub(crate) name: String,
    pub(crate) content: T,
}

/// Why a folder of fixtures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FixturesError {
    /// A file or folder cannot be read.
    #[error("could not read `{path}`")]
    Unreadable {
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// A file is not of the format.
    #[error("`{path}` is not a fixture: {why}")]
    Malformed {
        path: PathBuf,
        /// Why, with line and column if they are known.
        why: String,
    },
}

/// A JSON key that may be absent, `null`, or hold a value, each of which means something else.
pub(crate) type Maybe<T> = Option<Option<T>>;

/// Reads a [`Maybe`]: serde alone takes `null` for absent.
pub(crate) fn maybe<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Maybe<T>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl Fixtures {
    /// Reads a folder. Parts may be missing; a missing folder is an error.
    pub(crate) fn read(folder: &Path) -> Result<Fixtures, FixturesError> {
        let known = ["hooks", "callers", "settings", "push", "runs", "driver"];
        for entry in entries(folder)? {
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if entry.is_dir() && !known.contains(&name.as_str()) {
                let why = format!("a folder of fixtures holds {}", known.join(", "));
                return Err(FixturesError::Malformed { path: entry, why });
            }
        }
        let fixtures = Fixtures {
            hooks: files(&folder.join("hooks"))?,
            callers: files(&folder.join("callers"))?,
            settings: settings::read(&folder.join("settings"))?,
            deliveries: files(&folder.join("push"))?,
            runs: files(&folder.join("runs"))?,
            conversations: files(&folder.join("driver"))?,
        };
        fixtures.check_references(folder)?;
        Ok(fixtures)
    }

    pub(crate) fn hook(&self, name: &str) -> Option<&RecordedHook> {
        self.hooks.iter().find(|hook| hook.name == name).map(|hook| &hook.content)
    }

    fn check_references(&self, folder: &Path) -> Result<(), FixturesError> {
        let hooks = self.hooks.iter().map(|hook| ("hooks", &hook.name, &hook.content.after));
        let callers = self.callers.iter().map(|seen| ("callers", &seen.name, &seen.content.after));
        for (part, name, after) in hooks.chain(callers) {
            if let Some(missing) = after.iter().find(|before| self.hook(before).is_none()) {
                let why = format!("it comes after `{missing}`, which is not in hooks/");
                return Err(FixturesError::Malformed { path: folder.join(part).join(format!("{name}.json")), why });
            }
        }
        Ok(())
    }
}

/// JSON as a harness writes it. A string stands for itself, so that a fixture can hold text that is not JSON.
pub(crate) fn as_written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn files<T: DeserializeOwned>(folder: &Path) -> Result<Vec<Named<T>>, FixturesError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.extension().is_none_or(|extension| extension != "json") {
            return Err(FixturesError::Malformed { path, why: "its name does not end with .json".to_owned() });
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path)
            .map_err(|source| FixturesError::Unreadable { path: path.clone(), source })?;
        let content = serde_json::from_str(&text)
            .map_err(|error| FixturesError::Malformed { path: path.clone(), why: error.to_string() })?;
        found.push(Named { name, content });
    }
    Ok(found)
}

/// The entries of a folder, in order, without the files that editors and file managers leave.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, FixturesError> {
    let unreadable = |source| FixturesError::Unreadable { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if !entry.file_name().to_string_lossy().ends_with('~') && entry.file_name() != ".DS_Store" {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, content) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, content).expect("written");
        }
        let told = match Fixtures::read(folder.path()) {
            Ok(fixtures) => format!("{fixtures:?}"),
            Err(error) => error.to_string(),
        };
        assert!(told.contains(expected), "{files:?}: {told}");
    }

    #[test]
    fn a_fixture_says_what_it_expects_and_nothing_unknown() {
        check(&[], "hooks: []");
        check(&[("hooks/a.json", r#"{"event": "Stop", "payload": {}}"#)], "event: \"Stop\"");
        check(&[("hooks/a.json", r#"{"event": "Stop", "payload": {}, "read": {}}"#)], "unknown field `read`");
        check(&[("hooks/a.json", r#"{"event": "Stop"}"#)], "missing field `payload`");
        check(
            &[("hooks/a.json", r#"{"event": "S", "payload": 1, "reads": {"session": null}}"#)],
            "session: Some(None)",
        );
        check(&[("hooks/a.json", r#"{"event": "S", "payload": 1, "reads": {}}"#)], "session: None");
        check(&[("hooks/a.json", r#"{"event": "S", "payload": 1, "reads": "fails"}"#)], "Fails");
        check(&[("hooks/a.json", r#"{"event": "S", "payload": 1, "reads": "failing"}"#)], "is not a fixture");
        check(
            &[("hooks/a.json", r#"{"event": "S", "payload": 1, "after": ["b"]}"#)],
            "after `b`, which is not in hooks/",
        );
        check(&[("hooks/a.yaml", "")], "does not end with .json");
        check(&[("hook/a.json", "{}")], "holds hooks, callers, settings, push, runs, driver");
        check(&[("driver/a.json", r#"[["in", {"a": 1}], ["out", {}]]"#)], "conversations: [Named");
        check(&[("driver/a.json", r#"[["to", {}]]"#)], "unknown variant `to`");
        check(&[("callers/a.json", r#"{"detects": null}"#)], "detects: None");
        check(&[("callers/a.json", "{}")], "missing field `detects`");
        check(&[("settings/with-comments/config/sub/a.json", "// mine\n{}")], "a.json");
        check(&[("settings/a.json", "")], "settings/CASE/ROOT/PATH");
        check(
            &[("runs/a.json", r#"{"output": [], "exit": {"code": 0}, "concludes": {"ending": "broke-off"}}"#)],
            "ending: BrokeOff",
        );
        check(&[("runs/a.json", r#"{"output": [], "exit": {}, "concludes": {}}"#)], "missing field `ending`");
        check(&[("push/a.json", r#"{"session": {"id": "s"}, "route": "r", "outcome": "accepted"}"#)], "route: \"r\"");
        check(
            &[("push/a.json", r#"{"session": {"id": "s"}, "route": "r", "outcome": "delivered"}"#)],
            "unknown variant `delivered`",
        );
    }
}
