//! The splices. [`remove`] is the exact inverse of [`insert`], so a change to what one adds needs a change to
//! how the other finds it.

use serde_json::Value;

use crate::edit::spliced;

use super::shape::{Node, ends_in_line_comment, gap};
use super::style::{Layout, Style, line_indent};

/// Adds a member at the end of the last container of `chain`, which starts at the root.
pub(super) fn insert(text: &str, style: &Style, chain: &[&Node], key: Option<&str>, value: &Value) -> String {
    let here = chain[chain.len() - 1];
    let written = |layout: Layout<'_>| match key {
        Some(key) => style.property(key, value, layout),
        None => style.write(value, layout),
    };
    let lines = spans_lines(text, chain);
    let indent = member_indent(text, style, here);
    let layout = if lines { Layout::Lines(&indent) } else { Layout::Inline };
    let newline = style.newline;

    let Some(last) = here.members().len().checked_sub(1) else {
        let comments = gap(text, here.interior());
        let (at, added) = match comments.comment_end {
            // After the comment: removal finds the comment and removes only what follows it.
            Some(end) if lines || comments.line_comment => (end, format!("{newline}{indent}{}", written(layout))),
            Some(end) => (end, format!(" {}", written(layout))),
            // The double newline or the space marks a container that existed before.
            None if lines => {
                let closing = line_indent(text, here.range.start);
                let added = format!("{newline}{newline}{indent}{}{newline}{closing}", written(layout));
                (here.interior().start, added)
            }
            None => (here.interior().start, format!(" {}", written(layout))),
        };
        return spliced(text, vec![(at..at, added)]);
    };

    let member_end = here.members()[last].range.end;
    let after = gap(text, here.gap_after(last));
    let comma_end = after.comma.map(|comma| comma + 1);
    let anchor = [Some(member_end), comma_end, after.comment_end].into_iter().flatten().max().unwrap_or(member_end);
    let separator = match lines || (after.line_comment && after.comment_end == Some(anchor)) {
        true => format!("{newline}{indent}"),
        false if style.spaced => " ".to_owned(),
        false => String::new(),
    };
    let member = format!("{separator}{}", written(layout));
    let splices = match after.comma {
        Some(_) => vec![(anchor..anchor, format!("{member},"))],
        None if anchor == member_end => vec![(anchor..anchor, format!(",{member}"))],
        None => vec![(member_end..member_end, ",".to_owned()), (anchor..anchor, member)],
    };
    spliced(text, splices)
}

/// Replaces a value.
pub(super) fn replace(text: &str, style: &Style, here: &Node, value: &Value) -> String {
    let indent = line_indent(text, here.range.start);
    let layout = if text.contains('\n') { Layout::Lines(indent) } else { Layout::Inline };
    spliced(text, vec![(here.range.clone(), style.write(value, layout))])
}

/// Removes the last member of `chain`: nodes from the root, each with its index in the previous one. None if
/// the file goes too.
pub(super) fn remove(text: &str, chain: &[(&Node, Option<usize>)]) -> Option<String> {
    let (target, index) = chain[chain.len() - 1];
    let (Some(index), Some((here, _))) = (index, chain.len().checked_sub(2).map(|parent| chain[parent])) else {
        return remove_root(text, target);
    };
    let member = here.members()[index].range.clone();
    let before = gap(text, here.gap_before(index));
    let after = gap(text, here.gap_after(index));

    if here.members().len() == 1 && before.comment_end.is_none() && after.comment_end.is_none() {
        let lead = &text[here.lead()];
        let marked = match lead.contains('\n') {
            true => lead.matches('\n').count() > 1,
            false => !lead.is_empty(),
        };
        if !marked {
            return remove(text, &chain[..chain.len() - 1]);
        }
        let tail_start = after.comma.map_or(member.end, |comma| comma + 1);
        let closing = line_indent(text, here.range.start);
        let newline = if lead.starts_with('\r') { "\r\n" } else { "\n" };
        let tail = &text[tail_start..here.interior().end];
        let kept = match lead.contains('\n') {
            true => tail.strip_prefix(&format!("{newline}{closing}")).unwrap_or(tail),
            false => tail,
        };
        return Some(spliced(text, vec![(here.interior(), kept.to_owned())]));
    }

    // The first of several members on one line goes with the space after its comma, so the next one moves up.
    if let (0, Some(next), Some(_)) = (index, here.members().get(1), after.comma)
        && text[member.end..next.range.start].chars().all(|character| matches!(character, ' ' | '\t' | ','))
    {
        return Some(spliced(text, vec![(member.start..next.range.start, String::new())]));
    }

    // We added the white space before the member. It must stay if it ends a line comment and text follows, which
    // would become part of the comment.
    let after_comma = after.comma.map_or(member.end, |comma| comma + 1);
    let mut start = text[..member.start].trim_end().len();
    let follows_comment = before.line_comment && before.comment_end == Some(start);
    let line_goes_on = !text[after_comma..].starts_with(['\n', '\r']);
    if follows_comment && line_goes_on {
        start = member.start;
    }
    let splices = match after.comma {
        Some(comma) if text[member.end..comma].trim().is_empty() => vec![(start..comma + 1, String::new())],
        Some(comma) => vec![(start..member.end, String::new()), (comma..comma + 1, String::new())],
        None => match before.comma.filter(|_| index > 0) {
            Some(comma) if comma + 1 == start => vec![(comma..member.end, String::new())],
            Some(comma) => vec![(comma..comma + 1, String::new()), (start..member.end, String::new())],
            None => vec![(start..member.end, String::new())],
        },
    };
    Some(spliced(text, splices))
}

/// Removes the file with its empty root if we made the file, which its final newline shows. Otherwise the text
/// around the root stays, but for the line breaks that we put around it.
fn remove_root(text: &str, root: &Node) -> Option<String> {
    let (before, after) = (&text[..root.range.start], &text[root.range.end..]);
    if !matches!(after, "\n" | "\r\n") {
        return Some(format!("{before}{after}"));
    }
    match before.strip_suffix(after) {
        // Both line breaks are ours: see `Document::put`.
        Some(comment) if ends_in_line_comment(comment) => Some(comment.to_owned()),
        _ if before.is_empty() => None,
        Some(_) | None => Some(format!("{before}{after}")),
    }
}

/// Whether the members of the last container are on separate lines. An empty container follows its parents.
fn spans_lines(text: &str, chain: &[&Node]) -> bool {
    chain
        .iter()
        .rev()
        .find_map(|node| match node.members().is_empty() {
            true => gap(text, node.interior()).line_comment.then_some(true),
            false => Some(text[node.lead()].contains('\n')),
        })
        .unwrap_or(true)
}

fn member_indent(text: &str, style: &Style, here: &Node) -> String {
    let on_its_own_line = |at: usize| {
        let indent = line_indent(text, at);
        text[..at].ends_with(indent) && text[..at - indent.len()].ends_with('\n')
    };
    match here.members().last().map(|member| member.range.start) {
        Some(start) if on_its_own_line(start) => line_indent(text, start).to_owned(),
        Some(_) | None => format!("{}{}", line_indent(text, here.range.start), style.unit),
    }
}
