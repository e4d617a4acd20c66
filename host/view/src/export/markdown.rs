//! A thread as Markdown. What agents wrote is in fenced blocks that it cannot close.

use crate::visible::{is_hidden, push_visible};
use crate::{ThreadMessageView, ThreadView};

/// A thread as Markdown.
pub fn markdown(thread: &ThreadView) -> String {
    let mut page = String::from("# ");
    words(thread.title(), &mut page);
    page.push_str("\n\nThread ");
    words(&thread.thread, &mut page);
    page.push_str(", ");
    words(&thread.agents().join(", "), &mut page);
    page.push('\n');
    if thread.earlier > 0 {
        page.push_str(&format!("\n{} earlier messages are left out.\n", thread.earlier));
    }
    for message in &thread.messages {
        section(message, &mut page);
    }
    page
}

fn section(one: &ThreadMessageView, page: &mut String) {
    let message = &one.message;
    page.push_str("\n## ");
    words(&format!("{} → {}", message.from, one.to()), page);
    page.push_str(&format!("\n\n{} · {}", message.at, message.id));
    if let Some(answered) = &message.reply_to {
        page.push_str(&format!(" · answers {answered}"));
    }
    page.push_str("\n\n");
    if !message.body.trim_start().starts_with(&message.subject) {
        page.push_str("**");
        words(&message.subject, page);
        page.push_str("**\n\n");
    }
    fenced(&message.body, page);
    page.push('\n');
    for recipient in &one.recipients {
        page.push_str("- ");
        words(&recipient.sentence(), page);
        page.push('\n');
    }
}

/// Adds a block of text whose fence is longer than any row of backticks in the text.
fn fenced(text: &str, onto: &mut String) {
    let (mut longest, mut row) = (0, 0);
    for character in text.chars() {
        row = if character == '`' { row + 1 } else { 0 };
        longest = longest.max(row);
    }
    let fence = "`".repeat((longest + 1).max(3));
    onto.push_str(&format!("{fence}text\n"));
    for character in text.chars() {
        if is_hidden(character) { push_visible(character, onto) } else { onto.push(character) }
    }
    if !text.ends_with('\n') {
        onto.push('\n');
    }
    onto.push_str(&format!("{fence}\n"));
}

/// Adds words on one line that mean nothing in Markdown or HTML.
fn words(text: &str, onto: &mut String) {
    for character in text.chars() {
        match character {
            '\n' | '\t' => onto.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '<' | '>' | '#' | '|' | '!' | '~' | '&'
            | '$' => {
                onto.push('\\');
                onto.push(character);
            }
            hidden if is_hidden(hidden) => push_visible(hidden, onto),
            other => onto.push(other),
        }
    }
}
