//! A thread as one HTML page without scripts, links and pictures.

use crate::visible::{is_hidden, push_visible};
use crate::{ThreadMessageView, ThreadView};

/// The page's only style, in light and dark, for a phone and for paper.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:0 auto;padding:1rem}\
article{border-top:1px solid GrayText;padding:.75rem 0}\
h1{font-size:1.4rem}h2{font-size:1rem;margin:0}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:.5rem 0}\
ul{list-style:none;padding:0;margin:0;font-size:.875rem}\
time,.id{font-size:.875rem;overflow-wrap:anywhere}\
bdi,pre{unicode-bidi:isolate}";

/// A thread as one HTML page. Its policy lets it load nothing and run nothing, so that a mistake in the escaping would do
/// no harm.
pub fn html(thread: &ThreadView) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\n",
    );
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    text(thread.title(), &mut page);
    page.push_str("</title>\n<style>");
    page.push_str(STYLE);
    page.push_str("</style>\n</head>\n<body>\n<main>\n<h1><bdi>");
    text(thread.title(), &mut page);
    page.push_str("</bdi></h1>\n<p>Thread <span class=\"id\"><bdi>");
    text(&thread.thread, &mut page);
    page.push_str("</bdi></span>, ");
    text(&thread.agents().join(", "), &mut page);
    page.push_str("</p>\n");
    if thread.earlier > 0 {
        page.push_str(&format!("<p>{} earlier messages are left out.</p>\n", thread.earlier));
    }
    for message in &thread.messages {
        article(message, &mut page);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn article(one: &ThreadMessageView, page: &mut String) {
    let message = &one.message;
    let at = message.at.to_string();
    page.push_str(&format!("<article id=\"m-{}\">\n<h2>", message.id));
    text(&format!("{} → {}", message.from, one.to()), page);
    page.push_str(&format!("</h2>\n<time datetime=\"{at}\">{at}</time> <span class=\"id\">{}</span>", message.id));
    if let Some(answered) = &message.reply_to {
        page.push_str(&format!(" answers <a href=\"#m-{answered}\">{answered}</a>"));
    }
    if !message.body.trim_start().starts_with(&message.subject) {
        page.push_str("\n<p><strong><bdi>");
        text(&message.subject, page);
        page.push_str("</bdi></strong></p>");
    }
    page.push_str("\n<pre dir=\"auto\">");
    text(&message.body, page);
    page.push_str("</pre>\n<ul>\n");
    for recipient in &one.recipients {
        page.push_str("<li><bdi>");
        text(&recipient.sentence(), page);
        page.push_str("</bdi></li>\n");
    }
    page.push_str("</ul>\n</article>\n");
}

/// Adds text that stays text, in an element as well as in a quoted attribute.
fn text(text: &str, onto: &mut String) {
    for character in text.chars() {
        match character {
            '&' => onto.push_str("&amp;"),
            '<' => onto.push_str("&lt;"),
            '>' => onto.push_str("&gt;"),
            '"' => onto.push_str("&quot;"),
            '\'' => onto.push_str("&#39;"),
            hidden if is_hidden(hidden) => push_visible(hidden, onto),
            other => onto.push(other),
        }
    }
}
