//! The ways to an idle session, and what a message takes by each.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use test_support::{Client, DeliveryHistory, Host, Model, OpenCode, Script, Stage, send, wait_for};

use crate::seat::{Seat, open};

/// A way to an idle session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The connector inside OpenCode.
    Connector,
    /// `prompt_async`, from the host.
    Http,
    /// The app server that Codex's terminals share.
    AppServer,
    /// Codex's own queue, where a terminal has its app server inside.
    Queue,
    /// Claude Code's watch on its wake file.
    FileWatch,
}

/// One message and one prompt, measured one after the other.
pub(crate) struct Pair {
    /// From stored to the first model request.
    pub(crate) woken: Duration,
    /// From the prompt to the first model request, in a session that knows nothing of the mesh.
    pub(crate) prompted: Duration,
    /// From stored until a route had taken it.
    pub(crate) handed: Duration,
}

impl Route {
    /// All of them.
    pub(crate) const ALL: [Route; 5] =
        [Route::Connector, Route::Http, Route::AppServer, Route::Queue, Route::FileWatch];

    /// What it is called here.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Route::Connector => "opencode-connector",
            Route::Http => "opencode-http",
            Route::AppServer => "codex-app-server",
            Route::Queue => "codex-queue",
            Route::FileWatch => "claude-code-file-watch",
        }
    }

    /// Whose way it is.
    pub(crate) fn client(self) -> Client {
        match self {
            Route::Connector | Route::Http => Client::OpenCode,
            Route::AppServer | Route::Queue => Client::Codex,
            Route::FileWatch => Client::ClaudeCode,
        }
    }

    /// What it may take beyond the harness's own time.
    pub(crate) fn budget(self) -> Duration {
        match self {
            Route::AppServer => Duration::from_millis(10),
            Route::Connector | Route::Http => Duration::from_millis(30),
            Route::FileWatch => Duration::from_millis(700),
            Route::Queue => Duration::from_secs(1),
        }
    }

    /// The status and the route in a receipt that prove that a message came this way.
    fn proof(self) -> (&'static str, &'static str) {
        match self {
            Route::Connector => ("shown", "listen"),
            Route::Http => ("shown", "prompt_async"),
            Route::AppServer => ("shown", "app-server"),
            Route::Queue => ("notified", "queue"),
            Route::FileWatch => ("shown", "hook:FileChanged"),
        }
    }
}

/// Carries messages by one route, in turns with prompts.
///
/// # Panics
/// Where a message comes by another way, or does not come.
pub(crate) fn measure(route: Route, messages: usize, relay_mesh: &Path, disk: &Path) -> Vec<Pair> {
    let stages = [Stage::within(disk, relay_mesh), Stage::within(disk, relay_mesh)];
    let models = [Model::start(joining(route.client())), Model::start(Script::new())];
    let [meshed, bare] = &stages;
    // So many messages from one sender would count as a loop.
    meshed.configure("[loops]\nper-pair = 100000\nper-agent = 100000\n");
    route.client().install(meshed);
    let alice = open(route, meshed, &models[0]);
    alice.join("Join the mesh as alice.");
    settle(alice.as_ref(), &models[0]);
    let _host = (route == Route::Http).then(|| {
        OpenCode::disconnect(meshed);
        Host::start(meshed)
    });
    let stranger = open(route, bare, &models[1]);
    // The first of each finds nothing warm, and does not count.
    let pairs = (0..=messages).map(|number| {
        let prompted = prompted(stranger.as_ref(), &models[1], number);
        wait_for("the mesh knows that alice is idle", || is_at_rest(meshed).then_some(()));
        let (woken, handed) = woken(route, meshed, &models[0], number);
        settle(alice.as_ref(), &models[0]);
        Pair { woken, prompted, handed }
    });
    pairs.skip(1).collect()
}

fn joining(client: Client) -> Script {
    Script::new().call("Join the mesh", &client.tool("register_agent"), serde_json::json!({"name": "alice"}))
}

fn prompted(seat: &dyn Seat, model: &Model, number: usize) -> Duration {
    let words = format!("Prompt number {number}.");
    let began = seat.prompt(&words);
    let heard = model.wait_for_news(&words);
    settle(seat, model);
    since(began, heard.at)
}

fn woken(route: Route, stage: &Stage, model: &Model, number: usize) -> (Duration, Duration) {
    let words = format!("Message number {number}.");
    let id = send(stage, "alice", &words);
    let heard = model.wait_for_news(&words);
    let (status, way) = route.proof();
    let history = DeliveryHistory::up_to(stage, &id, status);
    assert_eq!(history.route(status).as_deref(), Some(way), "{words} came by another way: {history:?}");
    let stored = history.at("stored").unwrap_or_else(|| panic!("{words} was not stored: {history:?}"));
    let taken = ["notified", "accepted", "shown"].into_iter().find_map(|status| history.at(status)).unwrap_or(stored);
    (since(stored, heard.at), since(stored, taken))
}

/// Waits until the model has had the last word and the client is idle again.
fn settle(seat: &dyn Seat, model: &Model) {
    wait_for("the model has had the last word", || model.has_last_word().then_some(()));
    seat.settle();
}

/// Whether the mesh takes alice for somebody who does not work just now.
fn is_at_rest(stage: &Stage) -> bool {
    let list: Value = serde_json::from_str(&stage.relay_ok(&["agents", "--json"])).unwrap_or_default();
    list["agents"].as_array().into_iter().flatten().any(|agent| agent["name"] == "alice" && agent["presence"] != "busy")
}

/// Receipts have milliseconds, so what follows at once may seem to come before.
fn since(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or_default()
}
