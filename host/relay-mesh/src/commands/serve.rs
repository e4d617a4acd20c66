//! `relay-mesh serve`: run the server in the foreground.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp::http::{HttpSettings, Listener};
use mesh::ports::machine::Machine;
use mesh::{Served, reasons};
use tokio_util::sync::CancellationToken;

use crate::command::{CommandSpec, Threads};
use crate::commands::mcp::TOOLS;
use crate::compose::{self, Client, Open};
use crate::config::{Origin, Settings, Shared, TokenUse, Values, as_typed};
use crate::context::Context;
use crate::driven;
use crate::driven::for_clients::ClientAgents;
use crate::errors::{CommandError, StreamError};
use crate::event_hooks::Carrier;
use crate::events::{self, Socket};
use crate::exit::Exit;
use crate::own_path::own_path;
use crate::retention;
use crate::runs::for_clients::ClientRuns;
use crate::server::record::{Serves, lease};
use crate::server::{ServerError, ServerRecord, settling, token};
use crate::signals::Stop;
use crate::tool_threads::flags::ThreadFlags;
use crate::tool_threads::{Resume, ToolThreads};
use crate::unix;
use crate::watching::page;

/// How the server listens; `serve` and `up` take the same.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ServerFlags {
    /// Address and port for MCP over HTTP [$RELAY_HTTP, else 127.0.0.1:7423]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// A folder with further adapters; may be given several times [$RELAY_PLUGINS]
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Serve everyone who reaches the port, without a token
    #[arg(long)]
    pub(crate) no_token: bool,
    #[arg(long, value_name = "GROUP,…", help = TOOLS)]
    pub(crate) tools: Option<mcp::Profile>,
}

impl ServerFlags {
    /// `values`, overridden by these flags.
    pub(crate) fn over(&self, values: Values) -> Values {
        Values {
            listen: self.http,
            plugins: (!self.plugins.is_empty()).then(|| self.plugins.clone()),
            token: self.no_token.then_some(TokenUse::Off),
            tools: self.tools,
            ..values
        }
    }
}

/// Run the server here: MCP over HTTP, and delivery for every session
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh serve\n  \
    relay-mesh serve --http 127.0.0.1:8000 --plugins ./plugins\n\n\
    Ctrl-C stops it. `relay-mesh up` runs the same in the background.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) host: ServerFlags,
    #[command(flatten)]
    threads: ThreadFlags,
    /// Leave the terminal: what `up` starts
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}

impl CommandSpec for Args {
    const THREADS: Threads = Threads::Many;

    fn settings(&self, common: Values) -> Values {
        Values { threads: self.threads.values(), ..self.host.over(common) }
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if self.background {
            unix::process::begin_session();
        }
        let mut asked = Stop::listen().map_err(StreamError::Input)?;
        let open = Arc::new(compose::open(context, Client::Nobody)?);
        let dir = &context.settings.dir.value;
        // Held until this process ends, however it ends.
        let _lease = match open.store.hold(&lease()).await? {
            Some(lease) => lease,
            None => return Err(taken(context, &open)?.into()),
        };
        // By it the server also proves whose it is, whether its clients need it or not.
        let own = token::read_or_make(dir, open.machine.as_ref())?;
        let (token, token_note) = match context.settings.token.value {
            TokenUse::Required => (Some(own.clone()), format!("token: {}", token::path(dir).display())),
            TokenUse::Off => (None, "token: none is asked for".to_owned()),
        };
        let profile = self.threads.profile(context.settings.tools.value);
        let (listen, origins) = (context.settings.listen.value, context.settings.origins.value.clone());
        let settings = HttpSettings { listen, token, identity: Some(own), origins, profile, ..HttpSettings::default() };
        let listener = Listener::bind(settings).await.map_err(ServerError::from)?;
        let events = offer_events(context).await;
        let record = ServerRecord {
            process: open.machine.this_process(),
            machine: open.machine.name().to_owned(),
            listen: listener.address().to_string(),
            url: listener.url(),
            events: events.as_ref().map(|socket| socket.file().to_owned()),
            store: Some(context.settings.store_shown()),
            serves: Some(Serves::of(&context.settings)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        record.write(dir)?;
        context.printer.say(&format!("relay-mesh serves {}", record.url));
        context.printer.say(&token_note);
        context.printer.say(&format!("data: {}", dir.display()));
        if let Some(socket) = &record.events {
            context.printer.say(&format!("events: {}", socket.display()));
        }
        if let Shared::Nats(servers) = &context.settings.shared.value {
            context.printer.say(&format!("shared with other machines by {servers}"));
        }
        for folder in context.settings.plugins.value.iter().filter(|folder| !folder.is_dir()) {
            context.printer.warn(&format!("there is no folder `{}` to take adapters from", folder.display()));
        }
        context.printer.say(&next_steps(&context.settings, context.environment.get("PATH")));
        let outcome = serve(context, &open, (listener, self.threads.resume()), events, &mut asked).await;
        record.remove(dir, open.machine.as_ref())?;
        outcome?;
        context.printer.say("stopped");
        Ok(Exit::Success)
    }
}

/// What can be done in another shell, where this program may have to be found first, and the data folder named.
fn next_steps(settings: &Settings, search: Option<&str>) -> String {
    let program = own_path(search).ok();
    let is_found = |folder: &Path| std::env::split_paths(search.unwrap_or_default()).any(|found| found == folder);
    let folder = program.as_deref().and_then(Path::parent).filter(|folder| !is_found(folder));
    let dir = Some(&settings.dir).filter(|dir| dir.origin == Origin::Flags).map(|dir| &dir.value);
    let word = |path: &Path| as_typed(&[path.display().to_string()]);
    let find_it = folder.map(|folder| format!("  export PATH={}:$PATH", word(folder)));
    let use_it = dir.map(|dir| format!("  export RELAY_DIR={}", word(dir)));
    let steps = [
        "  relay-mesh harnesses            shows what is here",
        "  relay-mesh install claude-code  sets one up",
        "  relay-mesh register alice       joins from the command line",
        "  relay-mesh ui --web             shows all of it in a browser",
    ];
    let lines = ["next, in another shell:".to_owned()].into_iter().chain(find_it).chain(use_it);
    lines.chain(steps.map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

/// Serves and delivers until a signal stops it.
async fn serve(
    context: &Context,
    open: &Arc<Open>,
    (listener, resume): (Listener, Option<Resume>),
    events: Option<Socket>,
    asked: &mut Stop,
) -> Result<(), ServerError> {
    let stop = CancellationToken::new();
    let deltas = Socket::path_of_deltas(&context.settings.dir.value, &context.environment).ok();
    let telling =
        events.map(|socket| tokio::spawn(events::serve(Arc::clone(&open.mesh), socket, deltas.clone(), stop.clone())));
    let delivering = tokio::spawn(Arc::clone(&open.mesh).deliver(Served::Everyone, stop.clone()));
    let cleaning = tokio::spawn(retention::daily::keep_cleaning_up(Arc::clone(open), context.settings.clone()));
    let driving = driven::host::keep_going(context, Arc::clone(open), stop.clone());
    let settling = {
        let (context, open, stop) = (context.at(context.workdir.clone()), Arc::clone(open), stop.clone());
        tokio::spawn(async move { settling::keep_settling(&context, &open, stop).await })
    };
    let hooks = Carrier::start(context, Arc::clone(open));
    let runs = ClientRuns::new(context, Arc::clone(open));
    let threads = ToolThreads::new(context, Arc::clone(open), resume);
    let service = mcp::Service {
        mesh: Arc::clone(&open.mesh),
        runs: Some(Arc::new(runs.clone())),
        spawns: Some(Arc::new(ClientAgents::new(context, Arc::clone(open)))),
        threads: Some(Arc::new(threads.clone())),
    };
    let (pages, reading) = page::begin(context, open, stop.clone());
    let serving = listener.with_pages(pages.router()).serve(service, stop.clone());
    tokio::pin!(serving);
    tokio::pin!(driving);
    let outcome = tokio::select! {
        outcome = &mut serving => outcome,
        () = &mut driving => serving.await,
        () = asked.asked() => {
            stop.cancel();
            serving.await
        }
    };
    stop.cancel();
    if let Err(error) = settling.await {
        tracing::error!(%error, "telling of killed runs ended badly");
    }
    runs.finish().await;
    threads.finish().await;
    hooks.finish().await;
    if let Err(error) = reading.await {
        tracing::error!(%error, "reading for pages ended badly");
    }
    // What it has not deleted yet is for the next run.
    cleaning.abort();
    if let Err(error) = delivering.await {
        tracing::error!(%error, "delivery ended badly");
    }
    if let Some(telling) = telling
        && let Err(error) = telling.await
    {
        tracing::error!(%error, "telling of events ended badly");
    }
    Ok(outcome?)
}

/// The event socket. The server does everything else without it, so a failure is only a warning.
async fn offer_events(context: &Context) -> Option<Socket> {
    let bound = match Socket::path(&context.settings.dir.value, &context.environment) {
        Ok(path) => Socket::bind(&path).await,
        Err(error) => Err(error),
    };
    match bound {
        Ok(socket) => Some(socket),
        Err(error) => {
            context.printer.warn(&format!("{}\n  {}", reasons(&error), error.hint()));
            None
        }
    }
}

/// The error that names the server which holds the data folder.
fn taken(context: &Context, open: &Open) -> Result<ServerError, ServerError> {
    let dir = context.settings.dir.value.clone();
    Ok(match ServerRecord::find(&dir, open.machine.as_ref())? {
        Some(record) => ServerError::Running { dir, url: record.url, pid: record.process.pid },
        None => ServerError::Starting { dir },
    })
}
