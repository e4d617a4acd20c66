//! The page of the server: the view model of the crate `view` in a browser, live, and a way to act as the user.
//!
//! It decides nothing: lists, groups, dots and time lines are the model's. It never sees the mesh: news come from the reader
//! reads it, as they do for the terminal, and what a page asks for goes to a [`Host`]. All pages share one model, and it is
//! read only while a page is open.
//!
//! Who may use it: a browser that showed a one-time code, which only a program of this machine's user can make (see
//! [`Codes`]). docs/adr/0041 says what that holds off.

mod assets;
mod frames;
mod hub;
mod key;
mod refusal;
mod routes;
mod sessions;
mod stream;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use mesh::ports::machine::Machine;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use view::live::{Effect, News};
use view::{ThreadMessageView, ThreadView};

pub use self::hub::Watched;
pub use self::sessions::{CodeError, Codes};

use self::hub::Hub;
use self::sessions::Sessions;

/// Where the page is.
pub const PATH: &str = "/ui/";

/// What does for a page what is done outside.
#[async_trait]
pub trait Host: Send + Sync {
    /// Does it as the user, and says what came of it.
    async fn carry_out(&self, effect: Effect) -> News;
    /// A message by its id, with what became of it. None if there is none.
    ///
    /// # Errors
    ///
    /// Why the mesh cannot be read, in a sentence.
    async fn message(&self, id: &str) -> Result<Option<ThreadMessageView>, String>;
    /// A conversation by its name or the id of one of its messages: its newest `most` messages. None if there is none.
    ///
    /// # Errors
    ///
    /// Why the mesh cannot be read, in a sentence.
    async fn conversation(&self, name: &str, most: usize) -> Result<Option<ThreadView>, String>;
    /// The newest messages of the mesh, oldest first, with what became of each.
    ///
    /// # Errors
    ///
    /// Why the mesh cannot be read, in a sentence.
    async fn newest(&self) -> Result<Vec<ThreadMessageView>, String>;
}

/// The pages of a server.
#[derive(Clone)]
pub struct Pages {
    hub: Arc<Hub>,
    sessions: Arc<Sessions>,
    host: Arc<dyn Host>,
    machine: Arc<dyn Machine>,
    stop: CancellationToken,
}

impl Pages {
    /// Pages whose codes and sessions are in a folder. Their streams end with `stop`.
    pub fn new(folder: PathBuf, machine: Arc<dyn Machine>, host: Arc<dyn Host>, stop: CancellationToken) -> Pages {
        Pages {
            hub: Arc::new(Hub::new()),
            sessions: Arc::new(Sessions::new(folder, Arc::clone(&machine))),
            host,
            machine,
            stop,
        }
    }

    /// What answers under [`PATH`].
    pub fn router(&self) -> Router {
        routes::router(self.clone())
    }

    /// Shows something new.
    pub fn tell(&self, news: News) {
        self.hub.tell(news);
    }

    /// What is looked at, each time that it changes.
    pub fn watched(&self) -> watch::Receiver<Watched> {
        self.hub.watched()
    }

    /// The mesh is not read any more: what is known is forgotten, because it would grow old.
    pub fn forget(&self) {
        self.hub.forget();
    }
}
