//! The plugin of a marketplace, which users add by Codex's own commands. `make dist` makes it from what an install
//! writes (packaging/bundles.py), so each of the two does what the other does.

use relay_mesh_sdk::checklist::Checklist;
use relay_mesh_sdk::edit::toml::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Scope, Setup};
use relay_mesh_sdk::{Error, programs};

use super::entries::{HARNESS, is_ours};

/// The plugin's name; its marketplace follows it.
const PLUGIN: &str = "relay-mesh@";
/// Where its hooks are in the plugin. Codex stores the user's trust under the plugin and this path.
const HOOKS_FILE: &str = "hooks/hooks.json";

/// The plugin, if it is installed and switched on.
pub(super) struct Plugin {
    /// `relay-mesh@MARKETPLACE`.
    id: String,
}

/// Looks for the plugin in the user's settings, the only ones in which Codex has plugins.
pub(super) fn plugin() -> Result<Option<Plugin>, Error> {
    let text = Root::open("config")?.read_text("config.toml")?;
    // A file that does not parse is another finding.
    let Ok(config) = Document::parse(text.as_deref()) else { return Ok(None) };
    let is_on = |id: &String| config.get(&["plugins", id, "enabled"]).and_then(|on| on.as_bool()) != Some(false);
    let ours = config.keys(&["plugins"]).into_iter().filter(|id| id.starts_with(PLUGIN));
    Ok(ours.map(|id| id.to_owned()).find(is_on).map(|id| Plugin { id }))
}

/// The plugin, if it takes the place of an install for the user: nothing of ours is in the files that one writes.
pub(super) fn in_place_of_install(setup: &Setup) -> Result<Option<Plugin>, Error> {
    let root = Root::open("config")?;
    let config = root.read_text("config.toml")?;
    let has_server = Document::parse(config.as_deref()).is_ok_and(|config| is_ours(&config, &setup.server_name));
    let hooks = root.read_text("hooks.json")?.unwrap_or_default();
    let has_hooks = hooks.contains(&format!(" hook {HARNESS} ")) && hooks.contains("relay-mesh");
    if setup.scope == Scope::Project || has_server || has_hooks { Ok(None) } else { plugin() }
}

impl Plugin {
    /// Said in place of an install for the user, which would do the same a second time.
    pub(super) fn instead(&self) -> String {
        format!(
            "Codex has relay-mesh as the plugin `{0}`, which brings hooks, server and skill, so nothing is to be set up \
             for the user. To set it up by `relay-mesh install` in its place, first run: codex plugin remove {0}",
            self.id
        )
    }

    /// Said beside an install.
    pub(super) fn beside(&self) -> String {
        format!(
            "Codex has relay-mesh as the plugin `{0}` too, so each hook starts twice. Nothing is lost or shown twice, but keep \
             one of them: `codex plugin remove {0}` removes the plugin.",
            self.id
        )
    }

    /// Said when there is nothing for an uninstall to remove.
    pub(super) fn stays(&self) -> String {
        format!("Codex has relay-mesh as the plugin `{0}`, which it removes itself: codex plugin remove {0}", self.id)
    }

    /// Warns that both are there.
    pub(super) fn warn_of_both(&self, list: &mut Checklist, scope: Scope) {
        let uninstall = match scope {
            Scope::Project => "`relay-mesh uninstall codex` in this project",
            Scope::User => "`relay-mesh uninstall codex --user`",
        };
        let id = &self.id;
        list.warn(
            format!("relay-mesh is also the plugin `{id}`, so each hook starts twice here"),
            format!("run `codex plugin remove {id}`, or {uninstall}"),
        );
    }

    /// Checks the plugin where nothing else is set up for the user.
    pub(super) fn check(&self, list: &mut Checklist, config: Option<&Document>) {
        let id = &self.id;
        list.ok(format!("relay-mesh is the plugin `{id}`; `codex plugin remove {id}` removes it"));
        if matches!(programs::find("relay-mesh"), Ok(None) | Err(Error::NotFound(_))) {
            list.warn("`relay-mesh` is not on your PATH, and the plugin runs it by its name", "put it there");
        }
        let trusted = config.map(|config| config.keys(&["hooks", "state"])).unwrap_or_default();
        let of_plugin = format!("{id}:{HOOKS_FILE}:");
        if !trusted.iter().any(|key| key.starts_with(&of_plugin)) {
            list.warn(
                format!("Codex does not run the hooks of the plugin `{id}`: you have not trusted them yet"),
                "start Codex in a terminal and trust the hooks of relay-mesh when it says that hooks need review",
            );
        }
    }
}
