//! The plugin of a marketplace, which users add by Claude Code's own commands. `make dist` makes it from what an install
//! writes (packaging/bundles.py), so each of the two does what the other does.

use relay_mesh_sdk::checklist::{Checklist, texts};
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Scope, Setup};
use relay_mesh_sdk::{Error, programs};
use serde_json::Value;

use super::switches::{self, Source};
use super::user::{self, PLUGIN};

/// What Claude Code has installed from marketplaces.
const INSTALLED: &str = "plugins/installed_plugins.json";
/// The marketplace of folders that Claude Code loads by itself: that is where our own install puts a plugin.
const OWN_FOLDER: &str = "skills-dir";

/// The plugin, if it is installed and switched on.
pub(super) struct Plugin {
    /// `relay-mesh@MARKETPLACE`.
    id: String,
    /// The settings file that switches it on.
    file: String,
}

/// Looks for the plugin as Claude Code does: of the settings files that name it, the first one decides.
pub(super) fn plugin() -> Result<Option<Plugin>, Error> {
    let installed = switches::read(&Root::open("config")?, INSTALLED)?;
    let installed = installed.as_ref().and_then(|list| list.get("plugins")?.as_object());
    let sources = switches::sources()?;
    let (managed, others): (Vec<_>, Vec<_>) = sources.iter().partition(|source| source.is_managed);
    // Users' own files come before those that hold for more people.
    let in_order: Vec<&Source> = managed.into_iter().chain(others.into_iter().rev()).collect();
    let ours =
        |id: &str| id.strip_prefix(PLUGIN).and_then(|rest| rest.strip_prefix('@')).is_some_and(|of| of != OWN_FOLDER);
    let on = |id: &String| {
        let says = |source: &&&Source| source.value.pointer("/enabledPlugins").and_then(|all| all.get(id)).is_some();
        let source = in_order.iter().find(says)?;
        let is_on = source.value["enabledPlugins"][id.as_str()] == Value::Bool(true);
        is_on.then(|| Plugin { id: id.clone(), file: source.file.clone() })
    };
    Ok(installed.into_iter().flat_map(|list| list.keys()).filter(|id| ours(id)).find_map(on))
}

impl Plugin {
    /// Said in place of an install for the user, which would do the same a second time.
    pub(super) fn instead(&self) -> String {
        format!(
            "Claude Code has relay-mesh as the plugin `{0}`, which brings hooks, server and skill, so nothing is to be \
             set up for the user. To set it up by `relay-mesh install` in its place, first run: claude plugin uninstall {0}",
            self.id
        )
    }

    /// Said beside an install.
    pub(super) fn beside(&self) -> String {
        format!(
            "Claude Code has relay-mesh as the plugin `{0}` too, so each hook starts twice, and its tools may be there under two \
             names. Nothing is lost or shown twice, but keep one of them: `claude plugin uninstall {0}` removes the plugin.",
            self.id
        )
    }

    /// Said when there is nothing for an uninstall to remove.
    pub(super) fn stays(&self) -> String {
        format!(
            "Claude Code has relay-mesh as the plugin `{0}`, which it removes itself: claude plugin uninstall {0}",
            self.id
        )
    }

    /// Warns that both are there.
    pub(super) fn warn_of_both(&self, list: &mut Checklist, scope: Scope) {
        let uninstall = match scope {
            Scope::Project => "`relay-mesh uninstall claude-code` in this project",
            Scope::User => "`relay-mesh uninstall claude-code --user`",
        };
        let Plugin { id, file } = self;
        list.warn(
            format!("relay-mesh is also the plugin `{id}`, which {file} switches on, so each hook starts twice here"),
            format!("run `claude plugin uninstall {id}`, or {uninstall}"),
        );
    }

    /// Checks the plugin where nothing else is set up for the user.
    pub(super) fn check(&self, setup: &Setup) -> Result<Checklist, Error> {
        let mut list = Checklist::default();
        let Plugin { id, file } = self;
        list.ok(format!(
            "relay-mesh is the plugin `{id}`, which {file} switches on; `claude plugin uninstall {id}` removes it"
        ));
        if matches!(programs::find("relay-mesh"), Ok(None) | Err(Error::NotFound(_))) {
            let program = setup.program.first().map_or("relay-mesh", String::as_str);
            list.warn(
                "`relay-mesh` is not on your PATH, and the plugin runs it by its name",
                format!(
                    "put it there, or say where it is before you start Claude Code: export RELAY_MESH_BIN=\"{program}\""
                ),
            );
        }
        let permission = user::permission(&setup.server_name);
        let allows = |source: &Source| texts(Some(&source.value), "/permissions/allow").contains(&permission.as_str());
        if !switches::sources()?.iter().any(allows) {
            list.warn(
                format!("Claude Code asks before each tool of the mesh: no settings allow `{permission}`"),
                format!("when it asks, tell it not to ask again, or add `{permission}` to `permissions.allow` in settings.json"),
            );
        }
        switches::check(&mut list, setup, &permission, true)?;
        Ok(list)
    }
}

/// The plugin, if it takes the place of an install for the user: nothing of ours is in the folders that one writes.
pub(super) fn in_place_of_install(root: &Root) -> Result<Option<Plugin>, Error> {
    match root.read_text(user::MANIFEST)?.is_some_and(|text| user::is_our_manifest(&text)) {
        true => Ok(None),
        false => plugin(),
    }
}
