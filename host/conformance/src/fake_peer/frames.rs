//! A scripted socket: lines or WebSocket messages, over a Unix socket or loopback TCP.

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{FakePeer, Fault, FaultPlan, Transcript};
use crate::fixtures::{FrameAnswer, as_written};
use crate::scratch::Stage;
use crate::unix::UnixListener;
use adapters::manifest::{Endpoint, Framing};
use adapters::template::FilledAddress;

trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

enum Listening {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// Listens at the endpoint's address. If the port is a blank, it takes a free one.
pub(super) async fn start(
    stage: &Stage<'_>,
    endpoint: &Endpoint,
    values: &[String],
    answers: &[FrameAnswer],
    faults: FaultPlan,
) -> Result<FakePeer, String> {
    let from = stage.surroundings();
    let (place, chosen) = match endpoint.address.fill(values, from) {
        Ok(place) => (place, None),
        Err(_) => {
            let filled: Vec<String> = std::iter::once("1".to_owned()).chain(values.iter().cloned()).collect();
            (endpoint.address.fill(&filled, from).map_err(|error| error.to_string())?, Some(0))
        }
    };
    let told = |error: std::io::Error| format!("the endpoint cannot be put there: {error}");
    let listening = match place {
        FilledAddress::Unix(path) => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(told)?;
            }
            Listening::Unix(UnixListener::bind(&path).map_err(told)?)
        }
        FilledAddress::Tcp(host, port) => {
            Listening::Tcp(TcpListener::bind((host, chosen.unwrap_or(port))).await.map_err(told)?)
        }
    };
    let port = match &listening {
        Listening::Unix(_) => None,
        Listening::Tcp(listener) => Some(listener.local_addr().map_err(told)?.port()),
    };
    let transcript = Transcript::default();
    let heard = transcript.heard();
    let task = match faults {
        FaultPlan::From(0, Fault::Deserted) => None,
        FaultPlan::None | FaultPlan::From(..) => {
            Some(tokio::spawn(serve(listening, endpoint.framing, answers.to_vec(), faults, transcript)))
        }
    };
    Ok(FakePeer { port, heard, task })
}

async fn serve(
    listening: Listening,
    framing: Framing,
    answers: Vec<FrameAnswer>,
    faults: FaultPlan,
    transcript: Transcript,
) {
    loop {
        let stream: Box<dyn Stream> = match &listening {
            Listening::Unix(listener) => match listener.accept().await {
                Ok((stream, _)) => Box::new(stream),
                Err(_) => return,
            },
            Listening::Tcp(listener) => match listener.accept().await {
                Ok((stream, _)) => Box::new(stream),
                Err(_) => return,
            },
        };
        // A peer that never answers takes no part in the handshake either.
        if faults == FaultPlan::From(0, Fault::Silent) {
            let _held = stream;
            std::future::pending::<()>().await;
            return;
        }
        let wire = match framing {
            Framing::Lines => Wire::Lines(Box::new(BufReader::new(stream))),
            Framing::Websocket => match tokio_tungstenite::accept_async(stream).await {
                Ok(socket) => Wire::WebSocket(Box::new(socket)),
                Err(_) => continue,
            },
        };
        converse(wire, &answers, faults, &transcript).await;
    }
}

enum Wire {
    Lines(Box<BufReader<Box<dyn Stream>>>),
    WebSocket(Box<WebSocketStream<Box<dyn Stream>>>),
}

impl Wire {
    async fn receive(&mut self) -> Option<String> {
        match self {
            Wire::Lines(stream) => {
                let mut line = String::new();
                (stream.read_line(&mut line).await.ok()? > 0).then(|| line.trim_end().to_owned())
            }
            Wire::WebSocket(socket) => loop {
                match socket.next().await?.ok()? {
                    Message::Text(text) => return Some(text.as_str().to_owned()),
                    Message::Close(_) => return None,
                    Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                }
            },
        }
    }

    /// False if the other side has gone.
    async fn send(&mut self, frame: &str) -> bool {
        match self {
            Wire::Lines(stream) => stream.write_all(format!("{frame}\n").as_bytes()).await.is_ok(),
            Wire::WebSocket(socket) => socket.send(Message::text(frame.to_owned())).await.is_ok(),
        }
    }
}

/// Answers frames until either side has gone.
async fn converse(mut wire: Wire, answers: &[FrameAnswer], faults: FaultPlan, transcript: &Transcript) {
    while let Some(came) = wire.receive().await {
        let frame: Value = serde_json::from_str(&came).unwrap_or(Value::Null);
        let says = match transcript.exchange(came, faults) {
            None => says(&frame, answers),
            Some(Fault::HangsUp | Fault::Deserted) => return,
            Some(Fault::Silent) => Vec::new(),
            Some(Fault::Nonsense) => vec!["{\"unfinished\": [".to_owned(), "[]".to_owned(), "\u{0}".to_owned()],
            Some(Fault::Refuses) => {
                let error = json!({"code": -32000, "message": "the kit refuses"});
                vec![json!({"id": frame["id"], "error": error}).to_string()]
            }
        };
        for said in says {
            if !wire.send(&said).await {
                return;
            }
        }
    }
}

fn says(frame: &Value, answers: &[FrameAnswer]) -> Vec<String> {
    let fitting = answers.iter().find(|answer| holds(frame, &answer.asked));
    let says = fitting.map(|answer| answer.says.as_slice()).unwrap_or_default();
    says.iter().map(|said| as_written(&filled(said, frame))).collect()
}

/// Whether a frame holds every field of `asked`.
fn holds(frame: &Value, asked: &Value) -> bool {
    match (frame, asked) {
        (Value::Object(frame), Value::Object(asked)) => {
            asked.iter().all(|(name, asked)| frame.get(name).is_some_and(|field| holds(field, asked)))
        }
        (frame, asked) => frame == asked,
    }
}

/// An answer in which each `"{/pointer}"` is replaced by the frame's value there.
fn filled(said: &Value, frame: &Value) -> Value {
    match said {
        Value::String(text) => match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(pointer) if pointer.starts_with('/') => frame.pointer(pointer).cloned().unwrap_or(Value::Null),
            Some(_) | None => said.clone(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, frame)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), filled(field, frame))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => said.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_fits_by_what_the_frame_holds_and_takes_its_id() {
        let answers: Vec<FrameAnswer> = serde_json::from_value(json!([
            {"asked": {"method": "read", "params": {"id": "s1"}}, "says": [{"id": "{/id}", "result": {"of": "{/params/id}"}}]},
            {"asked": {"method": "read"}, "says": []},
        ]))
        .expect("answers");
        let check = |frame: Value, expected: &[&str]| assert_eq!(says(&frame, &answers), expected, "{frame}");
        check(
            json!({"id": 7, "method": "read", "params": {"id": "s1", "more": 1}}),
            &[r#"{"id":7,"result":{"of":"s1"}}"#],
        );
        check(json!({"id": 7, "method": "read", "params": {"id": "s2"}}), &[]);
        check(json!({"id": 7, "method": "write"}), &[]);
    }
}
