//! The layout of a JSON text: byte ranges of containers and members, and what is in the gaps between them.

use std::ops::Range;

use jsonc_parser::ast::Value as Ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::Broken;

/// A value and its byte range.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Member>),
    Scalar,
}

/// A property or an element.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The property's name; none for an element.
    pub(super) key: Option<String>,
    /// From the first byte of the name (or element) to the last of the value.
    pub(super) range: Range<usize>,
    pub(super) value: Node,
}

/// What is between two members, apart from white space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// The comma's position.
    pub(super) comma: Option<usize>,
    /// The end of the last comment.
    pub(super) comment_end: Option<usize>,
    /// Whether that comment runs to the end of its line, so nothing may follow it there.
    pub(super) line_comment: bool,
}

impl Node {
    /// The members of an object or array. A scalar has none.
    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) | Kind::Array(members) => members,
            Kind::Scalar => &[],
        }
    }

    /// A property's index by name. If a name occurs twice, the last counts, as in every JSON reader.
    pub(super) fn position(&self, key: &str) -> Option<usize> {
        match &self.kind {
            Kind::Object(members) => members.iter().rposition(|member| member.key.as_deref() == Some(key)),
            Kind::Array(_) | Kind::Scalar => None,
        }
    }

    /// The range inside the brackets.
    pub(super) fn interior(&self) -> Range<usize> {
        self.range.start + 1..self.range.end - 1
    }

    /// The gap before the first member, or the whole inside if there is no member.
    pub(super) fn lead(&self) -> Range<usize> {
        let interior = self.interior();
        interior.start..self.members().first().map_or(interior.end, |member| member.range.start)
    }

    /// The gap from a member to the next one or the closing bracket.
    pub(super) fn gap_after(&self, index: usize) -> Range<usize> {
        let members = self.members();
        let end = members.get(index + 1).map_or(self.interior().end, |next| next.range.start);
        members[index].range.end..end
    }

    /// The gap between a member and the previous one or the opening bracket.
    pub(super) fn gap_before(&self, index: usize) -> Range<usize> {
        match index.checked_sub(1) {
            Some(previous) => self.gap_after(previous),
            None => self.lead(),
        }
    }
}

/// Parses JSON with comments and trailing commas, as settings files have them.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Broken> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| Broken {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })?;
    Ok(parsed.value.as_ref().map(node))
}

fn node(ast: &Ast<'_>) -> Node {
    let range = ast.range();
    let kind = match ast {
        Ast::Object(object) => Kind::Object(
            object
                .properties
                .iter()
                .map(|property| Member {
                    key: Some(property.name.as_str().to_owned()),
                    range: property.range.start..property.range.end,
                    value: node(&property.value),
                })
                .collect(),
        ),
        Ast::Array(array) => Kind::Array(
            array
                .elements
                .iter()
                .map(|element| {
                    let value = node(element);
                    Member { key: None, range: value.range.clone(), value }
                })
                .collect(),
        ),
        Ast::StringLit(_) | Ast::NumberLit(_) | Ast::BooleanLit(_) | Ast::NullKeyword(_) => Kind::Scalar,
    };
    Node { range: range.start..range.end, kind }
}

/// Whether what is added to a text of white space and comments would become part of its last comment.
pub(super) fn ends_in_line_comment(text: &str) -> bool {
    let found = gap(text, 0..text.len());
    found.line_comment && found.comment_end.is_some_and(|end| !text[end..].contains('\n'))
}

/// Scans a gap. The parser has checked that it holds only white space, comments and a comma.
pub(super) fn gap(text: &str, range: Range<usize>) -> Gap {
    let bytes = text.as_bytes();
    let mut found = Gap::default();
    let mut at = range.start;
    while at < range.end {
        match bytes[at] {
            b',' => {
                found.comma = Some(at);
                at += 1;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let line = &text[at..range.end];
                at += line.find(['\n', '\r']).unwrap_or(line.len());
                found.comment_end = Some(at);
                found.line_comment = true;
            }
            b'/' => {
                at += text[at + 2..range.end].find("*/").map_or(range.end - at, |end| end + 4);
                found.comment_end = Some(at);
                found.line_comment = false;
            }
            _ => at += 1,
        }
    }
    found
}
