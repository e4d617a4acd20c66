//! Checks that Gemini CLI is set up for the mesh, by the rules by which Gemini CLI reads its settings.

use relay_mesh_sdk::checklist::{Checklist, texts};
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::{Error, hook_groups, servers};
use serde_json::Value;

use super::entries::{self, is_our_handler};
use super::{SERVERS, ScopeFiles};

const AGAIN: &str = "run `relay-mesh install gemini-cli` again";

/// Checks every file that has an effect on us.
pub(super) fn check(setup: &Setup, place: &ScopeFiles) -> Result<Vec<Finding>, Error> {
    let mut list = Checklist::default();
    let name = setup.server_name.as_str();
    let settings = list.read(&place.root, place.settings, "Gemini CLI")?;
    let settings = settings.map(|(_, value)| value);
    list.server(settings.as_ref(), place.settings, (SERVERS, name), &entries::server(setup), AGAIN);
    let wanted = entries::groups(setup);
    hook_groups::check(&mut list, place.settings, settings.as_ref(), &wanted, is_our_handler, AGAIN);
    for (root, path) in [("config", "settings.json"), ("project", ".gemini/settings.json")] {
        if let Some(settings) = settings_in(root, path)? {
            objections(&mut list, &settings, path, name);
        }
    }
    if setup.scope == Scope::Project {
        let own = settings_in("config", "settings.json")?;
        if !servers::aliases(own.as_ref(), SERVERS, "").is_empty() {
            list.warn(
                "relay-mesh is also installed for every project of this user, so hooks run twice here",
                "run `relay-mesh uninstall gemini-cli` in this project, or with --user for every project",
            );
        }
    }
    Ok(list.finish())
}

/// A settings file; none if it or its folder does not exist, or if it does not parse. The file of this scope has
/// been read and reported already.
fn settings_in(root: &str, path: &str) -> Result<Option<Value>, Error> {
    let root = match Root::open(root) {
        Ok(root) => root,
        Err(Error::NotFound(_) | Error::Denied(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(root.read_text(path)?.and_then(|text| Document::parse(Some(&text)).ok()?.get(&[])))
}

/// Checks for settings that disable us.
fn objections(list: &mut Checklist, settings: &Value, path: &str, name: &str) {
    if settings.pointer("/hooksConfig/enabled") == Some(&Value::Bool(false)) {
        list.broken(format!("{path} turns all hooks off"), "take `hooksConfig.enabled` out of it");
    }
    let disabled = texts(Some(settings), "/hooksConfig/disabled");
    if disabled.iter().any(|hook| *hook == "relay-mesh" || hook.contains(" hook gemini-cli ")) {
        list.broken(format!("{path} disables our hooks"), "run `/hooks enable relay-mesh` in Gemini CLI");
    }
    if texts(Some(settings), "/mcp/excluded").contains(&name) {
        list.broken(format!("{path} excludes the server `{name}`"), "take it out of `mcp.excluded`");
    }
    let allowed = texts(Some(settings), "/mcp/allowed");
    if !allowed.is_empty() && !allowed.contains(&name) {
        list.broken(format!("{path} allows other servers alone"), format!("add `{name}` to `mcp.allowed`"));
    }
}
