//! The followers of one server: each has its own task, and none can harm another or the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mesh::Mesh;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::cursor::Cursor;
use super::follow::{Followed, follow};
use super::outlet::{Cut, Outlet};
use super::socket::Socket;
use super::socket_lines::{EventLine, Subscription};
use crate::line_reader::{Lines, NextLine};
use crate::unix::{OwnedReadHalf, OwnedWriteHalf, UnixStream};

/// The most followers at once. Each costs a file handle, and the server needs some itself.
const MOST_FOLLOWERS: usize = 256;
/// Timeout for a follower's subscription, and for its reading of a line.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest line from a follower, in bytes.
const LONGEST_LINE: usize = 16 * 1024;
/// Wrong lines before a valid subscription.
const MOST_MISTAKES: usize = 16;
/// Pause after a failed `accept`.
const AFTER_A_FAULT: Duration = Duration::from_millis(200);

/// Serves followers until `stop`. A faulty follower ends only its own connection.
pub(crate) async fn serve(mesh: Arc<Mesh>, socket: Socket, deltas: Option<PathBuf>, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(MOST_FOLLOWERS));
    let mut followers: JoinSet<()> = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = followers.join_next(), if !followers.is_empty() => continue,
            accepted = socket.accept() => accepted,
        };
        let stream = match accepted {
            Ok(Some(stream)) => stream,
            // Another user's process gets no answer.
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, "a follower of events could not be let in");
                sleep(AFTER_A_FAULT).await;
                continue;
            }
        };
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => {
                let (mesh, deltas) = (Arc::clone(&mesh), deltas.clone());
                followers.spawn(async move {
                    serve_one(&mesh, deltas.as_deref(), stream).await;
                    drop(place);
                });
            }
            Err(_) => turn_away(&stream),
        }
    }
    followers.shutdown().await;
}

/// Reports that the server is full. The line fits into the system's buffer, so this does not block.
fn turn_away(stream: &UnixStream) {
    let why = format!("{MOST_FOLLOWERS} follow already; end one of them, or use `relay-mesh events`");
    let mut line = serde_json::to_vec(&EventLine::cut(why, None)).unwrap_or_default();
    line.push(b'\n');
    if let Err(error) = stream.try_write(&line) {
        tracing::debug!(%error, "a follower was turned away without a word");
    }
}

async fn serve_one(mesh: &Mesh, deltas: Option<&Path>, stream: UnixStream) {
    let (reader, writer) = stream.into_split();
    let mut lines = Lines::of(Some(reader), LONGEST_LINE);
    let mut outlet = Outlet::new(writer, PATIENCE);
    let mut cursor: Option<Cursor> = None;
    let asked = timeout(PATIENCE, asked(mesh, &mut lines, &mut outlet)).await;
    let followed = match asked {
        Ok(Ok(subscription)) => follow(mesh, deltas, &subscription, &mut cursor, &mut lines, &mut outlet).await,
        Ok(Err(cut)) => Followed::Cut(cut),
        Err(_) => Followed::Cut(Cut::Nonsense("nothing was subscribed to in time")),
    };
    match followed {
        Followed::Cut(cut) => outlet.close(&cut, cursor).await,
        Followed::Store(error) => {
            tracing::warn!(%error, "a follower of events is cut, because the store failed");
            outlet.close(&Cut::Nonsense("the store could not be read; the server's log says why"), cursor).await;
        }
    }
}

/// Reads a new follower's subscription, skipping a few invalid lines before it.
async fn asked(
    mesh: &Mesh,
    lines: &mut Lines<OwnedReadHalf>,
    outlet: &mut Outlet<OwnedWriteHalf>,
) -> Result<Subscription, Cut> {
    for _ in 0..MOST_MISTAKES {
        let wrong = match lines.next().await.map_err(Cut::Gone)? {
            NextLine::End => return Err(Cut::Nonsense("nothing was subscribed to")),
            NextLine::TooLong => "a line is longer than is taken; it was passed over".to_owned(),
            NextLine::Text(text) => match text.parse::<Subscription>() {
                Err(unwanted) => unwanted.to_string(),
                Ok(subscription) => match subscription.check(mesh).await {
                    Ok(()) => return Ok(subscription),
                    Err(error) => error.to_string(),
                },
            },
        };
        outlet.say(&EventLine::error(wrong)).await?;
    }
    Err(Cut::Nonsense("too many lines were not understood"))
}
