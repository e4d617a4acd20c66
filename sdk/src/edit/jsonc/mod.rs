//! Changes to JSON with or without comments, as splices of the text: nothing is printed anew but
//! what is added.
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
//! Taking the last member out of a container takes the container too, and taking out the root takes
//! the file. So that a container (or a file) which was there before, empty, stays, an insertion
//! into an empty one leaves a mark in white space: a blank line after the opening bracket, or one
//! space where it is on one line. Likewise a text written into an empty file has no newline at its
//! end, while a file that did not exist gets one. What was inside an empty container before is kept
//! behind what is inserted.

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
    /// A byte order mark at the start, which no JSON parser wants to see.
    bom: bool,
    /// The rest; none where there is no file.
    text: Option<String>,
}

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into an object, by name.
    Key(String),
    /// Into an array, by position.
    Index(usize),
}

impl Document {
    /// Parses a file's text; none stands for a file that is not there. Comments and trailing commas
    /// are allowed.
    pub fn parse(text: Option<&str>) -> Result<Document, Broken> {
        let document = match text.map(|text| (text.strip_prefix('\u{feff}'), text)) {
            None => Document { bom: false, text: None },
            Some((Some(rest), _)) => Document { bom: true, text: Some(rest.to_owned()) },
            Some((None, text)) => Document { bom: false, text: Some(text.to_owned()) },
        };
        shape::parse(document.body())?;
        Ok(document)
    }

    /// The file's text now; none where there is to be no file. Without the byte order mark: see
    /// [`Document::finish`].
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The file's text to write; none where there is to be no file.
    pub fn finish(self) -> Option<String> {
        match self.bom {
            true => self.text.map(|text| format!("\u{feff}{text}")),
            false => self.text,
        }
    }

    /// The value at a path of property names, where there is one.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        let root = self.root()?;
        let node = path.iter().try_fold(&root, |node, key| Some(&node.members()[node.position(key)?].value))?;
        Some(value_of(self.body(), node))
    }

    /// Sets a property, and makes the objects on the way to it. An equal value is left as it is
    /// written; another one is replaced, and what it was is not kept.
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<(), Occupied> {
        if self.get(path).as_ref() == Some(value) {
            return Ok(());
        }
        self.put(path, Put::Property(value))
    }

    /// Adds an element at the end of an array, and makes the array and the objects on the way to it.
    pub fn append(&mut self, path: &[&str], element: &Value) -> Result<(), Occupied> {
        self.put(path, Put::Element(element))
    }

    /// Adds a text to an array, where it is not in it yet.
    pub fn include(&mut self, path: &[&str], text: &str) -> Result<(), Occupied> {
        let listed = self.get(path).as_ref().and_then(Value::as_array).is_some_and(|list| list.contains(&text.into()));
        if listed { Ok(()) } else { self.append(path, &text.into()) }
    }

    /// Takes a text out of an array, wherever it is in it.
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

    /// Takes a property out, and the objects that this leaves empty, unless they were empty before
    /// we came. True where there was one.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let wanted = |steps: &[Step]| {
            steps.len() == path.len()
                && steps.iter().zip(path).all(|(step, key)| matches!(step, Step::Key(found) if found == key))
        };
        self.remove_where(|steps, _| wanted(steps)) > 0
    }

    /// Takes out every property and element that `matches`, by its path and value; what lies inside
    /// of one that matches is not looked at. Empty containers go as in [`Document::remove`]. Answers
    /// how many were taken out.
    pub fn remove_where(&mut self, matches: impl Fn(&[Step], &Value) -> bool) -> usize {
        let mut found = Vec::new();
        if let Some(root) = self.root() {
            find(self.body(), &root, &mut Vec::new(), &matches, &mut found);
        }
        // Backwards, so that the positions of what is still to go do not move.
        for path in found.iter().rev() {
            self.take_out(path);
        }
        found.len()
    }

    fn body(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// The root's shape. The text parsed when it came in, and every splice keeps it so.
    fn root(&self) -> Option<Node> {
        shape::parse(self.body()).ok().flatten()
    }

    fn put(&mut self, path: &[&str], put: Put<'_>) -> Result<(), Occupied> {
        let Some(root) = self.root() else {
            let style = Style::of(self.body(), None);
            let written = style.write(&put.nested(path), Layout::Lines(""));
            // The final newline tells a file that we made from one that was there and empty.
            self.text = Some(match &self.text {
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

/// What is put at the end of a path.
#[derive(Clone, Copy)]
enum Put<'a> {
    Property(&'a Value),
    Element(&'a Value),
}

impl Put<'_> {
    /// The value inside as many new objects as the path still has names.
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

/// The value that a range of the text says. Scalars are written alike in every dialect that we take.
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
