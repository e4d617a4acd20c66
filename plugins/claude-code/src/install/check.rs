//! Checks that Claude Code is set up for the mesh, by the rules by which Claude Code reads its settings.

use relay_mesh_sdk::checklist::{Checklist, texts};
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::{Error, hook_groups, servers};
use serde_json::Value;

use super::entries::{self, is_our_handler};
use super::settings::{self, has_our_server};
use super::{marketplace, project, switches, user};

pub(super) const AGAIN: &str = "run `relay-mesh install claude-code` again";

/// The roots and paths of one scope's files.
struct ScopeFiles {
    root: Root,
    /// The folder of `hooks` and `settings`.
    settings_root: Root,
    servers: &'static str,
    hooks: &'static str,
    settings: &'static str,
    server: Value,
    permission: String,
}

/// Checks every file that has an effect on us.
pub(super) fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
    if setup.scope == Scope::User
        && let Some(plugin) = marketplace::in_place_of_install(&Root::open("config")?)?
    {
        let mut found = Findings { list: plugin.check(setup)? };
        found.by_hand()?;
        return Ok(found.list.finish());
    }
    let name = setup.server_name.as_str();
    let place = match setup.scope {
        Scope::Project => ScopeFiles {
            root: Root::open("project")?,
            settings_root: local_settings()?,
            servers: project::SERVERS,
            hooks: project::LOCAL_SETTINGS,
            settings: project::LOCAL_SETTINGS,
            server: entries::committed_server(setup),
            permission: project::permission(name),
        },
        Scope::User => ScopeFiles {
            root: Root::open("config")?,
            settings_root: Root::open("config")?,
            servers: user::SERVERS,
            hooks: user::HOOKS_FILE,
            settings: user::SETTINGS,
            server: entries::personal_server(setup),
            permission: user::permission(name),
        },
    };
    let mut found = Findings::default();
    let servers = found.read(&place.root, place.servers)?;
    let hooks = found.read(&place.settings_root, place.hooks)?;
    let settings =
        if place.settings == place.hooks { hooks.clone() } else { found.read(&place.settings_root, place.settings)? };

    found.list.server(servers.as_ref(), place.servers, ("mcpServers", name), &place.server, AGAIN);
    found.hooks(hooks.as_ref(), &place, setup);
    if settings::has_our_hooks(hooks.as_ref()) || has_our_server(servers.as_ref(), name) {
        found.folder(settings.as_ref(), &place, setup);
    }
    let allowed = texts(settings.as_ref(), "/permissions/allow");
    if !allowed.contains(&place.permission.as_str()) {
        found.list.warn(
            format!(
                "Claude Code asks before each tool of the mesh: `{}` is not allowed in {}",
                place.permission, place.settings
            ),
            AGAIN,
        );
    }
    switches::check(&mut found.list, setup, &place.permission, false)?;
    found.duplicates(setup)?;
    Ok(found.list.finish())
}

/// The folder whose local settings set us up. Claude Code reads those of the folder in which it runs and, in the whole
/// repository and all its worktrees, those of the main worktree.
fn local_settings() -> Result<Root, Error> {
    let project = Root::open("project")?;
    if has_our_hooks(&project)? {
        return Ok(project);
    }
    Ok(match switches::opened("main-worktree")? {
        Some(main) if has_our_hooks(&main)? => main,
        Some(_) | None => project,
    })
}

fn has_our_hooks(root: &Root) -> Result<bool, Error> {
    Ok(settings::has_our_hooks(switches::read(root, project::LOCAL_SETTINGS)?.as_ref()))
}

#[derive(Default)]
struct Findings {
    list: Checklist,
}

impl Findings {
    /// A file's value; none if it does not exist or does not parse, which is then a finding. Our edits keep
    /// comments and trailing commas, but Claude Code 2.1.329 ignores a whole file that has any.
    fn read(&mut self, root: &Root, path: &str) -> Result<Option<Value>, Error> {
        self.list.read_plain(root, path, "Claude Code")
    }

    fn hooks(&mut self, settings: Option<&Value>, place: &ScopeFiles, setup: &Setup) {
        hook_groups::check(&mut self.list, place.hooks, settings, &entries::groups(setup), is_our_handler, AGAIN);
    }

    /// The folder that the settings name decides in which mesh the agents are.
    fn folder(&mut self, settings: Option<&Value>, place: &ScopeFiles, setup: &Setup) {
        let named = settings.and_then(|settings| settings.get("env")?.get(settings::FOLDER)?.as_str());
        let wanted = settings::folder(&setup.environment);
        if named == wanted {
            return;
        }
        let shown = |folder: Option<&str>| folder.map_or("the usual one".to_owned(), |folder| format!("`{folder}`"));
        self.list.warn(
            format!(
                "agents are in another mesh than this command line: their data folder is {}, by {}, and not {}",
                shown(named),
                place.settings,
                shown(wanted)
            ),
            AGAIN,
        );
    }

    /// The same server in two scopes gives every agent each tool twice, and runs each hook twice.
    fn duplicates(&mut self, setup: &Setup) -> Result<(), Error> {
        let config = Root::open("config")?;
        let in_plugin = config.read_text(user::MANIFEST)?.is_some_and(|text| user::is_our_manifest(&text));
        if setup.scope == Scope::Project && in_plugin {
            self.list.warn(
                "relay-mesh is also installed for every project of this user, so hooks run twice here".to_owned(),
                "run `relay-mesh uninstall claude-code` in this project, or with --user for every project",
            );
        }
        if let Some(plugin) = marketplace::plugin()? {
            plugin.warn_of_both(&mut self.list, setup.scope);
        }
        self.by_hand()
    }

    /// Servers of ours that the user has added.
    fn by_hand(&mut self) -> Result<(), Error> {
        // If CLAUDE_CONFIG_DIR is set, the user's own list of servers is in that folder.
        let own =
            Root::open("config")?.read_text(".claude.json")?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        for other in servers::aliases(own.as_ref(), "mcpServers", "") {
            self.list.warn(
                format!("relay-mesh is also set up by hand for this user, as the server `{other}`"),
                "run `claude mcp remove --scope user` for it",
            );
        }
        Ok(())
    }
}
