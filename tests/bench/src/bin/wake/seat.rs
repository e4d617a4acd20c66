//! A client that a person has open, driven alike whatever it is.

use std::time::{Duration, SystemTime};

use test_support::{AppServer, ClaudeCode, Codex, Model, OpenCode, Served, Stage, Terminal, now};

use crate::route::Route;

/// After how long a key is no part of what was pasted before it.
const NOT_A_PASTE: Duration = Duration::from_millis(300);

/// An open session of a client.
pub(crate) trait Seat {
    /// Says something as the person that has the session join, and waits for the turn's end where that is
    /// how the client is spoken to.
    fn join(&self, words: &str);

    /// Says something as the person; gives when it was said.
    fn prompt(&self, words: &str) -> SystemTime;

    /// Waits until it is idle.
    fn settle(&self);
}

/// Opens a client as a route needs it.
pub(crate) fn open<'a>(route: Route, stage: &'a Stage, model: &Model) -> Box<dyn Seat + 'a> {
    match route {
        Route::Connector | Route::Http => {
            let server = OpenCode::new(stage, model).with("OPENCODE_SERVER_PASSWORD", "a password").serve();
            let session = server.session();
            Box::new(AtServer { server, session })
        }
        Route::AppServer | Route::Queue => {
            let app_server = if route == Route::Queue { AppServer::Embedded } else { AppServer::Shared };
            let client = Codex::new(stage, model).app_server(app_server);
            Box::new(AtTerminal { terminal: client.open(), at_work: "esc to interrupt", _client: Some(client) })
        }
        Route::FileWatch => {
            let terminal = ClaudeCode::new(stage, model).open();
            Box::new(AtTerminal { terminal, at_work: "esc to interrupt", _client: None })
        }
    }
}

/// A client in a terminal.
struct AtTerminal<'a> {
    /// Closes first.
    terminal: Terminal,
    /// What stands on its screen while a turn runs.
    at_work: &'static str,
    /// Ends its background process with itself.
    _client: Option<Codex<'a>>,
}

impl Seat for AtTerminal<'_> {
    fn join(&self, words: &str) {
        self.terminal.type_line(words);
    }

    fn prompt(&self, words: &str) -> SystemTime {
        self.terminal.write(words);
        self.terminal.wait_for(words);
        // An Enter right after what came at once belongs to a paste, in Codex's eyes, and begins a line.
        std::thread::sleep(NOT_A_PASTE);
        self.terminal.press("Enter");
        // Once tmux has passed the key on: what the client did before that counts for it, not against it.
        now()
    }

    fn settle(&self) {
        self.terminal.wait_until_gone(self.at_work);
    }
}

/// A session of a server.
struct AtServer {
    server: Served,
    session: String,
}

impl Seat for AtServer {
    fn join(&self, words: &str) {
        self.server.say(&self.session, "build", words);
    }

    fn prompt(&self, words: &str) -> SystemTime {
        let began = now();
        self.server.begin(&self.session, words);
        began
    }

    fn settle(&self) {
        self.server.wait_until_idle(&self.session);
    }
}
