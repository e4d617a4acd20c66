//! Sets OpenCode up for the mesh, removes the setup, and checks it.
//!
//! Both scopes have the same parts: our server's entry in a settings file, the connector among the plugins, and a
//! file beside them for this machine only, so the others can be committed.

mod check;
mod settings;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Server, Setup};
use relay_mesh_sdk::plan::{Draft, Owned};
use relay_mesh_sdk::{Error, Install, programs};
use serde_json::{Map, Value, json};

use crate::OpenCode;

/// The code that OpenCode loads.
const CONNECTOR: &str = include_str!("../../assets/connector.ts");

/// The roots and paths of one scope's files.
pub(super) struct ScopeFiles {
    /// The root's manifest name.
    pub(super) root: &'static str,
    /// Settings files, in the order in which OpenCode reads them: a later file overrides an earlier one.
    pub(super) settings: &'static [&'static str],
    /// The settings file that we create if there is none.
    pub(super) fresh: &'static str,
    pub(super) connector: &'static str,
    /// The file for this machine only.
    pub(super) local: &'static str,
}

impl ScopeFiles {
    pub(super) fn of(scope: Scope) -> &'static ScopeFiles {
        match scope {
            Scope::Project => &PROJECT,
            Scope::User => &USER,
        }
    }
}

const PROJECT: ScopeFiles = ScopeFiles {
    root: "project",
    settings: &["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"],
    fresh: "opencode.json",
    connector: ".opencode/plugins/relay-mesh.ts",
    local: ".opencode/relay-mesh.local.json",
};

const USER: ScopeFiles = ScopeFiles {
    root: "config",
    settings: &["config.json", "opencode.json", "opencode.jsonc"],
    fresh: "opencode.json",
    connector: "plugins/relay-mesh.ts",
    local: "relay-mesh.local.json",
};

impl Install for OpenCode {
    fn present() -> Result<Option<String>, Error> {
        programs::version("opencode-version")
    }

    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let place = ScopeFiles::of(setup.scope);
        let root = Root::open(place.root)?;
        let asks = settings::asks_before_our_tools(setup)?;
        let file = settings::file_to_edit(&root, place, &setup.server_name)?;
        draft.jsonc(&root, file, |document| settings::put(document, setup, &asks))?;
        draft.own_or_tell(&root, place.connector, &connector(setup))?;
        if draft.replace(&root, place.local, Some(local(setup)), is_local)? == Owned::Theirs {
            return Err(Error::Failed(format!("{} was not written by relay-mesh; move it first", place.local)));
        }
        if draft.changes_nothing() {
            return Ok(());
        }
        draft.next_step("Start OpenCode again: a running one has neither the server nor the connector.");
        if let settings::AskRule::Everything(file) = &asks {
            draft.next_step(format!(
                "OpenCode asks before each tool of the mesh, because `permission` in {file} is one word for all tools. \
                 Write it as {{ \"*\": …, \"{}_*\": \"allow\" }} to be asked only for the others.",
                setup.server_name
            ));
        }
        if let Server::Http(_) = setup.server {
            draft.next_step(
                "Keep `relay-mesh serve` running: OpenCode connects to it when it starts. The connector finds the \
                 token of a server on this machine; for another one, set RELAY_MESH_TOKEN before you start OpenCode.",
            );
        }
        if setup.scope == Scope::Project && !ignores_local(&root)? {
            draft.next_step(format!(
                "Keep {} out of version control: it holds paths of this machine. The other files may be committed.",
                place.local
            ));
        }
        Ok(())
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let place = ScopeFiles::of(setup.scope);
        let root = Root::open(place.root)?;
        for file in place.settings {
            draft.prune(&root, file, |document| settings::take(document, &setup.server_name))?;
        }
        draft.disown_or_tell(&root, place.connector)?;
        // Another program's file of this name stays.
        let _: Owned = draft.replace(&root, place.local, None, is_local)?;
        if !draft.changes_nothing() {
            draft.next_step("A running OpenCode keeps its connection to the mesh until it ends.");
        }
        Ok(())
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        check::check(setup)
    }
}

/// The connector, for a server of that name.
pub(super) fn connector(setup: &Setup) -> String {
    CONNECTOR.replacen("const SERVER = \"relay-mesh\"", &format!("const SERVER = {}", json!(setup.server_name)), 1)
}

/// What the connector must know about this machine: how to start relay-mesh, and for which data folder.
pub(super) fn local(setup: &Setup) -> String {
    let environment: Map<String, Value> =
        setup.environment.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    format!("{:#}\n", json!({"program": setup.program, "environment": environment}))
}

/// Whether [`local`] wrote a file, for this install or an older one.
pub(super) fn is_local(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value["program"].is_array())
}

/// Whether the project's own ignore file names our local file.
fn ignores_local(root: &Root) -> Result<bool, Error> {
    let ignored = root.read_text(".gitignore")?.unwrap_or_default();
    Ok(ignored.lines().any(|line| {
        line.contains("relay-mesh.local.json") || matches!(line.trim(), ".opencode" | ".opencode/" | "/.opencode/")
    }))
}
