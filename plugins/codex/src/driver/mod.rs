//! Drives agents over Codex's app server: one connection, whose program is ours alone and ends with it. Over a socket it
//! carries the threads of many agents.
//!
//! A prompt's id is its `clientUserMessageId`. The answer to `turn/start` proves little: killed right after it, Codex
//! has mostly forgotten the prompt. `item/completed` of the user's message holds the id and outlasts a kill, so that
//! alone is `shown`, and after a break `thread/turns/list` says which prompts are there.

mod act;
mod approval;
mod receive;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::BTreeMap;

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::driver::rpc::{Requests, RpcError};
use relay_mesh_sdk::optional::driver::{
    Abilities, Action, Agent, Connection, Driver, Exchange, Memory as _, Outbox, PromptStatus, StopSignal,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Codex;

/// The error code with which the server says that it is overloaded.
const OVERLOADED: i64 = -32_001;
/// How long to wait before an overloaded server is asked again, in milliseconds. The host waits longer each time.
const REST_MS: u32 = 250;

/// Its ways, by the names of the manifest.
const SHARED: &str = "shared-app-server";
const ALONE: &str = "app-server";

/// What is known of a connection.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Link {
    requests: Requests<Purpose>,
    threads: BTreeMap<String, Thread>,
}

/// What a request was for.
#[derive(Debug, Serialize, Deserialize)]
enum Purpose {
    Initialize,
    Begin,
    Resume(String),
    /// The thread, and the prompt's id.
    Prompt(String, String),
    Interrupt(String),
    /// The thread, and the prompts that nobody knows the end of.
    Account(String, Vec<String>),
    End(String),
    /// Its answer says nothing.
    Nothing,
}

/// What is known of a thread.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Thread {
    /// The turn that runs.
    turn: Option<String>,
    /// The prompts of ours of which nothing shows yet that Codex has kept them. Everything else is a user's.
    given: Vec<String>,
    /// The prompts of the running turn that a model request has held.
    shown: Vec<String>,
    /// The files of changes that were begun in this turn, by item: a request for approval names only the item.
    changes: BTreeMap<String, Vec<String>>,
}

impl Driver for Codex {
    fn connections(agent: &Agent, _: Option<&str>) -> Result<Vec<Connection>, Error> {
        let able = thread::abilities();
        let connection = |name: &str, abilities: Abilities, stop: &[u32]| -> Result<Connection, Error> {
            let launch = thread::launch(name, agent)?;
            let start = stop.iter().fold(launch, |launch, grace| launch.stop(StopSignal::Terminate, *grace));
            Ok(Connection { name: name.into(), start, abilities, proves: PromptStatus::Shown })
        };
        // At a socket it lets a running turn end first, and waits for ever for an approval; the second signal ends it.
        Ok(vec![
            connection(SHARED, able | Abilities::SHARE | Abilities::JOIN | Abilities::OUTLIVE, &[300, 2_000])?,
            connection(ALONE, able, &[2_000])?,
        ])
    }

    fn connect(_: &str) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::default(), Outbox::default());
        let greeting = json!({
            "clientInfo": {"name": "relay-mesh", "title": "relay-mesh", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": true},
        });
        link.requests.ask(&mut out, "initialize", greeting, Purpose::Initialize);
        out.exchange(&link)
    }

    fn act(memory: Option<&str>, action: Action) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::remembered(memory)?, Outbox::default());
        link.act(action, &mut out)?;
        out.exchange(&link)
    }

    fn receive(memory: Option<&str>, frames: &[String]) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::remembered(memory)?, Outbox::default());
        for frame in frames {
            link.receive(frame, &mut out);
        }
        out.exchange(&link)
    }
}

/// Why the server refused something. Overload passes; everything else stays.
fn refusal(error: &RpcError) -> Error {
    match error.code {
        OVERLOADED => Error::Busy(REST_MS),
        _ if error.message.contains("no active turn") => Error::Busy(0),
        _ if error.message.contains("thread not found") || error.message.contains("no rollout found") => {
            Error::NotFound(error.message.clone())
        }
        _ => Error::Failed(error.message.clone()),
    }
}
