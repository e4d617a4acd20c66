//! Requests to an OpenCode server on this machine.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::http::{self, Request, Response};
use serde_json::Value;

use crate::payload::Server;

/// How long to wait before asking a server again that has failed.
const TROUBLE_MS: u32 = 2_000;

pub(crate) fn get(server: &Server, path: &str, directory: &str) -> Result<Value, Error> {
    send(server, Request::new("opencode", "GET", with_directory(path, directory)))
}

pub(crate) fn post(server: &Server, path: &str, directory: &str, body: &Value) -> Result<Value, Error> {
    send(server, Request::new("opencode", "POST", with_directory(path, directory)).json(body.to_string()))
}

/// OpenCode's health report; null if another program listens there. `not-found` if none does.
pub(crate) fn health(server: &Server) -> Result<Value, Error> {
    let answer = exchange(server, Request::new("opencode", "GET", "/global/health".to_owned()))?;
    if answer.status == 404 { Ok(Value::Null) } else { body(server.port, &answer) }
}

/// The answer's body; null if it has none.
fn send(server: &Server, request: Request) -> Result<Value, Error> {
    body(server.port, &exchange(server, request)?)
}

fn exchange(server: &Server, request: Request) -> Result<Response, Error> {
    http::send(request.value(server.port.to_string()).header("accept", "application/json"))
}

fn body(port: u16, answer: &Response) -> Result<Value, Error> {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    match answer.status {
        200..=299 if text.trim().is_empty() => Ok(Value::Null),
        200..=299 => serde_json::from_str(&text).map_err(|_| {
            Error::Failed(format!("the program on port {port} is not OpenCode: it did not answer with JSON"))
        }),
        401 | 403 => Err(Error::Failed(format!("the OpenCode on port {port} refuses the password"))),
        404 => Err(Error::NotFound(format!("the OpenCode on port {port} does not have it"))),
        429 | 502..=504 => Err(Error::Busy(TROUBLE_MS)),
        status => Err(Error::Failed(format!("the OpenCode on port {port} answered {status}: {}", first_words(&text)))),
    }
}

/// OpenCode keeps its sessions per folder and uses its start folder unless this names one.
fn with_directory(path: &str, directory: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    match directory.is_empty() {
        true => path.to_owned(),
        false => format!("{path}{joint}directory={}", encoded(directory)),
    }
}

/// Percent-encodes everything that a query may not contain as it is.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

fn first_words(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(120).collect()
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::Fakes;

    use super::*;

    #[test]
    fn a_request_names_its_folder() {
        let _host = Fakes::default()
            .origin("opencode", |request| {
                let told = format!("\"{} {}\"", request.path, request.values.join(","));
                Response { status: 200, headers: Vec::new(), body: told.into_bytes() }
            })
            .start();
        let told = get(&Server { port: 4096 }, "/session/ses_1?limit=2", "/home/u/my app").expect("answered");
        assert_eq!(told, "/session/ses_1?limit=2&directory=/home/u/my%20app 4096");
    }

    #[track_caller]
    fn check(status: u16, body: &str, expected: &str) {
        let body = body.to_owned();
        let _host = Fakes::default()
            .origin("opencode", move |_| Response { status, headers: Vec::new(), body: body.clone().into_bytes() })
            .start();
        let outcome = format!("{:?}", get(&Server { port: 4096 }, "/session", "/w"));
        assert!(outcome.contains(expected), "{status}: {outcome}");
    }

    #[test]
    fn each_answer_says_what_can_be_done_about_it() {
        check(204, "", "Ok(Null)");
        check(200, "<html>", "is not OpenCode");
        check(401, "", "refuses the password");
        check(404, "{}", "NotFound");
        check(503, "", "Busy(2000)");
        check(500, "{\"name\":\"UnknownError\"}", "answered 500");
    }
}
