//! A scripted HTTP server with one request per connection: components cannot send more.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{FakePeer, Fault, FaultPlan, Transcript};
use crate::fixtures::{HttpAnswer, as_written};
use adapters::template::Origin;

/// The longest request that it reads, in bytes.
const LONGEST: usize = 8 << 20;

/// Listens at the origin. If the port is a blank, it takes a free one.
pub(super) async fn start(
    origin: &Origin,
    values: &[String],
    answers: &[HttpAnswer],
    faults: FaultPlan,
) -> Result<FakePeer, String> {
    let (host, port) = match origin.fill(values) {
        Ok((host, port, _)) => (host, port),
        // The port is the first blank, so the kit chooses it.
        Err(_) => {
            let filled: Vec<String> = std::iter::once("1".to_owned()).chain(values.iter().cloned()).collect();
            let (host, _, _) = origin.fill(&filled).map_err(|error| error.to_string())?;
            (host, 0)
        }
    };
    let listener =
        TcpListener::bind((host, port)).await.map_err(|error| format!("port {port} cannot be had: {error}"))?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let transcript = Transcript::default();
    let heard = transcript.heard();
    let task = match faults {
        FaultPlan::From(0, Fault::Deserted) => None,
        FaultPlan::None | FaultPlan::From(..) => {
            Some(tokio::spawn(serve(listener, answers.to_vec(), faults, transcript)))
        }
    };
    Ok(FakePeer { port: Some(port), heard, task })
}

async fn serve(listener: TcpListener, answers: Vec<HttpAnswer>, faults: FaultPlan, transcript: Transcript) {
    // Connections without an answer stay open until the peer stops.
    let mut silent = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let Some(request) = read(&mut stream).await else { continue };
        let fault = transcript.exchange(request.clone(), faults);
        let answer = match fault {
            None => worded(&request, &answers),
            Some(Fault::HangsUp | Fault::Deserted) => continue,
            Some(Fault::Silent) => {
                silent.push(stream);
                continue;
            }
            Some(Fault::Nonsense) => b"\x00\xffNONSENSE 999\r\n\r\n{\"unfinished\": [".to_vec(),
            Some(Fault::Refuses) => response(500, "{\"error\":\"the kit refuses\"}"),
        };
        // A client that left without reading shows it in its own result.
        let _gone = stream.write_all(&answer).await;
    }
}

/// Reads one request, head and body, as text.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 || bytes.len() > LONGEST {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let whole = head + length.unwrap_or(0).min(LONGEST);
    while bytes.len() < whole {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn worded(request: &str, answers: &[HttpAnswer]) -> Vec<u8> {
    match answers.iter().find(|answer| request.starts_with(&answer.asked)) {
        Some(answer) => response(answer.status, &answer.body.as_ref().map(as_written).unwrap_or_default()),
        None => response(404, "{\"error\":\"the fixture has no answer to this\"}"),
    }
}

fn response(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Kit\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
