//! Readings, replies and findings as one line of text each, and typical settings files.

use crate::hooks::{Event, Reading, Reply};
use crate::install::{Finding, Severity};

/// Typical JSON settings files. An install and a removal must leave each of them as it was.
pub const SETTINGS: &[&str] = &[
    "{}",
    "{}\n",
    "{\n  \"model\": \"opus\"\n}\n",
    "{\n\t\"permissions\": {\n\t\t\"allow\": [],\n\t\t\"deny\": [\"Read(.env)\"]\n\t}\n}\n",
    "{\"env\":{\"A\":\"1\"},\"hooks\":{},\"enabledMcpjsonServers\":[\"other\"]}",
    "{\n  // with a comment\n  \"model\": \"opus\", // and another\n}\n",
];

/// A reading as one line. `short` gives the name that the test uses for a session id.
pub fn reading(reading: &Reading, short: impl Fn(&str) -> String) -> String {
    let mut words = Vec::new();
    words.push(reading.speaker.as_ref().map_or("nobody".to_owned(), |session| {
        let of = session.parent.as_deref().map_or(String::new(), |parent| format!(" of {}", short(parent)));
        format!("{}{of}", short(&session.id))
    }));
    for event in &reading.events {
        words.push(match event {
            Event::Alive(session) => format!("alive {}", short(&session.id)),
            Event::Activity((id, activity)) => format!("{} {}", short(id), case(activity)),
            Event::Rebound((from, to)) => format!("{} goes on as {}", short(from), short(to)),
            Event::UserSpoke(id) => format!("user spoke in {}", short(id)),
            Event::Stopped(id) => format!("user stopped {}", short(id)),
            Event::Ended(id) => format!("{} ended", short(id)),
        });
    }
    words.extend(reading.occasion.map(|occasion| format!("protocol {}", case(&occasion))));
    words.extend((reading.max_bytes > 0).then(|| format!("fits {}", reading.max_bytes)));
    words.extend(reading.attended.then(|| "attended".to_owned()));
    words.extend(reading.watches_wake_file.then(|| "watches".to_owned()));
    words.extend(reading.edits.iter().map(|path| format!("edits {path}")));
    words.join("; ")
}

/// A reply as one line: `exit code | stdout | stderr | shows mail`.
pub fn reply(reply: &Reply) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let shows = if reply.shows_mail { "shows mail" } else { "no mail" };
    format!("{} | {} | {} | {shows}", reply.exit_code, text(&reply.stdout), text(&reply.stderr))
}

/// The warnings and broken findings, one per line.
pub fn complaints(findings: &[Finding]) -> String {
    let worded = |finding: &Finding| {
        let severity = if finding.severity == Severity::Broken { "broken" } else { "warning" };
        format!("{severity}: {}", finding.what)
    };
    let bad = findings.iter().filter(|finding| finding.severity != Severity::Ok);
    bad.map(worded).collect::<Vec<_>>().join("\n")
}

/// An enum's case without its type, which the generated `Debug` puts before it.
fn case(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").rsplit("::").next().unwrap_or_default().to_owned()
}
