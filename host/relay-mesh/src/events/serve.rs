//! The followers of one server: each has a task of its own, and none can harm another or the server.

use std::sync::Arc;
use std::time::Duration;

use mesh::Mesh;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::follow::{Followed, follow};
use super::outlet::{Cut, Outlet};
use super::socket::Socket;
use super::words::{Cursor, Said, Subscription};
use crate::line_reader::{Line, Lines};

/// How many may follow at once. Each costs a file handle, and the server needs some for itself.
const MOST_FOLLOWERS: usize = 256;
/// How long one may take to say what it wants to follow, and to read a line.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest line in.
const LONGEST_LINE: usize = 16 * 1024;
/// How many lines may be wrong before one that is right.
const MOST_MISTAKES: usize = 16;
/// How long nobody is let in after the system could not.
const AFTER_A_FAULT: Duration = Duration::from_millis(200);

/// Serves followers until it is told to stop. Whatever one of them does ends at most that one.
pub(crate) async fn serve(mesh: Arc<Mesh>, socket: Socket, stop: CancellationToken) {
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
            // Another user's process: nothing is said to it.
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, "a follower of events could not be let in");
                sleep(AFTER_A_FAULT).await;
                continue;
            }
        };
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => {
                let mesh = Arc::clone(&mesh);
                followers.spawn(async move {
                    serve_one(&mesh, stream).await;
                    drop(place);
                });
            }
            Err(_) => turn_away(&stream),
        }
    }
    followers.shutdown().await;
}

/// Says that there is no room. The line fits into the system's buffer, so nobody is waited for.
fn turn_away(stream: &UnixStream) {
    let why = format!("{MOST_FOLLOWERS} follow already; end one of them, or use `relay-mesh events`");
    let mut line = serde_json::to_vec(&Said::cut(why, None)).unwrap_or_default();
    line.push(b'\n');
    if let Err(error) = stream.try_write(&line) {
        tracing::debug!(%error, "a follower was turned away without a word");
    }
}

async fn serve_one(mesh: &Mesh, stream: UnixStream) {
    let (reader, writer) = stream.into_split();
    let mut lines = Lines::of(Some(reader), LONGEST_LINE);
    let mut outlet = Outlet::new(writer, PATIENCE);
    let mut cursor: Option<Cursor> = None;
    let asked = timeout(PATIENCE, asked(mesh, &mut lines, &mut outlet)).await;
    let followed = match asked {
        Ok(Ok(subscription)) => follow(mesh, &subscription, &mut cursor, &mut lines, &mut outlet).await,
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

/// What a new follower wants, whatever nonsense it says before.
async fn asked(
    mesh: &Mesh,
    lines: &mut Lines<OwnedReadHalf>,
    outlet: &mut Outlet<OwnedWriteHalf>,
) -> Result<Subscription, Cut> {
    for _ in 0..MOST_MISTAKES {
        let wrong = match lines.next().await.map_err(Cut::Gone)? {
            Line::End => return Err(Cut::Nonsense("nothing was subscribed to")),
            Line::TooLong => "a line is longer than is taken; it was passed over".to_owned(),
            Line::Text(text) => match text.parse::<Subscription>() {
                Err(unwanted) => unwanted.to_string(),
                Ok(subscription) => match subscription.check(mesh).await {
                    Ok(()) => return Ok(subscription),
                    Err(error) => error.to_string(),
                },
            },
        };
        outlet.say(&Said::error(wrong)).await?;
    }
    Err(Cut::Nonsense("too many lines were not understood"))
}
