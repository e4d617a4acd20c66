//! What a check of an install finds, collected in order.
//!
//! ```
//! use relay_mesh_sdk::{checklist::Checklist, files::Root, testing};
//! use serde_json::json;
//!
//! let settings = r#"{"mcpServers": {"relay-mesh": {"command": "/old/relay-mesh"}}}"#;
//! let _lent = testing::Fakes::default().file("config", "settings.json", settings).lend();
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

/// Findings in the making.
#[derive(Clone, Debug, Default)]
pub struct Checklist {
    all: Vec<Finding>,
}

impl Checklist {
    /// Something is as it should be.
    pub fn ok(&mut self, what: impl Into<String>) {
        self.all.push(Finding::ok(what));
    }

    /// Something works, and may surprise.
    pub fn warn(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.all.push(Finding::warning(what, fix));
    }

    /// Something does not work.
    pub fn broken(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.all.push(Finding::broken(what, fix));
    }

    /// A settings file of JSON, comments allowed: its text and what it says. None where it is not
    /// there, or where it does not parse, which is then a finding with the line and the column.
    pub fn read(&mut self, root: &Root, path: &str, reader: &str) -> Result<Option<(String, Value)>, Error> {
        let Some(text) = root.read_text(path)? else { return Ok(None) };
        match Document::parse(Some(&text)) {
            Ok(document) => Ok(Some((text, document.get(&[]).unwrap_or_default()))),
            Err(broken) => {
                self.broken(format!("{path}, {broken}"), format!("mend the file: {reader} passes over it as it is"));
                Ok(None)
            }
        }
    }

    /// The same for a harness that takes plain JSON alone and passes over a file with a comment in it,
    /// which is then a finding too.
    pub fn read_plain(&mut self, root: &Root, path: &str, reader: &str) -> Result<Option<Value>, Error> {
        let Some((text, value)) = self.read(root, path, reader)? else { return Ok(None) };
        if let Err(error) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
            self.broken(
                format!("{path} is not plain JSON, so {reader} passes over it: {error}"),
                "take comments and trailing commas out of it",
            );
        }
        Ok(Some(value))
    }

    /// Whether our server is in a list of servers, under its name, as this setup would write it. `place` is
    /// the list and the name.
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
            self.warn(format!("{path} names relay-mesh a second time, as `{other}`"), "take one of the two out");
        }
    }

    /// Whether our hooks are listed under `hooks` by event, as this setup would write them.
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

    /// All of them.
    pub fn finish(self) -> Vec<Finding> {
        self.all
    }
}

/// The texts of a list in a value.
pub fn texts<'a>(value: Option<&'a Value>, pointer: &str) -> Vec<&'a str> {
    let list = value.and_then(|value| value.pointer(pointer)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}
