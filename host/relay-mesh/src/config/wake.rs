//! `[wake]`: how `relay-mesh wake` reaches listeners outside any harness.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The `[wake]` values of one origin. Fields are independent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WakeValues {
    /// The methods to try, in this order; by default all that are configured.
    pub(crate) methods: Option<Vec<Method>>,
    /// A program and its arguments; `{text}`, `{from}`, `{to}` and `{id}` are filled in.
    pub(crate) gateway: Option<Vec<String>>,
    /// A Unix socket that receives one line of JSON.
    pub(crate) socket: Option<PathBuf>,
    /// The file that is written; by default `wake/trigger` in the data folder.
    pub(crate) file: Option<PathBuf>,
    /// Timeout of each method, in milliseconds.
    pub(crate) timeout: Option<u64>,
    /// The program and arguments that `wake install` runs whenever the file is written.
    pub(crate) run: Option<Vec<String>>,
}

/// A method of waking a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// The routes of the agent's harness, with a message: only for one agent
    Routes,
    /// The program of `wake.gateway`
    Gateway,
    /// The Unix socket of `wake.socket`
    Socket,
    /// The file that systemd, launchd or another watcher looks at
    File,
}

impl Method {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Method::Routes => "routes",
            Method::Gateway => "gateway",
            Method::Socket => "socket",
            Method::File => "file",
        }
    }
}

impl WakeValues {
    #[must_use]
    pub(super) fn with_paths(self, change: impl Fn(PathBuf) -> PathBuf) -> WakeValues {
        WakeValues { socket: self.socket.map(&change), file: self.file.map(&change), ..self }
    }

    /// These values, with `weaker` filling the gaps.
    #[must_use]
    pub(super) fn or(self, weaker: WakeValues) -> WakeValues {
        WakeValues {
            methods: self.methods.or(weaker.methods),
            gateway: self.gateway.or(weaker.gateway),
            socket: self.socket.or(weaker.socket),
            file: self.file.or(weaker.file),
            timeout: self.timeout.or(weaker.timeout),
            run: self.run.or(weaker.run),
        }
    }

    /// Every key that is set, with its value as shown to the user.
    pub(crate) fn listed(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Option<PathBuf>| path.as_deref().map(Path::display).map(|path| path.to_string());
        let words = |words: &Option<Vec<String>>| words.as_ref().map(|words| words.join(" "));
        let methods =
            |methods: &Vec<Method>| methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(",");
        let span = |milliseconds: u64| std::time::Duration::from_millis(milliseconds);
        let all = [
            ("wake.methods", self.methods.as_ref().map(methods)),
            ("wake.gateway", words(&self.gateway)),
            ("wake.socket", path(&self.socket)),
            ("wake.file", path(&self.file)),
            ("wake.timeout", self.timeout.map(|timeout| humantime::format_duration(span(timeout)).to_string())),
            ("wake.run", words(&self.run)),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}
