//! What a check of an install finds, collected in order.

use serde_json::Value;

use crate::Error;
use crate::edit::jsonc::Document;
use crate::files::Root;
use crate::install::Finding;

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
