//! Changes to TOML, as splices of the text. `toml_edit` gives the positions, and only what is added is newly
//! written.
//!
//! ```
//! use relay_mesh_sdk::edit::toml::Document;
//!
//! let theirs = "# mine\nmodel = \"o4\"\n\n[features]\nfast = true # why not\n";
//! let mut config = Document::parse(Some(theirs))?;
//! config.put_table(&["mcp_servers", "relay-mesh"], &[("command", "relay-mesh".into())])?;
//! config.set(&["features", "hooks"], true)?;
//! let ours = config.text().map(str::to_owned);
//! assert_eq!(
//!     ours.as_deref(),
//!     Some("# mine\nmodel = \"o4\"\n\n[features]\nfast = true # why not\nhooks = true\n\n[mcp_servers.relay-mesh]\ncommand = \"relay-mesh\"\n"),
//! );
//!
//! let mut config = Document::parse(ours.as_deref())?;
//! config.remove(&["features", "hooks"]);
//! config.remove(&["mcp_servers", "relay-mesh"]);
//! assert_eq!(config.text(), Some(theirs));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A key gets its own line after the last key of its table, dotted if the table has no header. A table goes
//! to the end of the file. Neither adds a header that removal would leave. As in [`jsonc`](super::jsonc), text
//! written into an empty file has no newline at its end, and the first element of an empty array has a space
//! before it.

mod array;
mod lines;

pub use toml_edit::Value;
use toml_edit::{Item, Key, Table};

pub use super::{Broken, Occupied};
use super::{line_of, newline_of, spliced};

/// A TOML file, or its absence, and the changes made to it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Whether the file starts with a byte order mark.
    bom: bool,
    /// The rest; none if there is no file.
    text: Option<String>,
}

/// A parsed text with the positions of its items.
type Parsed<'t> = toml_edit::Document<&'t str>;

impl Document {
    /// Parses a file's text; none stands for a missing file.
    pub fn parse(text: Option<&str>) -> Result<Document, Broken> {
        let bom = text.is_some_and(|text| text.starts_with('\u{feff}'));
        let text = text.map(|text| text.trim_start_matches('\u{feff}').to_owned());
        let document = Document { bom, text };
        match Parsed::parse(document.body()) {
            Ok(_) => Ok(document),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start.min(document.body().len()));
                let line_start = document.body()[..at].rfind('\n').map_or(0, |newline| newline + 1);
                Err(Broken {
                    line: line_of(document.body(), at),
                    column: document.body()[line_start..at].chars().count() + 1,
                    what: error.message().replace('\n', ", "),
                })
            }
        }
    }

    /// The file's text now, without the byte order mark that [`Document::finish`] adds; none if there is to be
    /// no file.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The file's text to write; none if there is to be no file.
    pub fn finish(self) -> Option<String> {
        match self.bom {
            true => self.text.map(|text| format!("\u{feff}{text}")),
            false => self.text,
        }
    }

    /// The value at a path; none if nothing or a table is there.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        let parsed = self.parsed()?;
        item(&parsed, path)?.as_value().map(|value| value.clone().decorated("", ""))
    }

    /// The keys of a table, in order; none if there is no table at the path.
    pub fn keys(&self, path: &[&str]) -> Vec<String> {
        let parsed = self.parsed();
        let table = parsed.as_ref().and_then(|parsed| item(parsed, path)?.as_table_like());
        table.into_iter().flat_map(|table| table.iter()).map(|(key, _)| key.to_owned()).collect()
    }

    /// Sets a value. An equal value keeps its spelling; another value is replaced for good.
    pub fn set(&mut self, path: &[&str], value: impl Into<Value>) -> Result<(), Occupied> {
        let value = value.into().decorated("", "");
        let Some(parsed) = self.parsed() else { return Ok(()) };
        let changed = match item(&parsed, path) {
            Some(Item::Value(found)) if same(found, &value) => return Ok(()),
            Some(Item::Value(found)) => {
                let Some(span) = found.span() else { return Ok(()) };
                spliced(self.body(), vec![(span, value.to_string())])
            }
            Some(Item::Table(_) | Item::ArrayOfTables(_)) => return Err(self.occupied(&parsed, path, "a value")),
            Some(Item::None) | None => {
                let Some(section) = lines::section_for(&parsed, path) else {
                    return Err(self.occupied(&parsed, path, "in a table"));
                };
                let line = format!("{} = {value}", dotted(&path[section.depth..]));
                lines::insert(self.body(), self.text.is_some(), &parsed, &section, &line)
            }
        };
        self.accept(changed, path)
    }

    /// Adds a table with these values at the end of the file. If the table exists, sets these values in it and
    /// keeps the rest.
    pub fn put_table(&mut self, path: &[&str], entries: &[(&str, Value)]) -> Result<(), Occupied> {
        let Some(parsed) = self.parsed() else { return Ok(()) };
        if item(&parsed, path).is_some() {
            return entries.iter().try_for_each(|(key, value)| self.set(&[path, &[key]].concat(), value.clone()));
        }
        let newline = newline_of(self.body());
        let values =
            entries.iter().map(|(key, value)| format!("{} = {}", dotted(&[key]), value.clone().decorated("", "")));
        let header = format!("[{}]", dotted(path));
        let block: Vec<String> = [header].into_iter().chain(values).collect();
        let changed = lines::append_block(self.body(), self.text.is_some(), &block.join(newline));
        self.accept(changed, path)
    }

    /// Adds an element at the end of an array, or sets an array of this one element.
    pub fn append(&mut self, path: &[&str], element: impl Into<Value>) -> Result<(), Occupied> {
        let element = element.into().decorated("", "");
        let Some(parsed) = self.parsed() else { return Ok(()) };
        match item(&parsed, path) {
            None | Some(Item::None) => self.set(path, Value::Array([element].into_iter().collect())),
            Some(Item::Value(Value::Array(found))) => {
                let changed = array::append(self.body(), found, &element.to_string());
                self.accept(changed, path)
            }
            Some(Item::Value(_) | Item::Table(_) | Item::ArrayOfTables(_)) => {
                Err(self.occupied(&parsed, path, "an array"))
            }
        }
    }

    /// Removes a value with its line, or a table with its header and everything in it. Does not change inline
    /// tables. Returns whether it existed.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let Some(parsed) = self.parsed() else { return false };
        let in_tables = (1..path.len()).all(|depth| item(&parsed, &path[..depth]).is_some_and(Item::is_table));
        let Some(found) = item(&parsed, path).filter(|found| in_tables && !found.is_none()) else { return false };
        let changed = lines::remove(self.body(), found);
        self.text = changed;
        true
    }

    /// Removes the elements that `matches` accepts from an array. The array goes with its last element unless
    /// it was empty before our insertion. Returns the number of removals.
    pub fn remove_elements(&mut self, path: &[&str], matches: impl Fn(&Value) -> bool) -> usize {
        let mut count = 0;
        loop {
            let Some(parsed) = self.parsed() else { return count };
            let Some(Item::Value(Value::Array(found))) = item(&parsed, path) else { return count };
            let Some(index) = (0..found.len()).rev().find(|index| found.get(*index).is_some_and(&matches)) else {
                return count;
            };
            count += 1;
            match array::remove(self.body(), found, index) {
                Some(changed) => self.text = Some(changed),
                None => {
                    self.remove(path);
                    return count;
                }
            }
        }
    }

    fn body(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// `Document::parse` accepted the text, and [`Document::accept`] keeps it valid.
    fn parsed(&self) -> Option<Parsed<'_>> {
        Parsed::parse(self.body()).ok()
    }

    /// Takes over a changed text unless TOML does not allow the addition there, for example in a table that
    /// another part of the file closes.
    fn accept(&mut self, changed: String, path: &[&str]) -> Result<(), Occupied> {
        if Parsed::parse(changed.as_str()).is_err() {
            return Err(Occupied { path: path.join("."), line: 1, wanted: "open to additions" });
        }
        self.text = Some(changed);
        Ok(())
    }

    fn occupied(&self, parsed: &Parsed<'_>, path: &[&str], wanted: &'static str) -> Occupied {
        let depth = (1..=path.len()).rev().find(|depth| item(parsed, &path[..*depth]).is_some()).unwrap_or(0);
        let at = item(parsed, &path[..depth]).and_then(Item::span).map_or(0, |span| span.start);
        Occupied { path: path[..depth].join("."), line: line_of(self.body(), at), wanted }
    }
}

fn item<'p>(parsed: &'p Parsed<'_>, path: &[&str]) -> Option<&'p Item> {
    path.iter().try_fold(parsed.as_item(), |item, key| item.get(key))
}

fn dotted(path: &[&str]) -> String {
    path.iter().map(|key| Key::new(*key).to_string()).collect::<Vec<_>>().join(".")
}

fn same(found: &Value, wanted: &Value) -> bool {
    let plain = |value: &Value| Table::from_iter([("k", value.clone().decorated("", ""))]).to_string();
    plain(found) == plain(wanted)
}
