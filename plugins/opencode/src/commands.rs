//! OpenCode's own commands, over HTTP: those that users write (`.opencode/command/NAME.md`), those of MCP servers,
//! and `/compact`, which is another request. If a connector runs inside OpenCode, it runs them instead, by the same
//! rules.

use relay_mesh_sdk::optional::commands::{Command, Commands, Means, Progress};
use relay_mesh_sdk::{Error, Session, clock, warn};
use serde_json::{Value, json};

use crate::payload::Server;
use crate::push::{is_role, latest, server_of, settings_of};
use crate::{OpenCode, http};

/// The name of our means.
const MEANS: &str = "command";
/// The only built-in command of the terminal for which the server has a request.
const COMPACT: &str = "compact";
/// How many names an error for an unknown command lists.
const MOST_NAMES: usize = 12;
/// How long to wait before asking again about a busy session.
const BUSY_MS: u32 = 2_000;
/// How long to wait for a command to appear in the session, in milliseconds.
const NOT_BEGUN_AFTER: u64 = 120_000;

impl Commands for OpenCode {
    fn plan(to: &Session, command: &Command) -> Result<Means, Error> {
        let server = the_server(to)?;
        words(command)?;
        if is_busy(&server, to)? {
            return Err(Error::Busy(BUSY_MS));
        }
        if command.name == COMPACT {
            return compact_takes_no_arguments(command).map(|()| Means::looked_at("summarize"));
        }
        let listed = http::get(&server, "/command", &to.workdir)?;
        let names = names(&listed);
        if names.contains(&command.name.as_str()) {
            return Ok(Means::looked_at(MEANS));
        }
        let known = names.iter().take(MOST_NAMES).map(|name| format!("/{name}")).collect::<Vec<_>>().join(", ");
        Err(Error::Unsupported(format!("this OpenCode has no command /{}; it has {known} and /compact", command.name)))
    }

    fn run(to: &Session, command: &Command) -> Result<Progress, Error> {
        let server = the_server(to)?;
        let line = words(command)?;
        // The latest message says with which agent and model the session speaks, and everything of ours comes after
        // it.
        let messages = latest(&server, to)?;
        let settings = settings_of(&messages);
        let session = http::encoded(&to.id);
        let begun = clock::now();
        let evidence = json!({"after": last_id(&messages), "begun": begun}).to_string();
        let asked = if command.name == COMPACT {
            let model = settings.model.ok_or_else(|| Error::Failed("this session has no messages yet".to_owned()))?;
            http::post(&server, &format!("/session/{session}/summarize"), &to.workdir, &model)
        } else {
            let mut body = json!({"command": command.name, "arguments": line});
            let model = settings.model.as_ref().and_then(|model| {
                Some(format!("{}/{}", model["providerID"].as_str()?, model["modelID"].as_str()?).into())
            });
            for (name, value) in [("agent", settings.agent), ("model", model), ("variant", settings.variant)] {
                if let Some(value) = value {
                    body[name] = value;
                }
            }
            http::post(&server, &format!("/session/{session}/command"), &to.workdir, &body)
        };
        match asked {
            // The answer comes when the turn ends.
            Ok(_) => Ok(Progress::begun(evidence)),
            Err(error @ (Error::NotFound(_) | Error::Denied(_) | Error::Unsupported(_))) => Err(error),
            // It may have started: a turn may take longer than a request may.
            Err(Error::Busy(_) | Error::Failed(_)) => {
                warn!("OpenCode has not answered for /{} yet; its session will show the result", command.name);
                Ok(Progress::begun(evidence))
            }
        }
    }

    fn watch(to: &Session, _: &Command, begun: Progress) -> Result<Progress, Error> {
        let server = the_server(to)?;
        let evidence: Value = serde_json::from_str(begun.evidence.as_deref().unwrap_or_default()).unwrap_or_default();
        let after = evidence["after"].as_str().unwrap_or_default();
        if is_busy(&server, to)? {
            return Ok(begun);
        }
        let messages = latest(&server, to)?;
        let is_later = |message: &&Value| message["info"]["id"].as_str().is_some_and(|id| id > after);
        let Some(turn) = messages.iter().filter(is_later).rfind(|message| is_role(message, "assistant")) else {
            let started = evidence["begun"].as_u64().unwrap_or_default();
            let late = clock::now().saturating_sub(started) > NOT_BEGUN_AFTER;
            return if late { Ok(begun.failed("OpenCode began no turn for it")) } else { Ok(begun) };
        };
        let said = said(turn);
        let evidence = json!({"turn": turn["info"]["id"]}).to_string();
        let begun = Progress { evidence: Some(evidence), ..begun };
        Ok(match turn["info"]["error"]["data"]["message"].as_str().or_else(|| turn["info"]["error"]["name"].as_str()) {
            Some(error) => begun.failed(error),
            None => begun.succeeded(said),
        })
    }
}

fn the_server(to: &Session) -> Result<Server, Error> {
    server_of(to).ok_or_else(|| {
        Error::Unsupported("this OpenCode serves no HTTP, and no connector inside it answers now".to_owned())
    })
}

/// What OpenCode itself says, because there is no connector to tell.
fn is_busy(server: &Server, to: &Session) -> Result<bool, Error> {
    let status = http::get(server, "/session/status", &to.workdir)?;
    Ok(status.get(&to.id).is_some_and(|doing| doing["type"] != "idle"))
}

/// The arguments as a user would type them. OpenCode inserts them into the command's text, runs what is between
/// backticks after an exclamation mark, opens what follows an `@`, and expands some words with a dollar sign. We
/// refuse all of these, because another agent wrote the arguments.
fn words(command: &Command) -> Result<String, Error> {
    let words: Result<Vec<String>, Error> = command.arguments.iter().map(|argument| word(argument)).collect();
    Ok(words?.join(" "))
}

fn word(argument: &str) -> Result<String, Error> {
    let refused = |what: &str| {
        Err(Error::Unsupported(format!("an argument holds {what}, which OpenCode would not take as text")))
    };
    let mut before = ' ';
    for character in argument.chars() {
        match character {
            '`' => return refused("` (a backtick)"),
            '$' => return refused("$ (a dollar sign)"),
            // As OpenCode does: only ASCII letters count.
            '@' if !(before.is_ascii_alphanumeric() || before == '_') => return refused("@ (which opens a file)"),
            _ => before = character,
        }
    }
    match (
        argument.contains('"'),
        argument.contains('\''),
        argument.is_empty() || argument.contains(char::is_whitespace),
    ) {
        (false, false, false) => Ok(argument.to_owned()),
        (false, _, _) => Ok(format!("\"{argument}\"")),
        (true, false, _) => Ok(format!("'{argument}'")),
        (true, true, _) => refused("both kinds of quotes"),
    }
}

fn compact_takes_no_arguments(command: &Command) -> Result<(), Error> {
    match command.arguments.is_empty() {
        true => Ok(()),
        false => Err(Error::Unsupported("OpenCode's /compact takes no arguments".to_owned())),
    }
}

fn names(listed: &Value) -> Vec<&str> {
    listed.as_array().into_iter().flatten().filter_map(|command| command["name"].as_str()).collect()
}

fn last_id(messages: &[Value]) -> &str {
    messages.iter().filter_map(|message| message["info"]["id"].as_str()).max().unwrap_or_default()
}

fn said(turn: &Value) -> String {
    let parts = turn["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use relay_mesh_sdk::http::Response;
    use relay_mesh_sdk::optional::commands::CommandStage;
    use relay_mesh_sdk::testing::{FakeHost, Fakes};

    use super::*;

    fn command(line: &str) -> Command {
        let mut words = line.split('|').map(str::to_owned);
        let name = words.next().unwrap_or_default();
        Command { id: "01JD0000000000000000000000".into(), name, arguments: words.collect() }
    }

    fn session() -> Session {
        Session { route_hint: Some(r#"{"port":4096}"#.into()), ..Session::new("ses_1", "/w") }
    }

    type Posted = Rc<RefCell<Vec<(String, Value)>>>;

    /// An OpenCode that knows `/review`, with this session content and status.
    fn serving(messages: Value, status: Value) -> (FakeHost, Posted) {
        let posted = Posted::default();
        let kept = Rc::clone(&posted);
        let host = Fakes::default()
            .at(1_000)
            .origin("opencode", move |request| {
                let path = request.path.split('?').next().unwrap_or_default();
                let body = match (request.method.as_str(), path) {
                    ("POST", path) => {
                        let body = serde_json::from_slice(&request.body).expect("JSON");
                        kept.borrow_mut().push((path.to_owned(), body));
                        json!({})
                    }
                    (_, "/command") => json!([{"name": "init"}, {"name": "review"}]),
                    (_, "/session/status") => status.clone(),
                    _ => messages.clone(),
                };
                Response { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
            })
            .start();
        (host, posted)
    }

    fn check(line: &str, expected: &str) {
        let (_host, posted) = serving(json!([]), json!({}));
        let planned = format!("{:?}", OpenCode::plan(&session(), &command(line)).map(|means| means.name));
        assert!(planned.contains(expected), "{line}: {planned}");
        assert_eq!(posted.borrow().len(), 0, "a plan does nothing");
    }

    #[test]
    fn what_opencode_knows_can_be_run_and_the_rest_is_left_to_others() {
        check("review", "Ok(\"command\")");
        check("review|src/a.rs|/init|two words|it's", "Ok(\"command\")");
        check("compact", "Ok(\"summarize\")");
        check("compact|x", "takes no arguments");
        check("deploy", "has no command /deploy; it has /init, /review and /compact");
        let unserved = OpenCode::plan(&Session::new("ses_1", "/w"), &command("review"));
        assert!(matches!(unserved, Err(Error::Unsupported(_))), "{unserved:?}");
    }

    #[test]
    fn a_session_that_works_is_left_alone() {
        let (_host, _) = serving(json!([]), json!({"ses_1": {"type": "busy"}}));
        assert_eq!(OpenCode::plan(&session(), &command("review")).map(|means| means.name), Err(Error::Busy(BUSY_MS)));
    }

    /// The connector's test has the same table (`tests/slash.rs`).
    #[test]
    fn a_peers_words_run_nothing_and_open_nothing() {
        let table: Vec<Value> = serde_json::from_str(include_str!("arguments.json")).expect("a table");
        for row in table {
            let arguments = serde_json::from_value(row["words"].clone()).expect("words");
            let typed = words(&Command { arguments, ..command("review") });
            match (typed, row["refused"].as_str()) {
                (Ok(line), None) => assert_eq!(row["line"], line, "{row}"),
                (Err(Error::Unsupported(why)), Some(what)) => {
                    assert!(why.contains(&format!("holds {what}")), "{row}: {why}")
                }
                (typed, _) => panic!("{row}: {typed:?}"),
            }
        }
        check("review|x !`touch it`", "would not take as text");
    }

    #[test]
    fn a_command_is_run_as_whom_the_session_speaks() {
        let last = json!([{"info": {"id": "msg_1", "role": "user", "agent": "plan",
            "model": {"providerID": "p", "modelID": "m"}}, "parts": []}]);
        let (_host, posted) = serving(last, json!({}));
        let begun = OpenCode::run(&session(), &command("review|two words|it's|/init")).expect("begun");
        assert_eq!(
            (begun.stage, begun.evidence.as_deref()),
            (CommandStage::Begun, Some(r#"{"after":"msg_1","begun":1000}"#))
        );
        let expected =
            json!({"command": "review", "arguments": "\"two words\" \"it's\" /init", "agent": "plan", "model": "p/m"});
        assert_eq!(*posted.borrow(), [("/session/ses_1/command".to_owned(), expected)]);
    }

    #[track_caller]
    fn watched(messages: Value, status: Value, expected: &str) {
        let (_host, _) = serving(messages, status);
        let begun = Progress::begun(json!({"after": "msg_2", "begun": 1_000}).to_string());
        let seen = OpenCode::watch(&session(), &command("review"), begun).expect("looked");
        let told = format!("{:?} {}", seen.stage, seen.said.unwrap_or_default());
        assert_eq!(told.trim_start_matches("Stage::").trim(), expected);
    }

    #[test]
    fn it_has_ended_when_the_session_is_idle_behind_a_later_turn() {
        let turn = |id: &str, more: Value| {
            let mut info = json!({"id": id, "role": "assistant"});
            for (key, value) in more.as_object().cloned().unwrap_or_default() {
                info[key] = value;
            }
            json!({"info": info, "parts": [{"type": "text", "text": "Three remarks."}]})
        };
        watched(json!([turn("msg_3", json!({}))]), json!({"ses_1": {"type": "busy"}}), "Begun");
        watched(json!([turn("msg_1", json!({}))]), json!({}), "Begun");
        watched(json!([turn("msg_1", json!({})), turn("msg_3", json!({}))]), json!({}), "Succeeded Three remarks.");
        let error = json!({"error": {"name": "ProviderError", "data": {"message": "no model"}}});
        watched(json!([turn("msg_3", error)]), json!({}), "Failed no model");
    }
}
