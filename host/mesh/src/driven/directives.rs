//! What an agent without tools writes into the final words of a turn to have something done: a line `->relay:NAME text`,
//! a line `->relay-file:F`, or a block that begins with `KIND: spawn` or `KIND: release`. They count at the start of a
//! line, outside of code fences.

use std::collections::BTreeMap;

use super::wanted::WantedAgent;
use crate::names::AgentName;
use crate::ports::runner::Reach;

/// The most of them in one turn.
pub const MOST_DIRECTIVES: usize = 16;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    Message {
        to: String,
        text: String,
    },
    /// A file of the agent's outbox says what.
    File(String),
    /// An agent that is wanted, in the words of the block.
    Spawn(Box<WantedAgent>),
    /// An agent that is dismissed.
    Release(String),
}

/// Something that was meant and cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{line}`: {why}")]
pub struct Malformed {
    /// Its first line.
    pub line: String,
    pub why: String,
}

/// Everything that final words want done, in order.
pub fn directives(words: &str) -> Vec<Result<Directive, Malformed>> {
    let lines: Vec<&str> = words.lines().collect();
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    let mut at = 0;
    while at < lines.len() && found.len() < MOST_DIRECTIVES {
        let line = lines[at];
        at += 1;
        if let Some(mark) = fence_of(line) {
            match fence {
                None => fence = Some(mark),
                Some(open) if mark.starts_with(open) && line.trim() == mark => fence = None,
                Some(_) => {}
            }
            continue;
        }
        if fence.is_some() {
            continue;
        }
        if let Some(rest) = line.strip_prefix("->relay:") {
            let end = end_of_message(&lines, at, rest);
            found.push(message(line, rest, &lines[at..end]));
            at = end;
        } else if let Some(name) = line.strip_prefix("->relay-file:") {
            found.push(Ok(Directive::File(name.trim().to_owned())));
        } else if is_kind(line) {
            let end = end_of_block(&lines, at);
            found.push(block(&lines[at - 1..end]));
            at = end;
        }
    }
    found
}

/// What a file of the outbox wants done: a block, or a message below a line `TO: NAME`.
pub fn directive_in_file(text: &str) -> Result<Directive, Malformed> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.first().copied().unwrap_or_default();
    if is_kind(first) {
        return block(&lines);
    }
    let Some(to) = first.strip_prefix("TO:") else {
        return Err(malformed(first, "a file begins with `TO: NAME` or `KIND: spawn`"));
    };
    let body = lines[1..].join("\n");
    addressed(first, to.trim(), body.trim())
}

/// The run of backticks or tildes that a line begins with, if it opens or closes a code block.
fn fence_of(line: &str) -> Option<&str> {
    let trimmed = line.trim_start_matches(' ');
    if line.len() - trimmed.len() > 3 {
        return None;
    }
    let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = trimmed.chars().take_while(|c| *c == mark).count();
    (length >= 3).then(|| &trimmed[..length])
}

fn is_kind(line: &str) -> bool {
    line.strip_prefix("KIND:").is_some_and(|kind| matches!(kind.trim(), "spawn" | "release"))
}

fn begins_something(line: &str) -> bool {
    line.starts_with("->relay:") || line.starts_with("->relay-file:") || is_kind(line)
}

/// A message ends with its line, or with `>>>` if it begins with `<<<`.
fn end_of_message(lines: &[&str], from: usize, rest: &str) -> usize {
    if !rest.contains("<<<") || rest.trim_end().ends_with(">>>") {
        return from;
    }
    let close = lines[from..].iter().position(|line| line.trim_end().ends_with(">>>"));
    close.map_or(lines.len(), |close| from + close + 1)
}

/// A block ends with the text, before the next, or at a code fence.
fn end_of_block(lines: &[&str], from: usize) -> usize {
    let next = lines[from..].iter().position(|line| begins_something(line) || line.trim_end() == ">>>");
    next.map_or(lines.len(), |next| from + next)
}

fn message(line: &str, rest: &str, more: &[&str]) -> Result<Directive, Malformed> {
    let (to, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let text = match text.trim().strip_prefix("<<<") {
        None => text.trim().to_owned(),
        Some(first) => {
            let whole = std::iter::once(first).chain(more.iter().copied()).collect::<Vec<_>>().join("\n");
            let Some((inside, _)) = whole.rsplit_once(">>>") else {
                return Err(malformed(line, "a message that begins with `<<<` ends with `>>>`"));
            };
            inside.trim().to_owned()
        }
    };
    addressed(line, to, &text)
}

fn addressed(line: &str, to: &str, text: &str) -> Result<Directive, Malformed> {
    match (to, text) {
        ("", _) => Err(malformed(line, "it names no agent")),
        (_, "") => Err(malformed(line, "the message is empty")),
        (to, text) => Ok(Directive::Message { to: to.to_owned(), text: text.to_owned() }),
    }
}

fn block(lines: &[&str]) -> Result<Directive, Malformed> {
    let first = lines.first().copied().unwrap_or_default();
    let head = lines.iter().take_while(|line| !line.trim().is_empty()).count();
    let mut values: BTreeMap<&str, &str> = BTreeMap::new();
    for line in &lines[..head] {
        let Some((key, value)) = line.split_once(':') else {
            return Err(malformed(line, "a line of a block is `KEY: value`, and an empty line ends them"));
        };
        if values.insert(key.trim(), value.trim()).is_some() {
            return Err(malformed(line, "it stands twice"));
        }
    }
    let known: &[&str] = match values.remove("KIND") {
        Some("spawn") => &["NAME", "CLI", "TRANSPORT", "REACH", "CWD"],
        _ => &["NAME"],
    };
    if let Some(unknown) = values.keys().find(|key| !known.contains(key)) {
        return Err(malformed(first, &format!("it has no `{unknown}`; it takes {}", known.join(", "))));
    }
    let name = values.get("NAME").copied().filter(|name| !name.is_empty());
    let Some(name) = name else { return Err(malformed(first, "`NAME: …` is missing")) };
    if known.len() == 1 {
        return Ok(Directive::Release(name.to_owned()));
    }
    let text = lines[head..].join("\n").trim().to_owned();
    let Some(cli) = values.get("CLI").copied().filter(|cli| !cli.is_empty()) else {
        return Err(malformed(first, "`CLI: …` is missing, as in `CLI: codex`"));
    };
    // Both ways lead to the same: an agent is driven by its harness's own protocol.
    if let Some(transport) = values.get("TRANSPORT").filter(|transport| !matches!(**transport, "cli" | "websocket")) {
        return Err(malformed(first, &format!("`TRANSPORT: {transport}` is neither `cli` nor `websocket`")));
    }
    if text.is_empty() {
        return Err(malformed(first, "an empty line and the task are missing"));
    }
    let name = name.parse::<AgentName>().map_err(|error| malformed(first, &error.to_string()))?;
    let reach = values.get("REACH").map_or(Ok(Reach::default()), |reach| reach.parse::<Reach>());
    Ok(Directive::Spawn(Box::new(WantedAgent {
        harness: if cli == "codex-ws" { "codex" } else { cli }.to_owned(),
        name: Some(name),
        text,
        folder: values.get("CWD").map(|cwd| (*cwd).into()).unwrap_or_default(),
        reach: reach.map_err(|error| malformed(first, &error.to_string()))?,
        ..WantedAgent::default()
    })))
}

fn malformed(line: &str, why: &str) -> Malformed {
    Malformed { line: line.chars().take(80).collect(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a text, as a line each.
    fn check(words: &str, expected: &[&str]) {
        let told = |found: Result<Directive, Malformed>| match found {
            Ok(Directive::Message { to, text }) => format!("to {to}: {text}"),
            Ok(Directive::File(name)) => format!("file {name}"),
            Ok(Directive::Spawn(wanted)) => {
                let WantedAgent { harness, name, text, folder, reach, .. } = *wanted;
                let name = name.expect("a name");
                format!("spawn {name} {harness} {} {}: {text}", reach.as_str(), folder.display())
            }
            Ok(Directive::Release(name)) => format!("release {name}"),
            Err(error) => format!("wrong {error}"),
        };
        let found: Vec<String> = directives(words).into_iter().map(told).collect();
        assert_eq!(found, expected, "{words}");
    }

    #[test]
    fn messages_stand_at_the_start_of_a_line() {
        check("Done.\n->relay:alice the build is green\nBye.", &["to alice: the build is green"]);
        check("->relay:#audit <<<\none\n\ntwo>>>\nrest", &["to #audit: one\n\ntwo"]);
        check("->relay:bob <<<one>>>\n->relay:carol two", &["to bob: one", "to carol: two"]);
        check("use ->relay:bob text\n > ->relay:bob text\n ->relay:bob text", &[]);
        check("->relay: text", &["wrong `->relay: text`: it names no agent"]);
        check("->relay:bob", &["wrong `->relay:bob`: the message is empty"]);
        check(
            "->relay:bob <<<open",
            &["wrong `->relay:bob <<<open`: a message that begins with `<<<` ends with `>>>`"],
        );
        check("->relay-file:plan", &["file plan"]);
    }

    #[test]
    fn a_code_block_is_no_order() {
        check("```\n->relay:bob no\nKIND: spawn\n```\n->relay:bob yes", &["to bob: yes"]);
        check("~~~text\n->relay:bob no\n```\n~~~\n->relay:bob yes", &["to bob: yes"]);
        check("````\n```\n->relay:bob no\n````\n->relay:bob yes", &["to bob: yes"]);
        check("```\n->relay:bob a block that is never closed", &[]);
    }

    #[test]
    fn d6_a_block_asks_for_an_agent() {
        let old = "KIND: spawn\nNAME: worker\nCLI: codex\n\nFix the tests.\nAll of them.";
        check(old, &["spawn worker codex look : Fix the tests.\nAll of them."]);
        check(
            "KIND: spawn\nNAME: worker\nCLI: codex\nTRANSPORT: websocket\nREACH: edit\nCWD: sub\n\nFix.\n->relay:bob hi",
            &["spawn worker codex edit sub: Fix.", "to bob: hi"],
        );
        check("KIND: spawn\nNAME: w\nCLI: codex-ws\n\nFix.", &["spawn w codex look : Fix."]);
        check(
            "KIND: spawn\nNAME: w\nCLI: claude\n\nA.\nKIND: release\nNAME: v",
            &["spawn w claude look : A.", "release v"],
        );
        let wrong = |text: &str, why: &str| check(text, &[&format!("wrong {why}")]);
        wrong(
            "KIND: spawn\nNAME: w\nCLI: codex\nTRANSPORT: pigeon\n\nFix.",
            "`KIND: spawn`: `TRANSPORT: pigeon` is neither `cli` nor `websocket`",
        );
        wrong(
            "KIND: spawn\nNAME: w\nCLI: codex\nROLE: x\n\nFix.",
            "`KIND: spawn`: it has no `ROLE`; it takes NAME, CLI, TRANSPORT, REACH, CWD",
        );
        wrong("KIND: spawn\nCLI: codex\n\nFix.", "`KIND: spawn`: `NAME: …` is missing");
        wrong("KIND: spawn\nNAME: w\n\nFix.", "`KIND: spawn`: `CLI: …` is missing, as in `CLI: codex`");
        wrong("KIND: spawn\nNAME: w\nCLI: codex", "`KIND: spawn`: an empty line and the task are missing");
        wrong("KIND: spawn\nNAME: w\nNAME: v\n\nFix.", "`NAME: v`: it stands twice");
        check("KIND: holiday\nNAME: w", &[]);
    }

    #[test]
    fn a_file_is_one_message_or_one_block() {
        let to = directive_in_file("TO: alice\n\nA long text.\n").expect("a message");
        assert_eq!(to, Directive::Message { to: "alice".to_owned(), text: "A long text.".to_owned() });
        assert_eq!(directive_in_file("KIND: release\nNAME: w\n"), Ok(Directive::Release("w".to_owned())));
        assert!(directive_in_file("hello").is_err_and(|error| error.to_string().contains("a file begins with")));
    }

    #[test]
    fn a_turn_has_so_many_orders_and_no_more() {
        assert_eq!(directives(&"->relay:bob hi\n".repeat(100)).len(), MOST_DIRECTIVES);
    }
}
