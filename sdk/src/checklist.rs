//! Collects what a check of an install finds, in order.
//!
//! ```
//! use relay_mesh_sdk::{checklist::Checklist, files::Root, testing};
//! use serde_json::json;
//!
//! let settings = r#"{"mcpServers": {"relay-mesh": {"command": "/old/relay-mesh"}}}"#;
//! let _host = testing::Fakes::default().file("config", "settings.json", settings).start();
//! let mut list = Checklist::default();
//! let settings = list.read(&Root::open("config")?, "settings.json", "Toad")?.map(|(_, value)| value);
//! let place = ("mcpServers", "relay-mesh");
//! list.server(settings.as_ref(), "settings.json", place, &json!({"command": "/opt/relay-mesh"}), "install again");
//! assert_eq!(
//!     testing::complaints(&list.finish()),
//!     "warning: the server `relay-mesh` in settings.json is of another install",
//! );
//! # Ok::<(), relay_mesh_sdk::Error>(())
//! ```

use serde_json::Value;

use crate::edit::jsonc::Document;
use crate::files::Root;
use crate::install::Finding;
use crate::{Error, servers};

/// The findings so far.
#[derive(Clone, Debug, Default)]
pub struct Checklist {
    all: Vec<Finding>,
}

impl Checklist {
    /// Adds a finding that is fine.
    pub fn ok(&mut self, what: impl Into<String>) {
        self.all.push(Finding::ok(what));
    }

    /// Adds a warning: it works, but may surprise.
    pub fn warn(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.all.push(Finding::warning(what, fix));
    }

    /// Adds something that does not work.
    pub fn broken(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.all.push(Finding::broken(what, fix));
    }

    /// Reads a JSON settings file, comments allowed: its text and its value. None if the file does not exist.
    /// Also none if it does not parse; then a finding names the line and the column.
    pub fn read(&mut self, root: &Root, path: &str, reader: &str) -> Result<Option<(String, Value)>, Error> {
        let Some(text) = root.read_text(path)? else { return Ok(None) };
        match Document::parse(Some(&text)) {
            Ok(document) => Ok(Some((text, document.get(&[]).unwrap_or_default()))),
            Err(broken) => {
                self.broken(format!("{path}, {broken}"), format!("correct the file: {reader} ignores it as it is"));
                Ok(None)
            }
        }
    }

    /// The same for a harness that reads plain JSON only. A file with comments is a finding too, because such
    /// a harness ignores it.
    pub fn read_plain(&mut self, root: &Root, path: &str, reader: &str) -> Result<Option<Value>, Error> {
        let Some((text, value)) = self.read(root, path, reader)? else { return Ok(None) };
        if let Err(error) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
            self.broken(
                format!("{path} is not plain JSON, so {reader} ignores it: {error}"),
                "remove comments and trailing commas from it",
            );
        }
        Ok(Some(value))
    }

    /// Checks that our server is in a list of MCP servers as this setup would write it. `place` is the list's
    /// name and the server's.
    pub fn server(&mut self, settings: Option<&Value>, path: &str, place: (&str, &str), wanted: &Value, again: &str) {
        let (list, name) = place;
        match settings.and_then(|settings| settings.get(list)?.get(name)) {
            None => self.broken(format!("{path} has no server named `{name}`"), again),
            Some(entry) if entry == wanted => self.ok(format!("{path} names the server `{name}`")),
            Some(entry) if servers::is_ours(entry) => {
                self.warn(format!("the server `{name}` in {path} is of another install"), again);
            }
            Some(_) => self.broken(
                format!("the server named `{name}` in {path} is not relay-mesh's"),
                format!("rename that server, then {again}"),
            ),
        }
        for other in servers::aliases(settings, list, name) {
            self.warn(format!("{path} names relay-mesh a second time, as `{other}`"), "remove one of the two");
        }
    }

    /// Checks that `hooks` lists our hooks under their events, as this setup would write them.
    pub fn hooks(
        &mut self,
        settings: Option<&Value>,
        path: &str,
        wanted: &[(&str, Value)],
        is_ours: impl Fn(&Value) -> bool,
        again: &str,
    ) {
        let entries = |event: &str| settings.and_then(|settings| settings.get("hooks")?.get(event)?.as_array());
        let without = |has: &dyn Fn(&Value, &Value) -> bool| -> Vec<&str> {
            let lacks =
                |(event, want): &&(&str, Value)| !entries(event).into_iter().flatten().any(|entry| has(entry, want));
            wanted.iter().filter(lacks).map(|(event, _)| *event).collect()
        };
        let missing = without(&|entry, _| is_ours(entry));
        let outdated = without(&|entry, want| entry == want);
        if !missing.is_empty() {
            self.broken(format!("{path} lacks our hooks for {}", missing.join(", ")), again);
        } else if !outdated.is_empty() {
            self.warn(format!("the hooks in {path} for {} are of another install", outdated.join(", ")), again);
        } else {
            self.ok(format!("{path} has all {} hooks", wanted.len()));
        }
    }

    /// Returns the findings.
    pub fn finish(self) -> Vec<Finding> {
        self.all
    }
}

/// The texts in the list at a JSON pointer.
pub fn texts<'a>(value: Option<&'a Value>, pointer: &str) -> Vec<&'a str> {
    let list = value.and_then(|value| value.pointer(pointer)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}
