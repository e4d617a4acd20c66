//! Changes to JSON with or without comments, as splices of the text. Only what is added is newly written.
//!
//! ```
//! use relay_mesh_sdk::edit::jsonc::Document;
//! use serde_json::json;
//!
//! let theirs = "{\n  // mine\n  \"model\": \"opus\"\n}\n";
//! let mut settings = Document::parse(Some(theirs))?;
//! settings.append(&["permissions", "allow"], &json!("mcp__relay-mesh"))?;
//! let ours = settings.text().map(str::to_owned);
//! assert_eq!(
//!     ours.as_deref(),
//!     Some("{\n  // mine\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\"mcp__relay-mesh\"]\n  }\n}\n"),
//! );
//!
//! let mut settings = Document::parse(ours.as_deref())?;
//! settings.remove_where(|_, value| value == "mcp__relay-mesh");
//! assert_eq!(settings.text(), Some(theirs));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How an insertion can be undone without a record of it
//!
//! Removing the last member of a container removes the container too, and removing the root removes the
//! file. A container that existed and was empty must stay, so an insertion into it leaves a mark in white
//! space: a blank line after the opening bracket, or one space if the container is on one line. Likewise a
//! text written into an empty file gets no newline at its end, and a file that did not exist gets one. So does
//! a text below a line comment that ended the file without a newline. White space that an empty container held
//! stays after the inserted text.

mod shape;
mod splice;
mod style;

use serde_json::{Map, Value};

use super::line_of;
pub use super::{Broken, Occupied};
use shape::{Kind, Node};
use style::{Layout, Style};

/// A settings file, or its absence, and the changes made to it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Whether the file starts with a byte order mark, which JSON parsers refuse.
    bom: bool,
    /// The rest; none if there is no file.
    text: Option<String>,
}

/// One step of a path into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A property, by name.
    Key(String),
    /// An element, by position.
    Index(usize),
}

impl Document {
    /// Parses a file's text; none stands for a missing file. Comments and trailing commas are allowed.
    pub fn parse(text: Option<&str>) -> Result<Document, Broken> {
        let document = match text.map(|text| (text.strip_prefix('\u{feff}'), text)) {
            None => Document { bom: false, text: None },
            Some((Some(rest), _)) => Document { bom: true, text: Some(rest.to_owned()) },
            Some((None, text)) => Document { bom: false, text: Some(text.to_owned()) },
        };
        shape::parse(document.body())?;
        Ok(document)
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

    /// The value at a path of property names.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        let root = self.root()?;
        let node = path.iter().try_fold(&root, |node, key| Some(&node.members()[node.position(key)?].value))?;
        Some(value_of(self.body(), node))
    }

    /// Sets a property and creates the objects around it. An equal value keeps its spelling; another value is
    /// replaced for good.
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<(), Occupied> {
        if self.get(path).as_ref() == Some(value) {
            return Ok(());
        }
        self.put(path, Put::Property(value))
    }

    /// Adds an element at the end of an array, and creates the array and the objects around it.
    pub fn append(&mut self, path: &[&str], element: &Value) -> Result<(), Occupied> {
        self.put(path, Put::Element(element))
    }

    /// Adds a text to an array unless the array has it.
    pub fn include(&mut self, path: &[&str], text: &str) -> Result<(), Occupied> {
        let listed = self.get(path).as_ref().and_then(Value::as_array).is_some_and(|list| list.contains(&text.into()));
        if listed { Ok(()) } else { self.append(path, &text.into()) }
    }

    /// Removes a text from an array.
    pub fn exclude(&mut self, path: &[&str], text: &str) {
        self.remove_where(|steps, value| {
            let in_list = match steps.split_last() {
                Some((Step::Index(_), keys)) if keys.len() == path.len() => {
                    keys.iter().zip(path).all(|(step, key)| matches!(step, Step::Key(name) if name == key))
                }
                _ => false,
            };
            in_list && value == text
        });
    }

    /// Removes a property, and the objects that this leaves empty unless they were empty before our insertion.
    /// Returns whether the property existed.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let wanted = |steps: &[Step]| {
            steps.len() == path.len()
                && steps.iter().zip(path).all(|(step, key)| matches!(step, Step::Key(found) if found == key))
        };
        self.remove_where(|steps, _| wanted(steps)) > 0
    }

    /// Removes every property and element that `matches` accepts by path and value, and does not look inside
    /// those. Empty containers go as in [`Document::remove`]. Returns the number of removals.
    pub fn remove_where(&mut self, matches: impl Fn(&[Step], &Value) -> bool) -> usize {
        let mut found = Vec::new();
        if let Some(root) = self.root() {
            find(self.body(), &root, &mut Vec::new(), &matches, &mut found);
        }
        // Backwards, so that the positions of the remaining ones stay valid.
        for path in found.iter().rev() {
            self.take_out(path);
        }
        found.len()
    }

    fn body(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// The root's shape. `Document::parse` accepted the text, and every splice keeps it valid.
    fn root(&self) -> Option<Node> {
        shape::parse(self.body()).ok().flatten()
    }

    fn put(&mut self, path: &[&str], put: Put<'_>) -> Result<(), Occupied> {
        let Some(root) = self.root() else {
            let style = Style::of(self.body(), None);
            let written = style.write(&put.nested(path), Layout::Lines(""));
            // The final newline distinguishes a file that we made from one that existed and was empty.
            self.text = Some(match &self.text {
                // The final newline shows that the one after the comment is ours too.
                Some(blank) if shape::ends_in_line_comment(blank) => {
                    format!("{blank}{0}{written}{0}", style.newline)
                }
                Some(blank) => format!("{blank}{written}"),
                None => format!("{written}{}", style.newline),
            });
            return Ok(());
        };
        let text = self.body();
        let style = Style::of(text, Some(&root));
        let mut chain = vec![&root];
        for (depth, key) in path.iter().enumerate() {
            let here = chain[depth];
            if !matches!(here.kind, Kind::Object(_)) {
                return Err(occupied(text, here, &path[..depth], "an object"));
            }
            match here.position(key) {
                Some(index) => chain.push(&here.members()[index].value),
                None => {
                    let value = put.nested(&path[depth + 1..]);
                    let spliced = splice::insert(text, &style, &chain, Some(key), &value);
                    self.text = Some(spliced);
                    return Ok(());
                }
            }
        }
        let here = chain[path.len()];
        let spliced = match put {
            Put::Property(value) => splice::replace(text, &style, here, value),
            Put::Element(_) if !matches!(here.kind, Kind::Array(_)) => {
                return Err(occupied(text, here, path, "an array"));
            }
            Put::Element(element) => splice::insert(text, &style, &chain, None, element),
        };
        self.text = Some(spliced);
        Ok(())
    }

    fn take_out(&mut self, path: &[Step]) {
        let (Some(root), Some(text)) = (self.root(), self.text.take()) else { return };
        let mut chain = vec![(&root, None)];
        for step in path {
            let (here, _) = chain[chain.len() - 1];
            let index = match step {
                Step::Key(key) => here.position(key),
                Step::Index(index) => Some(*index),
            };
            let Some(index) = index else { break };
            chain.push((&here.members()[index].value, Some(index)));
        }
        self.text = splice::remove(&text, &chain);
    }
}

/// What to put at the end of a path.
#[derive(Clone, Copy)]
enum Put<'a> {
    Property(&'a Value),
    Element(&'a Value),
}

impl Put<'_> {
    /// Wraps the value in one new object per remaining name of the path.
    fn nested(self, path: &[&str]) -> Value {
        let innermost = match self {
            Put::Property(value) => value.clone(),
            Put::Element(element) => Value::Array(vec![element.clone()]),
        };
        path.iter().rev().fold(innermost, |value, key| Value::Object(Map::from_iter([((*key).to_owned(), value)])))
    }
}

fn find(
    text: &str,
    node: &Node,
    path: &mut Vec<Step>,
    matches: &impl Fn(&[Step], &Value) -> bool,
    found: &mut Vec<Vec<Step>>,
) {
    for (index, member) in node.members().iter().enumerate() {
        path.push(match &member.key {
            Some(key) => Step::Key(key.clone()),
            None => Step::Index(index),
        });
        match matches(path, &value_of(text, &member.value)) {
            true => found.push(path.clone()),
            false => find(text, &member.value, path, matches, found),
        }
        path.pop();
    }
}

/// The value of a node. Scalars look the same in every dialect that we accept.
fn value_of(text: &str, node: &Node) -> Value {
    match &node.kind {
        Kind::Object(members) => {
            let named = |member: &shape::Member| Some((member.key.clone()?, value_of(text, &member.value)));
            Value::Object(members.iter().filter_map(named).collect())
        }
        Kind::Array(members) => Value::Array(members.iter().map(|member| value_of(text, &member.value)).collect()),
        Kind::Scalar => serde_json::from_str(&text[node.range.clone()]).unwrap_or(Value::Null),
    }
}

fn occupied(text: &str, node: &Node, path: &[&str], wanted: &'static str) -> Occupied {
    Occupied { path: path.join("."), line: line_of(text, node.range.start), wanted }
}
