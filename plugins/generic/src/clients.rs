//! The clients whose settings format we know.

use relay_mesh_sdk::install::{Scope, Server, Setup};
use serde_json::{Map, Value, json};

/// A client: where its settings are, and what an MCP server's entry looks like.
pub(crate) struct Client {
    pub(crate) title: &'static str,
    file: fn(Scope) -> &'static str,
    /// The property that holds the servers.
    list: &'static str,
    /// The property that holds a server's URL.
    url: &'static str,
    /// Further properties of an entry, by the kind of server.
    kind: Kind,
}

/// How an entry says its transport.
enum Kind {
    /// By which properties it has.
    Told,
    /// In `type`.
    Named,
}

/// In the order in which they are shown.
pub(crate) const CLIENTS: &[Client] = &[
    Client {
        title: "Cursor, and most clients that know `mcpServers`",
        file: |scope| match scope {
            Scope::Project => ".cursor/mcp.json in the project",
            Scope::User => "~/.cursor/mcp.json",
        },
        list: "mcpServers",
        url: "url",
        kind: Kind::Told,
    },
    Client {
        title: "VS Code",
        file: |scope| match scope {
            Scope::Project => ".vscode/mcp.json in the project",
            Scope::User => "mcp.json of your profile (MCP: Open User Configuration)",
        },
        list: "servers",
        url: "url",
        kind: Kind::Named,
    },
    Client {
        title: "Zed",
        file: |scope| match scope {
            Scope::Project => ".zed/settings.json in the project",
            Scope::User => "settings.json (zed: open settings)",
        },
        list: "context_servers",
        url: "url",
        kind: Kind::Told,
    },
    Client {
        title: "Windsurf",
        file: |_| "~/.codeium/windsurf/mcp_config.json",
        list: "mcpServers",
        url: "serverUrl",
        kind: Kind::Told,
    },
    Client {
        title: "JetBrains AI Assistant",
        file: |_| "Settings | Tools | AI Assistant | Model Context Protocol (Add, as JSON)",
        list: "mcpServers",
        url: "url",
        kind: Kind::Told,
    },
];

impl Client {
    /// The user's next step for this client: where to put what.
    pub(crate) fn step(&self, setup: &Setup) -> String {
        let snippet = json!({self.list: {setup.server_name.as_str(): self.entry(setup)}});
        format!("{}: put this into {}\n{snippet:#}", self.title, (self.file)(setup.scope))
    }

    fn entry(&self, setup: &Setup) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        match &setup.server {
            Server::Stdio(command) => {
                if matches!(self.kind, Kind::Named) {
                    put("type", json!("stdio"));
                }
                put("command", json!(command.first().map_or("relay-mesh", String::as_str)));
                put("args", json!(command.get(1..).unwrap_or_default()));
                if !setup.environment.is_empty() {
                    let variables = setup.environment.iter().map(|(name, value)| (name.clone(), json!(value)));
                    put("env", Value::Object(variables.collect()));
                }
            }
            Server::Http(url) => {
                if matches!(self.kind, Kind::Named) {
                    put("type", json!("http"));
                }
                put(self.url, json!(url));
                put("headers", json!({"Authorization": "Bearer TOKEN"}));
            }
        }
        Value::Object(entry)
    }
}
