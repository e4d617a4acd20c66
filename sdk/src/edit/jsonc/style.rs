//! How a file is written: its line ends, its indentation, whether it is minified.

use serde_json::Value;

use super::shape::Node;
use crate::edit::newline_of;

/// The longest array of plain values that is written on one line.
const SHORT: usize = 72;

/// A file's style, so that our additions look like the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) newline: &'static str,
    /// One level of indentation.
    pub(super) unit: String,
    /// Whether a space follows a colon or a comma.
    pub(super) spaced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout<'a> {
    Inline,
    /// Over several lines; the first one has this indentation.
    Lines(&'a str),
}

impl Style {
    /// Detects the style of a text. The defaults are two spaces and `\n`.
    pub(super) fn of(text: &str, root: Option<&Node>) -> Style {
        let newline = newline_of(text);
        let unit = root.and_then(|root| indented_by(text, root, "")).unwrap_or_else(|| "  ".to_owned());
        let spaced = root.is_none_or(|root| root.members().is_empty()) || text.contains('\n') || text.contains("\": ");
        Style { newline, unit, spaced }
    }

    pub(super) fn write(&self, value: &Value, layout: Layout<'_>) -> String {
        let mut out = String::new();
        self.put(&mut out, value, layout);
        out
    }

    pub(super) fn property(&self, key: &str, value: &Value, layout: Layout<'_>) -> String {
        let colon = if self.spaced { ": " } else { ":" };
        format!("{}{colon}{}", Value::from(key), self.write(value, layout))
    }

    fn put(&self, out: &mut String, value: &Value, layout: Layout<'_>) {
        match value {
            Value::Object(object) if !object.is_empty() => {
                let members = object.iter().map(|(key, value)| (Some(key.as_str()), value));
                self.put_members(out, ['{', '}'], members, layout);
            }
            Value::Array(array) if !array.is_empty() => {
                let layout = if self.is_short(value) { Layout::Inline } else { layout };
                self.put_members(out, ['[', ']'], array.iter().map(|value| (None, value)), layout);
            }
            Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                out.push_str(&value.to_string());
            }
        }
    }

    fn put_members<'v>(
        &self,
        out: &mut String,
        [open, close]: [char; 2],
        members: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
        layout: Layout<'_>,
    ) {
        let inner = match layout {
            Layout::Inline => None,
            Layout::Lines(indent) => Some(format!("{indent}{}", self.unit)),
        };
        out.push(open);
        for (index, (key, value)) in members.enumerate() {
            if index > 0 {
                out.push(',');
            }
            let layout = match &inner {
                Some(indent) => {
                    out.push_str(self.newline);
                    out.push_str(indent);
                    Layout::Lines(indent)
                }
                None => {
                    out.push_str(if index > 0 && self.spaced { " " } else { "" });
                    Layout::Inline
                }
            };
            match key {
                Some(key) => out.push_str(&self.property(key, value, layout)),
                None => self.put(out, value, layout),
            }
        }
        if let Layout::Lines(indent) = layout {
            out.push_str(self.newline);
            out.push_str(indent);
        }
        out.push(close);
    }

    fn is_short(&self, value: &Value) -> bool {
        let plain = |value: &Value| !value.is_object() && !value.is_array();
        value.as_array().is_some_and(|array| array.iter().all(plain)) && value.to_string().len() <= SHORT
    }
}

/// The indentation of the line that contains a byte.
pub(super) fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// How much further than `base` the first member of a multi-line container is indented. If this container is
/// on one line, looks into its members.
fn indented_by(text: &str, node: &Node, base: &str) -> Option<String> {
    let first = node.members().first()?;
    if text[node.lead()].contains('\n') {
        let indent = line_indent(text, first.range.start);
        return indent.strip_prefix(base).filter(|unit| !unit.is_empty()).map(str::to_owned);
    }
    let base = line_indent(text, node.range.start);
    node.members().iter().find_map(|member| indented_by(text, &member.value, base))
}
