//! Wakes listeners outside any harness: tries each method in order, with a timeout.

mod bring;
mod gateway;
mod reaching;
mod socket;
mod trigger_file;
pub(crate) mod unit;

use std::path::PathBuf;
use std::time::Duration;

use mesh::Wake;
use serde::Serialize;
use tokio::time::timeout;

pub(crate) use self::bring::{bring, is_taken};
pub(crate) use self::reaching::{Reaching, reach};
use crate::config::{Method, Settings};
use crate::shapes::rfc3339;

/// Default timeout of each method.
const PATIENCE: Duration = Duration::from_secs(5);

/// The wake settings, with defaults applied.
pub(crate) struct WakeSettings {
    gateway: Option<Vec<String>>,
    socket: Option<PathBuf>,
    pub(crate) file: PathBuf,
    /// Timeout of each method.
    pub(crate) timeout: Duration,
    /// The methods to try if the command line names none.
    pub(crate) order: Vec<Method>,
}

/// The result of one method.
#[derive(Debug)]
pub(crate) enum Tried {
    /// It worked, as far as the method can tell, with a detail.
    Worked(String),
    /// With the reason.
    Failed(String),
}

impl WakeSettings {
    pub(crate) fn of(settings: &Settings) -> WakeSettings {
        let wake = &settings.wake;
        let is_set = |method: &Method| match method {
            Method::Routes | Method::File => true,
            Method::Gateway => wake.gateway.is_some(),
            Method::Socket => wake.socket.is_some(),
        };
        let all = [Method::Routes, Method::Gateway, Method::Socket, Method::File];
        let order = wake.methods.clone().unwrap_or_else(|| all.into_iter().filter(is_set).collect());
        WakeSettings {
            gateway: wake.gateway.clone(),
            socket: wake.socket.clone(),
            file: wake.file.clone().unwrap_or_else(|| settings.dir.value.join("wake/trigger")),
            timeout: wake.timeout.map_or(PATIENCE, Duration::from_millis),
            order,
        }
    }

    pub(crate) async fn try_gateway(&self, wake: &Wake) -> Tried {
        match &self.gateway {
            Some(words) => self.bounded(gateway::run(words, wake)).await,
            None => unset("wake.gateway", "['openclaw', 'system', 'event', '--mode', 'now', '--text', '{text}']"),
        }
    }

    pub(crate) async fn try_socket(&self, wake: &Wake) -> Tried {
        match &self.socket {
            Some(path) => self.bounded(socket::tell(path, &line(wake))).await,
            None => unset("wake.socket", "'~/my-agent/wake.sock'"),
        }
    }

    /// `watcher` is what is known to watch the file.
    pub(crate) fn try_file(&self, wake: &Wake, watcher: Option<&str>) -> Tried {
        match trigger_file::write(&self.file, &line(wake)) {
            Ok(()) => {
                let watched = match watcher {
                    Some(watcher) => format!("{watcher} watches it, if it is enabled"),
                    None => "no watcher is known".to_owned(),
                };
                Tried::Worked(format!("wrote {}; {watched}", self.file.display()))
            }
            Err(error) => Tried::Failed(format!("{} could not be written: {error}", self.file.display())),
        }
    }

    async fn bounded(&self, trying: impl Future<Output = Result<String, String>>) -> Tried {
        match timeout(self.timeout, trying).await {
            Ok(Ok(told)) => Tried::Worked(told),
            Ok(Err(why)) => Tried::Failed(why),
            Err(_) => Tried::Failed(format!("it took more than {}", humantime::format_duration(self.timeout))),
        }
    }
}

fn unset(key: &str, example: &str) -> Tried {
    Tried::Failed(format!("`{key}` is not set; in your config.toml, as in `{}`", {
        let (table, field) = key.split_once('.').unwrap_or(("", key));
        format!("[{table}] {field} = {example}")
    }))
}

/// A wake as one line of JSON, for the socket and the trigger file.
#[derive(Serialize)]
struct WakeLine<'a> {
    id: String,
    at: String,
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    text: &'a str,
    worded: &'a str,
}

fn line(wake: &Wake) -> Vec<u8> {
    let line = WakeLine {
        id: wake.id.to_string(),
        at: rfc3339(wake.at),
        from: wake.from.as_str(),
        to: wake.to.as_ref().map(mesh::names::AgentName::as_str),
        text: &wake.text,
        worded: &wake.worded,
    };
    let mut line = serde_json::to_vec(&line).expect("text is JSON");
    line.push(b'\n');
    line
}
